import type { Executor } from '../../executor/executor.ts';
import type { Model, Models } from '../../model/port.ts';
import type { RunCheckpoint } from '../../record/checkpoint.ts';
import type { RunOutcome } from '../../run/result.ts';
import { isAsideAsAsked } from './aside.ts';
import type { EffectLedger } from './ledger.ts';
import type { CrashTestExecutorOptions } from './process.ts';

/** What is wrong with the setup of one process. */
export interface BadSetup {
  readonly name: string;
  /** @param model the model of a process whose setup is whole */
  readonly models: (model: Model) => Models;
}

const MISSING = 'crashTest: this process has no key';

/** As a provider package rejects a call when its key is missing. */
async function keyless(): Promise<never> {
  throw Object.assign(new Error(MISSING), { name: 'AI_LoadAPIKeyError' });
}

const noTier: BadSetup = { name: 'no model for its tier', models: (model) => ({ 'another tier': model }) };
const noModels: BadSetup = {
  name: 'models that throw',
  models: () => () => {
    throw new Error(MISSING);
  },
};
/** Found last of all: when the model is asked. */
const noKey: BadSetup = {
  name: 'a model without its key',
  models: (model) => () => ({ ...model, doGenerate: keyless, doStream: keyless }),
};

/** The boot of a process with a broken setup. */
export interface BadBoot {
  readonly setup: BadSetup;
  /** It takes what is due, as a worker does; otherwise it recovers what it finds. */
  readonly isWorker: boolean;
}

/** Boundaries come in pairs, before and after an effect: their number and this one have no common divisor. */
const turns = [undefined, noKey, noTier, undefined, noKey, undefined, noModels];

/**
 * Draws whether a process with a broken setup boots after a crash, before the next process: four times of seven.
 * @param nth the number of the history among those with as many crashes; undefined = none boots
 */
export function drawBadBoot(nth: number | undefined): BadBoot | undefined {
  const setup = nth === undefined ? undefined : turns[nth % turns.length];
  return setup && { setup, isWorker: Math.floor((nth ?? 0) / turns.length) % 2 === 1 };
}

/** Continues what it can of the stored runs, and shuts down. */
export async function workBadly(executor: Executor, isWorker: boolean): Promise<void> {
  if (isWorker) await executor.drive('due');
  else {
    const { resumed } = await executor.recover({ maxAttempts: 99 });
    await Promise.all(resumed.map(({ runId }) => executor.get(runId)?.result));
  }
  await executor.shutdown();
}

/** What a store says of a run that stands. */
interface Standing {
  readonly attempts: number;
  readonly isParked: boolean;
  /** It waits until its model is back. */
  readonly isOut: boolean;
}

/** Returns the runs of the history that the store has, and how they stand. */
export function standingRuns(ledger: EffectLedger): Map<string, Standing> {
  const standing = new Map<string, Standing>();
  for (const { runId, certain } of ledger.stored()) {
    if (certain) standing.set(runId, standingOf(certain));
  }
  return standing;
}

function standingOf({ attempts, parked, waiting }: RunCheckpoint): Standing {
  const isOut = waiting?.waits.some(({ kind }) => kind === 'retry') ?? false;
  return { attempts, isParked: parked !== undefined, isOut };
}

/** A process with a broken setup that is over. */
interface BadLife {
  readonly what: string;
  /** How the runs stood before it. */
  readonly before: ReadonlyMap<string, Standing>;
  /** The claims that it still has. */
  readonly claims: ReadonlyMap<string, unknown>;
  readonly executor: CrashTestExecutorOptions;
}

/** Checks that a process with a broken setup has given back what it took, to other processes at once, and counted no start. */
export function checkGivenBack(ledger: EffectLedger, { what, before, claims, executor }: BadLife): void {
  const complain = (detail: string) => ledger.complain('i', `a process with ${what} ${detail}`);
  for (const [runId, was] of before) {
    const record = ledger.recordOf(runId);
    if (!record) continue;
    const is = standingOf(record);
    if (is.isParked && !was.isParked && !isAsideAsAsked(record, executor))
      complain(`parked run ${runId}: ${record.parked?.code}: ${record.parked?.reason}`);
    if (is.attempts > was.attempts) complain(`counted a start of run ${runId}: ${is.attempts} after ${was.attempts}`);
    if (is.isOut && !was.isOut) complain(`let run ${runId} wait for its model, and no other process continues it`);
    if (claims.has(runId)) complain(`did not give run ${runId} back`);
  }
}

/** Returns whether an outcome says that something was missing in the setup of a process. */
export function isOfSetup({ error }: RunOutcome): boolean {
  return error !== undefined && (['SETUP', 'UNKNOWN_TIER'].includes(error.code) || error.message.includes(MISSING));
}
