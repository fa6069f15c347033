/// <reference lib="esnext.disposable" preserve="true" />
import type { Codec } from '../codec/port.ts';
import { type DayTotals, dayTotalsOf, type TotalsRow } from '../record/totals.ts';
import { checkRunId } from '../run/identity.ts';
import { type Clock, systemClock } from '../values/clock.ts';
import { checkKeys, type KnownKeys } from '../values/known-options.ts';
import { dropEncoding } from '../values/message.ts';
import { encodeCommand } from './commands.ts';
import { deliveryGroup, deliveryOf } from './deliveries/deliveries.ts';
import { toDue } from './due.ts';
import type { DueStore } from './due-port.ts';
import { encodeOutcome } from './encoding/encode.ts';
import { Encryption } from './encoding/encryption.ts';
import { BodyWriter, charsOf, type StoredBody } from './encoding/stored-body.ts';
import { journalRows, storedJournal } from './encoding/stored-journal.ts';
import type { EndOptions, HistoryStore } from './history-port.ts';
import type { JournalStore } from './journal-port.ts';
import { limitGroup } from './limits/buckets.ts';
import type { Claim, CommandStore, OutcomeStore, WaitStore, WriteOptions } from './port.ts';
import { encodeEnd } from './reading/kept-entry.ts';
import { StoredReader } from './reading/stored-reader.ts';
import type { Decide, Writer } from './rules/decision.ts';
import * as historyRules from './rules/history.ts';
import * as inboxRules from './rules/inbox.ts';
import * as ownerRules from './rules/ownership.ts';
import * as writeRules from './rules/writes.ts';
import { scheduleGroup } from './schedules/schedules.ts';
import type { DueDriver, HistoryDriver, JournalDriver, StoreDriver, StoreWrite, WriteKind } from './store-driver.ts';
import type { FullStore, StoreOf } from './store-of.ts';
import { checkDeployment, takingMethods } from './taking/taking-methods.ts';
import { Threads, threadGroup } from './threads/threads.ts';
import { ThreadTexts } from './threads/turn-text.ts';
import { expectWrite, signalWrite, type WaitDriver } from './topics.ts';

export interface StoreFromOptions {
  /** Encrypts the stored texts: see `encrypt`. */
  readonly codec?: Codec | undefined;
  /**
   * Stores the large parts of a head once and names them in heads and messages: a step with several saves writes less. The
   * driver must then keep `body.blobs`. Default `false`.
   */
  readonly blobs?: boolean | undefined;
  /**
   * Stores the open step of a message with many calls beside the head, and only the changed calls of it. A message with n
   * calls that have effects then costs bytes and CPU in proportion to n. The driver must then keep
   * `body.step` (see `stepAfter`) and return its texts from `load`. Default `false`.
   */
  readonly steps?: boolean | undefined;
  /** When the memory of a delta's encoded messages is freed: `before` the write, or `after` it (the default). */
  readonly dropEncoding?: 'before' | 'after' | undefined;
  /** For tests: the clock of the minute sweep. */
  readonly clock?: Clock | undefined;
}

const optionKeys: KnownKeys<StoreFromOptions> = {
  codec: true,
  blobs: true,
  steps: true,
  dropEncoding: true,
  clock: true,
};

/** The shared parts of a store. */
interface Parts {
  readonly driver: StoreDriver;
  readonly encryption: Encryption;
  readonly bodies: BodyWriter;
  readonly dropsBefore: boolean;
  readonly sweep: Sweep;
}

/**
 * Makes a store of a driver. It adds the rules (who may write, which revision fits, attempts, epochs, inboxes), the texts of
 * records, encryption and lists.
 *
 * The methods are functions of the object itself, so that hosts may wrap a store by spreading it.
 *
 * @throws {TypeError} for an unknown option
 * @example const store = storeFrom(new RedisDriver(client), { codec: encrypt({ key }) })
 */
