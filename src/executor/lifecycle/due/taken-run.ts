import { mayBeChild, type TreePlace } from '../../../record/run-tree.ts';
import type { RunResult } from '../../../run/result.ts';
import type { CheckpointStore } from '../../../store/port.ts';
import type { ActiveRun, ExecutorServices } from '../../run/active-run.ts';
import type { SliceLimits } from '../../run/slice.ts';
import type { TakenClaim } from '../../services/due/taken-claim.ts';
import { agentFor, begin, treeIn } from '../stored/recover-one-run.ts';

/** How this process works on a run that it has taken. */
interface TakingLimits {
  /** Starts in a row without progress before it is parked. */
  readonly maxAttempts: number;
  /** How long; absent = until its end. */
  readonly slice?: SliceLimits;
}

/** What became of a taken run. `left`: it is due again. `given-back`: this process could not continue it. */
export type TakenEnd = 'ended' | 'rests' | 'left' | 'given-back';

/** A taken run that has begun, or was given back. */
export interface TakenStart {
  readonly run?: ActiveRun;
  /** Resolves when this process has nothing more to do with it. Never rejects. */
  readonly over: Promise<TakenEnd>;
}

/**
 * Continues a run that this process has taken, or gives it back: without its agent, or to a parent that continues it. Never
 * rejects.
 * @returns when its start was accepted, answered or refused
 */
export async function startTaken(
  services: ExecutorServices,
  taken: TakenClaim,
  limits: TakingLimits,
): Promise<TakenStart> {
  const { runId, meta, parent } = taken.run;
  try {
    if (!services.stuck.isReady(taken.run) || !agentFor(services, meta.agentId)) return handBack(services, taken);
    const found = { runId, ...(parent ? { parent } : {}) };
    const tree = treeIn(services.config.store as CheckpointStore, services);
    const place: TreePlace | undefined = mayBeChild(found) ? await tree.placeOf(found) : undefined;
    // Its parent continues it.
    if (place?.kind === 'child' && !place.isAlone) return handBack(services, taken);
    if (!services.paused.enter(meta.agentId)) return passOver(services, taken);
    const { run, result } = await begin(services, { meta, place, claim: taken, ...limits });
    if (!run?.life.hasBegun) services.paused.leave(meta.agentId, false);
    return { ...(run ? { run } : {}), over: endOf(services, taken, { run, result }) };
  } catch (error) {
    services.paused.leave(meta.agentId, false);
    services.config.warn('run.start.failed', { runId, error });
    return handBack(services, taken);
  }
}

/** It is due at once for other processes. This one would get it again at once, where its store cannot leave out the agent. */
async function passOver(services: ExecutorServices, taken: TakenClaim): Promise<TakenStart> {
  if (services.config.palette) return handBack(services, taken);
  await taken.giveBack(0);
  return { over: Promise.resolve('given-back') };
}

async function handBack(services: ExecutorServices, taken: TakenClaim): Promise<TakenStart> {
  await giveBack(services, taken);
  return { over: Promise.resolve('given-back') };
}

/**
 * Gives back a run that this process cannot continue. It is due for all processes after half of the pause: in the other half this
 * one gives it back at once.
 */
async function giveBack({ stuck, config }: ExecutorServices, taken: TakenClaim): Promise<void> {
  const { run } = taken;
  const pauseMs = stuck.isReady(run) ? stuck.note(run, 'stuck') / 2 : stuck.shortPauseMs(run, config.random());
  const dueAt = await taken.giveBack(pauseMs);
  if (dueAt !== undefined) stuck.onMoved({ runId: run.runId, dueAt });
}

interface Begun {
  readonly run: ActiveRun | undefined;
  readonly result: Promise<RunResult>;
}

async function endOf(services: ExecutorServices, taken: TakenClaim, { run, result }: Begun): Promise<TakenEnd> {
  const { status, error } = await result;
  const isLeaving = error?.code === 'ERR_SHUTDOWN' || services.isShutDown;
  if (taken.claim) {
    if (isLeaving || (error?.code === 'SETUP' && !services.config.palette)) await taken.giveBack(0);
    else await giveBack(services, taken);
    return 'given-back';
  }
  const isAccepted = run?.life.hasBegun;
  // One that was parked again has no time either.
  services.stuck.note(taken.run, isAccepted || taken.run.definition === undefined ? 'further' : 'stuck');
  if (!isAccepted) return status === 'waiting' ? 'rests' : 'given-back';
  return status === 'interrupted' ? 'left' : status === 'waiting' ? 'rests' : 'ended';
}
