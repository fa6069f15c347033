import type { SnapshotFrom, Subscription } from 'xstate';
import type { RunEmitted, RunInput } from '../../../machines/context.ts';
import type { Agent } from '../../agent/agent.ts';
import { childToolName } from '../../agent/names.ts';
import { classifyCheckpointOutcome, isLeftFor, isShutdown } from '../../run/finalize.ts';
import { childOfCall } from '../../run/identity.ts';
import { outcomeOf } from '../../run/outcome.ts';
import { withdrawCalls } from '../../run/progress.ts';
import { type RunOutput, withoutId } from '../../run/result.ts';
import { outboxOf } from '../../run/workflow/advanced.ts';
import { withDeadline } from '../../values/deadline.ts';
import { type ErrorData, toErrorData } from '../../values/error-data.ts';
import { CancelledError, RunPanicError, ShutdownError } from '../../values/errors.ts';
import { markOf } from '../../values/message-mark.ts';
import { letGo } from '../../values/thenable.ts';
import { noUsage } from '../../values/usage.ts';
import { leaveLive } from '../effects/settle.ts';
import { guarded, guardedObserver } from '../host/guard.ts';
import type { RunOptions, StepInfo } from '../host/run-options.ts';
import { atMoment, type PersistedRun } from '../host/snapshot.ts';
import { ActiveRun, type ExecutorServices } from '../run/active-run.ts';
import { tellInspectors } from '../run/inspected-machine.ts';
import { tellUnknown } from '../run/oversight.ts';
import { giveUpClaim } from '../run/record/acquire.ts';
import type { RunActor } from '../run/run-actor.ts';
import { inputOfSeed, type RunSeed } from '../run/seed.ts';
import { isDriven, Slice, sliceOf } from '../run/slice.ts';
import { followSignal } from '../run/stop-causes.ts';
import { RunWaits } from '../run/waits/run-waits.ts';

interface AttachedParts {
  readonly seed: RunSeed;
  readonly options: RunOptions;
  readonly actor: RunActor;
}

/**
 * Connects a run's actor to its executor: the active run, the listener that saves, the observer of the end, guards around
 * subscribers.
 */
export function attach(services: ExecutorServices, agent: Agent, parts: AttachedParts): ActiveRun {
  const { actor, options } = parts;
  const run = activeRun(services, agent, parts);
  if (parts.seed.slice) run.slice = new Slice(run, parts.seed.slice);
  const { parent } = parts.seed.request;
  const above = parent && services.registry.live(parent.runId);
  if (above) sliceOf(above)?.follow(run);

  const onStep = guarded('onStep', options.onStep, services.config.warn);
  const observer = new ActorObserver(run);
  // One listener for all events of the machine: each further one is a Set and two closures a run, and hosts keep thousands of
  // runs.
  actor.on('*', (event) => handleEmitted(event, observer.run, onStep));
  actor.subscribe(observer);
  services.actorMethods ??= actorMethods(services);
  Object.assign(actor, services.actorMethods);
  if (options.signal) queueMicrotask(() => followSignal(run, options.signal, asCause));
  return run;
}

/**
 * Makes the next active run of an actor whose run was left: what the try before had (claim, signal, timers) ended with it.
 * @returns what the machine begins the try with
 */
export function attachAgain(left: ActiveRun): RunInput {
  const { services, agent, options, actor } = left;
  const seed = seedAgain(left);
  activeRun(services, agent, { seed, options, actor });
  return inputOfSeed(services, agent, seed);
}

/** A run that was accepted continues from its record; any other is still what it was asked for. */
function seedAgain({ seed, life, actor }: ActiveRun): RunSeed {
  if (!life.hasBegun) return { ...seed, isNewId: false, tries: (seed.tries ?? 1) + 1 };
  const persisted = actor.getPersistedSnapshot() as PersistedRun;
  return { request: seed.request, isNewId: false, origin: 'hosted', persisted };
}

function activeRun(services: ExecutorServices, agent: Agent, parts: AttachedParts): ActiveRun {
  const run = new ActiveRun(services, agent, parts);
  run.waits = new RunWaits(run);
  services.add(parts.actor, run);
  return run;
}

