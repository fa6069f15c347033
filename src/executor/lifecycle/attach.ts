import type { AnyEventObject } from 'xstate';
import type { RunEmitted } from '../../../machines/context.ts';
import type { Agent } from '../../agent/agent.ts';
import { isShutdown } from '../../run/finalize.ts';
import { outcomeOf } from '../../run/outcome.ts';
import { withdrawCalls } from '../../run/progress.ts';
import { type RunOutput, withoutId } from '../../run/result.ts';
import { withDeadline } from '../../values/deadline.ts';
import { toErrorData } from '../../values/error-data.ts';
import { CancelledError, RunPanicError, ShutdownError } from '../../values/errors.ts';
import { noUsage } from '../../values/usage.ts';
import { leave } from '../effects/settle.ts';
import { guarded, guardedObserver, type Warn } from '../host/guard.ts';
import type { RunOptions, StepInfo } from '../host/options.ts';
import { atMoment, type PersistedRun } from '../host/snapshot.ts';
import { releaseClaim } from '../run/acquire.ts';
import { type Kernel, RunScope } from '../run/active-run.ts';
import { Saving } from '../run/checkpointing.ts';
import { followSignal } from '../run/deadline.ts';
import type { RunActor } from '../run/run-actor.ts';
import type { RunSeed } from '../run/seed.ts';
import { Steering } from '../run/steering.ts';

/**
 * Ties a run's actor to its executor, before anybody else can reach it: the scope, the one listener that saves, the
 * observer of the end, and guards around what hosts subscribe (XState would throw their errors at the process).
 */
export function attach(
  kernel: Kernel,
  agent: Agent,
  run: { seed: RunSeed; options: RunOptions; actor: RunActor },
): RunScope {
  const { actor, options } = run;
  const scope = new RunScope(kernel, agent, run);
  const steering = new Steering(scope);
  const saving = new Saving(scope, steering);
  scope.steer = (text, command, taken) => steering.send(text, command, taken);
  scope.onFlushError = (error) => saving.flushFailed(error);
  kernel.scopes.set(actor, scope);

  const onStep = guarded('onStep', options.onStep, kernel.config.warn);
  // One listener for all that the machine emits: each more is a Set and two closures a run, and hosts keep thousands.
  actor.on('*', (event) => heed(event, { scope, saving, steering, onStep }));
  actor.subscribe({
    next: ({ value }) => {
      announceState(scope, value);
      kernel.registry.touch(scope);
    },
    error: (error) => scope.finish(crashed(scope, error)),
    complete: () => void conclude(scope),
  });
  guardSubscriptions(actor, kernel.config.warn);
  persistWhole(scope);
  if (options.signal) queueMicrotask(() => followSignal(scope, options.signal, asCause));
  return scope;
}

interface Listeners {
  readonly scope: RunScope;
  readonly saving: Saving;
  readonly steering: Steering;
  readonly onStep: ((step: StepInfo) => void) | undefined;
}

function heed(event: RunEmitted, { scope, saving, steering, onStep }: Listeners): void {
  if (event.type === 'boundary') saving.announce(event);
  else if (event.type === 'step.done') stepDone(event, scope, onStep);
  else if (event.type === 'run.accepted') accepted(scope);
  else if (event.type === 'run.working') announceState(scope, event.state);
  else if (event.type === 'run.stopping') scope.abort(errorFrom(event.cause));
  else if (event.type === 'call.refused') callRefused(event, scope);
  else if (event.type === 'steer.queued') steering.queued(event.receipt, event.boundary);
  else if (event.type === 'steer.refused') steering.refused(event);
  else if (event.type === 'nudge.dropped') nudgeDropped(event, scope);
  else scope.publish(event);
}

function callRefused({ step, call }: Extract<RunEmitted, { type: 'call.refused' }>, scope: RunScope): void {
  const { callId, name, effect, input, attempt, result } = call;
  scope.publish({ type: 'tool.started', step, callId, name, effect, input, attempt });
  if (result) scope.publish({ type: 'tool.done', step, callId, name, effect, output: result, ms: 0 });
}

function nudgeDropped({ bytes, left }: Extract<RunEmitted, { type: 'nudge.dropped' }>, scope: RunScope): void {
  scope.kernel.config.warn('run: a nudge of the critic is too large; it was dropped', {
    runId: scope.runId,
    bytes,
    left,
  });
}

function stepDone(
  { progress: { iteration, usage }, tools }: Extract<RunEmitted, { type: 'step.done' }>,
  scope: RunScope,
  onStep: Listeners['onStep'],
): void {
  const step = { runId: scope.runId, iteration, usage, tools };
  scope.publish({ type: 'step.done', step: iteration, usage, tools });
  scope.kernel.config.onStep?.(step);
  onStep?.(step);
}

