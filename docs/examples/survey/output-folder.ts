import { createHash, randomUUID } from 'node:crypto';
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { ToolContext } from 'pawl';

/** Where the prompt and SURVEY_OUT start from: the folder in which the run was begun, in each process that continues it. */
function startOf({ invocation }: ToolContext): string {
  const { cwd } = invocation.inputs;
  return typeof cwd === 'string' ? cwd : process.cwd();
}

/** The folder that is surveyed. */
export function surveyedFolder(context: ToolContext): string {
  return resolve(startOf(context), context.invocation.prompt.trim());
}

/** The folder of a run's notes and report; made when it is missing. */
export async function outputFolder(context: ToolContext): Promise<string> {
  const folder = resolve(startOf(context), process.env.SURVEY_OUT || '.pawl/survey', folderName(context.runId));
  await mkdir(folder, { recursive: true });
  return folder;
}

/** A run id may be any text, a folder's name may not. */
function folderName(runId: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/.test(runId)) return runId;
  return createHash('sha256').update(runId).digest('hex').slice(0, 32);
}

export interface Note {
  readonly key: string;
  readonly file: string;
  readonly text: string;
}

let writing: Promise<unknown> = Promise.resolve();

/** Adds a line to the notes, and waits until it is on the disk. A note with a key that is there already changes nothing. */
export function appendNote(folder: string, note: Note): Promise<'added' | 'already there'> {
  const added = writing.then(() => append(join(folder, 'notes.jsonl'), note));
  writing = added.catch(() => {});
  return added;
}

async function append(path: string, note: Note): Promise<'added' | 'already there'> {
  const text = await readFile(path, 'utf8').catch(() => '');
  if (notesOf(text).some(({ key }) => key === note.key)) return 'already there';
  // A process that died while it wrote may have left half a line.
  const lineBreak = text === '' || text.endsWith('\n') ? '' : '\n';
  const handle = await open(path, 'a');
  try {
    await handle.appendFile(`${lineBreak}${JSON.stringify(note)}\n`);
    await handle.datasync();
  } finally {
    await handle.close();
  }
  return 'added';
}

/** The notes of a journal; half a line counts as none. */
export function notesOf(text: string): Note[] {
  return text.split('\n').flatMap((line) => {
    try {
      return line === '' ? [] : [JSON.parse(line) as Note];
    } catch {
      return [];
    }
  });
}

/** Puts the report into its place at once and whole. @returns its path */
export async function writeReport(folder: string, markdown: string): Promise<string> {
  const path = join(folder, 'report.md');
  const draft = `${path}.${randomUUID()}`;
  try {
    const handle = await open(draft, 'wx');
    try {
      await handle.writeFile(markdown);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(draft, path);
    await syncFolder(folder);
    return path;
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
