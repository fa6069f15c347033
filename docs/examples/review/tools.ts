import { access, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { defineTool, type Tool, type ToolContext } from 'pawl';
import { listFolder, readInside } from '../survey/folder.ts';
import { writeReport } from '../survey/output-folder.ts';
import { folderName, journaled, openReviewed, reviewedFolder, runFolder } from './run-folder.ts';

const text = (description: string) => ({ type: 'string', description, minLength: 1 });
const nothing = { type: 'object', properties: {}, additionalProperties: false };

export const listFiles: Tool = defineTool({
  name: 'list_files',
  description: 'Lists the files of the folder, with paths relative to it.',
  input: nothing,
  effect: 'read',
  execute: (_, context: ToolContext) =>
    journaled({ tool: 'list_files', file: '' }, context, async () => listFolder(await openReviewed(context))),
});

export const readFile: Tool = defineTool({
  name: 'read_file',
  description: 'Reads one file of the folder, its first 64 KiB at most. Binary and very large files are skipped.',
  input: { type: 'object', properties: { file: text('A path as list_files gives it.') }, required: ['file'] },
  effect: 'read',
  execute: ({ file }, context: ToolContext) =>
    journaled({ tool: 'read_file', file: String(file) }, context, async () =>
      readInside(await reviewedFolder(context), String(file)),
    ),
});

export const addFinding: Tool = defineTool({
  name: 'add_finding',
  description: 'Takes down one thing that a person should look at.',
  input: {
    type: 'object',
    properties: {
      file: text('The file.'),
      line: { type: 'integer', minimum: 1 },
      what: text('What is to be seen there.'),
    },
    required: ['file', 'line', 'what'],
  },
  // Called again with the same key, it writes the same file again.
  effect: 'idempotent',
  execute: (finding, context: ToolContext) =>
    journaled({ tool: 'add_finding', file: String(finding.file) }, context, async () => {
      const folder = join(await runFolder(context), 'findings');
      await mkdir(folder, { recursive: true });
      await writeFile(join(folder, `${folderName(context.idempotencyKey)}.json`), JSON.stringify(finding));
      return 'added';
    }),
});

export const publishReport: Tool = defineTool({
  name: 'publish_report',
  description: 'Publishes the report. Call it once, when all parts are reviewed.',
  input: { type: 'object', properties: { markdown: text('The whole report in Markdown.') }, required: ['markdown'] },
  // What is published is published: a call whose outcome is unknown is not repeated.
  effect: 'once',
  execute: ({ markdown }, context: ToolContext) =>
    journaled({ tool: 'publish_report', file: '' }, context, async () => ({
      report: await writeReport(await runFolder(context), String(markdown)),
    })),
});

export const findReport: Tool = defineTool({
  name: 'find_report',
  description: 'Says whether the report of this review was published, and where. For when its outcome is unknown.',
  input: nothing,
  effect: 'read',
  execute: (_, context: ToolContext) =>
    journaled({ tool: 'find_report', file: '' }, context, async () => {
      const report = join(await runFolder(context), 'report.md');
      return access(report).then(
        () => ({ isPublished: true, report }),
        () => ({ isPublished: false }),
      );
    }),
});
