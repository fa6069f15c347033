// The build imports this module first in each entry point of the package: an old Node evaluates nothing else.
import { nodeComplaint } from './node-version.ts';

/** Other runtimes report a version of Node that they are compatible with: they are not checked. */
const { node, uv, bun, deno } = (globalThis.process?.versions ?? {}) as NodeJS.Dict<string>;
const isNode = node !== undefined && uv !== undefined && bun === undefined && deno === undefined;
const complaint = isNode ? nodeComplaint(node) : undefined;

if (complaint !== undefined) {
  const error = new Error(complaint);
  // The frames of the loader say nothing, and the caller's import is not among them.
  error.stack = `Error: ${complaint}`;
  throw error;
}
