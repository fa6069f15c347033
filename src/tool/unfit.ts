/** Returns what the model reads of a call whose input its tool does not take. */
export function unfitInput(tool: string, problem: string): string {
  return `invalid input for tool "${tool}": ${problem}`;
}

/** Returns what the model reads of a call of a tool that its agent does not have. */
export function goneTool(name: string): string {
  return `there is no tool named ${JSON.stringify(name)}`;
}

/** Returns whether a text says that a call was refused before its tool began. */
export function isRefusal(tool: string, text: string): boolean {
  return text === goneTool(tool) || text.startsWith(unfitInput(tool, ''));
}
