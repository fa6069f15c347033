import type { ToolOutput } from './message.ts';

/** Returns whether the output in a tool message says that the call failed. */
export function isToolError(output: ToolOutput): boolean {
  return output.type === 'error-text' || output.type === 'error-json' || output.type === 'execution-denied';
}
