import { createHash } from 'node:crypto';

/**
 * Returns a safe file name for any text, the same for the same text: 64 characters without a special meaning in any file
 * system. So an id cannot leave its folder, collide with another id or be too long.
 */
export function safeName(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex');
}

/** Returns whether a name is one that `safeName` returns. */
export function isSafeName(name: string): boolean {
  return /^[0-9a-f]{64}$/.test(name);
}
