import { readProperty } from '../values/error-data.ts';
import { nextTurn } from '../values/event-loop.ts';
import type { AuthorizeDetails, Grant } from './authorize.ts';
import type { Web } from './web.ts';

/** What an open stream needs: who reads it, and how to ask that again. */
export interface StreamOptions {
  readonly web: Web;
  readonly request: Request;
  readonly grant: Grant;
  /** Asks the host again. @throws if the request is not granted any more */
  ask(details: AuthorizeDetails): Promise<Grant>;
  readonly details: AuthorizeDetails;
  readonly headers?: Readonly<Record<string, string>>;
  /** Each frame has an id, and is read again behind the one before it. Else a frame is in memory until it is taken. */
  readonly isPlaced?: boolean;
}

/** Opens the frames of a stream, each a whole one as text. @param after the id of a frame; undefined for the first one */
type Open = (signal: AbortSignal, after: string | undefined) => AsyncIterable<string>;

/** One event of a stream, as text. */
export function frameOf({ id, data }: { readonly id?: string; readonly data: string }): string {
  return `${id === undefined ? '' : `id: ${id}\n`}data: ${data}\n\n`;
}

/** How long a browser waits before it connects again, ms. */
const RETRY_MS = 1_000;

/** How long the answer waits for the first frame of what has ended, ms. */
const FIRST_FRAME_MS = 500;

/** Bytes that are handed on at once. The next ones follow, and the next event is read, when the reader has taken them. */
const PIECE_BYTES = 65_536;

/** After so many pieces of a frame the event loop has a turn: a quick reader takes megabytes at once. */
const PIECES_PER_TURN = 8;

/** How long a reader may take nothing while something waits for it, ms. It connects again when it reads. */
const TAKE_MS = 10_000;

/** How long a large frame is in memory for a reader that takes nothing, ms. Then it is read again when the reader takes more. */
const KEEP_MS = 1_000;

const headers = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
  'x-content-type-options': 'nosniff',
} as const;

/**
 * Makes the answer that streams frames. The frames' own end ends it in good order. A throw of theirs, a refused new
 * authorisation, a client that leaves and one that takes nothing break it: a reader must never take a cut for the end.
 * @param open gets a signal, which is aborted when the stream is over
 * @returns with `isOver`, an answer with 204 if the frames end before the first one
 * @throws {RequestError} TOO_MANY_STREAMS @throws with `isOver`, what the frames throw before the first one
 */
export async function streamAnswer(
  options: StreamOptions,
  open: Open,
  {
    isOver = false,
  }: {
    /** The events are all there: it is known within half a second whether any is left. */ readonly isOver?: boolean;
  } = {},
): Promise<Response> {
  const giveBack = options.web.streams.take(options.grant.callerId);
  const stream = opened(options, open, giveBack);
  try {
    if (isOver && (await stream.isEmpty())) {
      stream.close();
      return new Response(null, { status: 204, headers: { 'cache-control': 'no-store' } });
    }
  } catch (error) {
    stream.close();
    throw error;
  }
  return new Response(stream.body(), { status: 200, headers: { ...headers, ...options.headers } });
}

function opened(options: StreamOptions, open: Open, giveBack: () => void): EventStream {
  try {
    return new EventStream(options, open, giveBack);
  } catch (error) {
    giveBack();
    throw error;
  }
}

/** The frame that the reader gets. */
interface Sending {
  readonly id: string | undefined;
  readonly length: number;
  readonly sent: number;
  /** Undefined: it is not in memory. */
  readonly bytes: Uint8Array | undefined;
}

const decoder = new TextDecoder();

const none: AsyncIterator<string> = { next: async () => ({ done: true, value: undefined }) };

class EventStream {
  readonly #options: StreamOptions;
  readonly #open: Open;
  #frames: AsyncIterator<string>;
  readonly #stop = new AbortController();
  readonly #giveBack: () => void;
  readonly #encoder = new TextEncoder();
  #timers: unknown[] = [];
  /** Of the reader that has not taken the last piece. */
  #late: unknown;
  #frame: Sending = { id: undefined, length: 0, sent: 0, bytes: new Uint8Array() };
  /** The id of the frame before. */
  #before: string | undefined;
  #pieces = 0;
  #first: Promise<IteratorResult<string>> | undefined;
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  #isClosed = false;

  constructor(options: StreamOptions, open: Open, giveBack: () => void) {
    this.#options = options;
    this.#open = open;
    this.#giveBack = giveBack;
    this.#frames = open(this.#stop.signal, undefined)[Symbol.asyncIterator]();
  }

  /** Returns whether no frame is left, as far as it is known in time: a store may take long to read. */
  async isEmpty(): Promise<boolean> {
    const { clock } = this.#options.web;
    const late = Promise.withResolvers<undefined>();
    const timer = clock.setTimeout(() => late.resolve(undefined), FIRST_FRAME_MS);
    this.#first = this.#frames.next();
    // Rejects also if the answer is over by then.
    this.#first.catch(() => {});
    const first = await Promise.race([this.#first, late.promise]).finally(() => clock.clearTimeout(timer));
    return first?.done === true;
  }

  body(): ReadableStream<Uint8Array> {
    const { signal } = this.#options.request;
    const leave = () => this.#break(signal.reason);
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
          controller.enqueue(this.#encoder.encode(`retry: ${RETRY_MS}\n\n`));
          if (signal.aborted) return leave();
          signal.addEventListener('abort', leave, { once: true });
          this.#stop.signal.addEventListener('abort', () => signal.removeEventListener('abort', leave));
          this.#beat();
          this.#watch(this.#options.grant);
        },
        pull: () => this.#next(),
        cancel: () => this.close(),
      },
      // Nothing is made that the reader does not wait for.
      { highWaterMark: 0 },
    );
  }

