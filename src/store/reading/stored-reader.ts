import type { RunCheckpoint, RunHead } from '../../record/checkpoint.ts';
import {
  definitionOfParked,
  dueOfRecord,
  type InterruptedRun,
  interruptedRun,
  quarantinedRun,
} from '../../record/interrupted.ts';
import type { KeptRun } from '../../record/kept-run.ts';
import { MAX_WAITING, type SentCommand } from '../../run/command.ts';
import type { RunOutcome } from '../../run/result.ts';
import { PawlError } from '../../values/error-codes.ts';
import { CheckpointCorruptError } from '../../values/errors.ts';
import { nextTurn } from '../../values/event-loop.ts';
import { isMessages, type Message } from '../../values/message.ts';
import { DAMAGED_TEXT, decodeCommand, sentCommand } from '../commands.ts';
import { shownDue } from '../due.ts';
import type { DueList, DueRun, ListDueOptions } from '../due-port.ts';
import { decodeHead, decodeRecord, parseStored } from '../encoding/encode.ts';
import type { Encryption } from '../encoding/encryption.ts';
import { messagesFrom, stepText } from '../encoding/encryption.ts';
import { keysOf } from '../encoding/filed.ts';
import { RunTexts, type StoredPieces } from '../encoding/piece-refs.ts';
import { withoutStep, withStep } from '../encoding/step-texts.ts';
import type { ListEndedOptions } from '../history-port.ts';
import type { JournalPage, LoadPartOptions, ReadEventsOptions, RecordPart } from '../journal-port.ts';
import { isDeadProcess } from '../owner.ts';
import type { Cursor, InboxOf, ListOptions, LoadOptions } from '../port.ts';
import { type IsDead, isHeld, refuseDamaged } from '../rules/lease.ts';
import type { ListedHead, MessageReader, PartReader, StoreDriver } from '../store-driver.ts';
import { loadEvents } from './journal-page.ts';
import { decodeEntry } from './kept-entry.ts';

type ReadableRun = Extract<InterruptedRun, { readonly meta: unknown }>;

const noPieces: StoredPieces = new Map();

/** How many entries of ended runs are read in one turn of the event loop. */
const MAX_ENDED_PAGE = 500;

/** Decrypts and decodes the stored texts that a driver reads: records, lists, outcomes and commands. */
export class StoredReader {
  readonly #driver: StoreDriver;
  readonly #encryption: Encryption;

  constructor(driver: StoreDriver, encryption: Encryption) {
    this.#driver = driver;
    this.#encryption = encryption;
  }

