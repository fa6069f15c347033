import { endAttempt, MAX_RETRIES, type RunRetry } from '../run/attempt.ts';
import { noCounters } from '../run/limits.ts';
import type { RunOutcome } from '../run/result.ts';
import type { Wait } from '../run/waits/wait.ts';
import { noWaits, waitsOf, withWaits } from '../run/waits/wait-rules.ts';
import type { RunCheckpoint } from './checkpoint.ts';

/** Longest code that a retry keeps. */
const CODE_CHARS = 64;

/** The record of a run that ended. */
export type EndedRecord = RunCheckpoint & { readonly outcome: RunOutcome };

/** Returns why a run that ended cannot continue; undefined: it can. */
export function whyOver({
  meta: { runId },
  outcome,
  parent,
  thread,
  hosted,
  imported,
  workflow,
}: EndedRecord): string | undefined {
  const how = `run ${runId} has ended with status ${outcome.status}`;
  // A run of a workflow has no steps to fork at.
  const fork = (word: string): string => (workflow ? '' : `${word} fork it`);
  if (outcome.status === 'ok') return `${how}: it has its answer, and does not continue${fork(';')}`;
  if (imported) return `${how}: it was imported, and does not continue; fork it`;
  if (parent)
    return `${how}: the run that began it has read its end; retry that one, ${parent.rootRunId}${fork(', or')}`;
  if (thread)
    return `${how}: it is a turn of a thread; retry its message with thread.retry, send another one, or fork the run`;
  if (hosted) return `${how}: the machine of its host has its end; spawn it again under another id`;
  const state = workflow?.snapshot.status;
  if (state !== undefined && state !== 'active') return `${how}: its machine is over (${state}), and takes no event`;
  return undefined;
}

/**
 * Returns the record with which a run that ended badly continues. Steps, phases, the open step, usage and spend stay; its limits
 * begin again: steps, working time, failed calls, starts.
 * @param now wall clock, ms
 */
export function reopened(record: EndedRecord, now: number): RunCheckpoint {
  const { outcome, parked: _, setup: __, critic: ___, ...kept } = record;
  const { retries = [], iteration, elapsedMs = 0, usage, spend, openPhase } = record;
  const retry: RunRetry = {
    at: now,
    steps: iteration,
    // A code may be a host's own text.
    error: { code: (outcome.error?.code ?? '').slice(0, CODE_CHARS).toWellFormed() },
    used: { elapsedMs, iterations: iteration, usage, ...(spend ? { spend } : {}) },
  };
  const before = retries.slice(1 - MAX_RETRIES).map(({ used: _, ...each }): RunRetry => each);
  // The last message may be an answer that was refused: its phase must know that it has one.
  const turns = record.messages.at(-1)?.role === 'assistant' ? 1 : 0;
  return {
    ...endAttempt(kept, 'left'),
    updatedAt: now,
    revision: (record.revision ?? 0) + 1,
    attempts: 0,
    counters: noCounters,
    raisedSteps: iteration,
    ...(openPhase ? { openPhase: { ...openPhase, iteration: Math.min(openPhase.iteration, turns) } } : {}),
    retries: [...before, retry],
    ...withTimers(record, now),
  };
}

/** The end of the run has withdrawn the timers of its machine. A workflow would take one without a wait at once. */
function withTimers(
  { workflow, waiting = noWaits, iteration }: EndedRecord,
  now: number,
): Pick<RunCheckpoint, 'waiting'> {
  const pending = workflow?.timers.filter(({ dueAt }) => dueAt > now) ?? [];
  if (pending.length === 0) return {};
  const waits = pending.map(
    ({ waitId, dueAt }): Wait => ({ id: waitId, kind: 'timer', createdAt: now, dueAt, step: iteration }),
  );
  return { waiting: withWaits(waiting, [...waitsOf({ waiting }), ...waits]) };
}
