/**
 * Node's crypto, loaded at its first use: it costs a sixth of what the whole package costs to import, and many a process
 * that imports the package begins no run.
 */
export function nodeCrypto(): typeof import('node:crypto') {
  return process.getBuiltinModule('node:crypto');
}

/** The SHA-256 of a text, as 43 characters that are safe in names and URLs. */
export function sha256(text: string): string {
  return nodeCrypto().hash('sha256', text, 'base64url');
}

/**
 * Tells a text from others, as 64 bits (two lanes in the way of FNV-1a), where nobody gains anything by making two texts
 * look the same. Each step makes one, and a SHA-256 costs several times as much.
 */
export function fingerprint(text: string): string {
  let high = 0x811c9dc5;
  let low = 0x01000193;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    high = Math.imul(high ^ unit, 0x01000193);
    low = Math.imul(low ^ unit, 0x5bd1e995);
  }
  return `${(high >>> 0).toString(36)}-${(low >>> 0).toString(36)}`;
}
