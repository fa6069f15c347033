import { readFileSync } from 'node:fs';
import type { RunCheckpoint } from '../../index.ts';
import { toolResultsOf } from '../../values/message.ts';

/** A line of the journal that the survey's tools write. */
export interface CallLine {
  readonly event: 'begun' | 'finished';
  readonly pid: number;
  readonly tool: string;
  readonly callId: string;
  readonly file: string;
}

/** One tool call, and how it ended in each process that started it. */
export interface CallHistory {
  readonly callId: string;
  readonly tool: string;
  readonly file: string;
  /** By process id: whether it completed there. */
  readonly processes: ReadonlyMap<number, boolean>;
  /** How often it was started. */
  readonly begun: number;
  /** After which process its result was in the store, counted from 0; undefined if after none. */
  readonly recordedAt: number | undefined;
}

/** Reads the journal of the demo's tool calls; without a file, no lines. */
export function readLines(path: string): CallLine[] {
  try {
    const whole = readFileSync(path, 'utf8').split('\n').slice(0, -1);
    return whole.map((line) => JSON.parse(line));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

/** Returns the tool calls of the demo that were started and not completed. */
export function underWay(lines: readonly CallLine[]): CallLine[] {
  const finished = new Set(lines.filter(({ event }) => event === 'finished').map(({ callId }) => callId));
  return lines.filter(({ event, callId }) => event === 'begun' && !finished.has(callId));
}

/** Returns the ids of the tool calls whose results a record holds: in its transcript, or in its open step. */
export function recordedCalls({ messages, openStep }: RunCheckpoint): Set<string> {
  const done = openStep?.calls.filter(({ state }) => state === 'done') ?? [];
  return new Set([
    ...messages.flatMap(toolResultsOf).map(({ toolCallId }) => toolCallId),
    ...done.map(({ callId }) => callId),
  ]);
}

/**
 * Returns the history of each tool call of the demo: the processes that ran it, and the one after which it was recorded.
 * @param recordings what was stored after each process but the last
 */
export function historiesOf(lines: readonly CallLine[], recordings: readonly ReadonlySet<string>[]): CallHistory[] {
  const ids = [...new Set(lines.map(({ callId }) => callId))];
  return ids.map((callId) => {
    const own = lines.filter((line) => line.callId === callId);
    const begun = own.filter(({ event }) => event === 'begun');
    const hasFinished = (pid: number) => own.some((line) => line.event === 'finished' && line.pid === pid);
    const { tool = '', file = '' } = own[0] ?? {};
    const processes = new Map(begun.map(({ pid }) => [pid, hasFinished(pid)]));
    const process = recordings.findIndex((recorded) => recorded.has(callId));
    return { callId, tool, file, processes, begun: begun.length, recordedAt: process < 0 ? undefined : process };
  });
}

/**
 * Returns the tool calls of the demo that wrongly ran again: recorded ones, and those with the effect `once`.
 * @param pids in order
 */
export function repeatedCalls(
  histories: readonly CallHistory[],
  pids: readonly number[],
  once: ReadonlySet<string> = new Set(),
): CallHistory[] {
  return histories.filter(({ callId, processes, begun, recordedAt }) => {
    const ranLater = [...processes.keys()].some((pid) => recordedAt !== undefined && pids.indexOf(pid) > recordedAt);
    return ranLater || begun > processes.size || (once.has(callId) && begun > 1);
  });
}
