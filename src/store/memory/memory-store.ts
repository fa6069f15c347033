import { addTotals, isInRange, type TotalsRow } from '../../record/totals.ts';
import { type Clock, systemClock } from '../../values/clock.ts';
import { checkKeys } from '../../values/known-options.ts';
import { type CountedHead, countAmong } from '../counting/counts.ts';
import { dueAmong, endedPageOf, pageOf } from '../cursor.ts';
import type { DeliveryDriver } from '../deliveries/deliveries.ts';
import { isResting } from '../due.ts';
import type { MessageRow } from '../encoding/encryption.ts';
import { type StepTexts, stepAfter } from '../encoding/step-texts.ts';
import type { StoredBody } from '../encoding/stored-body.ts';
import type { JournalRow, StoredJournal } from '../encoding/stored-journal.ts';
import { type Bucket, IDLE_MS, type LimitDriver, REMOVED_AT_ONCE } from '../limits/buckets.ts';
import { type Change, decideNow } from '../rules/decision.ts';
import { sendCommand } from '../rules/inbox.ts';
import { checkClaim } from '../rules/lease.ts';
import { noteRow } from '../schedules/note-row.ts';
import type {
  CommandDriver,
  DueDriver,
  HistoryDriver,
  JournalDriver,
  ListedHead,
  ListPage,
  MessageRange,
  MessageReader,
  OutcomeDriver,
  PartReader,
  RowsPage,
  ScheduleDriver,
  ScheduleRow,
  ScheduleWrite,
  StoreDriver,
  StoredPart,
  StoredTexts,
  StoreWrite,
} from '../store-driver.ts';
import { storeFrom } from '../store-from.ts';
import type { WholeStore } from '../store-of.ts';
import { takeAmong } from '../taking/in-turns.ts';
import { MemoryThreads } from './memory-threads.ts';
import { MemoryTopics } from './memory-topics.ts';
import {
  changedValue,
  commandsIn,
  deliveriesAmong,
  endedIn,
  factsOfValue,
  headsIn,
  isStale,
  type RecordValue,
  type RunValue,
  type StoreTimes,
} from './run-value.ts';

/** The store of `memoryStore`. */
export interface MemoryStore extends WholeStore {}

/**
 * A store in this process's memory, for tests and for hosts that want claims and listings without files. It does not survive a
 * restart: use `sqliteStore` for that.
 *
 * It keeps JSON text, so the stored data shares no object with callers.
 */
export function memoryStore(options: { readonly clock?: Clock | undefined } = {}): MemoryStore {
  checkKeys(options, { clock: true }, { of: 'memoryStore' });
  const { clock = systemClock } = options;
  return storeFrom(new MemoryDriver(clock), { clock, steps: true });
}

