// What watches over a run: its budget, its audit, its critic, its time.
import type { RunCheckpoint } from '../../record/checkpoint.ts';
import { previousAttempt, usedBefore } from '../../run/attempt.ts';
import { type ParkedReason, staysParked } from '../../run/fields.ts';
import type { Limits } from '../../run/limits.ts';
import type { Progress } from '../../run/progress.ts';
import type { RunInfo } from '../../run/request.ts';
import type { JsonObject } from '../../values/json.ts';
import { Auditing } from '../services/auditing.ts';
import type { ActiveRun } from './active-run.ts';
import { CriticMonitor, WATCHED_RUNTIME_MS } from './critic-monitor.ts';
import { infoFrom, limitsOfRun } from './run-info.ts';
import type { UnknownCall } from './run-state.ts';
import { askBudget } from './spending.ts';
import { Deadline } from './stop-causes.ts';

/* The limits and observers of a run: its budget, its audit, its critic and its deadline. */

/**
 * Asks the budget whether a new run may begin. A new run that the budget refuses leaves no trace. A stored run is not
 * checked again: the cost of its own last turn, which was not recorded, must not end it. Each of its model calls is still
 * reserved.
 */
export async function checkBudget(run: ActiveRun, isStored: boolean): Promise<void> {
  const refusal = isStored ? undefined : await askBudget(run);
  if (refusal) throw refusal;
}

/**
 * Announces that a start found the run parked, or has parked it. Begins its audit first: the result of such a start may have no
 * reader.
 */
export function announceParked(run: ActiveRun, record: RunCheckpoint, parked: ParkedReason): void {
  const { maxSteps: maxIterations } = limitsOfRun(run);
  const { inputs = {}, seq = 0, attempts, parent, trace } = record;
  run.info = infoFrom(record, { inputs, now: run.services.config.clock.now(), maxIterations });
  run.startFacts.starts = attempts;
  // No process may continue the run for days: this start reports what died before it.
  run.startFacts.previous = previousAttempt(record);
  run.startFacts.parkedTrace = trace;
  run.parent = parent;
  beginAudit(run);
  run.events.continueFrom(seq);
  tellParked(run, parked, { iteration: record.iteration, isKnown: isSameParking(record.parked, parked) });
}

/** Whether a run that was parked before stays so. */
export function isSameParking(before: ParkedReason | undefined, now: ParkedReason): boolean {
  return before?.code === now.code && before.reason === now.reason;
}

/**
 * Tells that a run was set aside, and how it continues: the result of its start may have no reader. Nothing follows of the run in
 * this process.
 * @param isKnown it was parked before: the host has its notice
 */
export function tellParked(
  run: ActiveRun,
  parked: ParkedReason,
  { iteration, isKnown = false }: { readonly iteration: number; readonly isKnown?: boolean },
): void {
  const { runId, agent, services } = run;
  const { code, reason } = parked;
  run.endFacts.parked = parked;
  run.publish({ type: 'run.parked', ...parked });
  services.config.warn('run.parked', { runId, code, reason, how: staysParked(code) ? UNPARK : DEPLOY });
  if (!isKnown) services.config.notices.tellParked({ runId, agentId: agent.id, iteration }, parked);
}

/** Tells of a `once` call of which no process knows whether it took effect. */
export function tellUnknown(run: ActiveRun, call: UnknownCall): void {
  run.publish({ type: 'call.unknown', ...call });
  warnUnknown(run, call);
}

/** Tells the host of it, in a log line and a notice; its event may have to wait for the start of the run. */
export function warnUnknown({ runId, agent, services }: ActiveRun, { callId, name: tool, attempt }: UnknownCall): void {
  const noticeId = `${runId}:unknown:${callId}:${attempt}`;
  services.config.warn('call.unknown', { runId, agentId: agent.id, callId, tool });
  services.config.notices.give({ kind: 'unknown-outcome', noticeId, runId, agentId: agent.id, callId, tool });
}

/** What continues a parked run. */
const UNPARK =
  'look at the reason; then executor.control(runId).unpark(), or `pawl unpark` and its id, continues the run';
/** What continues a run whose definition has changed: nothing else does. */
const DEPLOY =
  'deploy a definition that fits the run, or a `migrate`: the next start continues the run; executor.control(runId).cancel(), or `pawl cancel` and its id, ends it';

/** Begins the run's audit. */
export function beginAudit(run: ActiveRun): void {
  const { audit, clock, warn, defaults } = run.services.config;
  if (!audit) return;
  run.resources.audit = Auditing.start(audit, run.observed.info, { clock, warn, ms: defaults.finalizeMs });
  if (run.resources.audit) run.observe(run.resources.audit);
}

/** Starts the oversight of a run: its critic and its deadline. Without a critic `maxRuntimeMs` is a hard limit. */
export function supervise(
  run: ActiveRun,
  limits: Limits,
  { progress, saved }: { progress: Progress; saved: JsonObject | undefined },
): void {
  const { maxRuntimeMs } = limits;
  // A retry begins its time again.
  const elapsedMs = progress.elapsedMs - (usedBefore(progress)?.elapsedMs ?? 0);
  const past = { softLimitMs: maxRuntimeMs, elapsedMs, saved, progress, limits };
  run.resources.monitor = CriticMonitor.start(run, run.info as RunInfo, past);
  if (run.resources.monitor) run.observe(run.resources.monitor);
  const limitMs = run.resources.monitor ? Math.max(WATCHED_RUNTIME_MS, maxRuntimeMs) : maxRuntimeMs;
  run.time.limit(new Deadline(run, limitMs - elapsedMs));
}