function accepted(scope: RunScope): void {
  const { resolution, resumedFrom } = scope;
  if (resolution === 'accepted') {
    scope.publish(resumedFrom ? { type: 'run.resumed', ...resumedFrom } : { type: 'run.started' });
    const { completedPhases } = scope.actor.getSnapshot().context.progress;
    for (const [index, { name }] of completedPhases.entries()) scope.publish({ type: 'phase.skipped', index, name });
  }
  scope.accepted.resolve();
}

/**
 * Only the states of the run itself: those of its loop come by every step, and have events of their own. `resolving` is
 * not told of: before its end nobody knows with which number the events of the run go on.
 */
function announceState(scope: RunScope, value: unknown): void {
  const state = typeof value === 'string' ? value : (Object.keys(value as object)[0] ?? '');
  if (state === scope.announcedState || state === 'resolving') return;
  scope.announcedState = state;
  scope.publish({ type: 'run.status', state });
}

/** A caller's abort is a cancel, unless its reason says that the host is shutting down. */
function asCause(reason: unknown): unknown {
  if (isShutdown(reason)) return reason;
  return new CancelledError('the caller aborted the run', { cause: reason });
}

/** What tools and models see as `signal.reason`. */
function errorFrom(cause: { code: string; message: string }): Error {
  return Object.assign(new Error(cause.message), { name: 'AbortError', code: cause.code });
}

/** The actor is over: settled by its machine, or stopped by a host from outside, which leaves the run for later. */
async function conclude(scope: RunScope): Promise<void> {
  const { value, context } = scope.actor.getSnapshot();
  const { output, intents } = context;
  if (output) return scope.finish(output);
  const cause = new ShutdownError('the actor of the run was stopped from outside');
  scope.abort(cause);
  const resolution = await scope.resolving;
  // A machine that was stopped while it resolved never heard what its record says.
  const last = value === 'resolving' && resolution && 'progress' in resolution ? resolution.progress : context.progress;
  const progress = withdrawCalls(
    last,
    intents.flatMap((intent) => intent.calls),
  );
  if (scope.settling) return scope.finish(await scope.settling);
  if (scope.isOurs) {
    try {
      const { clock, defaults } = scope.kernel.config;
      await withDeadline(leave(scope, progress), { ms: defaults.finalizeMs, clock, what: 'leaving the run' });
    } catch (error) {
      scope.kernel.config.warn('run: checkpoint save failed', { runId: scope.runId, error: toErrorData(error) });
    }
  }
  await releaseClaim(scope);
  const left = outcomeOf(
    progress,
    { status: 'interrupted', error: toErrorData(cause) },
    { durable: scope.isDurable, saveErrors: scope.saveErrors, outcomeId: '' },
  );
  scope.finish(withoutId(left));
}

/** The machine itself threw, which is a defect of ours: the record is not touched, the caller gets a result. */
function crashed(scope: RunScope, thrown: unknown): RunOutput {
  const error = toErrorData(
    new RunPanicError(`run ${scope.runId} broke: ${toErrorData(thrown).message}`, { cause: thrown }),
  );
  void scope.outlive(releaseClaim(scope));
  return {
    runId: scope.runId,
    status: 'error',
    output: '',
    error,
    // An actor that could not even begin has no context.
    usage: scope.progress?.usage ?? noUsage,
    iterations: 0,
    phases: [],
    undelivered: [],
    durable: scope.isDurable,
    saveErrors: scope.saveErrors,
  };
}

/**
 * A run without a store is whole in its host's snapshot: also what is not in its context, but in the scope. Replaced on the
 * actor's instance, which is what a host's machine asks: the logic itself serves many runs.
 */
function persistWhole(scope: RunScope): void {
  const { actor, redaction } = scope;
  const persist = actor.getPersistedSnapshot.bind(actor);
  actor.getPersistedSnapshot = () => {
    const persisted = persist() as PersistedRun;
    const { progress } = scope;
    // Until a run is accepted, its snapshot says what it was restored from.
    if (scope.resolution !== 'accepted' || !progress) return persisted;
    const { critic, ...now } = scope.nowOf(progress);
    return atMoment(persisted, { ...now, critic: critic && (redaction?.records.json(critic) ?? critic) });
  };
}

function guardSubscriptions(actor: RunActor, warn: Warn): void {
  const subscribe = actor.subscribe.bind(actor);
  const on = actor.on.bind(actor);
  actor.subscribe = ((...observer: unknown[]) =>
    subscribe(guardedObserver(warn, ...observer))) as RunActor['subscribe'];
  actor.on = ((type: never, handler: (event: AnyEventObject) => void) =>
    on(type, guarded('a listener', handler, warn) ?? (() => {}))) as RunActor['on'];
}
