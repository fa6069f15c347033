import { createActor, type InspectionEvent } from 'xstate';
import { type Agent, agentFrom, defineAgent } from '../agent/agent.ts';
import { readProperty, toErrorData } from '../run/error-data.ts';
import { RunIdConflictError, RunPanicError, ShutdownError } from '../run/errors.ts';
import { type KnownKeys, readOptions } from '../run/known-options.ts';
import { checkMethods } from '../run/methods.ts';
import type { Invocation, RunRequest } from '../run/request.ts';
import { asError, guarded, isTypeError, readable } from './guard.ts';
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
  given: Agent,
  call: { invocation: Invocation; options: RunOptions; depth?: number; maxAttempts?: number | undefined },
): Promise<Run> {
  const { agent, unreadable } = readAgent(given);
  const options = readRunOptions(call.options);
  const { invocation, depth = 0, maxAttempts } = call;
  const seed = {
    ...seedFor(kernel, invocation),
    ...unreadable,
    depth,
    ...(maxAttempts === undefined ? {} : { maxAttempts }),
  };
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
    if (isTypeError(thrown)) throw thrown;
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

/** Read once, like an agent. @throws {TypeError} */
function readRunOptions(given: RunOptions): RunOptions {
  const options = readable('run options', () => readOptions(given, optionKeys, { of: 'run options' }));
  const { signal, checkpointer } = options;
  checkMethods('run options: checkpointer', checkpointer, { methods: ['save', 'complete', 'fail'] });
  if (signal !== undefined && typeof readProperty(signal, 'addEventListener') !== 'function')
    throw new TypeError('run options: signal must be an AbortSignal, as an AbortController has one');
  return options;
}

/** The agent of a run that only tells that its agent cannot be read. */
const unreadableAgent = defineAgent({ id: '(unreadable)', instructions: '' });

/** @throws {TypeError} when it is not an agent; what a getter of it throws is the error of its run */
function readAgent(given: Agent): { readonly agent: Agent; readonly unreadable?: { readonly refusal: Error } } {
  try {
    return { agent: agentFrom(given, 'start needs') };
  } catch (cause) {
    if (isTypeError(cause)) throw cause;
    const refusal = new RunPanicError(`the agent cannot be read: ${toErrorData(cause).message}`, { cause });
    return { agent: unreadableAgent, unreadable: { refusal } };
  }
}
