import type { Agent } from '../../../agent/agent.ts';
import type { ReadableRun } from '../../../record/interrupted.ts';
import { RunTree, type TreePlace } from '../../../record/run-tree.ts';
import { LIVE_HERE, type RunVerdict } from '../../../record/verdict.ts';
import type { RunCheckpointMeta } from '../../../run/request.ts';
import type { RunResult } from '../../../run/result.ts';
import type { CheckpointStore } from '../../../store/port.ts';
import { type ErrorData, toErrorData } from '../../../values/error-data.ts';
import { CancelledError } from '../../../values/errors.ts';
import type { ActiveRun, ExecutorServices } from '../../run/active-run.ts';
import type { Run } from '../../run/handle.ts';
import { runAtWork } from '../../run/life/run-at-work.ts';
import type { RetryAsked } from '../../run/seed.ts';
import type { SliceLimits } from '../../run/slice.ts';
import type { TakenClaim } from '../../services/due/taken-claim.ts';
import { launch, readStoredStart } from '../start.ts';

export interface RecoveryEntry {
  readonly runId: string;
  /** An error code, and its meaning for this run. */
  readonly reason?: string;
}

/** What recovery did with each interrupted run that the store listed. */
export interface RecoveryReport {
  readonly resumed: readonly RecoveryEntry[];
  readonly parked: readonly RecoveryEntry[];
  /** Left alone: live here or elsewhere, agent not found, unreadable. */
  readonly skipped: readonly RecoveryEntry[];
  readonly failed: readonly RecoveryEntry[];
  /** How many runs rest in the store and are not due: an answer, an event or a time wakes them. */
  readonly waiting: number;
}

/** The lists of a report. */
type Report = { [Kind in Exclude<keyof RecoveryReport, 'waiting'>]: RecoveryEntry[] };

/** Makes a report without entries. */
export function emptyReport(): Report {
  return { resumed: [], parked: [], skipped: [], failed: [] };
}

export interface Work {
  readonly services: ExecutorServices;
  readonly report: Report;
  readonly concurrency: number;
  readonly maxAttempts: number;
  readonly signal: AbortSignal | undefined;
  readonly begun: Promise<unknown>[];
}

/** A run to start. */
export interface TakenUp {
  readonly run: Pick<ReadableRun, 'runId' | 'meta'>;
  /** Where a child is in its tree. No run waits for the answer of an orphan any more: it is cancelled. */
  readonly place?: TreePlace;
  /** The claim with which it was taken; absent = its start claims it. */
  readonly claim?: TakenClaim;
}

/**
 * Starts one interrupted run for `recover`, and notes in the report if it was skipped or failed. Never rejects: one run
 * that cannot even be made must not keep the others from being taken up.
 */
export async function takeUp(taken: TakenUp, work: Work): Promise<ActiveRun | undefined> {
  const run = await takeUpOnce(taken, work);
  // One that has begun gives its claim back itself.
  if (!run) await taken.claim?.giveBack(0);
  return run;
}

async function takeUpOnce(taken: TakenUp, work: Work): Promise<ActiveRun | undefined> {
  const { runId, meta } = taken.run;
  const { services, report } = work;
  const { places, begun } = services.recovery;
  const leaveUnrecovered = () => {
    places.leave();
    report.skipped.push({ runId, reason: LIVE_HERE });
    return undefined;
  };
  if (begun.has(runId)) return leaveUnrecovered();
  begun.add(runId);
  try {
    // It may have been started meanwhile: a wait for its end would occupy the place for nothing.
    if (await runAtWork(services, runId)) return leaveUnrecovered();
    if (!services.paused.enter(meta.agentId)) {
      places.leave();
      leaveAlone(work, taken.run);
      return undefined;
    }
    const run = await beginNoted(taken, work);
    if (!run?.life.hasBegun) services.paused.leave(meta.agentId, false);
    return run;
  } catch (error) {
    places.leave();
    services.paused.leave(meta.agentId, false);
    note(report, runId, toErrorData(error));
    return undefined;
  } finally {
    begun.delete(runId);
  }
}

/** Reports a run that is not tried: the setup of this process could not continue another run of its agent. */
export function leaveAlone({ services, report }: Work, { runId, meta: { agentId } }: TakenUp['run']): void {
  const { code = '', message = '' } = services.paused.faultOf(agentId) ?? {};
  const why = `this process could not continue another run of agent ${agentId}, and tries one again later`;
  report.skipped.push({ runId, reason: `SETUP: ${why}: ${code}: ${message}` });
}

