import { type Clock, systemClock } from '../../values/clock.ts';
import { checkKeys } from '../../values/known-options.ts';
import type { StoredCommand } from '../commands.ts';
import type { Lease, Ownership } from '../lease.ts';
import type { AppendingStore, ControlStore, Cursor, InboxOf, OutcomeStore, OwningStore } from '../port.ts';
import type { ListedHead, ListPage, MessageReader, StoreDriver, StoredTexts, StoreWrite } from '../store-driver.ts';
import { storeFrom } from '../store-from.ts';
import type { StoredBody } from '../stored-body.ts';
import { type Change, decideNow, type InboxFacts, type RecordFacts, type RunFacts } from '../transitions.ts';

/** Appends, owns, carries commands, and keeps outcomes. */
export type MemoryStore = AppendingStore & OwningStore & ControlStore & OutcomeStore;

/**
 * A store in this process's memory, for tests and for hosts that want claims and listings without files. It cannot
 * survive the restart that a record is kept for: use `sqliteStore` for that.
 *
 * It keeps JSON text, so that what is stored shares no object with callers.
 */
export function memoryStore(options: { readonly clock?: Clock | undefined } = {}): MemoryStore {
  checkKeys(options, { clock: true }, { of: 'memoryStore' });
  const { clock = systemClock } = options;
  return storeFrom(new MemoryDriver(clock), { clock });
}

/** What a run has. */
interface Entry {
  record?: Stored;
  lease?: Lease;
  /** Commands by their ids, in the order of their sending. */
  readonly inbox: Map<string, string>;
}

interface Stored {
  readonly start: NonNullable<StoredBody['start']>;
  readonly rows: string[];
  head: Head;
}

type Head = Pick<StoredBody, 'head' | 'version' | 'revision' | 'updatedAt' | 'attempts' | 'messageCount'>;

interface KeptOutcome {
  readonly text: string;
  readonly untilMs: number;
  epoch: number;
}

class MemoryDriver implements StoreDriver {
  readonly #clock: Clock;
  readonly #runs = new Map<string, Entry>();
  readonly #outcomes = new Map<string, KeptOutcome>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async write<T>({ runId, decide, body }: StoreWrite<T>): Promise<T> {
    const kept = this.#kept(runId);
    const { value, change } = decideNow(decide, new Facts(this.#runs.get(runId), kept?.epoch ?? 0, this.#clock));
    if (change) this.#make(change, runId, body);
    return value;
  }

  async load(runId: string, messages: MessageReader): Promise<StoredTexts | null> {
    const { record, lease } = this.#runs.get(runId) ?? {};
    if (!record) return null;
    for (const row of record.rows) messages.add(row);
    return { ...record.start, head: record.head.head, attempts: lease?.attempts };
  }

  async list({ after, limit }: ListPage): Promise<ListedHead[]> {
    const heads: ListedHead[] = [];
    const now = this.#clock.monotonic();
    for (const [runId, { record, lease }] of this.#runs) {
      if (!record) continue;
      const { updatedAt, head } = record.head;
      const listed = { runId, updatedAt, meta: record.start.meta, head, lease, now };
      if (!after || compareCursors(listed, after) > 0) heads.push(listed);
    }
    return heads.sort(compareCursors).slice(0, limit);
  }

  async outcome(runId: string): Promise<string | null> {
    return this.#kept(runId)?.text ?? null;
  }

  async inbox(of: InboxOf): Promise<StoredCommand[]> {
    const runs = 'runId' in of ? [[of.runId, this.#runs.get(of.runId)] as const] : this.#runs;
    const waiting: StoredCommand[] = [];
    for (const [runId, entry] of runs) {
      if ('owner' in of && entry?.lease?.owner !== of.owner) continue;
      for (const [id, text] of entry?.inbox ?? []) waiting.push({ runId, id, text });
    }
    return waiting;
  }

  #make(change: Change, runId: string, body: StoredBody | undefined): void {
    if (change.keep) this.#keep(runId, change.keep);
    if (change.raiseEpoch !== undefined) this.#raiseEpoch(runId, change.raiseEpoch);
    if (change.remove) {
      this.#runs.delete(runId);
      return;
    }
    const entry: Entry = this.#runs.get(runId) ?? { inbox: new Map() };
    if (change.record && body) store(entry, body);
    if (change.lease || change.ttlMs !== undefined) this.#own(entry, change.lease, change.ttlMs);
    if (change.send) entry.inbox.set(change.send.id, change.send.text);
    for (const id of change.forget ?? []) entry.inbox.delete(id);
    if (entry.record || entry.lease) this.#runs.set(runId, entry);
  }

  #own(entry: Entry, ownership: Ownership | undefined, ttlMs: number | undefined): void {
    const owned = ownership ?? entry.lease;
    if (!owned) return;
    const expiresAt = ttlMs === undefined ? entry.lease?.expiresAt : this.#clock.monotonic() + ttlMs;
    const { owner, epoch, attempts } = owned;
    entry.lease = { owner, epoch, attempts, expiresAt: expiresAt ?? Number.NEGATIVE_INFINITY };
  }

  /** The newest comes last. */
  #keep(runId: string, kept: KeptOutcome): void {
    this.#forgetExpired();
    this.#outcomes.delete(runId);
    this.#outcomes.set(runId, { ...kept });
  }

