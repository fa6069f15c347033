import { createActor, type InspectionEvent } from 'xstate';
import { type Agent, checkAgent } from '../agent/agent.ts';
import { readProperty } from '../run/error-data.ts';
import { RunIdConflictError, ShutdownError } from '../run/errors.ts';
import { checkKeys, type KnownKeys } from '../run/known-options.ts';
import { checkMethods } from '../run/methods.ts';
import type { Invocation, RunRequest } from '../run/request.ts';
import { asError, guarded, isError } from './guard.ts';
import { handleOf, type Run } from './handle.ts';
import { runLogic } from './logic.ts';
import type { RunOptions } from './ports.ts';
import { redactedInspect } from './redaction.ts';
import { requestOf } from './request.ts';
import type { Kernel, RunScope } from './scope.ts';
import type { RunSeed } from './seed.ts';

/**
 * Starts a run, or meets the one of this id that is live here.
 * @throws {TypeError} for a wrong call, and nothing else
 */
export async function startRun(
  kernel: Kernel,
  agent: Agent,
  call: { invocation: Invocation; options: RunOptions; depth?: number; maxAttempts?: number | undefined },
): Promise<Run> {
  checkAgent(agent, 'start needs');
  checkRunOptions(call.options);
  const { invocation, options, depth = 0, maxAttempts } = call;
  const seed = { ...seedFor(kernel, invocation), depth, ...(maxAttempts === undefined ? {} : { maxAttempts }) };
  const { runId } = seed.request;
  // A run whose actor was stopped is about to let go of its id. Nothing else is waited for here: of two starts in one
  // turn of the event loop the second must meet the first.
  for (let last = kernel.registry.live(runId); last && isStopped(last); last = kernel.registry.live(runId)) {
    await last.ended.promise;
  }
  const live = seed.refusal ? undefined : kernel.registry.live(runId);
  if (live && isSame(live, agent, seed.request)) {
    await live.accepted.promise;
    return handleOf(live);
  }
  const refusal =
    seed.refusal ?? (live && new RunIdConflictError(`run ${live.runId} is live with another agent or prompt`));
  return launch(kernel, agent, { seed: refusal ? { ...seed, refusal } : seed, options });
}

/** Makes the actor of a run, starts it, and waits until `resolving` is over. */
export async function launch(kernel: Kernel, agent: Agent, run: { seed: RunSeed; options: RunOptions }): Promise<Run> {
  const refusal = kernel.isShutDown ? new ShutdownError('this executor is shut down') : run.seed.refusal;
  const seed = refusal ? { ...run.seed, refusal } : run.seed;
  const { config, scopes } = kernel;
  const own = redactedInspect(guarded('inspect', run.options.inspect, config.warn), config.redact);
  const inspectors = [config.inspect, own].filter((one) => one !== undefined);
  const actor = createActor(runLogic(kernel, agent, { seed, options: run.options }), {
    id: `run:${seed.request.runId}`,
    input: undefined,
    ...(inspectors.length > 0 ? { inspect: inspectWith(inspectors) } : {}),
  });
  const scope = scopes.get(actor) as RunScope;
  actor.start();
  await scope.accepted.promise;
  return handleOf(scope);
}

function inspectWith(inspectors: readonly ((event: InspectionEvent) => void)[]): (event: InspectionEvent) => void {
  return (event) => {
    for (const inspect of inspectors) inspect(event);
  };
}

function isStopped(run: RunScope): boolean {
  return run.actor.getSnapshot().status === 'stopped';
}

function seedFor(kernel: Kernel, invocation: Invocation): RunSeed {
  const { newId } = kernel.config;
  try {
    return { request: requestOf(invocation, newId), isNewId: invocation.runId === undefined };
  } catch (thrown) {
    // A wrong call is the caller's to hear of; whatever else stood in the way is the result of this run.
    if (isError(thrown) && thrown instanceof TypeError) throw thrown;
    return { request: requestOf({ prompt: '(unreadable)' }, newId), isNewId: true, refusal: asError(thrown) };
  }
}

function isSame(live: RunScope, agent: Agent, request: RunRequest): boolean {
  return live.agent.id === agent.id && live.seed.request.prompt === request.prompt;
}

const optionKeys: KnownKeys<RunOptions> = {
  signal: true,
  resume: true,
  checkpointer: true,
  inspect: true,
  onStep: true,
};

function checkRunOptions(options: RunOptions): void {
  checkKeys(options, optionKeys, { of: 'run options' });
  const { signal, checkpointer } = options;
  checkMethods('run options: checkpointer', checkpointer, { methods: ['save', 'complete', 'fail'] });
  if (signal !== undefined && typeof readProperty(signal, 'addEventListener') !== 'function')
    throw new TypeError('run options: signal must be an AbortSignal, as an AbortController has one');
}
