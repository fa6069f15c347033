import { join } from 'node:path';
import type { ToolEffect } from 'pawl';
import { appendJsonLine, readJsonLines } from './json-lines.ts';

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

export function note(folder: string, line: Line): void {
  appendJsonLine(pathIn(folder), line);
}

export function readLedger(folder: string): Line[] {
  return readJsonLines(pathIn(folder));
}

export function beginsIn(lines: readonly Line[]): CallLine[] {
  return lines.filter((line): line is CallLine => line.phase === 'begin');
}
