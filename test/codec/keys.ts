import { createHash } from 'node:crypto';
import { type Codec, encrypt } from 'pawl';

/** A key that is the same each time, and passes for a random one. */
export const keyOf = (name: number | string): Uint8Array => createHash('sha256').update(`key ${name}`).digest();

export const first = { first: keyOf(1) };
export const second = { second: keyOf(2) };

/** What most tests seal with. */
export const codecOf = (options: Partial<Parameters<typeof encrypt>[0]> = {}): Codec =>
  encrypt({ keys: first, current: 'first', ...options });
