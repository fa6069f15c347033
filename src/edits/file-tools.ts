import { defineTool, type Tool } from '../index.ts';
import type { Overlay } from './overlay.ts';
import type { QueuedWrite } from './write-queue.ts';

const path = {
  type: 'string',
  description: 'Relative to the root, with forward slashes, as in "src/main.ts".',
} as const;

/**
 * The tools with which models read and change files: `list_files`, `read_file`, `write_file`, `delete_file`. A change is queued
 * in the overlay, and the model reads its own changes. A refusal is an error result for the model. All of these tools have the
 * effect `read`: nothing outside of the run changes, and the queue is rebuilt from the transcript.
 * @example
 * const overlay = new Overlay(root);
 * const agent = defineAgent({ id: 'editor', instructions: '…', tools: fileTools(overlay) });
 */
export function fileTools(overlay: Overlay): readonly Tool[] {
  return [listFiles(overlay), readFile(overlay), writeFile(overlay), deleteFile(overlay)];
}

function listFiles(overlay: Overlay): Tool {
  return defineTool({
    name: 'list_files',
    description:
      'Lists the files and folders in a folder and below it. Folders end in a slash. node_modules, links, .git, what Git ignores and what may hold secrets are left out.',
    effect: 'read',
    input: {
      type: 'object',
      properties: {
        folder: { type: 'string', description: 'Relative to the root; leave it out for the root itself.' },
      },
      additionalProperties: false,
    },
    execute: async ({ folder }) => {
      const { entries, isCut } = await overlay.list(textOr(folder, ''));
      const note = 'There is more than that: list one of the folders.';
      return { entries, ...(isCut ? { note } : {}) };
    },
  }) as Tool;
}

function readFile(overlay: Overlay): Tool {
  return defineTool({
    name: 'read_file',
    description: 'Reads a text file, or some lines of it. Your own queued changes are in it.',
    effect: 'read',
    input: {
      type: 'object',
      properties: {
        path,
        offset: { type: 'integer', minimum: 1, description: 'The first line to read, from 1.' },
        limit: { type: 'integer', minimum: 1, description: 'How many lines to read.' },
      },
      required: ['path'],
      additionalProperties: false,
    },
    execute: async ({ path, offset, limit }) => {
      const file = await overlay.read(textOr(path, ''));
      const lines = file.content.split(/(?<=\n)/);
      const first = typeof offset === 'number' ? offset : 1;
      const count = typeof limit === 'number' ? limit : lines.length;
      const content = lines.slice(first - 1, first - 1 + count).join('');
      return { path: file.path, version: file.version, lines: lines.length, content };
    },
  }) as Tool;
}

function writeFile(overlay: Overlay): Tool {
  return defineTool({
    name: 'write_file',
    description:
      'Proposes the whole new text of a file, which may be a new one. It is queued, and written when your answer is chosen.',
    effect: 'read',
    input: {
      type: 'object',
      properties: { path, content: { type: 'string', description: 'The whole text, not a part of it.' } },
      required: ['path', 'content'],
      additionalProperties: false,
    },
    execute: async ({ path, content }) => {
      const queued = await overlay.write(textOr(path, ''), textOr(content, ''));
      return answerFor(queued, 'The file is like this anyway: there is nothing to change.');
    },
  }) as Tool;
}

function deleteFile(overlay: Overlay): Tool {
  return defineTool({
    name: 'delete_file',
    description: 'Proposes to delete a file. It is queued, and done when your answer is chosen.',
    effect: 'read',
    input: { type: 'object', properties: { path }, required: ['path'], additionalProperties: false },
    execute: async ({ path }) => {
      const queued = await overlay.delete(textOr(path, ''));
      return answerFor(queued, 'Only your own queued change had made this file: that change is dropped.');
    },
  }) as Tool;
}

/** A restart rebuilds the queue from `change` and `base` of these results. */
function answerFor({ path, change, base, isQueued }: QueuedWrite, otherwise: string) {
  const note = 'Queued, not done yet: it will be applied when this answer is chosen. You read the file as changed.';
  return { path, change, base, note: isQueued ? note : otherwise };
}

function textOr(value: unknown, otherwise: string): string {
  return typeof value === 'string' ? value : otherwise;
}
