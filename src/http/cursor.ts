import { isObject } from '../values/json.ts';
import { RequestError } from './problem.ts';

const MAX_CHARS = 4_096;

/** Makes the opaque text that names the end of a page. It holds only what the page has shown. */
export function cursorText(place: object): string {
  return Buffer.from(JSON.stringify(place), 'utf8').toString('base64url');
}

/**
 * Reads the text that names the end of a page.
 * @param isPlace checks what was read: the text comes from a client
 * @throws {RequestError} BAD_REQUEST
 */
export function placeInCursor<T>(
  text: string | undefined,
  isPlace: (place: Record<string, unknown>) => boolean,
): T | undefined {
  if (text === undefined) return undefined;
  const place = text.length <= MAX_CHARS ? parsed(text) : undefined;
  if (isObject(place) && isPlace(place)) return place as T;
  throw new RequestError('BAD_REQUEST', 'the query has an `after` that is not the `next` of a page');
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(Buffer.from(text, 'base64url').toString('utf8'));
  } catch {
    return undefined;
  }
}

const MAX_LIMIT = 100;
const USUAL_LIMIT = 50;

/** Returns the length of a page that a query asks for: 1 to 100, default 50. @throws {RequestError} BAD_REQUEST */
export function limitIn(text: string | undefined): number {
  if (text === undefined) return USUAL_LIMIT;
  const limit = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= MAX_LIMIT) return limit;
  throw new RequestError('BAD_REQUEST', `the query needs a limit of 1 to ${MAX_LIMIT}`);
}

/** A page of a list. */
export interface PageQuery<T> {
  readonly items: readonly T[];
  /** Where the next page begins; absent = there is none. A page may be short, or empty, and still have one. */
  readonly next?: string;
}
