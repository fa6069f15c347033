import type { Model } from '../model/port.ts';
import type { Message } from '../values/message.ts';

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
