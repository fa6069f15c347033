import { chunksOf, tooLarge, unlessAborted } from './answer.ts';
import { badResponse, type ClientRequest, type Connection, isPassing, timedOut, unreachable } from './connection.ts';
import { ClientError } from './error.ts';
import { type SseEvent, SseParser, SseSyntaxError } from './sse-parser.ts';

/**
 * What a stream does. `connecting`: no answer yet. `open`: the server sends. `waiting`: the connection broke, or the server is
 * away; the stream tries again after a time.
 */
export type ConnectionState = 'connecting' | 'open' | 'waiting';

/** How a stream is followed. */
interface FollowOptions<T> {
  /** The request of the next connection. @param lastId of the last item that was given out */
  readonly request: (lastId: string | undefined) => ClientRequest;
  /** Reads the data of one event; a throw ends the stream with BAD_RESPONSE. */
  readonly parse: (event: SseEvent) => T;
  /**
   * Whether an item without an id of its own is given out at once. Any other one waits for the next item with an id: the server
   * sends all of them again if the connection breaks between them.
   */
  readonly standsAlone?: (item: T) => boolean;
  readonly signal: AbortSignal;
  readonly after?: string | undefined;
  /** Most ms before the very first answer; default `giveUpMs` of the connection. */
  readonly firstAnswerMs?: number;
  /** Called at each change; `error` says why the stream waits. */
  readonly onConnection?: ((state: ConnectionState, error?: ClientError) => void) | undefined;
}

/**
 * Yields the items of an event stream over all its connections. After a break, a dead silence or a passing error it connects
 * again, behind the last item with an id. It ends when the server says that the reader has all (204); the caller ends it by
 * leaving the loop. It rejects with the signal's reason when that is aborted.
 * @throws {ClientError} for an error that a new connection does not cure
 */
export async function* followFeed<T>(
  connection: Connection,
  options: FollowOptions<T>,
): AsyncGenerator<T, void, undefined> {
  const stream = new FollowedStream(connection, options);
  for (;;) {
    // The last item says that it is the last, and the caller leaves on it: a clean end without it is a break.
    let failure: unknown = unreachable(undefined, 'The connection ended too early');
    try {
      const response = await stream.open();
      if (response.status === 204) return;
      for await (const items of stream.groupsOf(response)) for (const item of items) yield item;
    } catch (error) {
      failure = error;
    }
    stream.onFailure(failure);
    await stream.rest();
  }
}

class FollowedStream<T> {
  readonly #connection: Connection;
  readonly #options: FollowOptions<T>;
  #lastId: string | undefined;
  #firstRetryMs: number | undefined;
  #failures = 0;
  #wasOpen = false;
  #silentSince: number;
  #error: ClientError | undefined;

  constructor(connection: Connection, options: FollowOptions<T>) {
    this.#connection = connection;
    this.#options = options;
    this.#lastId = options.after;
    this.#silentSince = connection.clock.monotonic();
  }

  async open(): Promise<Response> {
    this.#announce('connecting');
    const { request, signal } = this.#options;
    const response = await this.#unlessSilent((live) => this.#connection.open(request(this.#lastId), live));
    signal.throwIfAborted();
    const type = response.headers.get('content-type') ?? '';
    if (response.status !== 204 && !type.startsWith('text/event-stream')) {
      response.body?.cancel().catch(() => undefined);
      throw badResponse(`The answer is no event stream but ${type || 'without a type'}`, { status: response.status });
    }
    this.#wasOpen = true;
    this.#silentSince = this.#connection.clock.monotonic();
    this.#error = undefined;
    this.#announce('open');
    return response;
  }

  /** The items of a connection, as soon as they may be given out. */
  async *groupsOf(response: Response): AsyncGenerator<readonly T[]> {
    const { maxBytes } = this.#connection;
    const parser = new SseParser(maxBytes);
    const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
    let held: T[] = [];
    let heldChars = 0;
    for await (const chunk of chunksOf(response, (read) => this.#unlessSilent(() => unlessBroken(read)))) {
      this.#silentSince = this.#connection.clock.monotonic();
      this.#failures = 0;
      const { events, retryMs } = parser.push(decoder.decode(chunk, { stream: true }));
      if (retryMs !== undefined) this.#firstRetryMs = Math.min(Math.max(retryMs, 100), 30_000);
      for (const event of events) {
        const item = this.#parsed(event);
        held.push(item);
        heldChars += event.data.length;
        if (heldChars > maxBytes) throw tooLarge(`The stream has no id for ${maxBytes} characters`, response.status);
        if (event.id === undefined && !this.#options.standsAlone?.(item)) continue;
        // Before the items are given out: a caller who leaves after the last one never comes back here.
        this.#lastId = event.id ?? this.#lastId;
        yield held;
        held = [];
        heldChars = 0;
      }
    }
  }

  /** Throws what no new connection cures, or what has lasted too long. */
  onFailure(error: unknown): void {
    const { signal } = this.#options;
    if (signal.aborted) throw signal.reason;
    if (error instanceof SseSyntaxError)
      throw error.isTooLarge ? tooLarge(error.message, 200) : badResponse(error.message, { status: 200 });
    // A server that has answered before has no lasting fault.
    const isCured = isPassing(error) || (this.#wasOpen && error instanceof ClientError && error.status >= 500);
    if (!isCured) throw error;
    this.#error = error;
    this.#failures += 1;
    const { clock, giveUpMs } = this.#connection;
    const { firstAnswerMs = giveUpMs } = this.#options;
    const silentMs = clock.monotonic() - this.#silentSince;
    if (silentMs >= (this.#wasOpen ? giveUpMs : firstAnswerMs))
      throw unreachable(error, `No server has answered for ${Math.round(silentMs)} ms`);
  }

  /** Waits before the next connection. */
  async rest(): Promise<void> {
    const { signal } = this.#options;
    this.#announce('waiting');
    await this.#connection.pause(this.#connection.retryMs(this.#failures, this.#error, this.#firstRetryMs), signal);
    signal.throwIfAborted();
  }

  #announce(state: ConnectionState): void {
    try {
      this.#options.onConnection?.(state, this.#error);
    } catch {
      // An error of the one who looks on does not end the stream.
    }
  }

  #parsed(event: SseEvent): T {
    try {
      return this.#options.parse(event);
    } catch (cause) {
      throw badResponse('An event of the stream cannot be read', { status: 200, cause });
    }
  }

  /** Waits for a request or a read, as long as a connection may be silent. */
  async #unlessSilent<R>(work: (signal: AbortSignal) => Promise<R>): Promise<R> {
    const { clock, silenceMs } = this.#connection;
    const { signal } = this.#options;
    const live = new AbortController();
    const abort = (): void => live.abort(signal.reason);
    signal.addEventListener('abort', abort);
    if (signal.aborted) abort();
    const timer = clock.setTimeout(() => live.abort(timedOut(silenceMs)), silenceMs);
    try {
      return await unlessAborted(work(live.signal), live.signal);
    } finally {
      clock.clearTimeout(timer);
      signal.removeEventListener('abort', abort);
    }
  }
}

async function unlessBroken<R>(read: Promise<R>): Promise<R> {
  try {
    return await read;
  } catch (cause) {
    throw unreachable(cause, 'The connection broke');
  }
}