/** Follows the states of a run's actor, to its end. */
class ActorObserver {
  #run: ActiveRun;

  constructor(run: ActiveRun) {
    this.#run = run;
  }

  /** An actor whose run is left has a new active run at each try. */
  get run(): ActiveRun {
    const { services, actor, life } = this.#run;
    if (life.isOver) this.#run = services.runBehind(actor) ?? this.#run;
    return this.#run;
  }

  next({ value, context }: SnapshotFrom<RunActor>): void {
    const { run } = this;
    announceState(run, value);
    if (run.resources.children.size > 0) run.waits.look();
    run.outbox.look();
    run.services.registry.touch(run);
    if (typeof value === 'object' && 'left' in value && context.output) run.finish(context.output);
  }

  error(error: unknown): void {
    this.run.finish(reportCrash(this.run, error));
  }

  complete(): void {
    void conclude(this.run);
  }
}

type OnStep = ((step: StepInfo) => void) | undefined;

/** Handles all events that the machine emits. */
function handleEmitted(event: RunEmitted, run: ActiveRun, onStep: OnStep): void {
  if (event.type === 'boundary' || event.type === 'step.done') run.replies.publishSources(event.progress);
  if (event.type === 'boundary') run.checkpointing.announce(event);
  else if (event.type === 'step.done') stepDone(event, run, onStep);
  else if (event.type === 'run.accepted') announceStart(run);
  else if (event.type === 'run.working') announceState(run, event.state);
  else if (event.type === 'run.cancelling') void run.services.leftRuns.cancel(run, run.runId, event.cause.message);
  else if (event.type === 'run.stopping') stopWork(run, event.cause);
  else if (event.type === 'call.refused') callRefused(event, run);
  else if (event.type === 'steer.queued') run.steering.onQueued(event.receipt, event.boundary);
  else if (event.type === 'steer.refused') run.steering.onRefused(event);
  else if (event.type === 'nudge.dropped') nudgeDropped(event, run);
  else if (event.type === 'waits.opened') run.waits.onOpened(event);
  else if (event.type === 'answer.taken') run.waits.onTaken(event);
  else if (event.type === 'answer.refused') run.waits.notTaken(event);
  else if (event.type === 'waiting.began') run.waits.began(event.progress);
  else if (event.type === 'waiting.ended') run.waits.onEnded();
  else if (event.type === 'waits.withdrawn') run.waits.withdraw(event.waits);
  else if (event.type === 'event.entered') run.machineEvents.onEntered(event);
  else if (event.type === 'call.stopped') stopCall(run, event);
  else if (event.type === 'workflow.acts') whenStored(run, event.boundary, () => runActs(run, event));
  else if (event.type === 'workflow.inspected') whenStored(run, event.boundary, () => tellInspectors(run, event));
  else if (event.type === 'messages.posted') run.outbox.add(event.messages, event.boundary);
  else {
    if (event.type === 'workflow.transition') run.waits.onTransition(event.step);
    // The machine's own object is seen by the inspectors of its actor.
    run.publish({ ...event });
  }
}

/** Aborts what is under way. */
function stopWork(run: ActiveRun, cause: ErrorData): void {
  run.endFacts.isEnding = classifyCheckpointOutcome(cause, cause) === 'fail' && !isLeftFor(cause);
  run.abort(errorFrom(cause));
}

/** A call whose state the machine has left: its signal is aborted, and a child run is cancelled. */
function stopCall(run: ActiveRun, { call, isAtEnd }: Extract<RunEmitted, { type: 'call.stopped' }>): void {
  const { services, resources, born, runId } = run;
  const { callId, name, attempt, effect, state } = call;
  if (isAtEnd && effect === 'once' && state === 'started')
    tellUnknown(run, { step: run.progress?.iteration ?? 0, callId, name, attempt });
  resources.callSignals?.get(call.callId)?.abort(new CancelledError('the workflow left the state that made this call'));
  resources.callSignals?.delete(call.callId);
  if (!call.name.startsWith(childToolName('agent', '')) || call.attempt === 0) return;
  const ending = services.endChild(childOfCall(born, call), 'the workflow left the state that made this call');
  void services.outlive(ending.catch((error) => services.config.warn('run.cancel.failed', { runId, error })));
}

