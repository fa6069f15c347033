import type { ErrorData } from '../index.ts';
import { isPawlError, PawlError, policyOf } from '../values/error-codes.ts';
import { readProperty } from '../values/error-data.ts';

/** The errors of requests themselves, each with its status and its title. */
const requestErrors = {
  BAD_REQUEST: [400, 'The request is not valid'],
  UNAUTHORIZED: [401, 'The request is not authorised'],
  FOREIGN_ORIGIN: [403, 'Pages of this origin may not use this server'],
  PERSON_REQUIRED: [403, 'This decision needs a person, and the request names none'],
  NOT_FOUND: [404, 'There is nothing here'],
  METHOD_NOT_ALLOWED: [405, 'The path does not take this method'],
  BODY_TIMEOUT: [408, 'The body did not come in time'],
  BODY_TOO_LARGE: [413, 'The body is too large'],
  WRONG_CONTENT_TYPE: [415, 'The content type must be application/json'],
  WRONG_HOST: [421, 'This server does not answer for this host'],
  RESUME_MISMATCH: [422, 'The answers do not fit the open interrupts'],
  TOO_MANY_STREAMS: [429, 'Too many open streams'],
  INTERNAL: [500, 'The server failed'],
  STARTING: [503, 'The server is starting'],
} as const satisfies Record<string, readonly [number, string]>;

/** The code of an error of a request itself. */
type RequestErrorCode = keyof typeof requestErrors;

/** A request that is refused before, or instead of, its work. The message is the `detail` of the answer. */
export class RequestError extends PawlError {
  declare readonly code: RequestErrorCode;
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: RequestErrorCode, message = '', headers: Readonly<Record<string, string>> = {}) {
    super(code, message);
    this.headers = headers;
  }
}

/** The status and the title of Pawl's errors, where one may reach a client. Any other is 500. */
const pawlErrors: { readonly [code: string]: readonly [number, string] } = {
  ALREADY_ANSWERED: [409, 'Another answer was recorded first'],
  ANSWER_REDACTED: [422, 'The answer holds a text that may not be recorded'],
  ANSWER_REFUSED: [422, 'The answer does not fit'],
  BUDGET_EXCEEDED: [429, 'The budget is used up'],
  CANCELLED: [409, 'The run was cancelled'],
  RUN_NOT_FOUND: [404, 'There is nothing here'],
  CHECKPOINT_TOO_NEW: [503, 'A newer version of this server wrote the run'],
  CRITIC_KILL: [500, 'The run was ended by its supervision'],
  DEADLINE_EXCEEDED: [500, 'The run took too long'],
  EVENT_INVALID: [400, 'No workflow may get this event'],
  EVENT_NOT_TAKEN: [409, 'The state of the workflow does not take this event'],
  ERR_SHUTDOWN: [503, 'The server is shutting down'],
  INPUT_INVALID: [400, 'The input of the workflow is not valid'],
  INVALID_RUN_ID: [404, 'There is nothing here'],
  INVALID_THREAD_ID: [400, 'An id of the conversation is not valid'],
  JOURNAL_GONE: [410, 'The events of the run are not kept any more'],
  MODEL: [500, 'The model failed'],
  MODEL_OUTAGE: [503, 'The model is away'],
  MODEL_STALLED: [503, 'The model sent nothing for too long'],
  NEWER_DEPLOYMENT: [503, 'A newer version of this server has the run'],
  NOT_DURABLE: [503, 'The run could not be recorded'],
  NOT_JSON: [400, 'A value is not valid JSON'],
  OUTPUT_INVALID: [500, 'The answer has not the required form'],
  CONTENT_REFUSED: [500, 'The provider refused to answer'],
  ANSWER_CUT: [500, 'The answer was cut at its length limit'],
  CONTEXT_TOO_LONG: [500, 'The conversation is too long for the model'],
  PORT_TIMEOUT: [503, 'The server did not answer in time'],
  RECORD_TOO_LARGE: [413, 'The message is too large'],
  REPLY_TOO_LARGE: [500, 'The reply of the model is too large'],
  RECORD_GONE: [410, 'The record of the run is not kept any more'],
  RUN_ENDED: [409, 'The run has ended for good'],
  RUN_ID_CONFLICT: [409, 'This key belongs to another request'],
  RUN_OWNED_ELSEWHERE: [409, 'Another process works on the run'],
  RUN_PARKED: [409, 'The run is set aside until a person looks at it'],
  RUN_SLICED: [409, 'The slice of the run is over'],
  RUN_WAITS: [409, 'The run waits'],
  STEP_LIMIT: [500, 'The run took too many steps'],
  SETUP: [503, 'The server cannot continue the run'],
  STORE_FULL: [503, 'The server has no room'],
  STORE_UNAVAILABLE: [503, 'The store does not answer'],
  THREAD_BUSY: [409, 'The conversation is busy'],
  THREAD_EXISTS: [409, 'There is a conversation of this id'],
  THREAD_FULL: [429, 'Too many messages wait in the conversation'],
  THREAD_MESSAGE_CONFLICT: [409, 'This id belongs to another message'],
  THREAD_MISSING: [404, 'There is nothing here'],
  TOOL_LOOP: [500, 'The run repeated itself'],
  TRANSCRIPT_INVALID: [400, 'The messages are not valid'],
  UNDELIVERED: [409, 'The message could not be delivered'],
  UNSUPPORTED: [501, 'This server does not offer that'],
  WAIT_EXPIRED: [409, 'No answer came in time'],
  WAIT_GONE: [410, 'Nothing waits for this answer any more'],
  WORKFLOW_ERROR: [500, 'The workflow failed'],
  WORKFLOW_LOOP: [500, 'The workflow never comes to rest'],
  WORKFLOW_STATE: [500, 'The workflow holds what no record can hold'],
  WRITE_CONFLICT: [409, 'A file is not what it was'],
  WRITE_FAILED: [500, 'The files could not be written'],
  WRITE_OUTSIDE_ROOT: [422, 'A file may not be changed'],
};

