import type { Clock } from '../index.ts';
import { isObject, type JsonObject } from '../values/json.ts';
import { RequestError } from './problem.ts';

interface BodyLimits {
  readonly maxBodyBytes: number;
  readonly bodyMs: number;
  readonly clock: Clock;
}

/**
 * Reads the JSON object of a request's body.
 * @throws {RequestError} BODY_TOO_LARGE, BODY_TIMEOUT, or BAD_REQUEST for anything but a JSON object in UTF-8
 */
export async function readJson(request: Request, limits: BodyLimits): Promise<JsonObject> {
  const bytes = await bytesOf(request, limits);
  if (hasTooManyKeys(bytes)) throw new RequestError('BAD_REQUEST', 'the body has too many keys');
  const value = parsed(bytes);
  if (isObject(value) && !Array.isArray(value)) return value as JsonObject;
  throw new RequestError('BAD_REQUEST', 'the body must be a JSON object');
}

/** Most keys of one object in a body, and of all: objects with more hold the event loop while they are read and checked. */
const MAX_OBJECT_KEYS = 2_000;
const MAX_BODY_KEYS = 50_000;

const [QUOTE, BACKSLASH, COLON, OPEN, CLOSE] = [0x22, 0x5c, 0x3a, 0x7b, 0x7d];

/** Counts the keys of a JSON text without reading it: what is no JSON is refused later. */
function hasTooManyKeys(bytes: Uint8Array): boolean {
  const objects: number[] = [];
  let all = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) at = endOfText(bytes, at + 1);
    else if (byte === OPEN) objects.push(0);
    else if (byte === CLOSE) objects.pop();
    else if (byte === COLON) {
      all += 1;
      const keys = (objects.pop() ?? 0) + 1;
      if (keys > MAX_OBJECT_KEYS || all > MAX_BODY_KEYS) return true;
      objects.push(keys);
    }
  }
  return false;
}

/** Returns where the text ends that begins here. */
function endOfText(bytes: Uint8Array, from: number): number {
  for (let at = bytes.indexOf(QUOTE, from); at !== -1; at = bytes.indexOf(QUOTE, at + 1)) {
    let before = at;
    while (before > from && bytes[before - 1] === BACKSLASH) before -= 1;
    if ((at - before) % 2 === 0) return at;
  }
  return bytes.length;
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw new RequestError('BAD_REQUEST', 'the body must be JSON in UTF-8');
  }
}

/** What is left of a refused body is not read: the connection cannot be used again. */
const closed = { connection: 'close' } as const;

async function bytesOf(request: Request, { maxBodyBytes, bodyMs, clock }: BodyLimits): Promise<Uint8Array> {
  const tooLarge = () => new RequestError('BODY_TOO_LARGE', `the body may have ${maxBodyBytes} bytes`, closed);
  if (Number(request.headers.get('content-length') ?? 0) > maxBodyBytes) throw tooLarge();
  if (request.bodyUsed) throw new Error('the body of the request was read before: authorize must not read it');
  if (!request.body) return new Uint8Array();
  const reader = request.body.getReader();
  const late = Promise.withResolvers<never>();
  const timer = clock.setTimeout(
    () => late.reject(new RequestError('BODY_TIMEOUT', `the body must come within ${bodyMs} ms`, closed)),
    bodyMs,
  );
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for (;;) {
      const { done, value } = await Promise.race([reader.read(), late.promise]);
      if (done) return joined(chunks, length);
      length += value.byteLength;
      if (length > maxBodyBytes) throw tooLarge();
      chunks.push(value);
    }
  } catch (error) {
    reader.cancel(error).catch(() => {});
    // A client that leaves in the middle gets no answer anyway.
    throw error instanceof RequestError ? error : new RequestError('BAD_REQUEST', 'the body could not be read', closed);
  } finally {
    clock.clearTimeout(timer);
    late.promise.catch(() => {});
  }
}

function joined(chunks: readonly Uint8Array[], length: number): Uint8Array {
  const all = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    all.set(chunk, at);
    at += chunk.byteLength;
  }
  return all;
}