/** Does something that depends on a save, at once where nothing is stored. */
function whenStored(run: ActiveRun, boundary: number, then: () => void): void {
  if (run.isDurable) run.checkpointing.whenPersisted(boundary, then);
  else then();
}

/** Actions of a workflow's machine; one that throws ends nothing. */
function runActs(run: ActiveRun, { acts }: Extract<RunEmitted, { type: 'workflow.acts' }>): void {
  const { warn } = run.services.config;
  const log = (value: unknown, label: string | undefined): void => {
    const said = typeof value === 'string' ? value : JSON.stringify(value);
    warn('workflow.log', { runId: run.runId, said, ...(label === undefined ? {} : { label }) });
  };
  for (const { name, run: act } of acts) {
    const onFailure = (thrown: unknown): void => {
      const error = toErrorData(thrown);
      run.publish({ type: 'workflow.action-failed', name, error });
      warn('workflow.action.threw', { runId: run.runId, name, error });
    };
    try {
      // XState waits for no action; a promise that rejects later must not end the process.
      letGo(act(log), onFailure);
    } catch (thrown) {
      onFailure(thrown);
    }
  }
}

function callRefused({ step, call }: Extract<RunEmitted, { type: 'call.refused' }>, run: ActiveRun): void {
  const { callId, name, effect, input, attempt, result } = call;
  run.publish({ type: 'tool.started', step, callId, name, effect, input, attempt });
  if (result) run.publish({ type: 'tool.done', step, callId, name, effect, output: result, ms: 0 });
}

function nudgeDropped({ bytes, left }: Extract<RunEmitted, { type: 'nudge.dropped' }>, run: ActiveRun): void {
  run.services.config.warn('critic.nudge.dropped', {
    runId: run.runId,
    bytes,
    left,
  });
}

function stepDone(
  { progress: { iteration, usage, finishReason, spend }, message, tools }: Extract<RunEmitted, { type: 'step.done' }>,
  run: ActiveRun,
  onStep: OnStep,
): void {
  const answer = message && markOf(message);
  const step = { runId: run.runId, iteration, usage, tools };
  run.publish({
    ...{ type: 'step.done', step: iteration, usage, tools },
    ...(finishReason ? { finishReason } : {}),
    ...(answer ? { answer } : {}),
    ...(spend ? { spend } : {}),
  });
  run.services.config.onStep?.(step);
  onStep?.(step);
}

function announceStart(run: ActiveRun): void {
  const { resumedFrom } = run.startFacts;
  if (run.life.hasBegun) {
    if (run.journal && resumedFrom) resumeJournal(run);
    const slice = isDriven(run) ? ({ isSlice: true } as const) : {};
    const { completedPhases, spend } = run.actor.getSnapshot().context.progress;
    const cost = spend ? { spend } : {};
    run.publish(
      resumedFrom ? { type: 'run.resumed', ...resumedFrom, ...cost, ...slice } : { type: 'run.started', ...slice },
    );
    for (const [index, { name }] of completedPhases.entries()) run.publish({ type: 'phase.skipped', index, name });
    for (const call of run.startFacts.unknown) run.publish({ type: 'call.unknown', ...call });
    run.waits.onResumed();
    // What an earlier process has stored may not have arrived.
    run.outbox.add(outboxOf(run.actor.getSnapshot().context.progress));
  }
  run.life.accept();
}

/** An earlier process may have announced pieces of a step that is not recorded, and its readers wait for the rest. */
function resumeJournal(run: ActiveRun): void {
  const { iteration, openStep } = run.actor.getSnapshot().context.progress;
  if (!openStep) run.publish({ type: 'step.reset', step: iteration + 1 });
}

/**
 * Publishes only the states of the run itself: the states of its loop change with every step, and have events of their own.
 * `resolving` is not published: before its end the numbers of the run's events are unknown.
 */
function announceState(run: ActiveRun, value: unknown): void {
  const state = stateOf(value);
  if (state === run.publishedState || state === 'resolving') return;
  run.publishedState = state;
  run.publish({ type: 'run.status', state });
}

function stateOf(value: unknown): string {
  if (typeof value === 'string') return value;
  // A list of the keys would be made for each microstep of each run.
  for (const state in value as object) return state;
  return '';
}

