import type { Resolution } from '../../../machines/context.ts';
import { task } from '../../../machines/task.ts';
import { phaseFactsOf } from '../../agent/phase.ts';
import { toResumeState } from '../../record/checkpoint.ts';
import { recoverOpenStep } from '../../run/open-step.ts';
import { isSamePipeline, restartPipeline } from '../../run/pipeline.ts';
import { isBeyondOpening, type Progress } from '../../run/progress.ts';
import { type RunOutput, withoutId, withoutMessages } from '../../run/result.ts';
import { enterResume, type ResumeState, resumeProgress } from '../../run/resume.ts';
import { maxRecordBytesOf } from '../../store/checkpointer.ts';
import { joined, toolboxOf } from '../../tool/toolbox.ts';
import { toErrorData } from '../../values/error-data.ts';
import { DefinitionChangedError, ShutdownError } from '../../values/errors.ts';
import { asError } from '../host/guard.ts';
import { carriedRecord, giveBack, releaseClaim, takeOwnership, uncounted } from '../run/acquire.ts';
import type { Kernel, RunScope } from '../run/active-run.ts';
import { scopeOf } from '../run/active-run.ts';
import { addresseeOf } from '../run/command-target.ts';
import { auditOf, checkBudget, supervise } from '../run/oversight.ts';
import { checkpointerOf, firstSave } from '../run/recording.ts';
import { identityOf, infoOf, limitsOf, metaOf } from '../run/run-info.ts';
import { askerOf, conflict, isAskedRun } from '../run/same-request.ts';
import { restoreSpend } from '../run/spending.ts';
import { childTools } from '../run/sub-agents.ts';
import { stagesFor } from '../services/loop-context.ts';
import { checkedOutput } from './check-output.ts';

/**
 * How a run gets its things, in this order: its place in the table of live runs, the claim and the record, model and
 * tools, the checkpointer and the first save, the deadline. What can't be serialised goes into the scope; the machine
 * gets plain data back. It never rejects.
 */
export function resolveActor(kernel: Kernel) {
  return task<Resolution, { progress: Progress }>(async ({ input, self }) => {
    const scope = scopeOf(kernel, self);
    const resolving = resolve(scope, input.progress).catch((error: unknown) => refused(scope, input.progress, error));
    scope.resolving = resolving;
    const resolution = await resolving;
    scope.resolution = resolution.kind;
    if (resolution.kind === 'refused') scope.refusal = resolution.error;
    scope.record = undefined;
    return resolution;
  });
}

async function refused(scope: RunScope, progress: Progress, error: unknown): Promise<Resolution> {
  await giveBack(scope);
  return { kind: 'refused', error: toErrorData(asError(error)), progress, isDurable: false };
}

