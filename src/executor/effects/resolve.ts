import type { Resolution } from '../../../machines/context.ts';
import { phaseFactsOf } from '../../agent/phase.ts';
import { type RunCheckpoint, toResumeState } from '../../record/checkpoint.ts';
import { nextAttempt, previousAttempt } from '../../run/attempt.ts';
import { isPassingRefusal } from '../../run/finalize.ts';
import { type OpenCall, type OpenStep, recoverOpenStep } from '../../run/open-step.ts';
import { outcomeOf, waitingOutput } from '../../run/outcome.ts';
import { isSamePipeline, recordable, restartPipeline } from '../../run/pipeline.ts';
import { isBeyondOpening, type Progress, type ToolFacts } from '../../run/progress.ts';
import type { ParentCall } from '../../run/request.ts';
import { isOver, keptAnswer, type RunOutput, withoutId, withoutMessages } from '../../run/result.ts';
import { enterResume, type ResumeState, resumeProgress } from '../../run/resume.ts';
import { withoutLostWaits } from '../../run/waits/wait-rules.ts';
import { type Checkpointer, maxRecordBytesOf } from '../../store/checkpointer.ts';
import { joined, type Toolbox, toolboxOf } from '../../tool/toolbox.ts';
import { type ErrorData, hasCode, toErrorData } from '../../values/error-data.ts';
import { DefinitionChangedError, NotDurableError, RunSlicedError, ShutdownError } from '../../values/errors.ts';
import { programOf } from '../../workflow/program.ts';
import { restOf } from '../../workflow/view.ts';
import { asError } from '../host/guard.ts';
import type { TracedRun } from '../host/tracing.ts';
import type { ActiveRun } from '../run/active-run.ts';
import { childTools } from '../run/children/sub-agents.ts';
import { RunCommandTarget } from '../run/command-target.ts';
import { withFittingInput } from '../run/fitting.ts';
import { journalOf } from '../run/journal/run-journal.ts';
import { beginAudit, checkBudget, supervise, warnUnknown } from '../run/oversight.ts';
import { acquireRun, carriedRecord, giveUpClaim, returnRun, uncounted } from '../run/record/acquire.ts';
import { checkpointerOf, finalizeHandle, firstSave, isStoreRefusal } from '../run/record/recording.ts';
import { askerOf, conflict, isAskedRun } from '../run/record/same-request.ts';
import { faultFields, followSetup, hasRecorded, isStoredHere, setupError } from '../run/record/setup-fault.ts';
import { identifiedBy, infoOf, limitsOfRun, metaOf, startOfCall } from '../run/run-info.ts';
import { restoreSpend } from '../run/spending.ts';
import { withThread } from '../run/threads/thread-turn.ts';
import { restAgain } from '../run/waits/rest-again.ts';
import { loopsFor } from '../services/loop-context.ts';
import { parseAnswer } from './check-output.ts';

/**
 * Resolves a run at its start, before its first step. It gets its resources in this order: its place in the table of live
 * runs, the claim and the record, model and tools, the checkpointer and the first save, the deadline. Values that cannot be
 * serialised are stored in the active run; the machine gets plain data. Never rejects.
 */
export async function resolve({ progress }: { progress: Progress }, run: ActiveRun): Promise<Resolution> {
  const resolving = resolveRun(run, progress).catch((error: unknown) => refuseStart(run, progress, error));
  run.life.beginResolving(resolving);
  const resolution = await resolving;
  run.life.endResolving(resolution);
  run.resources.record = undefined;
  return resolution;
}

async function refuseStart(run: ActiveRun, progress: Progress, thrown: unknown): Promise<Resolution> {
  if (run.startFacts.setupFault && hasCode(thrown, 'SETUP')) return handBack(run, progress, toErrorData(thrown));
  await returnRun(run);
  const error = await finalizeHandle(run, progress, toErrorData(asError(thrown)));
  const isPassing = isPassingFor(run, error);
  return { kind: 'refused', error, progress, isDurable: false, ...(isPassing ? { isPassing } : {}) };
}

