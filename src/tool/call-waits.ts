import type { JsonObject, JsonValue } from '../values/json.ts';
import type { ValueOf } from './schema.ts';

/** A question to a person. */
export interface Question<Schema = undefined, Option extends JsonValue = JsonValue> {
  /** The text that the person reads: up to 65,536 characters. */
  readonly question: string;
  /** The answers that the person may give; absent = any that fits the schema. Up to 65,536 characters of JSON. */
  readonly options?: readonly Option[];
  /** The form of the answer: any schema that a tool's `input` takes. */
  readonly schema?: Schema;
  /** After this time `ask` throws WAIT_EXPIRED, ms; absent = never. */
  readonly expiresInMs?: number;
  /** How many different persons must give the same answer, each by name; default 1. */
  readonly quorum?: number;
}

/** The event that a call waits for. */
export interface ExpectedEvent<Schema = undefined> {
  /** Tells events of one name apart, for example the number of an order. Default ''. */
  readonly key?: string;
  /** The form of the event's value: any schema that a tool's `input` takes. A signal that does not fit is refused. */
  readonly schema?: Schema;
  /** After this time `waitFor` throws WAIT_EXPIRED, ms; absent = never. */
  readonly timeoutMs?: number;
}

/** The type of an answer: the output of its schema; without a schema one of the options, or any JSON value. */
export type AnswerOf<Schema, Option = JsonValue> = Schema extends undefined ? Option : ValueOf<Schema, JsonValue>;

/**
 * The waits of a tool call. A durable run that only waits holds no process: it is suspended in its store until the answer, the event or
 * the time comes.
 *
 * A call that begins to wait ends its execution there: `signal` aborts, the promise never settles, and `finally` blocks do not
 * run. When the wait is over, `execute` runs again from its beginning, also in the same process. Waits that are over return
 * their recorded values at once; all other code runs again. So code before a wait must be harmless to repeat.
 *
 * A call has one open wait at a time: two requests at the same time end the call with an error. A call asks for the same
 * things in the same order each time it runs: another kind of wait, or another event name, throws WAIT_CHANGED. A tool with `effect: 'once'` may wait once, before it awaits anything else;
 * later waits throw WAIT_AFTER_EFFECT. One call may have 1,000 waits.
 */
export interface CallWaits {
  /**
   * Asks a person, and returns the answer. `executor.control(runId).answer(waitId, value)` gives it.
   * @throws {WAIT_EXPIRED} if no answer came in time @throws {WAIT_CHANGED} @throws {WAIT_AFTER_EFFECT}
   * @throws {UNSUPPORTED} if the call has an open wait already @throws {TypeError} for a question that cannot be recorded
   * @example
   * const color = await context.ask({ question: 'Which color?', options: ['red', 'blue'] });
   */
  ask<const Schema = undefined, const Option extends JsonValue = JsonValue>(
    question: Question<Schema, Option>,
  ): Promise<AnswerOf<Schema, Option>>;
  /**
   * Waits for an event, and returns its value. `executor.signal(name, value, { key, id })` sends it, from any process, also
   * before the call waits.
   * @param name up to 1,024 characters
   * @throws {WAIT_EXPIRED} if it did not come in time @throws {WAIT_CHANGED} @throws {WAIT_AFTER_EFFECT}
   * @throws {UNSUPPORTED} if the call has an open wait already @throws {TypeError} for an event that cannot be recorded
   * @example
   * const { paid } = await context.waitFor('payment', { key: orderId, schema: z.object({ paid: z.number() }) });
   */
  waitFor<const Schema = undefined>(name: string, event?: ExpectedEvent<Schema>): Promise<AnswerOf<Schema>>;
  /**
   * Waits for a time: ms, or a text like `30s`, `10m`, `12h`, `3d`. `executor.control(runId).wake(waitId)` ends it early.
   * @throws {WAIT_CHANGED} @throws {WAIT_AFTER_EFFECT} @throws {UNSUPPORTED} @throws {TypeError}
   * @example await context.sleep('3d')
   */
  sleep(duration: string | number): Promise<void>;
  /** Waits until a date, or a time in ms since 1970. One that is over ends the wait at once. Errors as for `sleep`. */
  sleepUntil(time: Date | number): Promise<void>;
}

/** What a call waits for; `waitMs` counts from now, `dueAt` is wall clock, ms. */
export type WaitRequest = { readonly waitMs?: number; readonly dueAt?: number } & (
  | {
      readonly kind: 'question';
      readonly question: string;
      readonly options?: readonly JsonValue[];
      readonly schema?: JsonObject;
      readonly quorum?: number;
      readonly approvers?: true;
    }
  | { readonly kind: 'event'; readonly name: string; readonly key: string; readonly schema?: JsonObject }
  | { readonly kind: 'timer' }
  | { readonly kind: 'child'; readonly childRunId: string }
);

/** The child run of the call was left for another process; the run of the call is about to be left as well. */
interface LeftChild {
  readonly kind: 'left-child';
}

/** A `once` call began and got no answer: its connection broke, or its time was over. */
interface UnknownOutcome {
  readonly kind: 'unknown-outcome';
  readonly why: string;
}

/** The end of an execution whose call waits: it runs again when the wait is over. */
export interface ToolWait {
  readonly type: 'wait';
  readonly request: WaitRequest | LeftChild | UnknownOutcome;
}
