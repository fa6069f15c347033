import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { join } from 'node:path';
import { isObject } from '../../values/json.ts';
import { createPrivate, makePrivateFolder, readPrivate, stateFolder, writePrivate } from '../open/private-files.ts';
import { Failure, oneLine } from '../ui/failure.ts';

const BYTES = 32;
/** 32 bytes in base64url. */
const FORM = /^[\w-]{43}$/;

/** What the file of a token has. It includes the store: a renamed file fits no other. */
interface Entry {
  readonly v: 1;
  readonly store: string;
  readonly token: string;
}

interface TokenOptions {
  /** Replaces the token: pages that have the old one lose their access. */
  readonly isNew: boolean;
  /** Default: the state folder of this user. */
  readonly home?: string;
}

/**
 * Returns the token of the Studio of a store: 256 random bits, which this user's state folder keeps, so that an open page
 * works again after a restart.
 * @param store `identityOf` its place
 * @throws {Failure} if other users can read or write the file, or it cannot be stored
 */
export function studioToken(store: string, { isNew, home = stateFolder() }: TokenOptions): string {
  const folder = join(home, 'studio-tokens');
  const path = join(folder, `${createHash('sha256').update(store).digest('hex')}.json`);
  try {
    makePrivateFolder(folder);
    const kept = () => (isNew ? undefined : tokenIn(readPrivate(folder, path, { isSecret: true }), store));
    const known = kept();
    if (known !== undefined) return known;
    const token = randomBytes(BYTES).toString('base64url');
    const entry: Entry = { v: 1, store, token };
    const text = `${JSON.stringify(entry)}\n`;
    if (!isNew && createPrivate(path, text)) return token;
    // Another Studio of this store may have started at the same moment: its token is the one that is kept.
    const other = kept();
    if (other !== undefined) return other;
    writePrivate(path, text);
    return token;
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw new Failure(`the token of Studio cannot be stored: ${oneLine((error as Error).message)}`, { cause: error });
  }
}

/** Undefined for a damaged file, and for one of a later version. */
function tokenIn(text: string | undefined, store: string): string | undefined {
  try {
    const entry: unknown = JSON.parse(text ?? 'null');
    if (!isObject(entry) || entry.v !== 1 || entry.store !== store) return undefined;
    return typeof entry.token === 'string' && FORM.test(entry.token) ? entry.token : undefined;
  } catch {
    return undefined;
  }
}

/** Whether a request has the token. The time that this takes says nothing about the token. */
export function hasToken({ headers }: Request, token: string): boolean {
  const given = /^bearer +(\S+)$/i.exec(headers.get('authorization') ?? '')?.[1] ?? '';
  return timingSafeEqual(digest(given), digest(token));
}

const digest = (text: string) => createHash('sha256').update(text).digest();
