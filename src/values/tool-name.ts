/** Names that models may call: every name that providers allow. `defineTool` accepts fewer. */
const CALLABLE = /^[A-Za-z0-9_.:-]{1,128}$/;

/** The name that replaces a call's tool name outside of the allowed form. No tool may have this name. */
export const INVALID_TOOL_NAME = 'invalid_tool_name';

/** Returns whether a tool of this name can be called: 1 to 128 letters, digits, `_`, `.`, `:` or `-`. */
export function isToolName(name: unknown): name is string {
  return typeof name === 'string' && CALLABLE.test(name) && name !== INVALID_TOOL_NAME;
}
