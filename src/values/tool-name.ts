/** Names that models may call: every name that providers allow. `defineTool` accepts fewer. */
const CALLABLE = /^[A-Za-z0-9_.:-]{1,128}$/;

/** Replaces a call's name that is outside the allowed form. No tool may have this name. */
export const INVALID_TOOL_NAME = 'invalid_tool_name';

/** How many characters of an invalid name are shown. */
const SHOWN_CHARACTERS = 64;

/** Returns whether a tool of this name can be called. */
export function isToolName(name: unknown): name is string {
  return typeof name === 'string' && CALLABLE.test(name) && name !== INVALID_TOOL_NAME;
}

/**
 * Returns a model's text as part of one line of plain ASCII: its first characters, all others as `\u` escapes. A second call
 * changes nothing.
 */
export function printable(text: unknown, characters: number = SHOWN_CHARACTERS): string {
  if (typeof text !== 'string') return `a value of type ${typeof text}`;
  const shown = text.slice(0, characters).replace(/[^\x20-\x7e]/g, escaped);
  return text.length > characters ? `${shown}...` : shown;
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