/** What cannot be read was refused before any run was looked for; without a store the host's own handle has heard of the end. */
function isPassingFor(run: ActiveRun, error: ErrorData): boolean {
  if (run.seed.refusal !== undefined || run.services.config.store === undefined) return false;
  return isPassingRefusal(error) || isStoreRefusal(run, error);
}

/** The setup of this process cannot continue the run: its record says since when, and it is due for other processes. */
async function handBack(run: ActiveRun, fresh: Progress, error: ErrorData): Promise<Resolution> {
  const { record } = run.resources;
  const fields = record ? faultFields(run, record.setup) : {};
  if (record) run.resources.record = { ...record, ...fields };
  await returnRun(run);
  return {
    kind: 'refused',
    error,
    cause: error,
    progress: { ...standing(fresh, record), ...fields },
    isDurable: false,
  };
}

/** Where the run stands, for its result. */
function standing(fresh: Progress, record: RunCheckpoint | undefined): Progress {
  try {
    return record ? resumeProgress(identifiedBy(record, fresh), toResumeState(record)) : fresh;
  } catch {
    return fresh;
  }
}

async function resolveRun(run: ActiveRun, fresh: Progress): Promise<Resolution> {
  const { seed, options, services } = run;
  checkBeginning(run);
  const twin = await takePlace(run);
  if (twin) return { kind: 'answered', output: twin };

  const found = await withThread(run, await acquireRun(run, restAgain));
  if (found.outcome) {
    await giveUpClaim(run, uncounted(run));
    return { kind: 'answered', output: keptAnswer(found.outcome) };
  }
  const limits = limitsOfRun(run);
  const record = found.record ?? carriedRecord(run);
  const given = options.resume && enterResume(options.resume);
  // The record is newer than the state that the host gives, and its calls must not be made again.
  const resume = found.record || !given ? record && toResumeState(record) : given;
  const named = identifiedBy(record, fresh, given);
  const begun = traced(run, found.record ? { ...named, meta: metaOf(fresh, found.record) } : named);
  if (found.record && found.isResting) return resting(run, begun, found.record);
  if (found.record && seed.isAdmission) return leaveAdmitted(run, begun, 'resumed');
  run.info = infoOf(run, begun, limits);
  run.startFacts.starts = found.attempts;
  run.parent = begun.parent;
  const isStored = found.record !== undefined;
  await checkBudget(run, isStored);
  // The first process that works on the run begins it.
  if (!seed.isAdmission) beginAudit(run);
  run.events.continueFrom(resume?.seq ?? 0);
  const early = equip(run, found.record, await run.agent.outputSchema?.pending);

  const { progress: fitting, isReplaced } = progressOf(run, await withFittingInput(run, begun, resume), {
    resume,
    attempts: seed.isAdmission ? 0 : found.attempts,
  });
  const progress = attempted(run, await withData(run, fitting), record);
  if (resume) run.startFacts.resumedFrom = { iteration: progress.iteration, attempts: progress.attempts };
  run.resources.savedCritic = resume?.critic;
  const resumed = { isResumed: resume !== undefined, isReplaced, transcript: recordable(progress).transcript };
  run.checkOurs();
  const checkpointer = await checkpointerOf(run, found.record, resumed);
  run.checkOurs();
  equipRecording(run, checkpointer, resume?.seq);
  await firstSave(run, progress, found.record);
  run.checkOurs();
  if (seed.isAdmission) return leaveAdmitted(run, progress, 'started');
  run.life.beginWork();
  followSetup(run);
  run.takeCommands(new RunCommandTarget(run, progress.commands));
  // A run that was cancelled while no process worked on it should not ask its model again.
  if (isStored) await services.inbox.lookFirst();
  if (early) return { kind: 'refused', error: toErrorData(early), progress, isDurable: run.isDurable };
  // A run that has ended is only delivered: it needs no lease, inbox or deadline.
  if (!progress.outcome) {
    await restoreSpend(run, progress);
    supervise(run, limits, { progress, saved: resume?.critic });
  }
  return {
    kind: 'accepted',
    progress,
    limits,
    tools: run.resources.facts,
    phases: phaseFactsOf(run.agent.phases, limits.maxSteps),
    hasOutputSchema: run.agent.outputSchema !== undefined,
    isWatched: run.resources.monitor?.canRaiseSteps ?? false,
    ...judgingOf(run, progress, resume === given ? undefined : resume),
    isInspected: isInspected(run),
    maxRecordBytes: maxRecordBytesOf(run.resources.checkpointer),
    isDurable: run.resources.checkpointer !== null,
  };
}

