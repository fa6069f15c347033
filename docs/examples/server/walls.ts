// What a request has to pass before the server looks at what it wants: where it comes from, who sends it, what form it has,
// and how much of it there may be.
import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** An answer that is no success. `code` is for programs, the message for people. */
export class Refusal extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export interface Limits {
  /** Bytes of a request's body. */
  readonly bodyBytes: number;
  /** Runs that one caller may have at work at once. */
  readonly runs: number;
  /** Streams of events that one caller may have open at once. */
  readonly streams: number;
}

export const defaultLimits: Limits = { bodyBytes: 64 * 1024, runs: 16, streams: 32 };

/**
 * A page of any site can make its reader's browser send requests to this machine. One that uses a name of its own for this
 * address is seen by the `Host`, one that uses ours by the `Origin`.
 */
export function checkSource({ headers, socket }: IncomingMessage): void {
  const names = ['localhost', '127.0.0.1', '[::1]'].map((name) => `${name}:${socket.localPort}`);
  const { host = '', origin } = headers;
  if (!names.includes(host)) throw new Refusal(421, 'WRONG_HOST', 'this server does not answer for that Host');
  if (origin !== undefined && !names.some((name) => origin === `http://${name}`)) {
    throw new Refusal(403, 'WRONG_ORIGIN', 'pages of other origins may not use this server');
  }
}

/** Callers by the hash of their token: how long a look-up takes says nothing of the tokens. */
export type Callers = ReadonlyMap<string, string>;

const hashOf = (token: string) => createHash('sha256').update(token).digest('hex');

/** @param text `name=token` of each caller, with commas between them; empty = one caller, `local`, who needs no token */
export function callersFrom(text: string): Callers {
  const entries = text.split(',').filter((entry) => entry !== '');
  return new Map(
    entries.map((entry) => {
      const [name = '', token = ''] = entry.split('=');
      if (!/^[a-z0-9-]+$/.test(name) || token.length < 16) {
        throw new TypeError(
          'CALLERS needs name=token, with a name of a-z, 0-9 and -, and a token of 16 characters or more',
        );
      }
      return [hashOf(token), name];
    }),
  );
}

/** Who sends the request. */
export function callerOf({ headers }: IncomingMessage, callers: Callers): string {
  if (callers.size === 0) return 'local';
  const { authorization = '' } = headers;
  const token = authorization.startsWith('Bearer ') ? authorization.slice('Bearer '.length) : '';
  const caller = callers.get(hashOf(token));
  if (caller === undefined) throw new Refusal(401, 'UNKNOWN_CALLER', 'send Authorization: Bearer <token>');
  return caller;
}

/**
 * The run id behind a caller's own id. Names of callers have no `/`, so that no two callers' ids are ever the same run.
 * @throws {Refusal} for an id that is none
 */
export function scopedId(caller: string, id: unknown): string {
  if (typeof id !== 'string' || !/^[A-Za-z0-9._-]{1,200}$/.test(id)) {
    throw new Refusal(400, 'INVALID_RUN_ID', 'runId must be 1 to 200 letters, digits, dots, hyphens and underscores');
  }
  return `${caller}/${id}`;
}

/** The JSON object of a request's body. */
export async function readJson(request: IncomingMessage, { bodyBytes }: Limits): Promise<Record<string, unknown>> {
  const [type = ''] = (request.headers['content-type'] ?? '').split(';');
  // A form of another site cannot send this type without asking first.
  if (type.trim().toLowerCase() !== 'application/json') {
    throw new Refusal(415, 'WRONG_TYPE', 'the content type must be application/json');
  }
  const chunks: Buffer[] = [];
  let bytes = Number(request.headers['content-length'] ?? 0);
  if (bytes <= bodyBytes) {
    bytes = 0;
    for await (const chunk of request as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > bodyBytes) break;
      chunks.push(chunk);
    }
  }
  if (bytes > bodyBytes) throw new Refusal(413, 'TOO_LARGE', `the body may have ${bodyBytes} bytes`);
  const value = parsed(Buffer.concat(chunks));
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new Refusal(400, 'WRONG_BODY', 'the body must be a JSON object');
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw new Refusal(400, 'WRONG_BODY', 'the body must be JSON in UTF-8');
  }
}

/** Counts what callers have at once. */
export class Places {
  readonly #most: number;
  readonly #what: string;
  readonly #taken = new Map<string, number>();

  constructor(most: number, what: string) {
    this.#most = most;
    this.#what = what;
  }

  /** @returns a function that gives the place back @throws {Refusal} when the caller has as many as it may have */
  take(caller: string): () => void {
    const taken = this.#taken.get(caller) ?? 0;
    if (taken >= this.#most)
      throw new Refusal(429, 'TOO_MANY', `${this.#most} ${this.#what} at once is all you may have`);
    this.#taken.set(caller, taken + 1);
    let isTaken = true;
    return () => {
      if (isTaken) this.#taken.set(caller, (this.#taken.get(caller) ?? 1) - 1);
      isTaken = false;
    };
  }
}
