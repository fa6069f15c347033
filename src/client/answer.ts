import { ClientError } from './error.ts';

/** How much of a body is read, and until when. */
interface ReadLimits {
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

/** Most bytes of a problem's body, and most characters of a message made from it. */
const PROBLEM_BYTES = 65_536;
const MESSAGE_CHARS = 2_000;
/** The longest time that a server can make a client wait, ms. */
const LONGEST_RETRY_AFTER = 600_000;

const codes: Readonly<Record<number, string>> = { 401: 'UNAUTHORIZED', 403: 'FORBIDDEN', 404: 'NOT_FOUND' };
const passing: ReadonlySet<number> = new Set([408, 425, 429, 502, 503, 504]);

/** Makes the error of an answer that is not a success. Reads its body as far as a problem may be long; never rejects. */
export async function errorOf(response: Response, now: number, signal: AbortSignal): Promise<ClientError> {
  const { status } = response;
  const { code, title, detail } = await problemIn(response, signal);
  const message = [title ?? `The server answered with status ${status}`, detail].filter(Boolean).join(': ');
  return new ClientError(message.slice(0, MESSAGE_CHARS), {
    code: code ?? codes[status] ?? `HTTP_${status}`,
    status,
    retry: passing.has(status) ? 'later' : 'never',
    retryAfterMs: retryAfter(response.headers.get('retry-after'), now),
  });
}

interface Problem {
  readonly code?: string;
  readonly title?: string;
  readonly detail?: string;
}

async function problemIn(response: Response, signal: AbortSignal): Promise<Problem> {
  try {
    if (!/^application\/(problem\+)?json\b/.test(response.headers.get('content-type') ?? '')) {
      await response.body?.cancel();
      return {};
    }
    const value: unknown = JSON.parse(await readText(response, { maxBytes: PROBLEM_BYTES, signal }));
    if (typeof value !== 'object' || value === null) return {};
    const texts = Object.entries(value).filter(([, field]) => typeof field === 'string');
    const { code, ...rest }: Problem = Object.fromEntries(texts);
    return code !== undefined && /^[A-Z][A-Z0-9_]{0,63}$/.test(code) ? { ...rest, code } : rest;
  } catch {
    // The status says enough.
    return {};
  }
}

/** Seconds, or a date. */
function retryAfter(header: string | null, now: number): number | undefined {
  if (header === null) return undefined;
  const ms = /^\d{1,9}$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - now;
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, 0), LONGEST_RETRY_AFTER);
}

/**
 * Reads the text of an answer.
 * @throws {ClientError} TOO_LARGE beyond `maxBytes`; what remains is not read
 */
export async function readText(response: Response, { maxBytes, signal }: ReadLimits): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  for await (const chunk of chunksOf(response, (read) => unlessAborted(read, signal))) {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) throw tooLarge(`The answer is longer than ${maxBytes} bytes`, response.status);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

/** Makes the error of an answer or event that is longer than the client reads. */
export function tooLarge(message: string, status: number): ClientError {
  return new ClientError(`${message}; raise maxBytes if it may be so long`, { code: 'TOO_LARGE', status });
}

/** Yields the bytes of a body as they arrive, and gives the body up when the reader leaves. @param guard waits for one read */
export async function* chunksOf(
  response: Response,
  guard: <T>(read: Promise<T>) => Promise<T>,
): AsyncGenerator<Uint8Array> {
  if (!response.body) return;
  const reader: ReadableStreamDefaultReader<Uint8Array> = response.body.getReader();
  try {
    for (let part = await guard(reader.read()); !part.done; part = await guard(reader.read())) yield part.value;
  } finally {
    // Without effect on a body that has ended; a dead one need not answer.
    reader.cancel().catch(() => undefined);
  }
}

/** Settles as `work` does, or rejects with the signal's reason as soon as it is aborted. */
export function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    const settle = (): void => signal.removeEventListener('abort', abort);
    signal.addEventListener('abort', abort);
    work.finally(settle).then(resolve, reject);
    if (signal.aborted) abort();
  });
}