/** Returns the progress of an attempt that begins. A recorded end is only delivered, and an admission is not worked on. */
function attempted(run: ActiveRun, progress: Progress, record: RunCheckpoint | undefined): Progress {
  run.startFacts.previous = record && previousAttempt(record);
  if (progress.outcome || run.seed.isAdmission) return progress;
  return { ...progress, attempt: nextAttempt(record?.attempt, run.services.config.clock.now()) };
}

/** Returns the progress with its trace: its record has that of the first process. */
function traced({ services, runId, agent }: ActiveRun, progress: Progress): Progress {
  const { tracing } = services.config;
  if (!tracing || progress.trace !== undefined) return progress;
  const { birth = '', parent } = progress;
  const above = parent && callAbove(services, parent);
  const trace = tracing.begin({
    ...{ runId, birth, agentId: agent.id, agentName: agent.name },
    ...(above ? { parent: above } : {}),
  });
  return trace === undefined ? progress : { ...progress, trace };
}

/** The running call of another run that begins this one. */
function callAbove({ registry }: ActiveRun['services'], { runId, callId }: ParentCall): TracedRun['parent'] {
  const trace = registry.live(runId)?.progress?.trace;
  const start = startOfCall(registry, { runId, callId });
  return trace === undefined || !start ? undefined : { trace, runId, callId, ...start };
}

/** Refuses a start that can do nothing. @throws the reason */
function checkBeginning(run: ActiveRun): void {
  const { seed, options, services } = run;
  if (seed.refusal) throw seed.refusal;
  // A host's machine may begin its next run while the executor shuts down.
  if (services.isShutDown) {
    const cause = new ShutdownError('this executor is shut down');
    // The cause, not only the error: the run is left for the next process, and has not failed.
    run.stop(cause);
    throw cause;
  }
  if (seed.isAdmission && (!services.config.store || options.checkpointer))
    throw new NotDurableError("drive: 'later' needs a store of the executor (createExecutor({ store }))");
}

/** Whether calls of the run are judged, and whether those of its open step must be: no record says that they were. */
function judgingOf({ services }: ActiveRun, { openStep }: Progress, recorded: ResumeState | undefined) {
  return {
    hasPolicy: services.config.approvals !== undefined,
    isUnjudged: openStep !== undefined && recorded?.openStep === undefined,
  };
}

function equipRecording(run: ActiveRun, checkpointer: Checkpointer | null, seq = 0): void {
  run.resources.checkpointer = checkpointer;
  run.journal = checkpointer ? journalOf(run, seq) : undefined;
}

/** Nothing has changed since the run rests: its result is again that it waits. */
function resting({ agent }: ActiveRun, begun: Progress, record: RunCheckpoint): Resolution {
  const progress = resumeProgress(begun, toResumeState(record));
  return { kind: 'answered', output: waitingOutput(progress, { rest: restOf(programOf(agent), progress)?.text }) };
}

