import { createHash } from 'node:crypto';

/**
 * A file name for any text, the same for the same text: 64 characters that mean nothing to any file system, so that no id,
 * however it is spelled, leaves its folder, meets another one or is too long.
 */
export function safeName(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex');
}

/** Whether something in a folder has a name that `safeName` gives. */
export function isSafeName(name: string): boolean {
  return /^[0-9a-f]{64}$/.test(name);
}
