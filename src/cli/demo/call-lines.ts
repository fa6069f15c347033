import { readFileSync } from 'node:fs';
import type { RunCheckpoint } from '../../index.ts';
import { toolResultsOf } from '../../run/message.ts';

/** A line of the journal that the survey's tools write. */
export interface CallLine {
  readonly event: 'begun' | 'finished';
  readonly pid: number;
  readonly tool: string;
  readonly callId: string;
  readonly file: string;
}

/** One tool call, and what became of it in each process that began it. */
export interface CallHistory {
  readonly callId: string;
  readonly tool: string;
  readonly file: string;
  /** By process id: whether it finished there. */
  readonly processes: ReadonlyMap<number, boolean>;
  /** How often it was begun. */
  readonly begun: number;
  /** Its result was stored when the first process was killed. */
  readonly isRecorded: boolean;
}

/** The journal so far; none yet = no lines. */
export function readLines(path: string): CallLine[] {
  try {
    const whole = readFileSync(path, 'utf8').split('\n').slice(0, -1);
    return whole.map((line) => JSON.parse(line));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

/** The calls that were begun and not finished. */
export function underWay(lines: readonly CallLine[]): CallLine[] {
  const finished = new Set(lines.filter(({ event }) => event === 'finished').map(({ callId }) => callId));
  return lines.filter(({ event, callId }) => event === 'begun' && !finished.has(callId));
}

/** The calls whose results a record holds: in its transcript, or in the ledger of its open step. */
export function recordedCalls({ messages, openStep }: RunCheckpoint): Set<string> {
  const done = openStep?.calls.filter(({ state }) => state === 'done') ?? [];
  return new Set([
    ...messages.flatMap(toolResultsOf).map(({ toolCallId }) => toolCallId),
    ...done.map(({ callId }) => callId),
  ]);
}

/** @param recorded what was stored when the first process was killed */
export function historiesOf(lines: readonly CallLine[], recorded: ReadonlySet<string>): CallHistory[] {
  const ids = [...new Set(lines.map(({ callId }) => callId))];
  return ids.map((callId) => {
    const own = lines.filter((line) => line.callId === callId);
    const begun = own.filter(({ event }) => event === 'begun');
    const hasFinished = (pid: number) => own.some((line) => line.event === 'finished' && line.pid === pid);
    const { tool = '', file = '' } = own[0] ?? {};
    const processes = new Map(begun.map(({ pid }) => [pid, hasFinished(pid)]));
    return { callId, tool, file, processes, begun: begun.length, isRecorded: recorded.has(callId) };
  });
}

/** Recorded calls that ran again: there must be none. */
export function repeatedCalls(histories: readonly CallHistory[]): CallHistory[] {
  return histories.filter(({ isRecorded, begun }) => isRecorded && begun > 1);
}
