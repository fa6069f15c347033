import type { RunCheckpoint } from '../record/checkpoint.ts';
import type { RunDelta } from '../record/delta.ts';
import { type InterruptedRun, interruptedRun, quarantinedRun } from '../record/interrupted.ts';
import { type Clock, systemClock } from '../run/clock.ts';
import type { Command, SentCommand } from '../run/command.ts';
import { checkKeys } from '../run/known-options.ts';
import { dropEncoding, type Message } from '../run/message.ts';
import type { RunOutcome } from '../run/result.ts';
import { checkRunId } from '../run/run-id.ts';
import {
  decodeHead,
  decodeRecord,
  type EncodedHead,
  encodeDelta,
  encodeOutcome,
  encodeRecord,
  parseStored,
} from './encode.ts';
import {
  checkClaim,
  checkWrite,
  freed,
  grantLease,
  isHeld,
  isNewest,
  type Lease,
  refuseDamaged,
  sound,
} from './lease.ts';
import { MemoryInboxes } from './memory-inboxes.ts';
import type {
  AppendingStore,
  Claim,
  ControlStore,
  Cursor,
  InboxOf,
  ListOptions,
  OutcomeStore,
  OwningStore,
  ReleaseOptions,
  WriteOptions,
} from './port.ts';
import { isNewRevision } from './revision.ts';

/** Appends, owns, carries commands, and keeps outcomes. */
export type MemoryStore = AppendingStore & OwningStore & ControlStore & OutcomeStore;

interface Entry {
  readonly meta: string;
  readonly extras: string | null;
  readonly messages: string[];
  head: EncodedHead;
}

interface KeptOutcome {
  readonly text: string;
  readonly until: number;
  epoch: number;
}

/**
 * A store in this process's memory, for tests and for hosts that want claims and listings without files. It cannot
 * survive the restart that a record is kept for: use `sqliteStore` for that.
 *
 * It keeps JSON text, so that nothing it was given or gives away shares an object with what is stored.
 */
export function memoryStore(options: { readonly clock?: Clock | undefined } = {}): MemoryStore {
  checkKeys(options, { clock: true }, { of: 'memoryStore' });
  const tables = new Tables(options.clock ?? systemClock);
  // Own functions rather than methods: hosts and tests wrap a store by spreading it.
  return {
    save: async (record, write) => tables.save(record, write),
    append: async (delta, write) => tables.append(delta, write),
    load: async (runId, read) => tables.load(runId, read?.signal),
    delete: async (runId, write) => tables.delete(runId, write),
    listInterrupted: async (list) => tables.list(list ?? {}),
    claim: async (runId, owner, ttlMs) => tables.claim(runId, owner, ttlMs),
    renew: async (claim, ttlMs) => tables.renew(claim, ttlMs),
    release: async (claim, options) => tables.release(claim, options),
    send: async (runId, command) => tables.send(runId, command),
    inbox: async (of) => tables.inbox(of),
    acknowledge: async (claim, ids) => tables.acknowledge(claim, ids),
    keepOutcome: async (runId, outcome, untilMs, write) => tables.keepOutcome(runId, { outcome, untilMs }, write),
    outcome: async (runId) => tables.outcome(runId),
  };
}

class Tables {
  readonly #clock: Clock;
  readonly #records = new Map<string, Entry>();
  readonly #leases = new Map<string, Lease>();
  readonly #outcomes = new Map<string, KeptOutcome>();
  readonly #inboxes = new MemoryInboxes();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  save(record: RunCheckpoint, options: WriteOptions = {}): void {
    options.signal?.throwIfAborted();
    const { meta, extras, messages, ...head } = encodeRecord(record);
    this.#checkWrite(head.runId, options);
    this.#records.set(head.runId, { meta, extras, messages: [...messages], head });
    const lease = sound(this.#leases.get(head.runId));
    if (lease) this.#leases.set(head.runId, lease);
    this.#countAttempts(head);
    record.messages.forEach(dropEncoding);
  }

