import type { AssistantMessage } from './message.ts';
import type { Usage } from './usage.ts';

/** One finished model turn, before anything of it is acted upon. */
export interface ModelReply {
  readonly message: AssistantMessage;
  readonly finishReason: string;
  readonly usage: Usage;
}
