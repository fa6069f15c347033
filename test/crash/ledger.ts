import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ToolEffect } from 'pawl';

/** What a worker did to the world outside, or was told by its store: one line of a file that no crash takes back. */
export type Line =
  | {
      readonly phase: 'begin' | 'end';
      readonly pid: number;
      readonly runId: string;
      readonly tool: string;
      readonly effect: ToolEffect;
      readonly callId: string;
      readonly key: string;
      readonly attempt: number;
    }
  /** The store said that this revision of the record is safe. */
  | { readonly phase: 'saved'; readonly pid: number; readonly runId: string; readonly revision: number };

export type CallLine = Extract<Line, { phase: 'begin' | 'end' }>;

const pathIn = (folder: string) => join(folder, 'ledger.jsonl');

/** One write to the end of the file: it is there whole or not at all, whatever happens to the process next. */
export function note(folder: string, line: Line): void {
  appendFileSync(pathIn(folder), `${JSON.stringify(line)}\n`);
}

export function readLedger(folder: string): Line[] {
  const path = pathIn(folder);
  if (!existsSync(path)) return [];
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Line);
}

export function beginsIn(lines: readonly Line[]): CallLine[] {
  return lines.filter((line): line is CallLine => line.phase === 'begin');
}
