/** Names that models may call. `defineTool` accepts fewer. */
const CALLABLE = /^[A-Za-z0-9_.:-]{1,128}$/;
/** Names that every provider takes. */
const DEFINABLE = /^[A-Za-z0-9_-]{1,64}$/;
/** Longest name of a call in a record, in characters. */
const MAX_RECORDED_CHARS = 200;

/** Returns whether a tool of this name can be called: 1 to 128 letters, digits, `_`, `.`, `:` or `-`. */
export function isToolName(name: unknown): boolean {
  return typeof name === 'string' && CALLABLE.test(name);
}

/** Returns whether a tool of this name can be defined: 1 to 64 letters, digits, `_` or `-`. */
export function isDefinableName(name: unknown): boolean {
  return typeof name === 'string' && DEFINABLE.test(name);
}

/** Returns the name of a call as every provider takes it: what a model made up may hold anything. */
export function definableName(name: string): string {
  if (isDefinableName(name)) return name;
  return name === '' ? '_' : name.slice(0, 64).replace(/[^A-Za-z0-9_-]/g, '_');
}

/** Returns a name that a model made up as a record keeps it: without control characters, and not longer than 200 characters. */
export function recordedName(name: unknown): string {
  const text = String(name);
  if (isToolName(text)) return text;
  return text.slice(0, MAX_RECORDED_CHARS).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '\ufffd');
}
