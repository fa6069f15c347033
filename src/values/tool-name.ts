/** What models may call: every name that providers allow. `defineTool` accepts fewer. */
const CALLABLE = /^[A-Za-z0-9_.:-]{1,128}$/;

/** The name that a call gets whose own name is outside the allowed form. No tool may have it. */
export const INVALID_TOOL_NAME = 'invalid_tool_name';

/** So much of an invalid name is shown. */
const SHOWN_CHARACTERS = 64;

/** Whether a tool of this name can be called. */
export function isToolName(name: unknown): name is string {
  return typeof name === 'string' && CALLABLE.test(name) && name !== INVALID_TOOL_NAME;
}

/**
 * A text of a model as part of one line of plain ASCII: cut to its first characters, all others as `\u` escapes. A second
 * pass changes nothing.
 */
export function printable(text: unknown, characters: number = SHOWN_CHARACTERS): string {
  if (typeof text !== 'string') return `a value of type ${typeof text}`;
  const shown = text.slice(0, characters).replace(/[^\x20-\x7e]/g, escaped);
  return text.length > characters ? `${shown}...` : shown;
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
