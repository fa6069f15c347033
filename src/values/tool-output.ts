import type { ToolOutput } from './message.ts';

/** Returns whether a tool's output says that the call failed or was denied. */
export function isToolError(output: ToolOutput): boolean {
  return output.type === 'error-text' || output.type === 'error-json' || output.type === 'execution-denied';
}
