import type { Model } from '../model/port.ts';
import type { Message } from '../values/message.ts';
import type { RecordedCompaction } from '../values/message-mark.ts';

/** What a compactor gets besides the messages. */
export interface CompactionRequest {
  readonly tier: string;
  /** The estimated tokens of the messages. */
  readonly tokens: number;
  /** The context window of the tier, in tokens. */
  readonly limit: number;
  /** The model of the run. */
  readonly model: Model;
  readonly signal: AbortSignal;
}

/**
 * Returns a shorter history for the model. The stored history does not change. Each call must keep its result. If the
 * compactor throws, is too slow or returns an invalid history, the model gets the history unchanged.
 */
export type Compactor = (
  messages: readonly Message[],
  request: CompactionRequest,
) => Promise<readonly Message[]> | readonly Message[];

/** Gives the compaction of the turn that begins; undefined: it has none. */
type RecordedCompactions = () => Promise<RecordedCompaction | undefined>;

const recorded = new WeakMap<Compactor, RecordedCompactions>();

/** Makes a compactor for a replay: its runs get what was recorded, turn by turn, and no compactor is asked. */
export function recordedCompactor(compactions: RecordedCompactions): Compactor {
  const unchanged: Compactor = (messages) => messages;
  recorded.set(unchanged, compactions);
  return unchanged;
}

/** Returns what a compactor of `recordedCompactor` gives; undefined for any other one. */
export function recordedBy(compactor: Compactor): RecordedCompactions | undefined {
  return recorded.get(compactor);
}
