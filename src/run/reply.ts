import type { AssistantMessage } from '../values/message.ts';
import type { Spend, Usage } from '../values/usage.ts';

/** A call of a reply that must not run, and what the model reads instead of a result. */
export interface RefusedCall {
  /** Its place among the calls of the message that the run is to make; the first is 0. */
  readonly position: number;
  readonly why: string;
}

/** One finished model turn, before anything of it is acted upon. */
export interface ModelReply {
  readonly message: AssistantMessage;
  readonly finishReason: string;
  readonly usage: Usage;
  /** Calls that are answered with an error instead of being run. */
  readonly refused?: readonly RefusedCall[];
  /** What the budget counted it as. */
  readonly spend?: Spend;
}