export function storeFrom<D extends StoreDriver>(driver: D, options: StoreFromOptions = {}): StoreOf<D> {
  checkKeys(options, optionKeys, { of: 'storeFrom' });
  const { blobs = false, steps = false, clock = systemClock } = options;
  const encryption = new Encryption(options.codec);
  const parts: Parts = {
    ...{ driver, encryption, dropsBefore: options.dropEncoding === 'before', sweep: new Sweep(driver, clock) },
    bodies: new BodyWriter({ encryption, blobs, steps }),
  };
  const reader = new StoredReader(driver, encryption);
  const threads = threadsOf(parts, reader, clock);
  const close = async () => {
    parts.sweep.end();
    await driver.close?.();
  };
  return {
    ...recordWrites(parts),
    outcomes: outcomeStore(parts, reader),
    ...(driver.deliveries ? { deliveries: deliveryGroup(driver.deliveries, parts) } : {}),
    ...ownership(parts),
    commands: commandStore(parts, reader),
    ...(driver.due ? { due: dueStore(driver.due, parts, { reader, clock }) } : {}),
    ...(driver.waits && driver.due ? { waits: waitStore(driver.waits, parts, clock) } : {}),
    ...(driver.history ? { history: historyStore(driver.history, parts, { reader, threads }) } : {}),
    ...(threads ? { threads: threadGroup(threads) } : {}),
    ...(driver.schedules && driver.due ? { schedules: scheduleGroup(driver.schedules, parts) } : {}),
    ...(driver.limits ? { limits: limitGroup(driver.limits) } : {}),
    load: async (runId, options = {}) => reader.load(checkRunId(runId), options),
    ...(driver.journal ? { journal: journalStore(driver.journal, encryption, reader) } : {}),
    ...(driver.changeMark ? { changeMark: async () => (driver as Required<StoreDriver>).changeMark() } : {}),
    listInterrupted: async (list = {}) => reader.list(list),
    close,
    [Symbol.asyncDispose]: close,
  } as FullStore as StoreOf<D>;
}

/** How often expired outcomes and records are removed, ms. */
const MINUTE_MS = 60_000;
/** Most rows of each kind that one process removes in a minute. Each end of a run removes some besides. */
const MAX_FORGOTTEN = 500;

/**
 * Removes what a store keeps only for a time, once a minute, from the first claim, end or look for due runs on. It does not keep
 * the process running.
 */
class Sweep {
  readonly #driver: StoreDriver;
  readonly #clock: Clock;
  #timer: unknown;
  #isEnded = false;

  constructor(driver: StoreDriver, clock: Clock) {
    this.#driver = driver;
    this.#clock = clock;
  }

  /** A second call does nothing, and so does a call for a driver that keeps nothing for a time. */
  begin(): void {
    if (this.#isEnded || this.#timer !== undefined || !this.#isKeeping()) return;
    this.#timer = this.#clock.setTimeout(() => {
      this.#timer = undefined;
      void this.#forget();
      this.begin();
    }, MINUTE_MS);
    // The timers of a test clock are not Node timers.
    (this.#timer as Partial<NodeJS.Timeout> | undefined)?.unref?.();
  }

  #isKeeping(): boolean {
    const { outcomes, history } = this.#driver;
    return outcomes.forget !== undefined || history !== undefined;
  }

  end(): void {
    this.#isEnded = true;
    this.#clock.clearTimeout(this.#timer);
  }

  async #forget(): Promise<void> {
    const options = { dryRun: false, limit: MAX_FORGOTTEN };
    const { outcomes, history } = this.#driver;
    for (const kept of [outcomes, history]) {
      try {
        await kept?.forget?.(options);
      } catch {
        // The driver may be a host's: nothing that it throws may end the process.
      }
    }
  }
}

function recordWrites(parts: Parts): Pick<FullStore, 'save' | 'append' | 'delete'> {
  const { driver, bodies, dropsBefore } = parts;
  const { write, by } = writing(driver);
  const withJournal = (body: StoredBody, { events }: WriteOptions): StoredBody => {
    const journal = events && driver.journal && storedJournal(body.runId, events, parts.encryption);
    return journal ? { ...body, journal } : body;
  };
  return {
    save: async (record, options = {}) => {
      options.signal?.throwIfAborted();
      const body = withJournal(bodies.ofRecord(record, options.fairKey), options);
      const toSave = options.reopens ? { ...body, reopens: true } : body;
      await write('save', writeRules.saveRecord(toSave, by(options)), { body, ...options });
      record.messages.forEach(dropEncoding);
    },
    append: async (delta, options = {}) => {
      options.signal?.throwIfAborted();
      const body = withJournal(bodies.ofDelta(delta), options);
      // The body has it now. If the write fails, the next one encodes it again.
      if (dropsBefore) delta.messages.forEach(dropEncoding);
      const decide = writeRules.appendDelta(body, by(options));
      let isNew = false;
      const noting: typeof decide = (facts) => {
        const decision = decide(facts);
        isNew = 'change' in decision;
        return decision;
      };
      await write('append', noting, { body, ...options });
      if (!isNew) bodies.wasThere(delta);
      if (!dropsBefore) delta.messages.forEach(dropEncoding);
    },
    delete: async (runId, options = {}) => {
      options.signal?.throwIfAborted();
      const decide = writeRules.deleteRun(checkRunId(runId), by(options));
      await driver.write(
        { kind: 'delete', runId, decide, size: 0, hasClaim: options.claim !== undefined },
        options.signal,
      );
      bodies.forget(runId);
    },
  };
}