/** A caller's abort is a cancel, unless its reason says that the host is shutting down. */
function asCause(reason: unknown): unknown {
  if (isShutdown(reason)) return reason;
  return new CancelledError('the caller aborted the run', { cause: reason });
}

/** The `signal.reason` for tools and models. */
function errorFrom(cause: { code: string; message: string }): Error {
  return Object.assign(new Error(cause.message), { name: 'AbortError', code: cause.code });
}

/** The actor has ended: settled by its machine, or stopped by a host from outside, which leaves the run for later. */
async function conclude(run: ActiveRun): Promise<void> {
  const { value, context } = run.actor.getSnapshot();
  const { output, intents } = context;
  run.services.leftRuns.forget(run);
  if (output) return run.finish(output);
  const cause = new ShutdownError('the actor of the run was stopped from outside');
  run.abort(cause);
  const resolution = await run.life.resolving;
  // A machine that was stopped during `resolving` never got the content of its record.
  const last = value === 'resolving' && resolution && 'progress' in resolution ? resolution.progress : context.progress;
  const progress = withdrawCalls(
    last,
    intents.flatMap((intent) => intent.calls),
  );
  if (run.life.settling) return run.finish(await run.life.settling);
  await run.life.leaving;
  if (run.life.mayAnnounce) {
    try {
      const { clock, defaults } = run.services.config;
      await withDeadline(leaveLive(run, { ...progress, attempts: 0 }, toErrorData(cause)), {
        ms: defaults.finalizeMs,
        clock,
        what: 'leaving the run',
      });
    } catch (error) {
      run.services.config.warn('checkpoint.save.failed', { runId: run.runId, error });
    }
  }
  await giveUpClaim(run);
  const left = outcomeOf(
    progress,
    { status: 'interrupted', error: toErrorData(cause) },
    { durable: run.isDurable, saveErrors: run.checkpointing.saveErrors, outcomeId: '' },
  );
  run.finish(withoutId(left));
}

/** The machine itself threw, which is a defect of Pawl: the record stays untouched, and the caller gets a result. */
function reportCrash(run: ActiveRun, thrown: unknown): RunOutput {
  const error = toErrorData(
    new RunPanicError(`run ${run.runId} broke: ${toErrorData(thrown).message}`, { cause: thrown }),
  );
  void run.services.outlive(giveUpClaim(run));
  return {
    runId: run.runId,
    status: 'error',
    output: '',
    error,
    // An actor that could not begin has no context.
    usage: run.progress?.usage ?? noUsage,
    iterations: 0,
    phases: [],
    undelivered: [],
    durable: run.isDurable,
    saveErrors: run.checkpointing.saveErrors,
  };
}

/**
 * Makes the methods of a run's actor that hosts call and that are not XState's. They are set on the actors, because a host's
 * machine calls them there: the logic itself serves many runs. All runs of an executor share them.
 */
function actorMethods(services: ExecutorServices): Partial<RunActor> & ThisType<RunActor> {
  const { warn } = services.config;
  return {
    subscribe(...observer: unknown[]) {
      const base: { subscribe(observer: object): Subscription } = baseOf(this);
      return base.subscribe.call(this, guardedObserver(warn, ...observer));
    },
    on(type, handler) {
      return baseOf(this).on.call(this, type, guarded('a listener', handler, warn) ?? (() => {}));
    },
    /** Completes the snapshot of a run without a store: it includes data of the active run that its context does not have. */
    getPersistedSnapshot() {
      const persisted = baseOf(this).getPersistedSnapshot.call(this) as PersistedRun;
      const run = services.runBehind(this);
      const progress = run?.progress;
      // Until a run is accepted, its snapshot equals the one that it was restored from.
      if (!run?.life.hasBegun || !progress) return persisted;
      const { critic, ...now } = run.nowOf(progress);
      return atMoment(persisted, { ...now, critic: critic && (run.redaction?.records.json(critic) ?? critic) });
    },
  };
}

/** XState's own methods of an actor. A host's machine may come from another copy of XState. */
function baseOf(actor: RunActor): RunActor {
  return Object.getPrototypeOf(actor);
}
