import type { Model } from '../model/port.ts';
import type { Message } from '../values/message.ts';

/** What a compactor is told besides the messages. */
export interface CompactionRequest {
  readonly tier: string;
  /** How many tokens the messages are likely to have. */
  readonly tokens: number;
  /** How many fit: the context window of the tier. */
  readonly limit: number;
  /** The model of the run. */
  readonly model: Model;
  readonly signal: AbortSignal;
}

/**
 * Makes a shorter history of a long one, for the model's eyes only: what is stored stays whole. Each call must keep its
 * result. What it throws, or answers too late or wrongly, leaves the history as it was.
 */
export type Compactor = (
  messages: readonly Message[],
  request: CompactionRequest,
) => Promise<readonly Message[]> | readonly Message[];