function writing(driver: StoreDriver) {
  const isDead = driver.isDead && ((owner: string) => driver.isDead?.(owner) ?? false);
  const keepsDue = driver.due !== undefined;
  const by = ({ claim }: WriteOptions): Writer => ({ claim, isDead, keepsDue });
  const write = (
    kind: WriteKind,
    decide: Decide<void>,
    { body, claim, signal }: WriteOptions & { readonly body: StoredBody },
  ) =>
    driver.write({ kind, runId: body.runId, decide, body, size: charsOf(body), hasClaim: claim !== undefined }, signal);
  return { write, by, isDead };
}

function outcomeStore({ driver, encryption, sweep }: Parts, reader: StoredReader): OutcomeStore {
  const { by } = writing(driver);
  return {
    keep: async (runId, outcome, untilMs, options = {}) => {
      options.signal?.throwIfAborted();
      const text = encryption.seal(encodeOutcome(outcome), checkRunId(runId), 'outcome');
      const deliver = driver.deliveries && deliveryOf(outcome, options.undelivered, encryption);
      const decide = writeRules.keepOutcome({ runId, text, untilMs, deliver }, by(options));
      const hasClaim = options.claim !== undefined;
      await driver.write({ kind: 'keep', runId, decide, size: text.length, hasClaim }, options.signal);
      if (driver.outcomes.forget) sweep.begin();
    },
    find: async (runId) => reader.outcome(checkRunId(runId)),
    forget: async ({ dryRun = false } = {}) => (await driver.outcomes.forget?.({ dryRun })) ?? 0,
  };
}

function ownership({ driver, sweep }: Parts): Pick<FullStore, 'claim' | 'renew' | 'release'> {
  const { isDead } = writing(driver);
  const owned = <T>(kind: WriteKind, { runId }: Claim, decide: Decide<T>) =>
    driver.write({ kind, runId, decide, size: 0, hasClaim: true });
  return {
    claim: async (runId, owner, ttlMs, options = {}) => {
      const deployment = checkDeployment('deployment', options.deployment);
      const decide = ownerRules.claimRun({ runId: checkRunId(runId), owner, ttlMs, deployment }, { isDead });
      const claim = await driver.write({ kind: 'claim', runId, decide, size: 0, hasClaim: false });
      if (driver.outcomes.forget) sweep.begin();
      return claim;
    },
    renew: async (claim, ttlMs) => owned('renew', claim, ownerRules.renewClaim(claim, ttlMs)),
    release: async (claim, options) => owned('release', claim, ownerRules.releaseClaim(claim, options)),
  };
}

function commandStore({ driver, encryption }: Parts, reader: StoredReader): CommandStore {
  const { commands } = driver;
  return {
    send: async (runId, command) => {
      const text = encryption.seal(encodeCommand(command), checkRunId(runId), 'command');
      const toSend = { runId, id: command.id, kind: command.kind, text };
      if (commands.send) return commands.send(toSend);
      const decide = inboxRules.sendCommand(toSend, { keepsDue: driver.due !== undefined });
      await driver.write({ kind: 'send', runId, decide, size: text.length, hasClaim: false });
    },
    inbox: async (of) => reader.inbox(of),
    acknowledge: async (claim, ids) => {
      if (commands.acknowledge) return commands.acknowledge(claim, ids);
      const decide = inboxRules.acknowledge(claim, ids);
      await driver.write({ kind: 'acknowledge', runId: claim.runId, decide, size: 0, hasClaim: true });
    },
  };
}

