import { createHash } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ToolContext } from 'pawl';

/** Below this lie the folders of the reviews. */
export function outputRoot(): string {
  return process.env.REVIEW_OUT || '.pawl/review';
}

/** Where relative paths start: the folder in which the run was begun, in each process that continues it. */
function startOf({ invocation }: ToolContext): string {
  const { cwd } = invocation.inputs;
  return typeof cwd === 'string' ? cwd : process.cwd();
}

/** Where a review keeps what it makes. A reviewer works in that of the run which put it to work. */
export async function runFolder(context: ToolContext): Promise<string> {
  const runId = context.invocation.parentRunId || context.runId;
  const folder = resolve(startOf(context), outputRoot(), folderName(runId));
  await mkdir(folder, { recursive: true });
  return folder;
}

/** A run id may be any text, a folder's name may not. */
export function folderName(runId: string): string {
  const isName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/.test(runId);
  return isName ? runId : createHash('sha256').update(runId).digest('hex').slice(0, 32);
}

/** Remembers which folder this review is of: a reviewer's prompt comes from a model, which has no say in that. */
export async function openReviewed(context: ToolContext): Promise<string> {
  const folder = resolve(startOf(context), context.invocation.prompt.trim());
  await writeFile(join(await runFolder(context), 'folder.txt'), folder);
  return folder;
}

/** @throws when list_files was not called yet */
export async function reviewedFolder(context: ToolContext): Promise<string> {
  const path = join(await runFolder(context), 'folder.txt');
  return readFile(path, 'utf8').catch(() => {
    throw new Error('the folder is not known yet; call list_files first');
  });
}

/** One line of `calls.jsonl`: which process began or finished which tool call, or holds it. */
export interface CallLine {
  readonly event: 'begun' | 'held' | 'finished';
  readonly pid: number;
  readonly runId: string;
  readonly callId: string;
  readonly tool: string;
  /** The file that the call is about; '' when it is about none. */
  readonly file: string;
}

/** Does the work of a call, and leaves a line before and after it. */
export async function journaled<T>(
  call: { readonly tool: string; readonly file: string },
  context: ToolContext,
  work: () => Promise<T>,
): Promise<T> {
  const path = join(await runFolder(context), 'calls.jsonl');
  const { runId, callId, signal } = context;
  const write = (event: CallLine['event']) => {
    const line: CallLine = { event, pid: process.pid, runId, callId, ...call };
    appendFileSync(path, `${JSON.stringify(line)}\n`);
  };
  const hold = async (side: string) => {
    if (!isHeldAt(`${side} ${call.tool} ${call.file}`)) return;
    write('held');
    await sleep(3_600_000, undefined, { signal });
  };
  write('begun');
  await hold('before');
  const result = await work();
  await hold('after');
  write('finished');
  return result;
}

/**
 * For those who want to kill a review at a certain place: REVIEW_HOLD names the calls that wait there, separated by commas,
 * each by the beginning of such a text: `before add_finding docs/`, `after publish_report`.
 */
function isHeldAt(place: string): boolean {
  const holds = (process.env.REVIEW_HOLD ?? '').split(',').map((hold) => hold.trim());
  return holds.some((hold) => hold !== '' && place.startsWith(hold));
}
