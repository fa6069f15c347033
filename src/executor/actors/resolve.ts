import { fromPromise } from 'xstate';
import type { Resolution } from '../../../machines/context.ts';
import { modelFor } from '../../model/port.ts';
import { type RunCheckpoint, toResumeState } from '../../record/checkpoint.ts';
import { toErrorData } from '../../run/error-data.ts';
import type { Limits } from '../../run/limits.ts';
import { recoverOpenStep } from '../../run/open-step.ts';
import type { Progress } from '../../run/progress.ts';
import type { RunCheckpointMeta, RunInfo } from '../../run/request.ts';
import { type RunOutput, withoutMessages } from '../../run/result.ts';
import { type ResumeState, resumeProgress } from '../../run/resume.ts';
import { toolboxOf } from '../../tool/toolbox.ts';
import { startDeadline } from '../deadline.ts';
import { asError } from '../guard.ts';
import { carriedRecord, giveBack, releaseClaim, takeOwnership } from '../ownership.ts';
import { checkpointerOf, firstSave } from '../recording.ts';
import { type Kernel, type RunScope, scopeOf } from '../scope.ts';

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
  const begun = found.record ? { ...fresh, meta: metaOf(fresh, found.record) } : fresh;
  scope.info = infoOf(scope, begun, limits);
  const early = equip(scope, found.record !== undefined);

  const record = found.record ?? carriedRecord(scope);
  const resume = options.resume ?? (record && toResumeState(record));
  scope.events.continueFrom(resume?.seq ?? 0);
  const progress = { ...progressOf(scope, begun, resume), attempts: found.attempts };
  if (resume) scope.resumedFrom = { iteration: progress.iteration, attempts: progress.attempts };
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

/** Who asked for a stored run, where and what for is in its record; what it is run with is today's. */
function metaOf({ meta }: Progress, record: RunCheckpoint): RunCheckpointMeta {
  return { ...record.meta, agentName: meta.agentName, modelTier: meta.modelTier };
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