/** Leaves a run that is stored and due. For the other starts of this process it is one that was interrupted here. */
async function leaveAdmitted(run: ActiveRun, progress: Progress, how: 'started' | 'resumed'): Promise<Resolution> {
  await giveUpClaim(run, uncounted(run));
  run.life.admit(how);
  const error = toErrorData(new RunSlicedError(`run ${run.runId} is admitted, and due`));
  const left = { status: 'interrupted', error } as const;
  const output = outcomeOf(progress, left, { durable: true, saveErrors: 0, outcomeId: '' });
  return { kind: 'answered', output: withoutId(output) };
}

/**
 * Takes the run's place in the table of live runs. If another actor of this process has the place, its result is the answer.
 * If that actor was interrupted here, the place is free, and this run continues.
 * @throws RunIdConflictError if that run has another request
 */
async function takePlace(run: ActiveRun): Promise<RunOutput | undefined> {
  const { registry } = run.services;
  for (let first = registry.enter(run); first !== run; first = registry.enter(run)) {
    await first.life.accepted.promise;
    const isAsked = isAskedRun(askerOf(run), first);
    if (!isAsked && first.life.hasBegun && !first.life.isOver) throw conflict(askerOf(run));
    const output = withoutMessages(await first.life.ended.promise);
    // A start that was refused for its request has no answer of the run.
    if (output.error?.code === 'RUN_ID_CONFLICT') continue;
    if (run.seed.origin === 'hosted' && !isEndOf(first, output)) {
      checkBeginning(run);
      continue;
    }
    if (isAsked && (output.status !== 'interrupted' || run.services.isShutDown)) return output;
    // That actor claimed the run after it was taken for this one: both claims have the same owner, and only the newer one counts.
    await run.seed.claim?.giveBack(0);
  }
  return undefined;
}

/** Whether the caller of the run's first start waits for it. A turn of a thread has its record, but nothing more. */
function isFirstStart({ seed }: ActiveRun, record: RunCheckpoint | undefined): boolean {
  if (!record) return true;
  return seed.hasSender === true && !hasRecorded(record);
}

/** Whether a result is the end of the run: another start of it may have been refused, or may rest, for now. */
function isEndOf(run: ActiveRun, output: RunOutput): boolean {
  const { isRefused, refusal } = run.life;
  return isOver(output) && !(isRefused && refusal && isPassingFor(run, refusal));
}

/**
 * Gets model and tools. A fault of the setup gives a stored run back. The first start of a turn ends with it, once its record is
 * loaded. A run that has ended, or is cancelled, needs neither model nor tools.
 * @param unread why the schema of its answer cannot be read
 * @throws {SETUP} @throws the fault, of a run that has no record here
 */
function equip(run: ActiveRun, record: RunCheckpoint | undefined, unread: Error | undefined): Error | undefined {
  const { agent, services, runId } = run;
  const { config } = services;
  run.startFacts.setup = record?.setup;
  run.startFacts.isFirst = isFirstStart(run, record);
  try {
    if (run.seed.fault ?? unread) throw run.seed.fault ?? unread;
    const toolbox = joined(ownTools(run), childTools(run));
    run.resources.facts = limitedBy(record?.effects ?? run.seed.request.effects, toolbox.facts);
    run.resources.loops = loopsFor({ runId, agent, config, prompt: run.info?.prompt ?? '' }, toolbox);
    return undefined;
  } catch (thrown) {
    const error = asError(thrown);
    if (record && (record.outcome || run.options.signal?.aborted)) return undefined;
    run.startFacts.setupFault = toErrorData(error);
    if (!record) throw error;
    if (!run.startFacts.isFirst && isStoredHere(run)) throw setupError(run, toErrorData(error));
    return error;
  }
}

/** In a fork whose effects are not live, each call with an effect is judged before it starts. */
function limitedBy(effects: Progress['effects'], facts: ToolFacts): ToolFacts {
  if (!effects) return facts;
  const limited = Object.entries(facts).map(([name, fact]) => {
    return [name, fact.effect === 'read' || fact.isRun ? fact : { ...fact, asks: true }] as const;
  });
  return Object.fromEntries(limited);
}

