// The build puts the import of this module first in each entry point of the package: on an old Node nothing else is evaluated.
import { nodeComplaint } from './node-version.ts';

/** Other runtimes name a Node that they stand in for: how far they go is theirs to say. */
const { node, uv, bun, deno } = (globalThis.process?.versions ?? {}) as NodeJS.Dict<string>;
const isNode = node !== undefined && uv !== undefined && bun === undefined && deno === undefined;
const complaint = isNode ? nodeComplaint(node) : undefined;

if (complaint !== undefined) {
  const error = new Error(complaint);
  // Where the import stands is in the host's hands; the frames of the loader say nothing.
  error.stack = `Error: ${complaint}`;
  throw error;
}