function rowOf(code: unknown): readonly [number, string] | undefined {
  if (typeof code !== 'string') return undefined;
  if (Object.hasOwn(requestErrors, code)) return requestErrors[code as RequestErrorCode];
  return Object.hasOwn(pawlErrors, code) ? pawlErrors[code] : undefined;
}

/** How soon a client may send a refused request again, by its status, s. */
const retryAfter: { readonly [status: number]: string } = { 429: '5', 503: '5' };

const MAX_DETAIL = 1_000;

/** The body of an error: `application/problem+json`, after RFC 9457. */
export interface Problem {
  /** `urn:pawl:<CODE>`. */
  readonly type: string;
  /** The same text for each error of this code. */
  readonly title: string;
  readonly status: number;
  /** Stable, to branch on. */
  readonly code: string;
  /** What is wrong with this request; absent if the error is not the client's. */
  readonly detail?: string;
}

/**
 * Makes the answer of an error. An error that is not Pawl's, and one of the server itself, shows nothing of its message: it may
 * name hosts, paths and keys.
 */
export function problemAnswer(error: unknown): Response {
  const code = readProperty(error, 'code');
  const row = isPawlError(error) ? rowOf(code) : undefined;
  if (!row) return answerOf(requestErrors.INTERNAL, 'INTERNAL');
  const [status] = row;
  const message = readProperty(error, 'message');
  const isShown = status < 500 && status !== 404 && typeof message === 'string' && message !== '';
  const answered = readProperty(error, 'answered');
  const more = { ...(isShown ? { detail: message.slice(0, MAX_DETAIL) } : {}), ...(answered ? { answered } : {}) };
  return answerOf(row, status === 404 ? 'NOT_FOUND' : String(code), {
    more,
    headers: error instanceof RequestError ? error.headers : {},
  });
}

/** Makes the answer of a code alone, for an error that is plain data. */
export function refusedAnswer(code: string): Response {
  const row = policyOf(code) ? rowOf(code) : undefined;
  return row ? answerOf(row, code) : answerOf(requestErrors.INTERNAL, 'INTERNAL');
}

function answerOf(
  [status, title]: readonly [number, string],
  code: string,
  { more = {}, headers = {} }: { more?: object; headers?: Readonly<Record<string, string>> } = {},
): Response {
  const problem: Problem = { type: `urn:pawl:${code}`, title, status, code, ...more };
  const wait = retryAfter[status];
  return new Response(`${JSON.stringify(problem)}\n`, {
    status,
    headers: {
      ...plainHeaders,
      'content-type': 'application/problem+json',
      ...(wait === undefined ? {} : { 'retry-after': wait }),
      ...headers,
    },
  });
}

/** The headers of all answers that are not streams. */
const plainHeaders = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' } as const;

/** Makes a JSON answer. */
export function jsonAnswer(body: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): Response {
  return new Response(`${JSON.stringify(body)}\n`, {
    status,
    headers: { ...plainHeaders, 'content-type': 'application/json', ...headers },
  });
}

/** An error as clients see it: its code, and the same text for each error of that code. */
export interface PublicError {
  /** `RUN_FAILED` for a code that is not Pawl's. */
  readonly code: string;
  readonly message: string;
}

/**
 * Returns an error of a run as clients may see it. Its own message, its causes and a host's own code stay in the server: a
 * provider's error may quote a key.
 */
export function publicError({ code }: Pick<ErrorData, 'code'>): PublicError {
  const title = policyOf(code) && rowOf(code)?.[1];
  return title ? { code, message: title } : { code: 'RUN_FAILED', message: 'The run failed' };
}

/** Lists the codes that an answer may have, with their statuses, for the description of the routes. */
export function knownProblems(): readonly (readonly [code: string, status: number, title: string])[] {
  const all = { ...requestErrors, ...pawlErrors };
  return Object.entries(all).map(([code, [status, title]]) => [code, status, title] as const);
}
