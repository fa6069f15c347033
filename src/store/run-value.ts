import type { StoredCommand } from './commands.ts';
import type { StoredBody } from './encoding/stored-body.ts';
import type { Lease } from './lease.ts';
import type { ListedHead } from './store-driver.ts';
import {
  type Change,
  factsOfDamage,
  type InboxFacts,
  type OutcomeToKeep,
  type RecordFacts,
  type RunFacts,
} from './transitions.ts';

/**
 * The stored state of a run without its messages, as one JSON value: for drivers that keep it in one place, and replace it as
 * a whole. Values are never changed. Large parts (`blobs`) are not kept.
 */
export interface RunValue {
  readonly lease?: Lease | undefined;
  readonly record?: RecordValue | undefined;
  readonly kept?: KeptValue | undefined;
  /** The oldest first. */
  readonly inbox?: readonly StoredCommand[] | undefined;
  /** Why the value cannot be read; it replaces everything else. It is never stored. */
  readonly damage?: unknown;
}

export type RecordValue = Pick<
  StoredBody,
  'head' | 'version' | 'revision' | 'updatedAt' | 'attempts' | 'messageCount'
> &
  Required<Pick<StoredBody, 'start'>>;

/** A kept outcome: its text, its expiry, and the epoch of its run. */
export type KeptValue = OutcomeToKeep & { readonly epoch: number };

/** The clocks of a driver, ms. */
export interface StoreTimes {
  /** The clock of leases. All processes that share a store must share it. */
  leaseNow(): number;
  /** The wall clock, for outcomes. */
  now(): number;
}

/** The facts of a run, each read when a decision uses it. */
export function factsOfValue(value: RunValue | undefined, times: StoreTimes): RunFacts {
  return value?.damage === undefined ? new ValueFacts(value ?? {}, times) : factsOfDamage(value.damage);
}

class ValueFacts implements RunFacts {
  readonly #value: RunValue;
  readonly #times: StoreTimes;

  constructor(value: RunValue, times: StoreTimes) {
    this.#value = value;
    this.#times = times;
  }

  get lease(): Lease | null {
    return this.#value.lease ?? null;
  }

  get expiresAt(): number | undefined {
    return this.#value.lease?.expiresAt;
  }

  get now(): number {
    return this.#times.leaseNow();
  }

  get record(): RecordFacts | null {
    return this.#value.record ?? null;
  }

  get attempts(): number {
    return this.#value.record?.attempts ?? 0;
  }

  get keptEpoch(): number {
    return keptIn(this.#value, this.#times)?.epoch ?? 0;
  }

  get inbox(): InboxFacts {
    const { inbox = [] } = this.#value;
    let chars = 0;
    for (const { text } of inbox) chars += text.length;
    return { size: inbox.length, chars, has: (id) => inbox.some((command) => command.id === id) };
  }
}

/**
 * The stored value of a run after a change; undefined if nothing is left of the run.
 * @param body what a change of the record stores
 */
export function changedValue(
  value: RunValue = {},
  { change, body }: { readonly change: Change; readonly body?: StoredBody | undefined },
  times: StoreTimes,
): RunValue | undefined {
  const kept = keptAfter(value, change, times);
  if (change.remove) return kept && { kept };
  const lease = leaseAfter(value, change, times);
  const record = change.record && body ? recordAfter(value, body) : value.record;
  return lease || record || kept ? { lease, record, kept, inbox: inboxAfter(value, change) } : undefined;
}

/** The kept outcome of a run, until it expires. */
export function keptIn({ kept }: RunValue, times: StoreTimes): KeptValue | undefined {
  return kept && kept.untilMs > times.now() ? kept : undefined;
}

/** The entry of a run in a list: none without a record. */
export function headsIn(runId: string, { record, lease, damage }: RunValue, times: StoreTimes): ListedHead[] {
  if (damage !== undefined) return [{ runId, updatedAt: 0, head: '', meta: '', now: 0, error: damage }];
  if (!record) return [];
  const { updatedAt, head, start } = record;
  return [{ runId, updatedAt, head, meta: start.meta, lease, now: times.leaseNow() }];
}

function keptAfter(value: RunValue, { keep, raiseEpoch = 0 }: Change, times: StoreTimes): KeptValue | undefined {
  const kept = keep ?? keptIn(value, times);
  return kept && kept.epoch < raiseEpoch ? { ...kept, epoch: raiseEpoch } : kept;
}

function leaseAfter({ lease: before }: RunValue, { lease, ttlMs }: Change, times: StoreTimes): Lease | undefined {
  const owned = lease ?? before;
  if (!owned || (!lease && ttlMs === undefined)) return before;
  const { owner, epoch, attempts } = owned;
  const expiresAt = ttlMs === undefined ? (before?.expiresAt ?? 0) : times.leaseNow() + ttlMs;
  return { owner, epoch, attempts, expiresAt };
}

function recordAfter({ record }: RunValue, body: StoredBody): RecordValue | undefined {
  const { head, version, revision, updatedAt, attempts, messageCount, start = record?.start } = body;
  return start && { head, version, revision, updatedAt, attempts, messageCount, start };
}

function inboxAfter({ inbox }: RunValue, { send, forget }: Change): RunValue['inbox'] {
  if (!send && !forget) return inbox;
  const left = forget ? inbox?.filter(({ id }) => !forget.includes(id)) : inbox;
  if (!send) return left;
  const { runId, id, text } = send;
  return [...(left ?? []), { runId, id, text }];
}
