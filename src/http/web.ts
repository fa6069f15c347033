import type { Clock, Logger } from '../index.ts';
import { LogLines, type Warn } from '../log/log.ts';
import { systemClock } from '../values/clock.ts';
import { isObject } from '../values/json.ts';
import { checkKeys, type KnownKeys, kindOf } from '../values/known-options.ts';
import type { Authorize } from './authorize.ts';
import { problemAnswer } from './problem.ts';
import { Reading } from './reading.ts';
import { RequestPlaces } from './walls.ts';

/** The options of every handler: who may use it, from where, and how much. */
export interface WebOptions {
  /**
   * Decides who sends a request. Required: nothing is open to all.
   * @example authorize: async (request) => (await userOf(request.headers))?.grant
   */
  readonly authorize: Authorize;
  /**
   * The path below which the routes are.
   * @default '/'
   * @example basePath: '/api/pawl'
   */
  readonly basePath?: string;
  /**
   * The hosts that requests may name, each with its port if it is not the usual one, for example `app.example` or
   * `localhost:3000`; others get 421. Set it where `authorize` needs no secret.
   * @default any
   * @example hosts: ['app.example']
   */
  readonly hosts?: readonly string[];
  /**
   * Origins of pages that may use the routes besides those of the same host.
   * @default none
   * @example origins: ['https://app.example']
   */
  readonly origins?: readonly string[];
  /**
   * Most bytes of a body.
   * @default 1_048_576
   */
  readonly maxBodyBytes?: number;
  /**
   * Longest time for a body.
   * @default 10_000
   */
  readonly bodyMs?: number;
  /**
   * Most open streams of one caller.
   * @default 64
   */
  readonly maxStreams?: number;
  /**
   * Pause between the comments that keep a stream alive.
   * @default 10_000
   */
  readonly heartbeatMs?: number;
  /**
   * How often `authorize` is asked again about an open stream.
   * @default 300_000
   */
  readonly reauthorizeMs?: number;
  /**
   * Gets the errors behind answers of 500 and 503, and broken streams.
   * @default the console
   * @example logger: jsonLogger()
   */
  readonly logger?: Logger;
  /**
   * For tests.
   * @default the computer's
   * @example clock: testClock()
   */
  readonly clock?: Clock;
}

/** Every option of WebOptions, for the checks of a handler that has more. */
const webKeys: KnownKeys<WebOptions> = {
  authorize: true,
  basePath: true,
  hosts: true,
  origins: true,
  maxBodyBytes: true,
  bodyMs: true,
  maxStreams: true,
  heartbeatMs: true,
  reauthorizeMs: true,
  logger: true,
  clock: true,
};

/** The checked options of a handler, and the streams that are open through it. */
export interface Web extends Required<Omit<WebOptions, 'hosts' | 'origins' | 'logger'>> {
  readonly hosts: ReadonlySet<string> | undefined;
  readonly origins: ReadonlySet<string>;
  /** The open streams of each caller. */
  readonly streams: RequestPlaces;
  /** How streams read events: no caller's hold up another one. */
  readonly reading: Reading;
  /** Logs a failure of the server. Never throws. */
  readonly warn: Warn;
  /** Does the work of a request. Never rejects: an error becomes its answer. */
  answer(request: Request, work: () => Promise<Response>): Promise<Response>;
}

/**
 * Checks the options of a handler.
 * @param of the function that takes them, for errors @param keys its own options
 * @throws {TypeError} without `authorize`, for an unknown option, and for a limit that is not a number above 0
 */
export function webOf(options: WebOptions, of: string, keys: Readonly<Record<string, true>> = {}): Web {
  checkKeys(options, { ...webKeys, ...keys }, { of });
  const { authorize, hosts, origins = [], logger, clock = systemClock } = options;
  if (typeof authorize !== 'function')
    throw new TypeError(
      `${of} needs authorize: a function that says who sends a request; for your own machine localOnly()`,
    );
  const { maxBodyBytes = 2 ** 20, bodyMs = 10_000, maxStreams = 64 } = options;
  const { heartbeatMs = 10_000, reauthorizeMs = 300_000 } = options;
  const limits = { maxBodyBytes, bodyMs, maxStreams, heartbeatMs, reauthorizeMs };
  for (const [name, value] of Object.entries(limits)) checkLimit(`${of}: ${name}`, value);
  const lines = new LogLines(logger);
  lines.clock = clock;
  const { warn } = lines;
  return {
    authorize,
    basePath: basePathOf(options.basePath ?? '/', of),
    hosts: hosts && new Set(textsOf(hosts, `${of}: hosts`).map(normalHost)),
    origins: new Set(textsOf(origins, `${of}: origins`).map((origin) => originOf(origin, of))),
    ...limits,
    clock,
    streams: new RequestPlaces(maxStreams),
    reading: new Reading(clock),
    warn,
    answer: (_request, work) => answerSafely(work, warn),
  };
}

async function answerSafely(work: () => Promise<Response>, warn: Web['warn']): Promise<Response> {
  try {
    return await work();
  } catch (error) {
    const answer = problemAnswer(error);
    if (answer.status >= 500) warn('http.answer.failed', { status: answer.status, error });
    return answer;
  }
}

function checkLimit(name: string, value: unknown): void {
  if (typeof value === 'number' && value > 0) return;
  throw new TypeError(`${name} must be a number above 0, not ${kindOf(value)}`);
}

function textsOf(values: unknown, name: string): readonly string[] {
  if (Array.isArray(values) && values.every((value) => typeof value === 'string')) return values;
  throw new TypeError(`${name} must be an array of strings, not ${isObject(values) ? 'an object' : kindOf(values)}`);
}

/** The host as a URL shows it: in lower case, without the usual port. */
function normalHost(host: string): string {
  const url = `http://${host}`;
  return URL.canParse(url) ? new URL(url).host : host;
}

function originOf(origin: string, of: string): string {
  if (URL.canParse(origin) && new URL(origin).origin === origin) return origin;
  throw new TypeError(`${of}: origins needs the form https://app.example, without a path`);
}

/** `/` becomes '', `/api/` becomes `/api`: a route is appended to it. */
function basePathOf(path: unknown, of: string): string {
  if (typeof path !== 'string' || !path.startsWith('/') || path.includes('?') || path.includes('#'))
    throw new TypeError(`${of}: basePath must begin with /, as in /api/pawl`);
  return path.endsWith('/') ? path.slice(0, -1) : path;
}
