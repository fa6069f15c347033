import { createActor, type InspectionEvent } from 'xstate';
import { type Agent, agentFrom, defineAgent } from '../../agent/agent.ts';
import { wrongFieldOf } from '../../record/parse.ts';
import type { Invocation, ParentCall, WorkflowInvocation } from '../../run/request.ts';
import { messageLists } from '../../run/resume.ts';
import { readProperty, toErrorData } from '../../values/error-data.ts';
import { RunPanicError, ShutdownError } from '../../values/errors.ts';
import { isObject } from '../../values/json.ts';
import { checkMethods, checkWord, type KnownKeys, kindOf, readOptions } from '../../values/known-options.ts';
import { isWorkflow } from '../../workflow/program.ts';
import { agentOfWorkflow, type Workflow } from '../../workflow/workflow.ts';
import { guarded, isTypeError, readable } from '../host/guard.ts';
import { redactedInspect } from '../host/redaction.ts';
import type { RunOptions } from '../host/run-options.ts';
import type { ActiveRun, ExecutorServices } from '../run/active-run.ts';
import { handleOf, type Run } from '../run/handle.ts';
import { type Asker, conflict, isAskedRun } from '../run/record/same-request.ts';
import { type RunSeed, seedOf } from '../run/seed.ts';
import { runLogic } from './run-logic.ts';

/** How a run is started: by a host, or by a call of another run. */
export interface StartCall {
  readonly invocation: Invocation | WorkflowInvocation<unknown>;
  readonly options: RunOptions;
  readonly parent?: ParentCall;
  readonly depth?: number;
  readonly maxAttempts?: number | undefined;
  /** The run may have ended badly, and continues all the same. */
  readonly isRetry?: boolean;
  /** What its calls with an effect do, because its parent is a fork. */
  readonly effects?: 'ask' | 'refuse' | undefined;
}

/**
 * Starts a run for `executor.start` and `executor.run`, or returns the one of this id that is live here.
 * @throws {TypeError} for a wrong call, and nothing else
 */
export async function startRun(services: ExecutorServices, given: Agent | Workflow, call: StartCall): Promise<Run> {
  const workflow = agentOfWorkflow(given);
  const { agent, unreadable } = workflow ? { agent: workflow } : readAgent(given as Agent);
  const options = readRunOptions(call.options);
  const { invocation, depth, maxAttempts, parent } = call;
  const { newId, redact, clock } = services.config;
  const seed = {
    ...withEffects(
      call.effects,
      seedOf(invocation, { agentId: agent.id, newId, now: clock.now(), parent, isWorkflow: isWorkflow(agent) }),
    ),
    ...unreadable,
    ...(depth === undefined ? {} : { depth }),
    ...(options.drive === 'later' ? { isAdmission: true as const } : {}),
    ...(call.isRetry || options.ifFailed === 'retry' ? { retry: {} } : {}),
    ...(maxAttempts === undefined ? {} : { maxAttempts }),
  };
  if (seed.refusal) return launch(services, agent, { seed, options });
  const asker = { request: seed.request, agentId: agent.id, isNewId: seed.isNewId, redact };
  // No unnecessary wait: of two starts in one turn of the event loop the second must find the first.
  const live = services.registry.live(seed.request.runId) && (await liveRun(services, asker));
  if (live && isAskedRun(asker, live)) return handleOf(live, 'joined');
  const refusal = live && conflict(asker);
  return launch(services, agent, { seed: refusal ? { ...seed, refusal } : seed, options });
}

function withEffects(effects: StartCall['effects'], seed: RunSeed): RunSeed {
  return effects ? { ...seed, request: { ...seed.request, effects } } : seed;
}

/**
 * The live run of this id, once its request is known. A run whose actor was stopped is about to free its id: this waits for
 * it. It also waits for a run of another request that is not accepted yet.
 */
async function liveRun({ registry }: ExecutorServices, asker: Asker): Promise<ActiveRun | undefined> {
  const { runId } = asker.request;
  for (let live = registry.live(runId); live; live = registry.live(runId)) {
    if (!isStopped(live)) await live.life.accepted.promise;
    const isOver = live.life.isOver || isStopped(live);
    if (!isOver && (live.life.hasBegun || isAskedRun(asker, live))) return live;
    await live.life.ended.promise;
  }
  return undefined;
}

