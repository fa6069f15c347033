import type { JsonValue } from '../../values/json.ts';
import type { ToolOutput } from '../../values/message.ts';
import type { Answer, SignalAnswer } from '../command.ts';
import type { Progress } from '../progress.ts';
import type { Person, SettledWait, Wait } from './wait.ts';

/** An answer to a wait, or its expiry, as the owner of the run accepted it: checked, and redaction would not change it. */
export type WaitAnswer = {
  readonly waitId: string;
  /** When it was given, wall clock, ms. */
  readonly at: number;
  /** Who gave it; absent for an expiry, a child's end and a signal. */
  readonly by?: Person;
  /** The id of the command that brought it: the record remembers it. */
  readonly command?: string;
  /** The id of the person's decision (`decisionIdOf`), or of the signal. */
  readonly decision?: string;
} & (
  | {
      readonly how: 'approve';
      readonly digest?: string;
      readonly note?: string;
      readonly input?: JsonValue;
      /** The question and the facts for the changed input. */
      readonly words?: ApprovalWords;
      /** The wait that asks again if the call, its tool or its agent has changed. */
      readonly again?: Wait;
      /** Why the call can never run: its tool is gone, or does not take its input any more. */
      readonly unfit?: string;
    }
  | { readonly how: 'deny'; readonly reason?: string }
  | { readonly how: 'answer' | 'signal'; readonly value: JsonValue }
  | { readonly how: 'expire' | 'wake' }
  | { readonly how: 'ended'; readonly output: ToolOutput }
);

/** What a person reads about a call that needs an approval. */
export interface ApprovalWords {
  readonly prompt?: string;
  readonly detail?: JsonValue;
}

/** An answer as it came: from a person, a signal, a child's end, or a time that is over. */
export interface GivenAnswer {
  readonly waitId: string;
  readonly answer:
    | Answer
    | SignalAnswer
    | { readonly how: 'expire' }
    | { readonly how: 'ended'; readonly output: ToolOutput };
  readonly by?: Person | undefined;
  /** When it was sent, wall clock, ms. */
  readonly at: number;
  /** The id of the command that brought it. */
  readonly command?: string | undefined;
}

/** The result of an answer. */
export type Answered =
  /** The wait is over; `ended` = the run ends or parks because no person decided in time. */
  | {
      readonly kind: 'settled';
      readonly progress: Progress;
      readonly wait: Wait;
      readonly settled: SettledWait;
      readonly ends?: 'fail' | 'park';
    }
  /** A vote is recorded; others are still needed. */
  | { readonly kind: 'voted'; readonly progress: Progress; readonly wait: Wait }
  /** The call can never run: the wait is over without an answer, and the model reads why. */
  | { readonly kind: 'withdrawn'; readonly progress: Progress; readonly wait: Wait; readonly reason: string }
  /** The call, its tool or its agent has changed since the question: another wait asks again. */
  | { readonly kind: 'reopened'; readonly progress: Progress; readonly wait: Wait; readonly opened: Wait }
  /** The same answer is recorded already. */
  | { readonly kind: 'known' }
  /** Another answer is recorded. */
  | { readonly kind: 'other'; readonly settled: SettledWait }
  /** The run has no such wait. */
  | { readonly kind: 'gone' }
  /** The answer is not one for this kind of wait, or for another input. */
  | { readonly kind: 'unfit'; readonly wait: Wait };

/** Returns the votes of a wait that needs more; with the wait, if this vote changed its input. */
export function votesOf(wait: Wait, given: GivenAnswer | undefined): { readonly votes?: number; readonly wait?: Wait } {
  if (wait.kind === 'question' && wait.votes) return { votes: wait.votes.length };
  if (wait.kind !== 'approval') return {};
  const isChanged = wait.votes.length === 1 && given?.answer.how === 'approve' && given.answer.input !== undefined;
  return { votes: wait.votes.length, ...(isChanged && wait.input !== undefined ? { wait } : {}) };
}

/** Returns what the person wrote with an approval: the one that ended the wait, or the newest vote. */
export function noteOf(wait: Wait, settled: SettledWait | undefined): { readonly note?: string } {
  const last = wait.kind === 'approval' ? wait.votes.at(-1) : undefined;
  const { note } = settled ?? last ?? {};
  return note === undefined ? {} : { note };
}

/** Returns what a vote says that does not end its wait: an approval, or an answer. */
export function voteKind(kind: Wait['kind']): 'approve' | 'answer' {
  return kind === 'question' ? 'answer' : 'approve';
}