async function resolve(scope: RunScope, fresh: Progress): Promise<Resolution> {
  const { seed, options, kernel } = scope;
  if (seed.refusal) throw seed.refusal;
  // A host's machine may go on to its next run while the executor shuts down.
  if (kernel.isShutDown) {
    const cause = new ShutdownError('this executor is shut down');
    // The cause, not only the error: it is left for the next process, and no failure.
    scope.stop(cause);
    throw cause;
  }
  const twin = await takePlace(scope);
  if (twin) return { kind: 'answered', output: twin };

  const found = await takeOwnership(scope);
  if (found.outcome) {
    await releaseClaim(scope, uncounted(scope));
    return { kind: 'answered', output: withoutId(found.outcome) };
  }
  const limits = limitsOf(scope);
  const record = found.record ?? carriedRecord(scope);
  const named = { ...fresh, ...identityOf(fresh, record) };
  const begun = found.record ? { ...named, meta: metaOf(fresh, found.record) } : named;
  scope.info = infoOf(scope, begun, limits);
  const isStored = found.record !== undefined;
  await checkBudget(scope, isStored);
  scope.audit = auditOf(scope, scope.info);
  const early = equip(scope, isStored);

  const resume = options.resume ? enterResume(options.resume) : record && toResumeState(record);
  scope.events.continueFrom(resume?.seq ?? 0);
  const { progress: fitting, isReplaced } = progressOf(scope, begun, { resume, attempts: found.attempts });
  const progress = await withData(scope, fitting);
  if (resume) scope.resumedFrom = { iteration: progress.iteration, attempts: progress.attempts };
  scope.savedCritic = resume?.critic;
  const resumed = { isResumed: resume !== undefined, isReplaced, transcript: progress.transcript };
  scope.checkOurs();
  const checkpointer = await checkpointerOf(scope, found.record, resumed);
  scope.checkOurs();
  scope.checkpointer = checkpointer;
  await firstSave(scope, progress, found.record);
  scope.checkOurs();
  scope.isOurs = true;
  kernel.mailbox.enter(addresseeOf(scope, progress.commands));
  // A run that was told to end while nobody worked on it should not ask its model once more.
  if (isStored) await kernel.mailbox.lookFirst();
  if (early) return { kind: 'refused', error: toErrorData(early), progress, isDurable: scope.isDurable };
  // A run that has ended is only delivered: nobody looks after it any more.
  if (!progress.outcome) {
    await restoreSpend(scope, progress.spend);
    supervise(scope, limits, { progress, saved: resume?.critic });
  }
  return {
    kind: 'accepted',
    progress,
    limits,
    tools: scope.facts,
    phases: phaseFactsOf(scope.agent.phases, limits.maxIterations),
    hasOutputSchema: scope.agent.outputSchema !== undefined,
    isWatched: scope.supervision?.canRaiseSteps ?? false,
    isInspected: isInspected(scope),
    maxRecordBytes: maxRecordBytesOf(scope.checkpointer),
    isDurable: scope.checkpointer !== null,
  };
}

/**
 * Takes the run's place in the table of live runs. When another actor of this process has it, its result is the answer;
 * unless that one was interrupted here: then the place is free, and this one goes on.
 * @throws RunIdConflictError when that one is of another request
 */
async function takePlace(scope: RunScope): Promise<RunOutput | undefined> {
  const { registry } = scope.kernel;
  for (let first = registry.enter(scope); first !== scope; first = registry.enter(scope)) {
    await first.accepted.promise;
    const isAsked = isAskedRun(askerOf(scope), first);
    if (!isAsked && first.resolution === 'accepted' && !first.isFinished) throw conflict(askerOf(scope));
    const output = withoutMessages(await first.ended.promise);
    // A start that was refused for its request says nothing of the run.
    if (output.error?.code === 'RUN_ID_CONFLICT') continue;
    if (isAsked && (output.status !== 'interrupted' || scope.kernel.isShutDown)) return output;
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
  const isSame = isSamePipeline(resumed, phases, isBeyondOpening(resumed));
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
  if (!isComplete || !agent.outputSchema || last.hash !== undefined) return progress;
  const check = await checkedOutput(kernel, last.output, agent.outputSchema);
  if (!('data' in check)) return progress;
  return { ...progress, completedPhases: [...progress.completedPhases.slice(0, -1), { ...last, data: check.data }] };
}

/** A phase that was to begin anew does not: it has done something that must not be done twice. */
function warnOfStep({ agent, runId, kernel }: RunScope, { openPhase }: Progress): void {
  const phase = openPhase && agent.phases?.[openPhase.index];
  if (phase?.recovery !== 'boundary') return;
  const fields = { runId, phase: phase.name };
  kernel.config.warn('run: a phase goes on at its step, not at its beginning: what it did is recorded', fields);
}

/** Whether somebody may look on: an inspector of ours, or whoever looks at the machine that the run is part of. */
function isInspected({ kernel, options, actor }: RunScope): boolean {
  return kernel.config.inspect !== undefined || options.inspect !== undefined || actor._parent !== undefined;
}
