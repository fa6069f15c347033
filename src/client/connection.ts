import type { Clock } from '../values/clock.ts';
import { errorOf, readText, unlessAborted } from './answer.ts';
import { ClientError } from './error.ts';

/** Headers of a request, in any form that `fetch` takes. */
export type ClientHeaders = Readonly<Record<string, string>> | Headers;

/** Where the server is, and how a client talks to it. */
export interface ClientOptions {
  /** Where `httpHandler` is mounted, with its base path: `https://example.com/api`, or `/api` in a page of the same host. */
  readonly url: string;
  /** Headers of each request, or a function that gives them: it is called before each request, so that a token may change. */
  readonly headers?: ClientHeaders | (() => ClientHeaders | Promise<ClientHeaders>);
  /** Default: the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch;
  /** Whether cookies are sent; default `same-origin`. */
  readonly credentials?: 'omit' | 'same-origin' | 'include';
  /** A stream without a byte for so long is dead and is opened again, ms; default 30,000: three heartbeats of the server. */
  readonly silenceMs?: number;
  /** The time limit of a request that is no stream, ms; default 30,000. */
  readonly timeoutMs?: number;
  /** A stream fails with UNREACHABLE if no server answers for so long, ms. Default: it tries until it is aborted. */
  readonly giveUpMs?: number;
  /** Most bytes of one event or one answer; default 67,108,864. */
  readonly maxBytes?: number;
  readonly clock?: Clock;
  /** Makes the ids of messages and keys of starts that are given none; default: 128 random bits. */
  readonly ids?: () => string;
  /** From 0 to below 1, for the jitter of reconnects; default `Math.random`. */
  readonly random?: () => number;
}

/** A part of a list. */
export interface Page<Item> {
  readonly items: readonly Item[];
  /** The `after` of the next page; absent on the last one. */
  readonly next?: string;
}

/** A request as the client makes it. */
export interface ClientRequest {
  readonly method?: 'GET' | 'POST' | 'DELETE';
  /** Encoded segments, joined: `/runs/r-1/events`. */
  readonly path: string;
  /** Fields that are undefined are left out; one with a list is repeated. */
  readonly query?: Readonly<Record<string, string | number | readonly string[] | undefined>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  /** Whether the request may be sent again when its answer was lost: it then has the same effect as once. */
  readonly isRepeatable?: boolean;
}

/** The waits between the tries of a request or stream: half of it is jitter. */
const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 30_000;
const TRIES = 4;

const browserClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimeout: (callback, ms) => setTimeout(callback, Math.min(ms, 2 ** 31 - 1)),
  clearTimeout: (timer) => clearTimeout(timer as Parameters<typeof clearTimeout>[0]),
};

/** Sends requests to one server. */
export class Connection {
  readonly clock: Clock;
  readonly silenceMs: number;
  readonly giveUpMs: number;
  readonly maxBytes: number;
  readonly #options: ClientOptions;
  readonly #timeoutMs: number;
  readonly #base: string;

