import type { WaitEnd } from '../run/open-step.ts';
import { durationMs } from '../values/clock.ts';
import { UnsupportedError, WaitAfterEffectError, WaitChangedError, WaitExpiredError } from '../values/errors.ts';
import { frozenJson, hasTexts, type JsonObject, type JsonValue, prototypeKeyIn } from '../values/json.ts';
import { checkKeys, type KnownKeys, kindOf } from '../values/known-options.ts';
import { checkQuorum } from './approval.ts';
import type { CallWaits, ExpectedEvent, Question, WaitRequest } from './call-waits.ts';
import { readSchema, type ToolInput } from './schema.ts';

/** Most waits of one call, and most requests of one execution: the record holds their answers. */
const MAX_WAITS = 1_000;
/** Longest question, and longest JSON of its options or its schema, in characters: the record holds them. */
const MAX_QUESTION_CHARS = 65_536;
/** Longest name and key of an event, in characters. */
const MAX_EVENT_CHARS = 1_024;

/** A request of a call, checked, and the schema that its answer goes through. */
interface Requested {
  readonly request: WaitRequest;
  readonly schema?: ToolInput;
}

interface Surroundings {
  readonly tool: string;
  /** The recorded ends of the call's waits. The record may be damaged: each is checked. */
  readonly answers: readonly unknown[];
  readonly isOnce: boolean;
  /** Whether the tool says who may answer its questions. */
  readonly hasAnswerers?: boolean;
  /** Whether the tool has not awaited anything yet. */
  readonly isBeginning: () => boolean;
  /** Whether the execution is over: nothing can be asked any more. */
  readonly isOver: () => boolean;
  /** The execution ends: the call waits. */
  readonly hold: (request: WaitRequest) => void;
  /** The execution ends with an error, also if the tool catches it. */
  readonly fail: (error: Error) => void;
}

/**
 * The requests of one execution of a call. The n-th request gets the n-th recorded answer; the first one without an answer ends
 * the execution.
 */
export class RequestedWaits {
  readonly #around: Surroundings;
  /** How many requests have an answer, or are about to open a wait. */
  #count = 0;
  #requests = 0;
  /** Opens a wait at the end of this turn, unless another request comes in it. */
  #opening: { readonly reject: (error: Error) => void } | undefined;

  constructor(around: Surroundings) {
    this.#around = around;
  }

  /** The functions of the tool's context. */
  readonly functions: CallWaits = {
    ask: (question) => this.#request(() => questionOf(this.#around, question)) as never,
    waitFor: (name, event = {}) => this.#request(() => eventOf(this.#around.tool, name, event)) as never,
    sleep: (duration) => this.#request(() => ({ request: { kind: 'timer', waitMs: msOf(duration) } })) as never,
    sleepUntil: (time) => this.#request(() => ({ request: { kind: 'timer', dueAt: timeOf(time) } })) as never,
  };

