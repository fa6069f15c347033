import type { AssistantMessage } from './message.ts';
import type { Spend, Usage } from './usage.ts';

/** One finished model turn, before anything of it is acted upon. */
export interface ModelReply {
  readonly message: AssistantMessage;
  readonly finishReason: string;
  readonly usage: Usage;
  /** What the budget counted it as. */
  readonly spend?: Spend;
}