  constructor(options: ClientOptions) {
    const { url, clock = browserClock, silenceMs = 30_000, timeoutMs = 30_000, maxBytes = 2 ** 26 } = options;
    if (typeof url !== 'string' || /[?#]/.test(url)) throw new TypeError(`url is no address without ? and #: ${url}`);
    this.#options = options;
    this.#base = url.endsWith('/') ? url.slice(0, -1) : url;
    this.#timeoutMs = timeoutMs;
    this.clock = clock;
    this.silenceMs = silenceMs;
    this.giveUpMs = options.giveUpMs ?? Number.POSITIVE_INFINITY;
    this.maxBytes = maxBytes;
  }

  /**
   * Sends a request and returns the JSON of its answer; undefined for an empty one. A repeatable request is tried 4 times while
   * the server is away.
   * @throws {ClientError}
   */
  async call(request: ClientRequest): Promise<unknown> {
    for (let failures = 1; ; failures += 1) {
      try {
        return await this.#callOnce(request);
      } catch (error) {
        if (failures === TRIES || !isPassing(error) || !this.#mayRepeat(request, error)) throw error;
        await this.pause(this.retryMs(failures, error), request.signal);
        request.signal?.throwIfAborted();
      }
    }
  }

  /** Returns a page of a list. */
  async page<Item>(path: string, query: NonNullable<ClientRequest['query']>): Promise<Page<Item>> {
    const page = (await this.call({ path, query, isRepeatable: true })) as Page<Item> | undefined;
    if (Array.isArray(page?.items)) return page;
    throw badResponse('The answer is no list', { status: 200 });
  }

  /** Returns a new id. */
  newId(): string {
    return (this.#options.ids ?? newId)();
  }

  /**
   * Sends a request and returns its answer as soon as its headers are there.
   * @throws {ClientError} for a status that is no success, and for an answer that does not come
   */
  async open(request: ClientRequest, signal: AbortSignal): Promise<Response> {
    const { credentials = 'same-origin' } = this.#options;
    const body = request.body === undefined ? {} : { body: JSON.stringify(request.body) };
    const headers = await unlessAborted(this.#headers(request), signal);
    // A page that is shown again must not get the answer of the first time.
    const init = { method: request.method ?? 'GET', headers, credentials, signal, cache: 'no-store', ...body } as const;
    const response = await unlessAborted(this.#fetch(this.#urlOf(request), init), signal).catch((cause: unknown) => {
      throw signal.aborted ? signal.reason : unreachable(cause);
    });
    if (!response.ok) throw await errorOf(response, this.clock.now(), signal);
    return response;
  }

  /** The wait before a retry, ms: doubled with each failure, half of it jitter, and not before the server allows one. */
  retryMs(failures: number, error?: unknown, firstMs = FIRST_RETRY_MS): number {
    const ms = Math.min(LONGEST_RETRY_MS, firstMs * 2 ** (failures - 1));
    const jittered = ms * (0.5 + (this.#options.random ?? Math.random)() / 2);
    const asked = error instanceof ClientError ? error.retryAfterMs : undefined;
    return Math.max(jittered, asked ?? 0);
  }

  /** Waits; less if the browser says that it is online again, or when the signal is aborted. Never rejects. */
  pause(ms: number, signal?: AbortSignal): Promise<void> {
    // A page, or a worker of one. Elsewhere there is no such event; a document alone, as tests have it, tells nothing.
    const around = globalThis as Partial<EventTarget>;
    const page = typeof around.addEventListener === 'function' ? (around as EventTarget) : undefined;
    return new Promise((resolve) => {
      const end = (): void => {
        this.clock.clearTimeout(timer);
        signal?.removeEventListener('abort', end);
        page?.removeEventListener('online', end);
        resolve();
      };
      const timer = this.clock.setTimeout(end, ms);
      signal?.addEventListener('abort', end);
      page?.addEventListener('online', end);
      if (signal?.aborted) end();
    });
  }

  #mayRepeat({ isRepeatable }: ClientRequest, { status, retryAfterMs = 0 }: ClientError): boolean {
    // The server did not act on a request that it refused for now.
    return (isRepeatable === true || status === 429 || status === 503) && retryAfterMs <= this.#timeoutMs;
  }

  async #callOnce(request: ClientRequest): Promise<unknown> {
    const limit = new AbortController();
    const { signal: caller } = request;
    const abort = (): void => limit.abort(caller?.reason);
    caller?.addEventListener('abort', abort);
    if (caller?.aborted) abort();
    const timer = this.clock.setTimeout(() => limit.abort(timedOut(this.#timeoutMs)), this.#timeoutMs);
    try {
      return await this.#answerOf(await this.open(request, limit.signal), limit.signal);
    } finally {
      this.clock.clearTimeout(timer);
      caller?.removeEventListener('abort', abort);
    }
  }

  async #answerOf(response: Response, signal: AbortSignal): Promise<unknown> {
    const text = await readText(response, { maxBytes: this.maxBytes, signal }).catch((error: unknown) => {
      if (signal.aborted) throw signal.reason;
      throw error instanceof ClientError ? error : unreachable(error);
    });
    if (text === '') return undefined;
    try {
      return JSON.parse(text);
    } catch (cause) {
      throw badResponse('The answer is not JSON', { status: response.status, cause });
    }
  }

  /** Async, so that a `fetch` which throws is one that rejects. The global one is looked up each time: programs replace it. */
  async #fetch(url: string, init: RequestInit): Promise<Response> {
    const { fetch = globalThis.fetch } = this.#options;
    return fetch(url, init);
  }

  async #headers({ headers, body }: ClientRequest): Promise<Headers> {
    const { headers: source } = this.#options;
    const all = new Headers(typeof source === 'function' ? await source() : source);
    if (body !== undefined) all.set('content-type', 'application/json');
    for (const [name, value] of Object.entries(headers ?? {})) all.set(name, value);
    return all;
  }

  #urlOf({ path, query = {} }: ClientRequest): string {
    const fields = new URLSearchParams();
    for (const [name, value] of Object.entries(query))
      for (const each of Array.isArray(value) ? value : [value]) if (each !== undefined) fields.append(name, `${each}`);
    const text = fields.toString();
    return this.#base + path + (text === '' ? '' : `?${text}`);
  }
}

/**
 * Makes the path of a request from names and ids.
 * @throws {TypeError} for an id that no address can hold: the empty text, `.`, `..`, half of a surrogate pair
 */
export function pathOf(...segments: readonly string[]): string {
  return segments
    .map((segment) => {
      const isFit = typeof segment === 'string' && segment.isWellFormed() && !['', '.', '..'].includes(segment);
      if (isFit) return `/${encodeURIComponent(segment)}`;
      throw new TypeError(`${JSON.stringify(segment)} is no id that an address can hold`);
    })
    .join('');
}

/** Returns whether a failure may be over at the next try. */
export function isPassing(error: unknown): error is ClientError {
  return error instanceof ClientError && error.retry === 'later';
}

/** Makes the error of an answer that is not Pawl's. */
export function badResponse(
  message: string,
  facts: { readonly status?: number; readonly cause?: unknown },
): ClientError {
  return new ClientError(message, { code: 'BAD_RESPONSE', ...facts });
}

/** Makes the error of a request, or a stream, without an answer. */
export function unreachable(cause: unknown, message = 'The server does not answer'): ClientError {
  const facts = { code: 'UNREACHABLE', retry: 'later', cause } as const;
  return new ClientError(cause instanceof Error ? `${message}: ${cause.message}` : message, facts);
}

/** Makes the error of a request that took too long. */
export function timedOut(ms: number): ClientError {
  return new ClientError(`The server sent nothing for ${ms} ms`, { code: 'TIMEOUT', retry: 'later' });
}

/**
 * Returns an id for a message, or a key for a start: 128 random bits.
 * @example const id = newId(); // '9f86d081884c7d659a2feaa0c55ad015'
 */
export function newId(): string {
  // Not `randomUUID`, which pages without HTTPS do not have.
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
