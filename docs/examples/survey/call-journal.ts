import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ToolContext } from 'pawl';
import { outputFolder } from './output-folder.ts';

/** One line of `calls.jsonl`: which process began or finished which tool call. */
export interface CallLine {
  readonly event: 'begun' | 'finished';
  readonly pid: number;
  readonly tool: string;
  readonly callId: string;
  readonly attempt: number;
  /** The file that the call is about; '' when it is about none. */
  readonly file: string;
}

/**
 * Does the work of a call, and leaves a line before and after it. Each is one write to the end of the file, so that it is
 * there whole, also if the process dies next. SURVEY_PAUSE_MS slows calls down, for those who want to watch.
 */
export async function journaled<T>(
  call: { readonly tool: string; readonly file: string },
  context: ToolContext,
  work: () => Promise<T>,
): Promise<T> {
  const path = join(await outputFolder(context), 'calls.jsonl');
  const { callId, attempt, signal } = context;
  const write = (event: CallLine['event']) => {
    const line: CallLine = { event, pid: process.pid, tool: call.tool, callId, attempt, file: call.file };
    appendFileSync(path, `${JSON.stringify(line)}\n`);
  };
  const pause = () => sleep(Number(process.env.SURVEY_PAUSE_MS ?? 0) / 2, undefined, { signal });
  write('begun');
  if (process.env.SURVEY_PAUSE_MS) await pause();
  const result = await work();
  if (process.env.SURVEY_PAUSE_MS) await pause();
  write('finished');
  return result;
}
