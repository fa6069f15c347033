import { crc32 } from 'node:zlib';

/** Whether a stored text is as it was written. A damaged row of a database can hold anything in the place of a text. */
export function isIntact(text: unknown, checksum: unknown): text is string {
  return typeof text === 'string' && crc32(text) === Number(checksum);
}
