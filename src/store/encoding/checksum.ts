import { crc32 } from 'node:zlib';

/** Returns whether a stored text is unchanged. A damaged row of a database can hold any value instead of a text. */
export function isIntact(text: unknown, checksum: unknown): text is string {
  return typeof text === 'string' && crc32(text) === Number(checksum);
}