  #request(read: () => Requested): Promise<unknown> {
    const answer = this.#answer(read);
    // A tool may drop the promise: its failure must not reach the process.
    answer.catch(() => {});
    return answer;
  }

  #answer(read: () => Requested): Promise<unknown> {
    const { tool, isOver, fail, answers } = this.#around;
    if (isOver()) return new Promise(() => {});
    this.#requests += 1;
    if (this.#requests > MAX_WAITS) {
      fail(new UnsupportedError(`tool "${tool}" asked for more than ${MAX_WAITS} waits in one call`));
      return new Promise(() => {});
    }
    try {
      const requested = read();
      if (this.#opening) throw this.#refuseBoth(this.#opening);
      const at = this.#count;
      if (at < answers.length) {
        this.#count += 1;
        return this.#give(requested, answers[at]);
      }
      this.#checkEffect();
      this.#count += 1;
      return this.#open(requested.request);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #checkEffect(): void {
    const { tool, isOnce, isBeginning } = this.#around;
    if (!isOnce || (isBeginning() && this.#count === 0)) return;
    const why = this.#count > 0 ? 'asked for a second wait' : 'asked for a wait after it had awaited something';
    throw new WaitAfterEffectError(
      `tool "${tool}" has effect 'once' and ${why}: it may have had its effect, which must not be repeated; let it wait once, before its first await, or make it idempotent`,
    );
  }

  /** Ends the call: with a caught refusal, a later request would get the answer of another place when the call runs again. */
  #refuseBoth({ reject }: { reject: (error: Error) => void }): Error {
    const { tool, fail } = this.#around;
    this.#opening = undefined;
    const error = new UnsupportedError(
      `tool "${tool}" asked for two waits at the same time; a call has one open wait: await the first one`,
    );
    fail(error);
    reject(error);
    return error;
  }

  #open(request: WaitRequest): Promise<never> {
    return new Promise((_, reject) => {
      const opening = { reject };
      this.#opening = opening;
      queueMicrotask(() => {
        if (this.#opening !== opening) return;
        this.#opening = undefined;
        if (!this.#around.isOver()) this.#around.hold(request);
      });
    });
  }

  async #give({ request, schema }: Requested, stored: unknown): Promise<unknown> {
    const { tool } = this.#around;
    const end = recordedEnd(stored);
    if (!end) throw new WaitChangedError(`a recorded answer of tool "${tool}" cannot be read`);
    const [now, before] = [nameOf(request), nameOf(end)];
    if (now !== before) {
      throw new WaitChangedError(
        `tool "${tool}" now waits for ${now} where it waited for ${before} before: a call must ask for the same things in the same order each time it runs`,
      );
    }
    if (end.kind === 'timer') return undefined;
    if (end.how === 'expire') throw new WaitExpiredError(`${now} did not come in time`);
    const value: unknown = JSON.parse(JSON.stringify(end.value));
    if (!schema) return value;
    const fit = await schema.validate(value);
    if (fit.ok) return fit.value;
    throw new WaitChangedError(
      `the recorded answer to tool "${tool}" does not fit its schema any more: ${fit.message}`,
    );
  }
}

function nameOf(wait: { readonly kind: string; readonly name?: string }): string {
  if (wait.kind === 'event') return `the event ${JSON.stringify(wait.name)}`;
  return wait.kind === 'timer' ? 'a time' : 'an answer';
}

const endsOf: { readonly [Kind in WaitEnd['kind']]: readonly WaitEnd['how'][] } = {
  question: ['answer', 'expire'],
  event: ['signal', 'expire'],
  timer: ['expire', 'wake'],
};

/** Reads the recorded end of a wait; undefined for a damaged one. */
function recordedEnd(stored: unknown): WaitEnd | undefined {
  if (!hasTexts(stored, ['kind', 'how']) || !Object.hasOwn(endsOf, String(stored.kind))) return undefined;
  const end = stored as unknown as WaitEnd;
  if (!endsOf[end.kind].includes(end.how)) return undefined;
  if (end.kind === 'event' && typeof end.name !== 'string') return undefined;
  if (end.kind === 'timer' || end.how === 'expire') return end;
  return end.value === undefined || prototypeKeyIn(end.value) !== undefined ? undefined : end;
}

const questionKeys: KnownKeys<Question<unknown>> = {
  question: true,
  options: true,
  schema: true,
  expiresInMs: true,
  quorum: true,
};

function questionOf({ tool, hasAnswerers }: Pick<Surroundings, 'tool' | 'hasAnswerers'>, given: unknown): Requested {
  checkKeys(given, questionKeys, { of: `tool "${tool}"`, at: 'ask' });
  const { question, options, schema, expiresInMs, quorum = 1 } = given as Question<unknown>;
  if (typeof question !== 'string' || question.trim() === '')
    throw new TypeError(`tool "${tool}": the question of ask must be a text, not ${kindOf(question)}`);
  checkLength(`tool "${tool}": the question`, question);
  if (options !== undefined && !(Array.isArray(options) && options.length > 0))
    throw new TypeError(`tool "${tool}": the options of ask must be a list of JSON values, not ${kindOf(options)}`);
  checkQuorum(`tool "${tool}": the quorum of ask`, quorum);
  const choices = options === undefined ? undefined : (recordable(tool, options, 'options') as JsonValue[]);
  const read = schema === undefined ? undefined : schemaOf(tool, schema);
  return {
    ...(read ? { schema: read } : {}),
    request: {
      kind: 'question',
      question: question.toWellFormed(),
      ...(choices ? { options: choices } : {}),
      ...(read ? { schema: read.jsonSchema } : {}),
      ...(quorum > 1 ? { quorum } : {}),
      ...(hasAnswerers ? { approvers: true } : {}),
      ...limitOf(`tool "${tool}": expiresInMs`, expiresInMs),
    },
  };
}

const eventKeys: KnownKeys<ExpectedEvent<unknown>> = { key: true, schema: true, timeoutMs: true };

function eventOf(tool: string, name: unknown, given: unknown): Requested {
  checkKeys(given, eventKeys, { of: `tool "${tool}"`, at: 'waitFor' });
  const { key = '', schema, timeoutMs } = given as ExpectedEvent<unknown>;
  const event = checkEvent(`tool "${tool}": waitFor`, name, key);
  const read = schema === undefined ? undefined : schemaOf(tool, schema);
  return {
    ...(read ? { schema: read } : {}),
    request: {
      kind: 'event',
      ...event,
      ...(read ? { schema: read.jsonSchema } : {}),
      ...limitOf(`tool "${tool}": timeoutMs`, timeoutMs),
    },
  };
}

/** Checks the name and the key of an event, for tools and for signals. @throws {TypeError} */
export function checkEvent(of: string, name: unknown, key: unknown): { readonly name: string; readonly key: string } {
  const isShort = (text: unknown): text is string =>
    typeof text === 'string' && text.length <= MAX_EVENT_CHARS && text.isWellFormed();
  if (!isShort(name) || name === '')
    throw new TypeError(`${of}: the name of an event is a text of 1 to ${MAX_EVENT_CHARS} characters`);
  if (!isShort(key)) throw new TypeError(`${of}: the key of an event is a text of up to ${MAX_EVENT_CHARS} characters`);
  return { name, key };
}

function schemaOf(tool: string, schema: unknown): ToolInput {
  const read = readSchema(schema, `${tool}: the schema of an answer`);
  recordable(tool, read.jsonSchema, 'schema');
  return read;
}

function recordable(tool: string, value: unknown, what: string): JsonValue | JsonObject {
  const json = frozenJson(value, what);
  checkLength(`tool "${tool}": the JSON of ${what}`, JSON.stringify(json));
  return json;
}

function checkLength(what: string, { length }: string): void {
  if (length <= MAX_QUESTION_CHARS) return;
  throw new TypeError(`${what} may have up to ${MAX_QUESTION_CHARS} characters, and this one has ${length}`);
}

function limitOf(what: string, ms: unknown): { readonly waitMs?: number } {
  if (ms === undefined || ms === Number.POSITIVE_INFINITY) return {};
  if (typeof ms === 'number' && ms > 0) return { waitMs: ms };
  throw new TypeError(`${what} must be a number above 0, not ${kindOf(ms)}`);
}

/** The longest time that a date can hold, ms. */
const LAST_TIME_MS = 8.64e15;

function msOf(duration: unknown): number {
  const ms = typeof duration === 'string' ? durationMs(duration) : duration;
  if (typeof ms === 'number' && ms >= 0 && ms <= LAST_TIME_MS) return ms;
  const got = typeof duration === 'string' ? JSON.stringify(duration.slice(0, 40)) : kindOf(duration);
  throw new TypeError(`sleep: ${got} is not a duration; use ms, 30s, 10m, 12h or 7d`);
}

function timeOf(time: unknown): number {
  const at = time instanceof Date ? time.getTime() : time;
  if (typeof at === 'number' && Math.abs(at) <= LAST_TIME_MS) return Math.max(0, Math.ceil(at));
  throw new TypeError(`sleepUntil: ${kindOf(time)} is not a time; use a Date, or ms since 1970`);
}