class MemoryDriver implements StoreDriver {
  readonly #times: StoreTimes;
  readonly #runs = new Map<string, RunValue>();
  #changes = 0;
  /** The totals of days, by day and status. */
  readonly #totals = new Map<string, TotalsRow>();
  /** The messages of each record, in rows. */
  readonly #rows = new Map<string, MessageRow[]>();
  /** The texts of the large open step of each record that has one. */
  readonly #steps = new Map<string, string[]>();
  /** The runs with kept outcomes, in the order of their keeping. */
  readonly #keeping = new Set<string>();
  readonly waits: MemoryTopics;
  readonly #journals = new MemoryJournal();
  readonly journal: JournalDriver = {
    publish: async ({ claim, rows }) => {
      const run = this.#runs.get(claim.runId);
      checkClaim(run?.lease, claim);
      if (run?.record) this.#journals.add(claim.runId, { rows });
    },
    read: async (runId, page) => (this.#recordOf(runId) ? this.#journals.read(runId, page) : null),
    content: async (runId, range, row) => this.#content(runId, range, row),
  };
  readonly commands: CommandDriver = {
    inbox: async (of) => {
      if ('runId' in of) return commandsIn(this.#runs.get(of.runId) ?? {});
      return [...this.#runs.values()].flatMap((value) => (value.lease?.owner === of.owner ? commandsIn(value) : []));
    },
  };
  readonly outcomes: OutcomeDriver = {
    find: async (runId) => this.#run(runId)?.kept?.text ?? null,
  };
  readonly history: HistoryDriver = {
    load: async (runId, messages) => {
      const ended = this.#run(runId)?.ended;
      return ended ? this.#texts(runId, ended.record, messages) : null;
    },
    list: async (page) => {
      const runs = [...this.#runs.keys()].flatMap((runId) => {
        const ended = this.#run(runId)?.ended;
        return ended ? [{ runId, ...ended }] : [];
      });
      return endedPageOf(runs, page);
    },
    forget: async ({ dryRun }) => {
      const over = [...this.#runs].filter(([, value]) => value.ended && !endedIn(value, this.#times));
      if (!dryRun) for (const [runId] of over) this.#run(runId);
      return over.length;
    },
    totals: async (range) => [...this.#totals.values()].filter(({ day }) => isInRange(day, range)),
  };
  readonly due: DueDriver = {
    list: async (page) => dueAmong(this.#heads(), page, page.now ?? this.#times.now()),
    take: async (take) => {
      const heads = take.runIds
        ? [...take.runIds].flatMap((runId) => headsIn(runId, this.#runs.get(runId) ?? {}, this.#times))
        : this.#heads();
      return takeAmong(heads, take, { now: take.now ?? this.#times.now(), driver: this });
    },
    countResting: async () => {
      const now = this.#times.now();
      return this.#heads().filter(({ due }) => isResting(due, now)).length;
    },
    countRuns: async () => countAmong(this.#heads(), this.#times.now()),
  };
  readonly threads: MemoryThreads;
  readonly schedules: MemorySchedules;
  readonly limits: LimitDriver;
  /** The runs with ends that no process has delivered, in the order of their ends. */
  readonly #undelivered = new Set<string>();
  readonly deliveries: DeliveryDriver;

  constructor(clock: Clock) {
    this.#times = { leaseNow: () => clock.monotonic(), now: () => clock.now() };
    this.deliveries = deliveriesAmong({
      times: this.#times,
      runs: async () => [...this.#undelivered].map((runId) => [runId, this.#run(runId) ?? {}] as const),
      replace: async (runId, before, after) => this.#run(runId) === before && this.#put(runId, after) !== undefined,
    });
    this.waits = new MemoryTopics({
      now: () => clock.now(),
      check: (claim) => void checkClaim(this.#runs.get(claim.runId)?.lease, claim),
      hasCommand: (runId, id) => this.#runs.get(runId)?.inbox?.some((command) => command.id === id) ?? false,
      deliver: (command) => {
        if (!this.#runs.get(command.runId)?.record) return false;
        this.#write({ runId: command.runId, decide: sendCommand(command, { keepsDue: true }) });
        return true;
      },
    });
    this.limits = memoryLimits(clock);
    this.schedules = new MemorySchedules({
      isKnown: (runId) => this.#run(runId) !== undefined,
      write: (write) => this.#write(write),
    });
    this.threads = new MemoryThreads({
      decide: (write) => this.#decided(write),
      hasRecord: (runId) => this.#run(runId)?.record !== undefined,
      isKnown: (runId) => this.#run(runId) !== undefined,
    });
  }

  async write<T>(write: StoreWrite<T>): Promise<T> {
    return this.#write(write);
  }

  #write<T>({ runId, decide, body }: Pick<StoreWrite<T>, 'runId' | 'decide' | 'body'>): T {
    const { value, change } = decideNow(decide, factsOfValue(this.#run(runId), this.#times));
    if (change) this.#make(runId, change, body);
    return value;
  }

  /** A write that is made together with others, once all of them are decided. */
  #decided({ runId, decide, body }: StoreWrite<unknown>) {
    const facts = factsOfValue(this.#run(runId), this.#times);
    const { change } = decideNow(decide, facts);
    if (!change) return undefined;
    const { version = 0, revision = 0, messageCount = 0 } = this.#run(runId)?.record ?? {};
    return { ended: { version, revision, messageCount }, make: () => this.#make(runId, change, body) };
  }

  #make(runId: string, change: Change, body: StoredBody | undefined): void {
    const before = this.#run(runId);
    this.#put(runId, changedValue(before, { change, body }, this.#times));
    if (change.record === 'put') this.#rows.delete(runId);
    if (change.record === 'put' && !before?.record && !change.keepsJournal) this.#journals.remove(runId);
    if (change.record && body) this.#addRows(body);
    if (change.record && body) this.#putStep(runId, body.step);
    if (change.record && body?.journal) this.#journals.add(runId, body.journal);
    if (change.keep) this.#noteKept(runId);
    if (change.deliver) this.#undelivered.add(runId);
    if (change.end?.totals) addTotals(this.#totals, change.end.totals);
    if (change.remove || change.end || change.erase) this.waits.runGone(runId);
  }

  async load(runId: string, messages: MessageReader): Promise<StoredTexts | null> {
    const { record, lease } = this.#runs.get(runId) ?? {};
    return record ? { ...this.#texts(runId, record, messages), attempts: lease?.attempts } : null;
  }

  #texts(runId: string, { start, head }: RecordValue, messages: MessageReader): StoredTexts {
    for (const { text } of this.#rows.get(runId) ?? []) messages.add(text);
    // A copy: the next write may change the texts before the record is made of them.
    const step = this.#steps.get(runId)?.slice();
    return { ...start, head, step };
  }

  async list(page: ListPage): Promise<ListedHead[]> {
    return pageOf(this.#heads(), page, this.#times.now());
  }

  #heads(): CountedHead[] {
    return [...this.#runs].flatMap(([runId, value]) => headsIn(runId, value, this.#times));
  }

  async changeMark(): Promise<string> {
    return String(this.#changes);
  }

  /** The stored state of a run. What has expired is removed, even if the clock is set back later. */
  #run(runId: string): RunValue | undefined {
    const value = this.#runs.get(runId);
    if (!value || !isStale(value, this.#times)) return value;
    return this.#put(runId, changedValue(value, { change: {} }, this.#times));
  }

  #put(runId: string, value: RunValue | undefined): RunValue | undefined {
    this.#changes += 1;
    if (value) this.#runs.set(runId, value);
    else this.#runs.delete(runId);
    if (!value?.undelivered) this.#undelivered.delete(runId);
    if (value?.record || value?.ended) return value;
    this.#rows.delete(runId);
    this.#steps.delete(runId);
    this.#journals.remove(runId);
    return value;
  }

  /** The record of a run, also the kept one of a run that ended. */
  #recordOf(runId: string): RecordValue | undefined {
    const { record, ended } = this.#run(runId) ?? {};
    return record ?? ended?.record;
  }

  #content(runId: string, { from, to }: MessageRange, row: PartReader): StoredPart | null {
    const record = this.#recordOf(runId);
    if (!record) return null;
    const { record: live, lease } = this.#runs.get(runId) ?? {};
    for (const { first, count, text } of this.#rows.get(runId) ?? [])
      if (first < to && first + count > from && !row(first, text)) break;
    const { head, messageCount, start } = record;
    const part = { head, messageCount, meta: start.meta, step: this.#steps.get(runId)?.slice() };
    return { ...part, attempts: lease?.attempts, hasEnded: live === undefined };
  }

  #addRows({ runId, rows }: StoredBody): void {
    const stored = this.#rows.get(runId) ?? [];
    stored.push(...rows);
    this.#rows.set(runId, stored);
  }

  #putStep(runId: string, step: StepTexts | undefined): void {
    if (step) this.#steps.set(runId, stepAfter(this.#steps.get(runId) ?? [], step));
    else this.#steps.delete(runId);
  }

  /** Hosts keep outcomes for equal times, so the oldest expire first; the first unexpired one ends the search. */
  #noteKept(runId: string): void {
    this.#keeping.delete(runId);
    this.#keeping.add(runId);
    for (const oldest of this.#keeping) {
      if (this.#run(oldest)?.kept) return;
      this.#keeping.delete(oldest);
    }
  }
}

/** The buckets of a memory store; the one that was charged last comes last. */
function memoryLimits(clock: Clock): LimitDriver {
  const buckets = new Map<string, Bucket>();
  const removeIdle = (now: number) => {
    let left = REMOVED_AT_ONCE;
    for (const [id, bucket] of buckets) {
      if (left-- === 0) return;
      buckets.delete(id);
      if (bucket.idleAt >= now - IDLE_MS) buckets.set(id, bucket);
    }
  };
  return {
    charge: async (ids, decide) => {
      const now = clock.now();
      removeIdle(now);
      const stored = ids.flatMap((id) => buckets.get(id) ?? []).map(({ id, next }) => [id, next] as const);
      const { buckets: charged, ...taken } = decide(new Map(stored), now);
      for (const bucket of charged) {
        buckets.delete(bucket.id);
        buckets.set(bucket.id, bucket);
      }
      return taken;
    },
  };
}

/** The schedules of a memory store. */
class MemorySchedules implements ScheduleDriver {
  readonly #runs: { isKnown(runId: string): boolean; write(write: StoreWrite<void>): void };
  readonly #rows = new Map<string, ScheduleRow>();

  constructor(runs: { isKnown(runId: string): boolean; write(write: StoreWrite<void>): void }) {
    this.#runs = runs;
  }

  async list(): Promise<ScheduleRow[]> {
    return [...this.#rows.values()];
  }

  async write(write: ScheduleWrite): Promise<boolean> {
    const stored = this.#rows.get(write.row.id) ?? null;
    const isKnown = write.run !== undefined && this.#runs.isKnown(write.run.runId);
    const { isNoted, isNew, run } = noteRow(write, { stored, isKnown });
    if (run) this.#runs.write(run);
    if (isNew) this.#rows.set(write.row.id, write.row);
    return isNoted;
  }
}

/** The journals of a memory store: rows by run. */
class MemoryJournal {
  readonly #rows = new Map<string, JournalRow[]>();

  add(runId: string, { rows, dropTo = -1 }: StoredJournal): void {
    const isStale = (row: JournalRow) => !row.isKept && row.place <= dropTo;
    const isReplaced = (row: JournalRow) => rows.some((each) => each.isKept === row.isKept && each.place === row.place);
    const before = this.#rows.get(runId) ?? [];
    // Nearly every row comes after all others.
    const isClean = dropTo < 0 && rows.every((row) => row.place > (before.at(-1)?.place ?? -1));
    const kept = isClean ? before : before.filter((row) => !isStale(row) && !isReplaced(row));
    kept.push(...rows);
    if (!isClean) kept.sort((a, b) => a.place - b.place);
    this.#rows.set(runId, kept);
  }

  remove(runId: string): void {
    this.#rows.delete(runId);
  }

  read(runId: string, { after: from, limit, newest }: RowsPage): JournalRow[] {
    const rows = this.#rows.get(runId) ?? [];
    const before = newest === undefined ? undefined : rows.filter(({ isKept }) => isKept).at(-1 - newest);
    const after = Math.max(from, before?.place ?? 0);
    let [low, high] = [0, rows.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((rows[middle]?.place ?? 0) <= after) low = middle + 1;
      else high = middle;
    }
    return rows.slice(low, low + limit);
  }
}
