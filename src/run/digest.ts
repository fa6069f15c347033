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
