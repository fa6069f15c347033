import type { AssistantMessage } from '../values/message.ts';
import type { Spend, Usage } from '../values/usage.ts';

/** A call of a reply that must not run, and the text that replaces its result. */
export interface RefusedCall {
  /** Its place among the calls of the message that the run has to make; the first is 0. */
  readonly position: number;
  readonly why: string;
}

/** A source that a model names for its answer, as its provider reports it. */
export type ModelSource =
  | { readonly sourceType: 'url'; readonly id: string; readonly url: string; readonly title?: string }
  | {
      readonly sourceType: 'document';
      readonly id: string;
      readonly mediaType: string;
      readonly title: string;
      readonly filename?: string;
    };

/** How an answer ended: `length` = it was cut; `content-filter` and `refusal` = the provider withheld it, or its rest. */
export type FinishReason = (typeof finishReasons)[number];

/** The ways in which an answer ends. Stored by their places: new ones come last. */
export const finishReasons = ['stop', 'length', 'content-filter', 'refusal', 'other'] as const;

/** Returns how an answer ended, in the words of results. */
export function finishReasonOf(reason: unknown): FinishReason {
  return isFinishReason(reason) ? reason : 'other';
}

/** Returns whether a value is a finish reason of a result. */
export function isFinishReason(value: unknown): value is FinishReason {
  return finishReasons.includes(value as FinishReason);
}

/** What a reader of an answer has to know that was not finished: another agent, a next phase, a judge. */
const endings: { readonly [reason in FinishReason]?: string } = {
  length: 'this answer was cut at the length limit of its model',
  'content-filter': 'the provider withheld the rest of this answer',
  refusal: 'the model refused to finish this answer',
};

/** Returns an answer for another model, with a sentence if it was not finished. */
export function toldAnswer(text: string, reason: FinishReason | undefined): string {
  const ending = reason && endings[reason];
  return ending === undefined ? text : `${text}\n[${ending}]`;
}

/**
 * What a run does with an answer that reached its length limit: it is the answer; its rest is asked for, at most twice; or the
 * run ends with ANSWER_CUT.
 */
export type CutAnswer = (typeof cutAnswers)[number];

/** The values of `onCutAnswer`. */
export const cutAnswers = ['accept', 'continue', 'fail'] as const;

/** One finished model turn, before the run acts on it. */
export interface ModelReply {
  readonly message: AssistantMessage;
  readonly finishReason: string;
  /** The provider paused its turn: the message goes back as it is, and the reply continues. */
  readonly isPaused?: true;
  readonly usage: Usage;
  /** Calls that are answered with an error instead of being run. */
  readonly refused?: readonly RefusedCall[];
  /** The cost as the budget counted it. */
  readonly spend?: Spend;
  /** The model that made it: `provider/modelId`. */
  readonly model?: string;
  /** The part of `usage` and `spend` that models before it cost, which failed. */
  readonly lost?: readonly LostUse[];
}

/** What a model cost that failed, and for which another one of its list was asked. */
export interface LostUse {
  readonly model: string;
  readonly usage: Usage;
  readonly spend?: Spend;
}
