import { nodeCrypto } from '../values/digest.ts';

/** Returns the version of a file's content: the SHA-256 of its bytes, in hex. */
export function versionOf(content: string | Uint8Array): string {
  return nodeCrypto().hash('sha256', content, 'hex');
}