  append(delta: RunDelta, options: WriteOptions = {}): void {
    options.signal?.throwIfAborted();
    const { from, messages, ...head } = encodeDelta(delta);
    refuseDamaged(this.#leases.get(head.runId));
    this.#checkWrite(head.runId, options);
    const entry = this.#records.get(head.runId);
    const stored = entry && { revision: entry.head.revision, messageCount: entry.messages.length };
    if (!isNewRevision({ ...head, from }, stored) || !entry) return;
    for (const text of messages) entry.messages.push(text);
    entry.head = head;
    this.#countAttempts(head);
    delta.messages.forEach(dropEncoding);
  }

  load(runId: string, signal?: AbortSignal): RunCheckpoint | null {
    signal?.throwIfAborted();
    const entry = this.#records.get(checkRunId(runId));
    if (!entry) return null;
    const messages = entry.messages.map((text) => parseStored(text, 'messages') as Message);
    const { meta, extras } = entry;
    return decodeRecord({ runId, meta, extras, messages, head: entry.head.head }, this.#leases.get(runId)?.attempts);
  }

  delete(runId: string, options: WriteOptions = {}): void {
    options.signal?.throwIfAborted();
    this.#checkWrite(checkRunId(runId), options);
    const kept = this.#keptOutcome(runId);
    if (kept) kept.epoch = Math.max(kept.epoch, this.#leases.get(runId)?.epoch ?? 0);
    this.#records.delete(runId);
    this.#inboxes.remove(runId);
    this.#leases.delete(runId);
  }

  list({ after, limit, signal }: ListOptions): InterruptedRun[] {
    signal?.throwIfAborted();
    const heads = [...this.#records.values()].map((entry) => entry.head);
    const sorted = heads.filter((head) => !after || compareCursors(head, after) > 0).sort(compareCursors);
    return sorted.slice(0, limit).map((head) => this.#listed(head));
  }

  claim(runId: string, owner: string, ttlMs: number): Claim | null {
    const lease = grantLease(this.#leases.get(checkRunId(runId)), {
      owner,
      now: this.#clock.monotonic(),
      ttlMs,
      lastEpoch: this.#keptOutcome(runId)?.epoch ?? 0,
      lastAttempts: this.#records.get(runId)?.head.attempts ?? 0,
    });
    if (!lease) return null;
    this.#leases.set(runId, lease);
    return { runId, owner, epoch: lease.epoch, attempts: lease.attempts };
  }

  renew(claim: Claim, ttlMs: number): Claim {
    const lease = checkClaim(this.#leases.get(claim.runId), claim);
    this.#leases.set(claim.runId, { ...lease, expiresAt: this.#clock.monotonic() + ttlMs });
    return { ...claim, attempts: lease.attempts };
  }

  release(claim: Claim, options?: ReleaseOptions): void {
    const lease = this.#leases.get(claim.runId);
    if (lease && isNewest(lease, claim)) this.#leases.set(claim.runId, freed(lease, options));
  }

  send(runId: string, command: Command): void {
    this.#inboxes.send(checkRunId(runId), command, this.#records.has(runId));
  }

  inbox(of: InboxOf): SentCommand[] {
    if ('runId' in of) return this.#inboxes.of([of.runId]);
    return this.#inboxes.of([...this.#inboxes.runIds()].filter((runId) => this.#leases.get(runId)?.owner === of.owner));
  }

  acknowledge(claim: Claim, ids: readonly string[]): void {
    checkClaim(this.#leases.get(claim.runId), claim);
    this.#inboxes.acknowledge(claim.runId, ids);
  }

  keepOutcome(runId: string, kept: { outcome: RunOutcome; untilMs: number }, options: WriteOptions = {}): void {
    options.signal?.throwIfAborted();
    const text = encodeOutcome(kept.outcome);
    this.#checkWrite(checkRunId(runId), options);
    const epoch = this.#leases.get(runId)?.epoch ?? this.#keptOutcome(runId)?.epoch ?? 0;
    this.#forgetExpired();
    this.#outcomes.delete(runId);
    this.#outcomes.set(runId, { text, until: kept.untilMs, epoch });
  }

  outcome(runId: string): RunOutcome | null {
    const kept = this.#keptOutcome(checkRunId(runId));
    return kept ? (parseStored(kept.text, 'outcome') as RunOutcome) : null;
  }

  #checkWrite(runId: string, { claim }: WriteOptions): void {
    checkWrite(this.#leases.get(runId), { runId, claim, now: this.#clock.monotonic() });
  }

  /** The lease's count is the true one: `claim` counts before anything of the run is loaded. */
  #countAttempts({ runId, attempts }: EncodedHead): void {
    const lease = this.#leases.get(runId);
    if (lease && attempts !== undefined) this.#leases.set(runId, { ...lease, attempts });
  }

  #listed({ runId, head, updatedAt }: EncodedHead): InterruptedRun {
    const lease = this.#leases.get(runId);
    const meta = this.#records.get(runId)?.meta ?? '';
    try {
      refuseDamaged(lease);
      const owner = isHeld(lease, this.#clock.monotonic()) ? lease.owner : undefined;
      return interruptedRun(decodeHead({ runId, meta, head }, lease?.attempts), owner);
    } catch (error) {
      return quarantinedRun({ runId, updatedAt }, error);
    }
  }

  #keptOutcome(runId: string): KeptOutcome | undefined {
    const kept = this.#outcomes.get(runId);
    if (!kept || kept.until > this.#clock.now()) return kept;
    this.#outcomes.delete(runId);
    return undefined;
  }

  /** Hosts keep outcomes for equal times, so that the oldest expire first; the first one that stays ends the search. */
  #forgetExpired(): void {
    for (const runId of this.#outcomes.keys()) if (this.#keptOutcome(runId)) return;
  }
}

/** By time, then by id in the order of its UTF-8 bytes, as databases sort. */
function compareCursors(a: Cursor, b: Cursor): number {
  return a.updatedAt - b.updatedAt || Buffer.compare(Buffer.from(a.runId), Buffer.from(b.runId));
}
