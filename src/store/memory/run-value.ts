import type { StoredCommand } from '../commands.ts';
import type { CountedHead } from '../counting/counts.ts';
import {
  type DeliveryDriver,
  deliveryPauseMs,
  type TakeDeliveries,
  type TakenDelivery,
} from '../deliveries/deliveries.ts';
import type { Due } from '../due.ts';
import type { Filed } from '../encoding/filed.ts';
import type { StoredBody } from '../encoding/stored-body.ts';
import {
  type Change,
  type EndedToKeep,
  type EndToDeliver,
  factsOfDamage,
  type InboxFacts,
  type OutcomeToKeep,
  type RecordFacts,
  type RunFacts,
} from '../rules/decision.ts';
import type { Lease } from '../rules/lease.ts';

/**
 * The stored state of a run without its messages, as one JSON value: for drivers that keep it in one place, and replace it as
 * a whole. Values are never changed. Large parts (`blobs`) are not kept.
 */
export interface RunValue {
  readonly lease?: Lease | undefined;
  readonly record?: RecordValue | undefined;
  readonly kept?: KeptValue | undefined;
  /** What is kept of an earlier run of this id that ended. */
  readonly ended?: EndedValue | undefined;
  /** The ends of the run that no process has delivered. */
  readonly undelivered?: readonly DeliveryValue[] | undefined;
  /** The oldest first. */
  readonly inbox?: readonly StoredCommand[] | undefined;
  /** The highest `seq` that a command of the run has had. */
  readonly sent?: number | undefined;
  /** When the run is due; absent = 0. */
  readonly due?: Due | undefined;
  /** Why the run is not due, as `change.pausedBy` had it. */
  readonly pausedBy?: string | undefined;
  /** Under what its record is found. */
  readonly filed?: Filed | undefined;
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

/** The kept record of a run that ended, and when that was, wall clock, ms. */
export type EndedValue = EndedToKeep & { readonly endedAt: number; readonly record: RecordValue };

/** The mark of an end: when it is due, wall clock, ms, and how often it was taken. */
export type DeliveryValue = EndToDeliver & { readonly at: number; readonly tries: number };

/** The clocks of a driver, ms. */
export interface StoreTimes {
  /** The clock of leases. All processes that share a store must share it. */
  leaseNow(): number;
  /** The wall clock, for outcomes. */
  now(): number;
}

/** Returns the facts of a run's stored value, each read when a decision uses it. */
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
    const kept = keptIn(this.#value, this.#times)?.epoch ?? 0;
    return Math.max(kept, endedIn(this.#value, this.#times)?.epoch ?? 0);
  }

  get due(): Due {
    return dueIn(this.#value);
  }

  get inbox(): InboxFacts {
    const inbox = inboxOf(this.#value);
    let chars = 0;
    for (const { text } of inbox) chars += text.length;
    const newest = inbox.at(-1)?.seq ?? 0;
    return { size: inbox.length, chars, newest, has: (id) => inbox.some((command) => command.id === id) };
  }
}

/**
 * Applies a decision's change to a run's stored value; undefined if nothing is left of the run.
 * @param body what a change of the record stores
 */
export function changedValue(
  value: RunValue = {},
  { change, body }: { readonly change: Change; readonly body?: StoredBody | undefined },
  times: StoreTimes,
): RunValue | undefined {
  const undelivered = undeliveredAfter(value, change, times);
  if (change.erase) return undelivered && { undelivered };
  const kept = keptAfter(value, change, times);
  const ended = endedAfter(value, change, times);
  const left = kept || ended || undelivered ? { kept, ended, ...(undelivered ? { undelivered } : {}) } : undefined;
  if (change.remove || change.end) return left;
  const lease = leaseAfter(value, change, times);
  const record = change.record && body ? recordAfter(value, body) : value.record;
  if (!lease && !record && !left) return undefined;
  const due = change.due === undefined ? dueIn(value) : change.due;
  const { pausedBy = value.pausedBy } = change;
  const pause = pausedBy === undefined ? {} : { pausedBy };
  const rest = { ...(due === 0 ? {} : { due }), ...pause, ...filedAfter(value, change) };
  return { lease, record, ...left, ...inboxAfter(value, change, times), ...rest };
}

function filedAfter({ filed: before }: RunValue, { filed }: Change): Pick<RunValue, 'filed'> {
  if (!filed) return before ? { filed: before } : {};
  return { filed: { ...filed, fair: filed.fair ?? before?.fair } };
}

/** Returns the kept record of a run that ended, until its time is over. */
export function endedIn({ ended }: RunValue, times: StoreTimes): EndedValue | undefined {
  return ended && ended.keepUntil > times.now() ? ended : undefined;
}

/** A record that is put replaces that of the run that ended. */
function endedAfter(value: RunValue, { end, record }: Change, times: StoreTimes): EndedValue | undefined {
  if (end && value.record) return { ...end, endedAt: times.now(), record: value.record };
  return record === 'put' ? undefined : endedIn(value, times);
}

/** Returns the kept outcome of a run, until it expires. */
export function keptIn({ kept }: RunValue, times: StoreTimes): KeptValue | undefined {
  return kept && kept.untilMs > times.now() ? kept : undefined;
}

/** Returns whether a part of a run's stored value is past its time: `changedValue` removes it. */
export function isStale(value: RunValue, times: StoreTimes): boolean {
  const isOver = keptIn(value, times) !== value.kept || endedIn(value, times) !== value.ended;
  return isOver || (value.undelivered?.some(({ untilMs }) => untilMs <= times.now()) ?? false);
}

/** The runs of a driver that keeps each as one value. */
export interface ValueRuns {
  readonly times: StoreTimes;
  /** The runs with their values; those without undelivered ends may be left out. */
  readonly runs: () => Promise<Iterable<readonly [runId: string, value: RunValue]>>;
  /** Replaces the value of a run, if it is still the one before. @returns whether it was */
  readonly replace: (runId: string, before: RunValue, after: RunValue) => Promise<boolean>;
}

/** Returns the `deliveries` of a driver that keeps each run as one value: of two processes one loses the comparison. */
export function deliveriesAmong({ times, runs, replace }: ValueRuns): DeliveryDriver {
  return {
    take: async (take) => {
      const taken: TakenDelivery[] = [];
      for (const [runId, value] of await runs()) {
        if (taken.length >= take.limit) break;
        const found = takenIn(value, take, times);
        if (!found || !(await replace(runId, value, { ...value, undelivered: found.marks }))) continue;
        const outcome = keptIn(value, times)?.text ?? null;
        taken.push(...found.due.map(({ id, text }) => ({ runId, id, text, outcome })));
      }
      return taken;
    },
  };
}

/** The marks of a value that are due, and all of its marks after those are taken; undefined: none is due. */
function takenIn({ undelivered = [] }: RunValue, { agents, leaseMs }: TakeDeliveries, times: StoreTimes) {
  const now = times.now();
  const isDue = ({ agent, at, untilMs }: DeliveryValue) => at <= now && untilMs > now && agents.includes(agent);
  const after = ({ tries, ...mark }: DeliveryValue) => {
    return { ...mark, at: now + deliveryPauseMs(tries, leaseMs), tries: tries + 1 };
  };
  const due = undelivered.filter(isDue);
  return due.length === 0 ? undefined : { due, marks: undelivered.map((mark) => (isDue(mark) ? after(mark) : mark)) };
}

function undeliveredAfter(
  { undelivered }: RunValue,
  { deliver, delivered }: Change,
  times: StoreTimes,
): readonly DeliveryValue[] | undefined {
  if (!undelivered && !deliver) return undefined;
  const isLeft = ({ id, untilMs }: DeliveryValue) => untilMs > times.now() && id !== delivered && id !== deliver?.id;
  const left = undelivered?.filter(isLeft) ?? [];
  const after = deliver ? [...left, { ...deliver, at: times.now(), tries: 0 }] : left;
  return after.length > 0 ? after : undefined;
}

/** Returns the list entry of a run's stored value: none without a record. */
export function headsIn(
  runId: string,
  { record, lease, damage, due, filed, pausedBy, inbox }: RunValue,
  times: StoreTimes,
): CountedHead[] {
  if (damage !== undefined) return [{ runId, updatedAt: 0, head: '', meta: '', now: 0, error: damage }];
  if (!record) return [];
  const { updatedAt, head, start } = record;
  const { agent, caller, fair } = filed ?? {};
  const place = { due, agent, caller, fair, pausedBy, sentAt: inbox?.[0]?.sentAt };
  return [{ runId, updatedAt, head, meta: start.meta, lease, now: times.leaseNow(), ...place }];
}

function keptAfter(value: RunValue, { keep, raiseEpoch = 0 }: Change, times: StoreTimes): KeptValue | undefined {
  const kept = keep ?? keptIn(value, times);
  return kept && kept.epoch < raiseEpoch ? { ...kept, epoch: raiseEpoch } : kept;
}

function leaseAfter({ lease: before }: RunValue, { lease, ttlMs }: Change, times: StoreTimes): Lease | undefined {
  const owned = lease ?? before;
  if (!owned || (!lease && ttlMs === undefined)) return before;
  const { owner, epoch, attempts, deployment } = owned;
  const expiresAt = ttlMs === undefined ? (before?.expiresAt ?? 0) : times.leaseNow() + ttlMs;
  return { owner, epoch, attempts, expiresAt, ...(deployment === undefined ? {} : { deployment }) };
}

function recordAfter({ record }: RunValue, body: StoredBody): RecordValue | undefined {
  const { head, version, revision, updatedAt, attempts, messageCount, start = record?.start } = body;
  return start && { head, version, revision, updatedAt, attempts, messageCount, start };
}

function inboxAfter(value: RunValue, { send, forget }: Change, times: StoreTimes): Pick<RunValue, 'inbox' | 'sent'> {
  const { inbox, sent = inbox?.length ?? 0 } = value;
  if (!send && !forget) return { inbox, sent: value.sent };
  const left = inboxOf(value).filter(({ id }) => !forget?.includes(id));
  if (!send) return { inbox: left, sent };
  const { runId, id, text } = send;
  return { inbox: [...left, { runId, id, text, seq: sent + 1, sentAt: times.now() }], sent: sent + 1 };
}

/** The waiting commands. Earlier versions stored none with a number: they have those of their places. */
function inboxOf({ inbox = [] }: RunValue): readonly StoredCommand[] {
  return inbox.map((command, place) => (command.seq === undefined ? { ...command, seq: place + 1 } : command));
}

/** When the run of a value is due; 0 without a record. */
function dueIn({ due = 0 }: RunValue): Due {
  return due;
}

/** Returns the commands that wait in a run's stored value, for `inbox`. */
export function commandsIn(value: RunValue): readonly StoredCommand[] {
  return inboxOf(value);
}
