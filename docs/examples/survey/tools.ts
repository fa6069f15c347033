import { defineTool, type Tool, type ToolContext } from 'pawl';
import { journaled } from './call-journal.ts';
import { listFolder, readInside } from './folder.ts';
import { appendNote, outputFolder, surveyedFolder, writeReport } from './output-folder.ts';

const text = (description: string) => ({ type: 'string', description, minLength: 1 });

export const listFiles: Tool = defineTool({
  name: 'list_files',
  description: 'Lists the files of the folder, with paths relative to it.',
  input: { type: 'object', properties: {}, additionalProperties: false },
  effect: 'read',
  execute: (_, context: ToolContext) =>
    journaled({ tool: 'list_files', file: '' }, context, () => listFolder(surveyedFolder(context))),
});

export const readFile: Tool = defineTool({
  name: 'read_file',
  description: 'Reads one file of the folder, its first 64 KiB at most. Binary and very large files are skipped.',
  input: { type: 'object', properties: { file: text('A path as list_files gives it.') }, required: ['file'] },
  effect: 'read',
  execute: ({ file }, context: ToolContext) =>
    journaled({ tool: 'read_file', file: String(file) }, context, () =>
      readInside(surveyedFolder(context), String(file)),
    ),
});

export const addNote: Tool = defineTool({
  name: 'add_note',
  description: 'Adds a note on one file to the notes of this survey.',
  input: {
    type: 'object',
    properties: { file: text('The file that the note is on.'), text: text('The note.') },
    required: ['file', 'text'],
  },
  // Called again with the same key, it changes nothing.
  effect: 'idempotent',
  execute: (input, context: ToolContext) =>
    journaled({ tool: 'add_note', file: String(input.file) }, context, async () => {
      const note = { key: context.idempotencyKey, file: String(input.file), text: String(input.text) };
      return appendNote(await outputFolder(context), note);
    }),
});

export const publishReport: Tool = defineTool({
  name: 'publish_report',
  description: 'Publishes the report. Call it once, when every file has its note.',
  input: { type: 'object', properties: { markdown: text('The whole report in Markdown.') }, required: ['markdown'] },
  // What is published is published: a call whose outcome is unknown is not repeated.
  effect: 'once',
  needsApproval: Boolean(process.env.SURVEY_APPROVAL),
  approval: { prompt: () => 'Publish the report?' },
  execute: (input, context: ToolContext) =>
    journaled({ tool: 'publish_report', file: '' }, context, async () => ({
      report: await writeReport(await outputFolder(context), String(input.markdown)),
    })),
});