/** A stored run that this process continues. */
interface Continued {
  readonly meta: RunCheckpointMeta;
  readonly maxAttempts: number;
  readonly place?: TreePlace | undefined;
  /** How long; absent = until its end. */
  readonly slice?: SliceLimits;
  /** The claim with which it was found due; absent = it is claimed. */
  readonly claim?: TakenClaim;
  /** It may have ended badly, and continues all the same. */
  readonly retry?: RetryAsked;
}

/** Continues a stored run, whose agent this process has, and returns when its start was accepted, answered or refused. */
export async function begin(services: ExecutorServices, continued: Continued): Promise<Begun> {
  const { meta, maxAttempts, place, slice, claim, retry } = continued;
  const { runId, prompt, callerId, channelId, guildId, parentRunId } = meta;
  const request = { runId, prompt, callerId, channelId, guildId, parentRunId, inputs: {}, images: [] };
  const { agent, fault } = readStoredStart(agentFor(services, meta.agentId) as Agent, meta.agentId);
  const depth = place?.kind === 'child' ? place.depth : 0;
  const known = { isNewId: false, origin: 'recovered', mustExist: true, ...(fault ? { fault } : {}) } as const;
  const rest = { ...(slice ? { slice } : {}), ...(claim ? { claim } : {}), ...(retry ? { retry } : {}) };
  const seed = { request, ...known, maxAttempts, depth, ...rest };
  // The run that wanted its answer has ended: this one is cancelled in good order, without another model call.
  const isOrphan = place?.kind === 'orphan';
  const options = isOrphan ? { signal: AbortSignal.abort(new CancelledError('the run that began it is over')) } : {};
  const handle = await launch(services, agent, { seed, options });
  return { run: services.runBehind(handle.actor), handle, result: handle.result };
}

/** A run that has begun in this process, or was refused. */
interface Begun {
  readonly run: ActiveRun | undefined;
  readonly handle: Run;
  readonly result: Promise<RunResult>;
}

async function beginNoted(
  { run: { runId, meta }, place, claim }: TakenUp,
  { services, report, maxAttempts }: Work,
): Promise<ActiveRun | undefined> {
  const { run, result } = await begin(services, { meta, maxAttempts, place, ...(claim ? { claim } : {}) });
  void result.then(() => services.recovery.places.leave());
  // It was refused, or could not be ended. No pause: the next `recover` tries it again.
  const back = result.then(() => claim?.giveBack(0));
  if (!run?.life.hasBegun) await back;
  if (run?.life.hasBegun) report.resumed.push({ runId });
  // It is among the waiting runs again.
  else if (run?.life.isResting) return run;
  else if (run?.life.isAnswered) report.skipped.push({ runId, reason: 'it ended in the meantime' });
  else note(report, runId, (await result).error);
  return run;
}

const leftAlone = ['RUN_OWNED_ELSEWHERE', 'NEWER_DEPLOYMENT', 'RUN_NOT_FOUND', 'SETUP', 'ERR_SHUTDOWN'];

function note(report: Report, runId: string, error: ErrorData | undefined): void {
  const { code = 'UNKNOWN', message = 'the run was refused' } = error ?? {};
  const kind = code === 'RUN_PARKED' ? 'parked' : leftAlone.includes(code) ? 'skipped' : 'failed';
  report[kind].push({ runId, reason: `${code}: ${message}` });
}

/** In which list of the report a run is, by the verdict on it. */
const listOf: { readonly [Name in RunVerdict['verdict']]: keyof Report } = {
  resumes: 'resumed',
  waits: 'skipped',
  child: 'skipped',
  live: 'skipped',
  parked: 'parked',
  skipped: 'skipped',
  fails: 'failed',
  unreadable: 'skipped',
};

/** Reports a run that is not started, with the words of its verdict. */
export function leaveUnrecovered(report: Report, runId: string, { verdict, code, reason }: RunVerdict): void {
  report[listOf[verdict]].push({ runId, reason: code === undefined ? reason : `${code}: ${reason}` });
}

/** Finds the agent of an interrupted run: a registered one, one of the palette, or one that this executor has begun a run of. */
export function agentFor(services: ExecutorServices, agentId: string): Agent | undefined {
  const { config, palette, seenAgents } = services;
  return config.agents.get(agentId) ?? palette.agentById(agentId) ?? seenAgents.get(agentId);
}

/** Builds the tree of the runs of a store, and of those that are live here. */
export function treeIn(store: CheckpointStore, { registry }: ExecutorServices): RunTree {
  return new RunTree({
    load: (runId) => store.load(runId),
    live: (runId) => {
      const live = registry.live(runId);
      return live && ((live.life.hasBegun && live.progress) || {});
    },
  });
}
