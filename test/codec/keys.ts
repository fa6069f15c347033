import { Buffer } from 'node:buffer';
import { type Codec, encrypt } from 'pawl';

/** A key that is the same each time, and known to nobody who has read this. */
export const keyOf = (fill: number): Uint8Array => Buffer.alloc(32, fill);

export const first = { first: keyOf(1) };
export const second = { second: keyOf(2) };

/** What most tests seal with. */
export const codecOf = (options: Partial<Parameters<typeof encrypt>[0]> = {}): Codec =>
  encrypt({ keys: first, current: 'first', ...options });