  async load(
    runId: string,
    { signal, ended = false, messages: wanted }: LoadOptions = {},
  ): Promise<RunCheckpoint | null> {
    signal?.throwIfAborted();
    const bare = wanted === false ? await this.#bareRecord(runId, ended) : undefined;
    if (bare !== undefined) return bare;
    const texts = new RunTexts(this.#encryption, runId);
    const messages = new Messages(texts);
    const live = await this.#driver.load(runId, messages, signal);
    const stored = live ?? (ended ? await this.#driver.history?.load(runId, messages, signal) : null);
    if (!stored) return null;
    const { meta, head, extras, pieces = noPieces, step = [], attempts } = stored;
    const stepTexts = step.map((text, place) => texts.open(text, stepText(place)));
    const opened = {
      runId,
      meta: texts.open(meta, 'meta'),
      head: withStep(texts.whole(head, 'head', pieces), stepTexts),
      extras: extras === null ? null : texts.open(extras, 'extras'),
      messages: messages.all,
    };
    return decodeRecord(opened, attempts);
  }

  /** A record without its messages; undefined where only the whole record can be read. */
  async #bareRecord(runId: string, ended: boolean): Promise<RunCheckpoint | null | undefined> {
    const stored = await this.#driver.journal?.content(runId, { from: 0, to: 0 }, () => false);
    if (stored === null || (stored?.hasEnded && !ended)) return null;
    if (stored?.meta === undefined) return undefined;
    const { head, pieces = noPieces, attempts } = stored;
    const texts = new RunTexts(this.#encryption, runId);
    const meta = texts.open(stored.meta, 'meta');
    const opened = { runId, meta, head: withoutStep(texts.whole(head, 'head', pieces)) };
    return { ...decodeHead(opened, attempts), messages: [] };
  }

  /** A record with its open step and some of its messages. */
  async part(runId: string, { from, to, ended = false }: LoadPartOptions): Promise<RecordPart | null> {
    const texts = new RunTexts(this.#encryption, runId);
    const read = new Map<number, Message>();
    const row: PartReader = (first, text, pieces = noPieces) => {
      const messages = parseStored(texts.whole(text, messagesFrom(first), pieces), 'messages');
      if (!isMessages(messages))
        throw new CheckpointCorruptError('this record is damaged: its messages cannot be read');
      for (const [at, message] of (messages as Message[]).entries()) read.set(first + at, message);
      return true;
    };
    const { journal } = this.#driver;
    const bare = await journal?.content(runId, { from: 0, to: 0 }, () => false);
    if (bare && bare.meta === undefined) return this.#partOfWhole(runId, { from, to, ended });
    // What is read with the messages is as new as they are.
    const stored = bare && from < to ? await journal?.content(runId, { from, to }, row) : bare;
    if (!stored || !bare || (stored.hasEnded && !ended)) return null;
    const { head, pieces = noPieces, step = [], messageCount, attempts = bare.attempts } = stored;
    const steps = step.map((text, place) => texts.open(text, stepText(place)));
    const opened = {
      runId,
      meta: texts.open(bare.meta ?? '', 'meta'),
      head: withStep(texts.whole(head, 'head', pieces), steps),
      extras: null,
      messages: [...read].filter(([at]) => at >= from && at < to).map(([, message]) => message),
    };
    return { record: decodeRecord(opened, attempts), messageCount };
  }

  async #partOfWhole(runId: string, { from, to, ended }: LoadPartOptions): Promise<RecordPart | null> {
    const record = await this.load(runId, { ended });
    const { messages = [] } = record ?? {};
    return record && { record: { ...record, messages: messages.slice(from, to) }, messageCount: messages.length };
  }

  async list(options: ListOptions): Promise<InterruptedRun[]> {
    const { after, limit = Number.POSITIVE_INFINITY, signal, status, callerId } = options;
    signal?.throwIfAborted();
    const callers = callerId === undefined ? undefined : keysOf(callerId, 'caller', this.#encryption);
    const isWanted = (run: InterruptedRun) =>
      callerId === undefined || (run.status !== 'quarantined' && run.meta.callerId === callerId);
    const { runsPerPage = Number.POSITIVE_INFINITY } = this.#driver;
    const listed: InterruptedRun[] = [];
    for (let from: Cursor | undefined = after; listed.length < limit; ) {
      const most = Math.min(runsPerPage, limit - listed.length);
      const heads = await this.#driver.list({
        after: from,
        limit: most,
        signal,
        resting: status === 'waiting',
        callers,
      });
      const isDead = this.#lookOnce();
      listed.push(...heads.map((head) => this.#listed(head, isDead)).filter(isWanted));
      from = heads.at(-1);
      if (from === undefined || heads.length < most) break;
      await nextTurn();
      signal?.throwIfAborted();
    }
    return listed;
  }

  /** Runs of earlier versions that are parked, or belong to a host's machine, are not marked as such: only their heads say it. */
  async due(options: ListDueOptions): Promise<DueList> {
    const runs: DueRun[] = [];
    for (let after = options.after; ; ) {
      const limit = options.limit - runs.length;
      const page = await this.#driver.due?.list({ ...options, after, limit });
      const { now = 0, heads = [], nextAt } = page ?? {};
      for (const head of heads) runs.push(...[this.dueRun(head) ?? []].flat());
      const last = heads.at(-1);
      if (!last || heads.length < limit || runs.length === options.limit) {
        return { now, runs, ...(nextAt === undefined ? {} : { nextAt }) };
      }
      after = { dueAt: last.due ?? 0, runId: last.runId };
    }
  }

  /**
   * The entry of a due run. An unreadable record has none: it is in the list of all runs, as quarantined.
   * @param definitions a run that was parked for one of these has an entry too
   */
  dueRun(stored: ListedHead, definitions: readonly string[] = []): DueRun | undefined {
    const { runId, due, lease, fair = '' } = stored;
    try {
      const head = this.#headOf(stored);
      const definition = definitionOfParked(head);
      const isFound = definition ? definitions.includes(definition) : dueOfRecord(head) !== 'never';
      if (!isFound) return undefined;
      const { meta, attempts = 0, parent } = interruptedRun(head) as ReadableRun;
      const rest = {
        ...(parent ? { parent } : {}),
        ...(fair === '' ? {} : { fairKey: fair }),
        ...(definition ? { definition } : {}),
      };
      return { runId, dueAt: due ?? 0, attempts: lease?.attempts ?? attempts, meta, ...rest };
    } catch {
      return undefined;
    }
  }

  async outcome(runId: string): Promise<RunOutcome | null> {
    const text = await this.#driver.outcomes.find(runId);
    if (text === null) return null;
    return parseStored(this.#encryption.open(text, runId, 'outcome'), 'outcome') as RunOutcome;
  }

  /** An entry that cannot be read belongs to no known agent or caller. */
  async listEnded({ limit, after, agentId, callerId }: ListEndedOptions): Promise<KeptRun[]> {
    const agents = agentId === undefined ? undefined : keysOf(agentId, 'agent', this.#encryption);
    const callers = callerId === undefined ? undefined : keysOf(callerId, 'caller', this.#encryption);
    const isWanted = (run: KeptRun) => {
      const isOf = (field: 'agentId' | 'callerId', id?: string) =>
        id === undefined || (run.status !== 'quarantined' && run.meta[field] === id);
      return isOf('agentId', agentId) && isOf('callerId', callerId);
    };
    const runs: KeptRun[] = [];
    for (let from = after; runs.length < limit; ) {
      const most = Math.min(limit - runs.length, MAX_ENDED_PAGE);
      const heads = (await this.#driver.history?.list({ after: from, limit: most, agents, callers })) ?? [];
      runs.push(...heads.map((head) => decodeEntry(head, this.#encryption)).filter(isWanted));
      from = heads.at(-1);
      if (from === undefined || heads.length < most) break;
      await nextTurn();
    }
    return runs;
  }

  /** A damaged command counts as never sent: it must not block the others. */
  async inbox(of: InboxOf): Promise<SentCommand[]> {
    const sent: SentCommand[] = [];
    for (const { runId, text, seq, sentAt } of await this.#driver.commands.inbox(of)) {
      if (sent.length === MAX_WAITING) break;
      try {
        const command = decodeCommand(this.#encryption.open(text, runId, 'command'));
        sent.push(sentCommand(runId, command, { seq, sentAt }));
      } catch (error) {
        if (!(error instanceof PawlError)) throw error;
      }
    }
    return sent;
  }

  /**
   * Finds out whether all commands of a run after `readUpTo` are damaged: no process will ever read them.
   * @returns the number of the last of them; undefined if one can be read, or there are none
   */
  async findDamage(runId: string, readUpTo: number): Promise<number | undefined> {
    let last: number | undefined;
    for (const { text, seq = 0 } of await this.#driver.commands.inbox({ runId })) {
      if (seq <= readUpTo) continue;
      if (!this.#isDamaged(runId, text)) return undefined;
      last = Math.max(last ?? 0, seq);
    }
    return last;
  }

  async events(runId: string, page: ReadEventsOptions): Promise<JournalPage | null> {
    const { journal } = this.#driver;
    return journal ? loadEvents({ journal, encryption: this.#encryption }, runId, page) : null;
  }

  /** A command that only lacks its key is not damaged. */
  #isDamaged(runId: string, text: string): boolean {
    if (text === DAMAGED_TEXT) return true;
    try {
      decodeCommand(this.#encryption.open(text, runId, 'command'));
      return false;
    } catch (error) {
      return error instanceof CheckpointCorruptError;
    }
  }

  #listed(stored: ListedHead, isDead: IsDead): InterruptedRun {
    const { runId, updatedAt, lease, now, due } = stored;
    try {
      const owner = isHeld(lease, now, isDead) ? lease.owner : undefined;
      return interruptedRun(this.#headOf(stored), owner, shownDue(due));
    } catch (reason) {
      return quarantinedRun({ runId, updatedAt }, reason);
    }
  }

  /** Reads the head of a stored record. @throws {PawlError} if it cannot be read, or was found damaged */
  #headOf({ runId, meta, head, pieces = noPieces, lease, error }: ListedHead): RunHead {
    if (error !== undefined) throw error;
    refuseDamaged(lease);
    const texts = new RunTexts(this.#encryption, runId);
    const openedMeta = texts.open(meta, 'meta');
    const opened = { runId, meta: openedMeta, head: withoutStep(texts.whole(head, 'head', pieces)) };
    return decodeHead(opened, lease?.attempts);
  }

  /** A system call finds out whether an owner is alive; once per owner is enough for a page. */
  #lookOnce(): IsDead {
    const dead = new Map<string, boolean>();
    return (owner) => {
      const isDead = dead.get(owner) ?? this.#driver.isDead?.(owner) ?? isDeadProcess(owner);
      dead.set(owner, isDead);
      return isDead;
    };
  }
}

class Messages implements MessageReader {
  readonly all: unknown[] = [];
  readonly #texts: RunTexts;

  constructor(texts: RunTexts) {
    this.#texts = texts;
  }

  get count(): number {
    return this.all.length;
  }

  add(text: string, pieces: StoredPieces = noPieces): void {
    const parsed = parseStored(this.#texts.whole(text, messagesFrom(this.count), pieces), 'messages');
    if (!Array.isArray(parsed) || parsed.length === 0) {
      throw new CheckpointCorruptError('this record is damaged: its messages are missing or not what they should be');
    }
    for (const message of parsed) this.all.push(message);
  }

  keep(count: number): void {
    if (count < this.all.length) this.all.length = count;
  }
}
