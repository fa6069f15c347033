import type { RunOutcome } from '../../run/result.ts';

/** The mark of an end that no process has delivered to its host. */
export interface Undelivered {
  readonly agentId: string;
  /** How long it is kept for a delivery, wall clock, ms. */
  readonly untilMs: number;
}

/** An end to deliver. */
export interface UndeliveredEnd {
  readonly runId: string;
  readonly agentId: string;
  /** As it was kept. Without its texts, and with `isCut`, if the run was erased, or a later end of it is kept. */
  readonly outcome: RunOutcome;
}

export interface TakeUndeliveredOptions {
  /** Only ends of these agents. */
  readonly agentIds: readonly string[];
  /** At most this many. */
  readonly limit: number;
  /** How long no other process takes them, ms; doubled with each time that an end is taken, up to 10 minutes. */
  readonly leaseMs: number;
}

/** The ends of a store that no process has delivered yet. */
export interface DeliveryStore {
  /** Takes undelivered ends, the longest due first: each process gets others. One that is not marked afterwards is due again. */
  take(options: TakeUndeliveredOptions): Promise<readonly UndeliveredEnd[]>;
  /** Marks an end as delivered: it is taken no more. A repeated call changes nothing. */
  mark(runId: string, outcomeId: string): Promise<void>;
}
