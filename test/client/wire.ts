import type { RunEventBody } from '../../src/run/events/body.ts';
import type { Clock } from '../../src/values/clock.ts';

/** A clock on which a pause is over at once, and silence never comes: tests of silence have a clock that they move. */
export interface QuickClock extends Clock {
  /** The pauses so far, ms. */
  readonly pauses: number[];
}

const SILENCE_MS = 20_000;

/** Makes a quick clock. @param silenceMs timers of this length or longer never fire */
export function quickClock(silenceMs = SILENCE_MS): QuickClock {
  const pauses: number[] = [];
  let at = 0;
  return {
    pauses,
    now: () => at,
    monotonic: () => at,
    setTimeout(callback, ms) {
      if (ms >= silenceMs) return undefined;
      pauses.push(ms);
      return setImmediate(() => {
        at += ms;
        callback();
      });
    },
    clearTimeout: (timer) => clearImmediate(timer as NodeJS.Immediate),
  };
}

/** Lets all that needs no time happen until something is true: how many turns streams take is not fixed. */
export async function until(isTrue: () => boolean): Promise<void> {
  for (let turn = 0; !isTrue(); turn += 1) {
    if (turn === 10_000) throw new Error(`It does not become true: ${isTrue}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** What a scripted server does with one request. */
export type Answer = (request: Request) => Response | Promise<Response>;

/** A server in this process: gives each request to the next answer of its script, and the rest to the last one. */
export class ScriptedServer {
  readonly requests: Request[] = [];
  readonly bodies: string[] = [];
  readonly #script: readonly Answer[];

  constructor(...script: readonly Answer[]) {
    this.#script = script;
  }

  readonly fetch = async (input: unknown, init?: RequestInit): Promise<Response> => {
    const request = new Request(`http://server${String(input)}`, init);
    this.requests.push(request);
    // Only texts are sent, so that no copy of the request has to be made and read.
    this.bodies.push(typeof init?.body === 'string' ? init.body : '');
    const answer = this.#script[Math.min(this.requests.length, this.#script.length) - 1];
    if (!answer) throw new Error('The script has no answer');
    return answer(request);
  };

  /** The paths of the requests, with method. */
  get paths(): string[] {
    return this.requests.map(({ method, url }) => `${method} ${url.replace('http://server', '')}`);
  }

  header(name: string): (string | null)[] {
    return this.requests.map(({ headers }) => headers.get(name));
  }
}

/** How a body arrives. */
export interface Cutting {
  /** The bytes of each piece; default all in one. @param from where it begins */
  readonly pieceAt?: (from: number) => number;
  /** The connection breaks behind so many bytes. */
  readonly cutAt?: number;
  /** It ends cleanly where it is cut, as behind a proxy. */
  readonly cleanly?: boolean;
  /** Stays open and silent behind its text. */
  readonly silent?: boolean;
  readonly onCancel?: () => void;
}

/** Makes the body of a stream, one piece a read. */
export function bodyOf(
  text: string,
  { pieceAt, cutAt, cleanly, silent, onCancel }: Cutting = {},
): ReadableStream<Uint8Array> {
  const bytes = new TextEncoder().encode(text);
  const end = Math.min(cutAt ?? bytes.length, bytes.length);
  let at = 0;
  return new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        if (at < end) {
          const next = Math.min(at + (pieceAt?.(at) ?? bytes.length), end);
          controller.enqueue(bytes.slice(at, next));
          at = next;
        } else if (silent) return new Promise(() => undefined);
        else if (cutAt !== undefined && !cleanly) controller.error(new TypeError('terminated'));
        else controller.close();
        return undefined;
      },
      cancel: () => onCancel?.(),
    },
    { highWaterMark: 0 },
  );
}

export const eventStream = (text: string, cutting?: Cutting): Response =>
  new Response(bodyOf(text, cutting), { headers: { 'content-type': 'text/event-stream; charset=utf-8' } });

export const json = (value: unknown, status = 200): Response => Response.json(value, { status });

export const problem = (status: number, code?: string, headers: Record<string, string> = {}): Response =>
  new Response(JSON.stringify({ type: `urn:pawl:${code}`, title: 'It failed', status, code, detail: 'for a reason' }), {
    status,
    headers: { 'content-type': 'application/problem+json', ...headers },
  });

/** A journal as a server keeps it: events with cursors. */
export class Journal {
  readonly events: { readonly cursor: string; readonly text: string }[] = [];
  readonly runId: string;

  constructor(runId: string, bodies: readonly RunEventBody[]) {
    this.runId = runId;
    for (const body of bodies) this.add(body);
  }

  add(body: RunEventBody): void {
    const seq = this.events.length + 1;
    const cursor = `c${seq}`;
    this.events.push({ cursor, text: JSON.stringify({ ...body, runId: this.runId, seq, at: seq, cursor }) });
  }

  /** The stream behind a cursor, as clause 23 has it. */
  from(cursor: string | null): string {
    const first = this.events.findIndex((event) => event.cursor === cursor) + 1;
    const frames = this.events.slice(first).map((event) => `id: ${event.cursor}\ndata: ${event.text}\n\n`);
    return `retry: 1000\n\n: \n\n${frames.join(': beat\n\n')}`;
  }

  get read(): unknown[] {
    return this.events.map(({ text }) => JSON.parse(text));
  }
}
