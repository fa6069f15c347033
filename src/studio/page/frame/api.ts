import { ownHeaders } from './session.ts';

/** Why a request failed, in the words of the server where it gave any. */
export interface Trouble {
  /** The error code, for example `RUN_PARKED`; `OFFLINE` if the server did not answer. */
  readonly code: string;
  readonly message: string;
  readonly status: number;
  /** The other fields of the server's answer: who answered first, what is open. */
  readonly more: { readonly [field: string]: unknown };
}

/** What a request gave: a value, or why there is none. */
export type ApiAnswer<T> =
  | { readonly value: T; readonly trouble?: undefined }
  | { readonly value?: undefined; readonly trouble: Trouble };

/** Reads from the server. @param path below the page, without a slash at its beginning: `runs?limit=50` */
export function get<T>(path: string, signal?: AbortSignal): Promise<ApiAnswer<T>> {
  return request(path, { headers: ownHeaders(), signal: signal ?? null });
}

/** Sends a change to the server. */
export function post<T>(path: string, body: object): Promise<ApiAnswer<T>> {
  const headers = { ...ownHeaders(), 'content-type': 'application/json' };
  return request(path, { method: 'POST', headers, body: JSON.stringify(body) });
}

/** Joins the parts of a path, each encoded. */
export function pathOfApi(...parts: readonly string[]): string {
  return parts.map(encoded).join('/');
}

/** Encodes a part of an address. An id that a model or a hostile store chose may have halves of characters, or be no text. */
export function encoded(part: string): string {
  return encodeURIComponent(String(part).toWellFormed());
}

/** Why there is no answer at all. */
export const offline: Trouble = { code: 'OFFLINE', message: 'The server does not answer.', status: 0, more: {} };

async function request<T>(path: string, init: RequestInit): Promise<ApiAnswer<T>> {
  let answer: Response;
  try {
    answer = await fetch(path, init);
  } catch {
    return { trouble: offline };
  }
  const body: unknown = await answer.json().catch(() => undefined);
  // An answer that was cut in the middle is none.
  if (answer.ok && body === undefined) return { trouble: offline };
  if (answer.ok) return { value: body as T };
  return { trouble: troubleOf(answer.status, body) };
}

/** Reads a problem of the server. */
export function troubleOf(status: number, body: unknown): Trouble {
  const more = typeof body === 'object' && body !== null ? (body as { [field: string]: unknown }) : {};
  const text = (field: string) => (typeof more[field] === 'string' ? more[field] : undefined);
  const message = text('detail') || text('title') || `The server answered with status ${status}.`;
  return { code: text('code') ?? `HTTP ${status}`, message, status, more };
}
