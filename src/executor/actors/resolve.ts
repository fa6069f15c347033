import { fromPromise } from 'xstate';
import type { Resolution } from '../../../machines/context.ts';
import { phaseFactsOf } from '../../agent/phase.ts';
import { type RunCheckpoint, toResumeState } from '../../record/checkpoint.ts';
import { toErrorData } from '../../run/error-data.ts';
import { DefinitionChangedError } from '../../run/errors.ts';
import type { JsonObject } from '../../run/json.ts';
import type { Limits } from '../../run/limits.ts';
import { recoverOpenStep } from '../../run/open-step.ts';
import { isSamePipeline, restartPipeline } from '../../run/pipeline.ts';
import type { Progress } from '../../run/progress.ts';
import type { RunCheckpointMeta, RunInfo } from '../../run/request.ts';
import { type RunOutput, withoutMessages } from '../../run/result.ts';
import { type ResumeState, resumeProgress } from '../../run/resume.ts';
import { joined, toolboxOf } from '../../tool/toolbox.ts';
import { Auditing } from '../auditing.ts';
import { startDeadline } from '../deadline.ts';
import { asError } from '../guard.ts';
import { carriedRecord, giveBack, releaseClaim, takeOwnership } from '../ownership.ts';
import { checkpointerOf, firstSave } from '../recording.ts';
import { type Kernel, type RunScope, scopeOf } from '../scope.ts';
import { refusedByBudget, restoreSpend } from '../spending.ts';
import { stagesFor } from '../stage.ts';
import { childTools } from '../sub-agents.ts';
import { Supervision, WATCHED_RUNTIME_MS } from '../supervision.ts';
import { checkedOutput } from './check-output.ts';

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
  const isStored = found.record !== undefined;
  await checkBudget(scope, isStored);
  scope.audit = auditOf(scope, scope.info);
  const early = equip(scope, isStored);

  const record = found.record ?? carriedRecord(scope);
  const resume = options.resume ?? (record && toResumeState(record));
  scope.events.continueFrom(resume?.seq ?? 0);
  const { progress: fitting, isReplaced } = progressOf(scope, begun, { resume, attempts: found.attempts });
  const progress = await withData(scope, fitting);
  if (resume) scope.resumedFrom = { iteration: progress.iteration, attempts: progress.attempts };
  const resumed = { isResumed: resume !== undefined, isReplaced, transcript: progress.transcript };
  scope.checkpointer = await checkpointerOf(scope, found.record, resumed);
  await firstSave(scope, progress, found.record);
  scope.isOurs = true;
  if (early) return { kind: 'refused', error: toErrorData(early), progress, isDurable: scope.isDurable };
  await restoreSpend(scope, progress.spend);
  supervise(scope, limits, { progress, saved: resume?.critic });
  return {
    kind: 'accepted',
    progress,
    limits,
    tools: scope.facts,
    phases: phaseFactsOf(scope.agent.phases, limits.maxIterations),
    hasOutputSchema: scope.agent.outputSchema !== undefined,
    isWatched: scope.supervision?.canRaiseSteps ?? false,
    isDurable: scope.checkpointer !== null,
  };
}

/**
 * A new run that the budget refuses leaves no trace. A stored one is not asked for again: what it used up itself, in the
 * turn that was not recorded any more, must not end it. Each of its model calls is still reserved.
 */
async function checkBudget(scope: RunScope, isStored: boolean): Promise<void> {
  const refusal = isStored ? undefined : await refusedByBudget(scope);
  if (refusal) throw refusal;
}

function auditOf(scope: RunScope, info: RunInfo): Auditing | undefined {
  const { audit, clock, warn, defaults } = scope.kernel.config;
  return Auditing.start(audit, info, { facts: () => scope.facts, clock, warn, ms: defaults.finalizeMs });
}

/** The critic, and the time that is left: without a critic `maxRuntimeMs` is a hard limit. */
function supervise(
  scope: RunScope,
  { maxRuntimeMs }: Limits,
  { progress, saved }: { progress: Progress; saved: JsonObject | undefined },
): void {
  const past = { softLimitMs: maxRuntimeMs, elapsedMs: progress.elapsedMs, saved };
  scope.supervision = Supervision.start(scope, scope.info as RunInfo, past);
  const limitMs = scope.supervision ? Math.max(WATCHED_RUNTIME_MS, maxRuntimeMs) : maxRuntimeMs;
  startDeadline(scope, limitMs - progress.elapsedMs);
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
  const { agent, kernel, runId } = scope;
  const { config } = kernel;
  try {
    const toolbox = joined(toolboxOf(agent.tools, config.tools), childTools(scope));
    scope.facts = toolbox.facts;
    scope.stages = stagesFor({ runId, agent, config, prompt: scope.info?.prompt ?? '' }, toolbox);
    return undefined;
  } catch (thrown) {
    const error = asError(thrown);
    if (isResumed && toErrorData(error).code !== 'UNKNOWN_TOOL') return error;
    throw error;
  }
}

/** Where the run is; and whether that is something else than its record says, because its agent has changed. */
function progressOf(
  scope: RunScope,
  fresh: Progress,
  from: { resume: ResumeState | undefined; attempts: number },
): { progress: Progress; isReplaced: boolean } {
  const { onDefinitionChange: policy } = scope.kernel.config;
  const resumed = from.resume ? resumeProgress(fresh, from.resume, scope.facts) : fresh;
  const phases = phaseFactsOf(scope.agent.phases, 1);
  const isSame = isSamePipeline(resumed, phases, resumed.transcript.length > 1 || resumed.openStep !== undefined);
  const isReplaced = !isSame && !resumed.outcome;
  if (isReplaced && policy === 'refuse') {
    throw new DefinitionChangedError(`run ${scope.runId}: its phases are not those of agent ${scope.agent.id}`);
  }
  const fitting = isReplaced && policy !== 'refuse' ? restartPipeline(resumed, phases, policy) : resumed;
  const { openStep } = fitting;
  const recovered = openStep ? { ...fitting, openStep: recoverOpenStep(openStep) } : fitting;
  warnOfStep(scope, recovered);
  return { progress: { ...recovered, attempts: from.attempts }, isReplaced };
}

/** The last phase's answer in the form of the output schema, where a host's own list of phases came without it. */
async function withData(scope: RunScope, progress: Progress): Promise<Progress> {
  const { agent, kernel } = scope;
  const last = progress.completedPhases.at(-1);
  const isComplete = last && progress.completedPhases.length === agent.phases?.length;
  if (!isComplete || !agent.outputSchema || last.data !== undefined) return progress;
  const check = await checkedOutput(kernel, last.output, agent.outputSchema);
  if (!('data' in check)) return progress;
  return { ...progress, completedPhases: [...progress.completedPhases.slice(0, -1), { ...last, data: check.data }] };
}

/** A phase that was to begin anew does not: it has done something that must not be done twice. */
function warnOfStep({ agent, runId, kernel }: RunScope, { openPhase }: Progress): void {
  const phase = openPhase && agent.phases?.[openPhase.index];
  if (phase?.recovery !== 'boundary') return;
  const fields = { runId, phase: phase.name };
  kernel.config.warn('run: a phase goes on at its step: it has started a tool with effects', fields);
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
