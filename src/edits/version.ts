import { nodeCrypto } from '../values/digest.ts';

/** What tells one content of a file from another: the SHA-256 of its bytes, in hex. */
export function versionOf(content: string | Uint8Array): string {
  return nodeCrypto().hash('sha256', content, 'hex');
}