  #raiseEpoch(runId: string, epoch: number): void {
    const kept = this.#kept(runId);
    if (kept) kept.epoch = Math.max(kept.epoch, epoch);
  }

  /** One whose time is over is gone, also when the clock is set back later. */
  #kept(runId: string): KeptOutcome | undefined {
    const kept = this.#outcomes.get(runId);
    if (!kept || kept.untilMs > this.#clock.now()) return kept;
    this.#outcomes.delete(runId);
    return undefined;
  }

  /** Hosts keep outcomes for equal times, so that the oldest expire first; the first one that stays ends the search. */
  #forgetExpired(): void {
    for (const runId of this.#outcomes.keys()) if (this.#kept(runId)) return;
  }
}

function store(entry: Entry, body: StoredBody): void {
  const { start, rows, head, version, revision, updatedAt, attempts, messageCount } = body;
  const stored = { head, version, revision, updatedAt, attempts, messageCount };
  if (start) entry.record = { start, rows: rows.map(({ text }) => text), head: stored };
  else if (entry.record) {
    for (const { text } of rows) entry.record.rows.push(text);
    entry.record.head = stored;
  }
}

/** The facts of a run, each read when a decision looks at it. */
class Facts implements RunFacts {
  readonly #entry: Entry | undefined;
  readonly #clock: Clock;
  readonly keptEpoch: number;

  constructor(entry: Entry | undefined, keptEpoch: number, clock: Clock) {
    this.#entry = entry;
    this.#clock = clock;
    this.keptEpoch = keptEpoch;
  }

  get lease(): Lease | null {
    return this.#entry?.lease ?? null;
  }

  get expiresAt(): number | undefined {
    return this.#entry?.lease?.expiresAt;
  }

  get now(): number {
    return this.#clock.monotonic();
  }

  get record(): RecordFacts | null {
    return this.#entry?.record?.head ?? null;
  }

  get attempts(): number {
    return this.#entry?.record?.head.attempts ?? 0;
  }

  get inbox(): InboxFacts {
    const waiting = this.#entry?.inbox ?? new Map<string, string>();
    let chars = 0;
    for (const { length } of waiting.values()) chars += length;
    return { size: waiting.size, chars, has: (id) => waiting.has(id) };
  }
}

/** By time, then by id in the order of its UTF-8 bytes, as databases sort. */
function compareCursors(a: Cursor, b: Cursor): number {
  return a.updatedAt - b.updatedAt || Buffer.compare(Buffer.from(a.runId), Buffer.from(b.runId));
}
