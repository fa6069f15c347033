import { type Actor, createActor, waitFor } from 'xstate';
import type {
  Agent,
  Executor,
  ForkOptions,
  Invocation,
  RunCheckpoint,
  RunLogic,
  RunResult,
  RunSnapshot,
  WorkflowInvocation,
} from '../../index.ts';
import { asSnapshot } from '../../kit.ts';
import { stepPlaces } from '../../record/steps.ts';
import { hasCode } from '../../values/error-data.ts';
import { toolResultsOf } from '../../values/message.ts';
import type { AgentModule } from '../open/agent-module.ts';
import { Failure, lineOf, oneLine } from '../ui/failure.ts';
import { count, shortened } from '../ui/format.ts';

/** What a run is asked for: an agent has a prompt, a workflow an input. */
export type AskedWork = Invocation | WorkflowInvocation<unknown>;

/** A fork to start. */
export interface Forking {
  readonly runId: string;
  /** The run whose first steps it has. */
  readonly origin: string;
  readonly options: Omit<ForkOptions, 'runId'>;
}

/** A run in this process. */
export interface WorkedOn {
  /** False if it was refused, or had already ended: then it never starts here. */
  readonly hasBegun: boolean;
  readonly result: Promise<RunResult>;
  /** Whether it continues as a host's actor: then it does not rest by itself. */
  readonly isHosted: boolean;
  /** Stops working on it: its record stays as it is. */
  leave(): void;
}

/** Works on a run in this process: a request, a stored run, or a fork. @throws {Failure} for a fork that cannot be made */
export function workOn(
  executor: Executor,
  module: AgentModule,
  work: (AskedWork & { readonly runId: string }) | RunCheckpoint | Forking,
): Promise<WorkedOn> {
  if ('meta' in work) return continueRun(executor, module, work);
  return 'origin' in work ? startFork(executor, work) : startNewRun(executor, module, work);
}

/** Says which calls of a fork were refused; undefined = none. */
export function refusedIn({ messages, iterations, forkedFrom, runId }: RunResult): string | undefined {
  const places = stepPlaces(messages, 0);
  const own = places.slice(places.length - iterations + (forkedFrom?.at ?? 0));
  const results = own.flatMap(({ at, end }) => messages.slice(at + 1, end).flatMap(toolResultsOf));
  const tools = results.filter(({ output }) => output.type === 'execution-denied').map(({ toolName }) => toolName);
  if (tools.length === 0) return undefined;
  const which = shortened(oneLine([...new Set(tools)].join(', ')), 100);
  return `${count(tools.length, 'call')} of the fork ${oneLine(runId)} ${tools.length > 1 ? 'were' : 'was'} refused: ${which}`;
}

async function startFork(executor: Executor, { origin, runId, options }: Forking): Promise<WorkedOn> {
  const forked = executor.fork(origin, { ...options, runId }).catch((error: unknown) => {
    const why = hasCode(error, 'FORK_EFFECTS')
      ? 'calls of the fork may have an effect: say what they do with --effects live, ask or refuse'
      : lineOf(error).replace('executor.fork: at ', '--at ');
    throw new Failure(`${why}; nothing was done`, { cause: error });
  });
  const { actor, result } = await forked;
  return { hasBegun: hasBegun(actor.getSnapshot()), result, isHosted: false, leave: () => actor.stop() };
}

/** Starts a run, or joins the run of the same request. */
async function startNewRun(
  executor: Executor,
  { agent, workflow }: AgentModule,
  invocation: AskedWork,
): Promise<WorkedOn> {
  const { actor, result } = await executor.start((workflow ?? agent) as Agent, invocation as Invocation);
  const begun = hasBegun(actor.getSnapshot());
  return { hasBegun: begun, result, isHosted: false, leave: () => actor.stop() };
}

function hasBegun({ value, context }: Pick<RunSnapshot, 'value' | 'context'>): boolean {
  const isRefused = context.isPassing === true || value === 'failing';
  return !isRefused && value !== 'settled';
}

/**
 * Continues a stored run by its record alone. The request in the record may be redacted, so a start could not compare it. If
 * the run has ended since the record was read, its outcome is returned, and it does not start again.
 */
async function continueRun(
  executor: Executor,
  { agent, workflow }: AgentModule,
  record: RunCheckpoint,
): Promise<WorkedOn> {
  const { runId } = record.meta;
  const snapshot = { ...asSnapshot(record), messages: [], stored: true as const };
  const actor = createActor(executor.logic((workflow ?? agent) as Agent), {
    id: `run:${runId}`,
    snapshot,
    input: undefined,
  });
  actor.start();
  const first = await waitFor(actor, (state) => state.value !== 'resolving', { timeout: Number.POSITIVE_INFINITY });
  const known = executor.get(runId)?.result;
  const result = known ?? awaitResult(actor);
  // The command reports a run that is left; it does not try it again.
  void result.then(() => actor.stop());
  return { hasBegun: hasBegun(first), result, isHosted: true, leave: () => actor.stop() };
}

async function awaitResult(actor: Actor<RunLogic>): Promise<RunResult> {
  const { context } = await waitFor(actor, (state) => state.context.output !== undefined, {
    timeout: Number.POSITIVE_INFINITY,
  });
  if (!context.output) throw new Error('a run that has ended has no result');
  return { ...context.output, messages: [] };
}