/** Makes the actor of a run, starts it, and waits until its resources are resolved. */
export async function launch(
  services: ExecutorServices,
  agent: Agent,
  given: { seed: RunSeed; options: RunOptions },
): Promise<Run> {
  const refusal = services.isShutDown ? new ShutdownError('this executor is shut down') : given.seed.refusal;
  const seed = refusal ? { ...given.seed, refusal } : given.seed;
  const { config } = services;
  const own = redactedInspect(guarded('inspect', given.options.inspect, config.warn), config.redact);
  const inspectors = [config.inspect, own].filter((one) => one !== undefined);
  const actor = createActor(runLogic(services, agent, { seed, options: given.options }), {
    id: `run:${seed.request.runId}`,
    input: undefined,
    ...(inspectors.length > 0 ? { inspect: inspectWith(inspectors) } : {}),
  });
  const run = services.runBehind(actor) as ActiveRun;
  if (seed.fault === undefined && seed.refusal === undefined) services.see(agent);
  services.deliveries.begin();
  actor.start();
  await run.life.accepted.promise;
  return handleOf(run);
}

function inspectWith(inspectors: readonly ((event: InspectionEvent) => void)[]): (event: InspectionEvent) => void {
  return (event) => {
    for (const inspect of inspectors) inspect(event);
  };
}

function isStopped(run: ActiveRun): boolean {
  return run.actor.getSnapshot().status === 'stopped';
}

const optionKeys: KnownKeys<RunOptions> = {
  signal: true,
  resume: true,
  checkpointer: true,
  inspect: true,
  onStep: true,
  drive: true,
  ifFailed: true,
};

/** Reads the options once, like an agent. @throws {TypeError} */
function readRunOptions(given: RunOptions): RunOptions {
  const options = readable('run options', () => readOptions(given, optionKeys, { of: 'run options' }));
  const { signal, checkpointer, resume } = options;
  if (resume !== undefined) readable('run options: resume', () => checkResume(resume));
  checkWord('run options: drive', options.drive, ['later']);
  checkWord('run options: ifFailed', options.ifFailed, ['retry']);
  checkMethods('run options: checkpointer', checkpointer, { methods: ['save', 'complete', 'fail'] });
  if (signal !== undefined && typeof readProperty(signal, 'addEventListener') !== 'function')
    throw new TypeError('run options: signal must be an AbortSignal, as an AbortController has one');
  return options;
}

/** The messages are checked when the run begins; their errors are the run's own. @throws {TypeError} */
function checkResume(resume: unknown): void {
  if (!isObject(resume)) throw new TypeError(`run options: resume must be an object, not ${kindOf(resume)}`);
  for (const name of messageLists) {
    if (resume[name] === undefined || Array.isArray(resume[name])) continue;
    throw new TypeError(`run options: resume.${name} must be an array of messages, not ${kindOf(resume[name])}`);
  }
  const wrong = wrongFieldOf(resume);
  if (wrong !== undefined) throw new TypeError(`run options: resume.${wrong} is not valid in a record`);
}

/** The agent of a run whose agent cannot be read. */
const unreadableAgent = defineAgent({ id: '(unreadable)', instructions: '' });

/**
 * Reads the agent that `start` was given.
 * @throws {TypeError} when it is not an agent; what a getter of it throws is the error of its run
 */
function readAgent(given: Agent): { readonly agent: Agent; readonly unreadable?: Pick<RunSeed, 'refusal' | 'fault'> } {
  try {
    return { agent: agentFrom(given, 'start needs') };
  } catch (cause) {
    if (isTypeError(cause)) throw cause;
    const id = readProperty(given, 'id');
    const error = unreadable(cause);
    // The record of its run is found by the id of the agent.
    if (typeof id === 'string' && id !== '') return { agent: standInFor(id), unreadable: { fault: error } };
    return { agent: unreadableAgent, unreadable: { refusal: error } };
  }
}

/** Reads the agent of a stored run. One that cannot be read is a fault of the setup: an empty one takes its place. */
export function readStoredStart(given: Agent, agentId: string): { readonly agent: Agent; readonly fault?: Error } {
  try {
    return { agent: agentFrom(given, 'a run needs') };
  } catch (cause) {
    return { agent: standInFor(agentId), fault: unreadable(cause) };
  }
}

const standInFor = (id: string): Agent => defineAgent({ id, instructions: '' });

function unreadable(cause: unknown): Error {
  return new RunPanicError(`the agent cannot be read: ${toErrorData(cause).message}`, { cause });
}
