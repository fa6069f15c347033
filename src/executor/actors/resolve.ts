import { fromPromise } from 'xstate';
import type { Resolution } from '../../../machines/context.ts';
import { modelFor } from '../../model/port.ts';
import type { RunCheckpoint } from '../../record/checkpoint.ts';
import { toResumeState } from '../../record/checkpoint.ts';
import { stateOf } from '../../record/state.ts';
import { toErrorData } from '../../run/error-data.ts';
import { NotDurableError } from '../../run/errors.ts';
import type { Limits } from '../../run/limits.ts';
import { recoverOpenStep } from '../../run/open-step.ts';
import type { Progress } from '../../run/progress.ts';
import type { RunInfo } from '../../run/request.ts';
import { type RunOutput, withoutMessages } from '../../run/result.ts';
import { type ResumeState, resumeProgress } from '../../run/resume.ts';
import type { Checkpointer } from '../../store/checkpointer.ts';
import { isOwning } from '../../store/port.ts';
import { toolboxOf } from '../../tool/toolbox.ts';
import { startDeadline } from '../deadline.ts';
import { asError } from '../guard.ts';
import { askStore, carriedRecord, giveBack, releaseClaim, takeOwnership } from '../ownership.ts';
import type { RunScope } from '../scope.ts';
import { type Kernel, scopeOf } from '../scope.ts';

/**
 * How a run gets its things, in this order: its place in the table of live runs, the claim and the record, model and
 * tools, the checkpointer and the first save, the deadline. What can't be serialised goes into the scope; the machine
 * gets plain data back. It never rejects.
 */
export function resolveActor(kernel: Kernel) {
  return fromPromise<Resolution, { progress: Progress }>(async ({ input, self }) => {
    const scope = scopeOf(kernel, self);
    const resolving = resolve(scope, input.progress).catch((error: unknown) => refused(scope, input.progress, error));
    scope.resolving = resolving;
    const resolution = await resolving;
    scope.resolution = resolution.kind;
    scope.record = undefined;
    return resolution;
  });
}

async function refused(scope: RunScope, progress: Progress, error: unknown): Promise<Resolution> {
  await giveBack(scope);
  return { kind: 'refused', error: toErrorData(asError(error)), progress, isDurable: false };
}

async function resolve(scope: RunScope, fresh: Progress): Promise<Resolution> {
  const { seed, options } = scope;
  if (seed.refusal) throw seed.refusal;
  const twin = await takePlace(scope);
  if (twin) return { kind: 'answered', output: twin };

  const found = await takeOwnership(scope);
  if (found.outcome) {
    await releaseClaim(scope);
    const { outcomeId: _, ...output } = found.outcome;
    return { kind: 'answered', output };
  }
  const limits = limitsOf(scope);
  scope.info = infoOf(scope, fresh, limits);
  const early = equip(scope, found.record !== undefined);

  const record = found.record ?? carriedRecord(scope);
  const resume = options.resume ?? (record && toResumeState(record));
  const progress = { ...progressOf(scope, fresh, resume), attempts: found.attempts };
  scope.checkpointer = await checkpointerOf(scope, found.record, resume !== undefined);
  await firstSave(scope, progress, found.record);
  scope.isOurs = true;
  if (early) return { kind: 'refused', error: toErrorData(early), progress, isDurable: scope.isDurable };
  startDeadline(scope, limits.maxRuntimeMs - progress.elapsedMs);
  return {
    kind: 'accepted',
    progress,
    limits,
    tools: scope.toolbox?.facts ?? {},
    isDurable: scope.checkpointer !== null,
  };
}

/**
 * Takes the run's place in the table of live runs. When another actor of this process has it, its result is the answer;
 * unless that one was interrupted here: then the place is free, and this one goes on.
 */
async function takePlace(scope: RunScope): Promise<RunOutput | undefined> {
  const { registry } = scope.kernel;
  for (let first = registry.enter(scope); first !== scope; first = registry.enter(scope)) {
    const output = withoutMessages(await first.ended.promise);
    if (output.status !== 'interrupted' || scope.kernel.isShutDown) return output;
  }
  return undefined;
}

/**
 * Model and tools. Of a run that is resumed, an error here is kept until its record is in hand, so that the record is
 * failed and not retried for ever; but a tool that a deploy removed is no error of the run: its record stays.
 */