  async #next(): Promise<void> {
    this.#options.web.clock.clearTimeout(this.#late);
    try {
      if (!this.#frame.bytes) await this.#readAgain(this.#frame);
      if (this.#isInside) {
        this.#pieces += 1;
        if (this.#pieces % PIECES_PER_TURN === 0) await nextTurn();
        return this.#send();
      }
      const first = this.#first ?? this.#frames.next();
      this.#first = undefined;
      const { done, value } = await first;
      if (this.#isClosed) return;
      if (!done) {
        this.#before = this.#frame.id;
        this.#frame = this.#sending(value);
        return this.#send();
      }
      this.close();
      this.#controller?.close();
    } catch (error) {
      // A host that is leaving breaks its streams on purpose: their readers continue on another one.
      const isLeaving = readProperty(error, 'code') === 'ERR_SHUTDOWN';
      if (!this.#isClosed && !isLeaving) this.#options.web.warn('http.stream.broke', { error });
      this.#break(error);
    }
  }

  /** Sends the next piece of a frame. A copy: what a socket holds would keep the whole frame in memory. */
  #send(): void {
    if (this.#isClosed) return;
    const { sent, length, bytes = new Uint8Array() } = this.#frame;
    const end = Math.min(sent + PIECE_BYTES, length);
    this.#frame = { ...this.#frame, sent: end };
    this.#controller?.enqueue(end - sent === length ? bytes : bytes.slice(sent, end));
    const { web, isPlaced } = this.#options;
    const leave = () => this.#break(new Error(`the reader has taken nothing for ${TAKE_MS} ms`));
    const drop = () => {
      this.#drop();
      this.#late = web.clock.setTimeout(leave, TAKE_MS - KEEP_MS);
    };
    const isHeld = isPlaced && length > PIECE_BYTES;
    this.#late = isHeld ? web.clock.setTimeout(drop, KEEP_MS) : web.clock.setTimeout(leave, TAKE_MS);
  }

  #sending(text: string): Sending {
    const bytes = this.#encoder.encode(text);
    // Not a part of the text, which would keep all of it in memory.
    const id = text.startsWith('id: ') ? decoder.decode(bytes.subarray('id: '.length, bytes.indexOf(10))) : undefined;
    return { id, length: bytes.length, sent: 0, bytes };
  }

  /** Whether the reader has the beginning of a frame, and not its end. */
  get #isInside(): boolean {
    return this.#frame.sent < this.#frame.length;
  }

  /** Frees the frame, and the event of which it was made. */
  #drop(): void {
    this.#frame = { ...this.#frame, bytes: undefined };
    this.#leaveFrames();
  }

  /** Reads a frame again that was freed. @throws if it is another one by now */
  async #readAgain({ id, length, sent }: Sending): Promise<void> {
    this.#frames = this.#open(this.#stop.signal, this.#before)[Symbol.asyncIterator]();
    const found = this.#sending((await this.#frames.next()).value ?? '');
    if (found.id !== id || found.length !== length)
      throw new Error('an event has changed while its reader had a part of it');
    this.#frame = { ...found, sent };
  }

  /** Ends the connection without the end of the stream. */
  #break(reason: unknown): void {
    if (this.#isClosed) return;
    this.close();
    this.#controller?.error(reason ?? new Error('the stream was left'));
  }

  /** Frees everything that the stream holds. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const timer of [...this.#timers, this.#late]) this.#options.web.clock.clearTimeout(timer);
    this.#frame = { ...this.#frame, bytes: undefined };
    this.#giveBack();
    this.#stop.abort();
    this.#leaveFrames();
  }

  /** A generator that waits ends with its signal; its rejection interests no reader any more. */
  #leaveFrames(): void {
    Promise.resolve(this.#frames.return?.()).catch(() => {});
    // One that has ended still keeps its last values in memory.
    this.#frames = none;
  }

  #later(ms: number, work: () => void): void {
    const { clock } = this.#options.web;
    const timer = clock.setTimeout(() => {
      this.#timers = this.#timers.filter((each) => each !== timer);
      if (!this.#isClosed) work();
    }, ms);
    this.#timers.push(timer);
  }

  /** A comment keeps proxies from closing a stream that is silent. A reader that reads nothing gets none, and no frame has one inside. */
  #beat(): void {
    this.#later(this.#options.web.heartbeatMs, () => {
      if (this.#controller?.desiredSize === 0 && !this.#isInside)
        this.#controller.enqueue(this.#encoder.encode(':\n\n'));
      this.#beat();
    });
  }

  /** Asks again who reads: a grant may end while the stream is open. */
  #watch(before: Grant): void {
    const { web, details, ask } = this.#options;
    this.#later(web.reauthorizeMs, () => {
      ask(details).then(
        (grant) => {
          if (grant.callerId === before.callerId && grant.all === before.all) this.#watch(before);
          else this.#break(new Error('another caller has the stream'));
        },
        (error: unknown) => this.#break(error),
      );
    });
  }
}