function dueStore(due: DueDriver, { driver, encryption, sweep }: Parts, { reader, clock }: Reading): DueStore {
  return {
    leave: async (claim, { dueAt, readUpTo, attempts, givenBack }) => {
      const { runId } = claim;
      const at = toDue(dueAt, givenBack);
      for (let upTo: number | undefined = readUpTo; upTo !== undefined; ) {
        const decide = ownerRules.leaveRun(claim, { due: at, readUpTo: upTo, attempts });
        if (await driver.write({ kind: 'leave', runId, decide, size: 0, hasClaim: true })) return true;
        upTo = await reader.findDamage(runId, upTo);
      }
      return false;
    },
    list: async (page) => {
      sweep.begin();
      return reader.due(page);
    },
    ...takingMethods(due, {
      ...{ driver, encryption, clock, isDead: writing(driver).isDead },
      dueRun: (head, definitions) => reader.dueRun(head, definitions),
      onTake: () => sweep.begin(),
    }),
    countResting: async () => due.countResting(),
    countRuns: async () => due.countRuns(),
  };
}

/** What the reads of a store need of it. */
interface Reading {
  readonly reader: StoredReader;
  readonly clock: Clock;
}

function waitStore(waits: WaitDriver, { encryption }: Parts, clock: Clock): WaitStore {
  return {
    expect: async (claim, wait) => waits.expect(expectWrite(claim, wait, encryption)),
    signal: async (signal) => {
      const to = await waits.signal(signalWrite(signal, encryption, clock.now()));
      return to === undefined ? {} : { to };
    },
  };
}

function historyStore(
  history: HistoryDriver,
  { driver, encryption, bodies, sweep }: Parts,
  { reader, threads }: Pick<Reading, 'reader'> & { readonly threads: Threads | undefined },
): HistoryStore {
  const { isDead } = writing(driver);
  return {
    end: async (claim, options) => {
      const { undelivered, ...rest } = options;
      const write = endWrite(claim, { ...rest, ...(driver.deliveries ? { undelivered } : {}) }, encryption);
      const { turn } = options;
      const admitted = turn && threads ? await threads.end({ ...turn, runId: claim.runId }, write) : undefined;
      if (!turn || !threads) await driver.write(write);
      bodies.forget(write.runId);
      sweep.begin();
      return admitted ? { admitted } : {};
    },
    list: async (page) => reader.listEnded(page),
    erase: async (runId) => {
      const decide = historyRules.eraseRun(checkRunId(runId), { isDead });
      await driver.write({ kind: 'erase', runId, decide, size: 0, hasClaim: false });
      bodies.forget(runId);
    },
    forget: async ({ dryRun = false } = {}) => history.forget({ dryRun }),
    totals: async (range = {}) => totalsIn(await history.totals(range)),
  };
}

function totalsIn(rows: readonly TotalsRow[]): DayTotals[] {
  const placeOf = ({ day, status }: TotalsRow) => `${day} ${status}`;
  return rows.toSorted((a, b) => (placeOf(a) < placeOf(b) ? -1 : 1)).map(dayTotalsOf);
}

function threadsOf({ driver, encryption, bodies }: Parts, reader: StoredReader, clock: Clock): Threads | undefined {
  const { threads, due, history } = driver;
  if (!threads || !due || !history) return undefined;
  return new Threads({
    driver: threads,
    encryption,
    bodies,
    texts: new ThreadTexts(encryption),
    now: () => clock.now(),
    isDead: writing(driver).isDead,
    messagesOf: async (runId) => (await reader.load(runId, { ended: true }))?.messages ?? [],
  });
}

/** The write that ends a run. */
function endWrite(claim: Claim, options: EndOptions, encryption: Encryption): StoreWrite<void> {
  const runId = checkRunId(claim.runId);
  const toEnd = encodeEnd(runId, options, encryption);
  const size = toEnd.ended.text.length + (toEnd.outcome?.text.length ?? 0);
  return { kind: 'end', runId, decide: historyRules.endRun(claim, toEnd), size, hasClaim: true };
}

function journalStore(journal: JournalDriver, encryption: Encryption, reader: StoredReader): JournalStore {
  return {
    publish: async (runId, entries, { claim, signal }) => {
      signal?.throwIfAborted();
      const rows = journalRows(checkRunId(runId), entries, encryption);
      if (rows.length > 0) await journal.publish({ claim, rows }, signal);
    },
    read: async (runId, page) => reader.events(checkRunId(runId), page),
    loadPart: async (runId, options) => reader.part(checkRunId(runId), options),
  };
}