function equip(scope: RunScope, isResumed: boolean): Error | undefined {
  const { agent, kernel } = scope;
  try {
    scope.model = modelFor(kernel.config.models, agent.modelTier ?? kernel.config.defaults.modelTier);
    scope.toolbox = toolboxOf(agent.tools, kernel.config.tools);
    return undefined;
  } catch (thrown) {
    const error = asError(thrown);
    if (isResumed && toErrorData(error).code !== 'UNKNOWN_TOOL') return error;
    throw error;
  }
}

function progressOf(scope: RunScope, fresh: Progress, resume: ResumeState | undefined): Progress {
  const progress = resume ? resumeProgress(fresh, resume, scope.toolbox?.facts) : fresh;
  return progress.openStep ? { ...progress, openStep: recoverOpenStep(progress.openStep) } : progress;
}

/** null = this run is not durable. A run that is resumed, or must be durable, is refused instead. */
async function checkpointerOf(
  scope: RunScope,
  record: RunCheckpoint | undefined,
  isResumed: boolean,
): Promise<Checkpointer | null> {
  const { kernel, options, claim, info, runId, onFlushError } = scope;
  const { factory, requireDurable, warn } = kernel.config;
  if (options.checkpointer) return options.checkpointer;
  const landed = record && { revision: record.revision ?? 0, messages: record.messages.length };
  try {
    const begun =
      factory && info
        ? await askStore(scope, 'checkpointer begin', factory.begin(info, { claim, landed, onFlushError }))
        : null;
    if (!begun && requireDurable)
      throw new NotDurableError(`run ${runId} cannot be recorded, and requireDurable is set`);
    if (!begun) await releaseClaim(scope);
    return begun;
  } catch (error) {
    return refuseOrGoOn(scope, error, { mustBeDurable: isResumed || requireDurable, warn });
  }
}

async function refuseOrGoOn(
  scope: RunScope,
  error: unknown,
  policy: { mustBeDurable: boolean; warn: (message: string, fields: Record<string, unknown>) => void },
): Promise<null> {
  await releaseClaim(scope);
  if (policy.mustBeDurable)
    throw error instanceof NotDurableError
      ? error
      : new NotDurableError(`run ${scope.runId} cannot be recorded`, { cause: error });
  policy.warn('run: checkpointer begin failed; running non-durable', { runId: scope.runId, error: toErrorData(error) });
  return null;
}

/** The first record of a new run; of a resumed one only where nothing else has counted this start. */
async function firstSave(scope: RunScope, progress: Progress, record: RunCheckpoint | undefined): Promise<void> {
  const { checkpointer, kernel, options } = scope;
  const { store, requireDurable, warn } = kernel.config;
  if (!checkpointer || (record && store && isOwning(store)) || options.checkpointer) return;
  try {
    await checkpointer.save(stateOf(progress, progress.elapsedMs), { force: true });
  } catch (error) {
    scope.checkpointer = null;
    await refuseOrGoOn(scope, error, { mustBeDurable: record !== undefined || requireDurable, warn });
  }
}

function limitsOf({ agent, kernel }: RunScope): Limits {
  const { defaults } = kernel.config;
  return {
    maxIterations: agent.maxIterations ?? defaults.maxIterations,
    maxRuntimeMs: agent.maxRuntimeMs ?? defaults.maxRuntimeMs,
    maxConsecutiveToolErrors: defaults.maxConsecutiveToolErrors,
    maxSameToolCallRepeats: defaults.maxSameToolCallRepeats,
    toolConcurrency: agent.toolConcurrency ?? defaults.toolConcurrency,
  };
}

function infoOf(scope: RunScope, { meta }: Progress, limits: Limits): RunInfo {
  const { runId, agentId, agentName, callerId, channelId, guildId, prompt, modelTier, parentRunId } = meta;
  return Object.freeze({
    runId,
    subjectId: agentId,
    name: agentName,
    callerId,
    channelId,
    guildId,
    parentRunId,
    modelTier,
    prompt,
    inputs: scope.record?.inputs ?? scope.seed.request.inputs,
    startedAt: scope.kernel.config.clock.now(),
    maxIterations: limits.maxIterations,
  });
}