/**
 * Returns the tools that an agent's definition names. Those of a list are the same in all its runs; those of the AI SDK are the host's
 * objects, read at each start.
 * @throws {UNKNOWN_TOOL} @throws {TypeError}
 */
export function ownTools({ agent, services }: Pick<ActiveRun, 'agent' | 'services'>): Toolbox {
  const known = services.toolboxes.get(agent);
  if (known) return known;
  const toolbox = toolboxOf(agent.tools, services.config.tools);
  if (agent.tools === undefined || Array.isArray(agent.tools)) services.toolboxes.set(agent, toolbox);
  return toolbox;
}

/** Where the run is; and whether that differs from its record, because its agent has changed. */
function progressOf(
  run: ActiveRun,
  fresh: Progress,
  from: { resume: ResumeState | undefined; attempts: number },
): { progress: Progress; isReplaced: boolean } {
  const { onDefinitionChange: policy } = run.services.config;
  const resumed = from.resume ? resumeProgress(fresh, from.resume, run.resources.facts) : fresh;
  const phases = phaseFactsOf(run.agent.phases, 1);
  const isSame = isSamePipeline(resumed, phases, isBeyondOpening(resumed));
  const isReplaced = !isSame && !resumed.outcome;
  if (isReplaced && policy === 'refuse') {
    throw new DefinitionChangedError(`run ${run.runId}: its phases are not those of agent ${run.agent.id}`);
  }
  const fitting = isReplaced && policy !== 'refuse' ? restartPipeline(resumed, phases, policy) : resumed;
  const { openStep } = fitting;
  const recovered = openStep
    ? withoutLostWaits({ ...fitting, openStep: recoverOpenStep(openStep) })
    : withoutLostWaits(fitting);
  if (openStep) noteUnknown(run, openStep, fitting.iteration + 1);
  warnOfStep(run, recovered);
  if (recovered.parent || recovered.treeRuns) run.tree.learn(recovered.treeRuns);
  return { progress: { ...recovered, attempts: from.attempts }, isReplaced };
}

/** Notes the `once` calls during which a process died. Their notices come before the save that settles them, so that none is lost. */
function noteUnknown(run: ActiveRun, { calls }: OpenStep, step: number): void {
  const isUnknown = ({ state, effect }: OpenCall) => state === 'started' && effect === 'once';
  const unknown = calls.filter(isUnknown).map(({ callId, name, attempt }) => ({ step, callId, name, attempt }));
  run.startFacts.unknown = unknown;
  for (const call of unknown) warnUnknown(run, call);
}

/** Checks the last phase's answer against the output schema, if a host's own list of phases has it without data. */
async function withData(run: ActiveRun, progress: Progress): Promise<Progress> {
  const { agent, services } = run;
  const last = progress.completedPhases.at(-1);
  const isComplete = last && progress.completedPhases.length === agent.phases?.length;
  if (!isComplete || !agent.outputSchema || last.hash !== undefined) return progress;
  const check = await parseAnswer(services, last.output, agent.outputSchema);
  if (!('data' in check)) return progress;
  return { ...progress, completedPhases: [...progress.completedPhases.slice(0, -1), { ...last, data: check.data }] };
}

/** A phase that should begin again does not: it has had an effect that must not happen twice. */
function warnOfStep({ agent, runId, services }: ActiveRun, { openPhase }: Progress): void {
  const phase = openPhase && agent.phases?.[openPhase.index];
  if (phase?.recovery !== 'boundary') return;
  const fields = { runId, phase: phase.name };
  services.config.warn('phase.not-repeated', fields);
}

/** Whether an inspector may watch: Pawl's own, or one of the machine that contains the run. */
function isInspected({ services, options, actor }: ActiveRun): boolean {
  return services.config.inspect !== undefined || options.inspect !== undefined || actor._parent !== undefined;
}
