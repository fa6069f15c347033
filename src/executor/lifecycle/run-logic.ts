import type { ActorLogic, AnyActorRef, Snapshot, SnapshotFrom } from 'xstate';
import type { RetryInput } from '../../../machines/actors.ts';
import {
  type RunContext,
  type RunEmitted,
  type RunInput,
  type RunMachineEvent,
  unresolved,
} from '../../../machines/context.ts';
import { type RunMachine, runMachine } from '../../../machines/run.ts';
import { task } from '../../../machines/task.ts';
import { workflowMachine } from '../../../machines/workflow.ts';
import { type Agent, agentFrom } from '../../agent/agent.ts';
import type { Invocation, RunRequest } from '../../run/request.ts';
import { isOver, type RunOutput } from '../../run/result.ts';
import { CheckpointCorruptError } from '../../values/errors.ts';
import { Hidden } from '../../values/hidden.ts';
import { advance } from '../../workflow/advance.ts';
import { isWorkflow, programOf } from '../../workflow/program.ts';
import { agentOfWorkflow, type Workflow } from '../../workflow/workflow.ts';
import { askCritic } from '../effects/ask-critic.ts';
import { awaitRetry } from '../effects/await-retry.ts';
import { callModelOnce } from '../effects/call-model.ts';
import { makeToolCall } from '../effects/call-tool.ts';
import { checkOutput } from '../effects/check-output.ts';
import { judgeCalls } from '../effects/judge-calls.ts';
import { resolve } from '../effects/resolve.ts';
import { rest } from '../effects/rest.ts';
import { settle } from '../effects/settle.ts';
import { takeTurn } from '../effects/take-turn.ts';
import { asError, readable } from '../host/guard.ts';
import { redactedRun } from '../host/redaction.ts';
import { refusedRequest, requestFrom } from '../host/request.ts';
import type { RunOptions } from '../host/run-options.ts';
import { type PersistedRun, parsePersisted, persistedRun } from '../host/snapshot.ts';
import type { ActiveRun, ExecutorServices } from '../run/active-run.ts';
import type { RunActor } from '../run/run-actor.ts';
import { inputOfSeed, newProgress, type RunSeed, seedOf } from '../run/seed.ts';
import { attach, attachAgain } from './attach.ts';

export type RunSnapshot = SnapshotFrom<RunMachine>;

/**
 * A run of an agent or a workflow as actor logic, to start, invoke or spawn. Input: its invocation. Output: a RunResult without its
 * messages. Persisted snapshot: a PersistedRun, from which a restored host continues the stored run.
 */
export type RunLogic<Data = unknown, Asked = Invocation> = ActorLogic<
  RunSnapshot & { readonly output?: RunOutput<Data> | undefined },
  RunMachineEvent,
  Asked | undefined,
  AnyActorRef['system'],
  RunEmitted
>;

/** Returns the logic of the runs of an agent or a workflow, for a host's machine. @throws {TypeError} for anything else */
export function logicFor(services: ExecutorServices, given: Agent | Workflow): RunLogic {
  const workflow = agentOfWorkflow(given);
  const agent = workflow ?? readable('the agent of logic', () => agentFrom(given as Agent, 'logic needs'));
  services.see(agent);
  return runLogic(services, agent);
}

/** What is known of the one run of a logic; a host's machine has one logic for many runs and gives nothing. */
interface KnownRun {
  readonly seed?: RunSeed;
  readonly options?: RunOptions;
}

/** The parts of a run's logic that are not those of its agent's machine. */
type OwnMethods = Pick<RunLogic, 'getInitialSnapshot' | 'restoreSnapshot' | 'getPersistedSnapshot'> & {
  /** Hidden: an inspector sees the logic, and must see no signal and no callback of the host. */
  readonly known: Hidden<KnownRun>;
  provide(): never;
};

/**
 * Makes the actor logic of a run for XState: the agent's machine with the executor's actors, and four methods of its own.
 * All actors of it (of the executor, a host's `invoke` or `spawn`, a restored host) are attached in the same way.
 */
export function runLogic(services: ExecutorServices, agent: Agent, known: KnownRun = {}): RunLogic {
  return Object.create(agentLogic(services, agent), { known: { value: new Hidden(known) } });
}

/** The logic of all runs of an agent; made once, because hosts keep thousands of runs. */
function agentLogic(services: ExecutorServices, agent: Agent): RunLogic {
  const made = services.logics.get(agent);
  if (made) return made;
  const machine = chartFor(services, agent).provide({ actors: actorsOf(services) });
  const logic: RunLogic = Object.assign(Object.create(machine), ownMethods(services, agent, machine));
  services.logics.set(agent, logic);
  return logic;
}

/** The chart of an agent's runs, or of a workflow's. */
function chartFor({ config }: ExecutorServices, agent: Agent): RunMachine {
  const program = programOf(agent);
  return program ? workflowMachine((progress) => advance(program, progress, config.clock.now())) : runMachine(agent);
}

function ownMethods(services: ExecutorServices, agent: Agent, machine: RunMachine): Omit<OwnMethods, 'known'> {
  const begin = (actorScope: Parameters<RunLogic['getInitialSnapshot']>[0], run: KnownRun & { seed: RunSeed }) => {
    const { seed, options = {} } = run;
    attach(services, agent, { seed, options, actor: actorScope.self as RunActor });
    return machine.getInitialSnapshot(actorScope, inputOfSeed(services, agent, seed));
  };
  return {
    getInitialSnapshot(this: OwnMethods, actorScope, input) {
      const { newId, clock } = services.config;
      const isHosted = { agentId: agent.id, newId, now: clock.now(), isHosted: true, isWorkflow: isWorkflow(agent) };
      const known = this.known.value;
      return begin(actorScope, { ...known, seed: known.seed ?? seedOf(input, isHosted) });
    },
    restoreSnapshot(this: OwnMethods, snapshot, actorScope) {
      const seed = restoredSeed(services, snapshot);
      return seed.done
        ? settled(services, agent, { machine, request: seed.request, output: seed.done })
        : begin(actorScope, { ...this.known.value, seed });
    },
    getPersistedSnapshot: (snapshot) => persistedOf(services, snapshot),
    provide() {
      throw new TypeError('the logic of a run cannot be provided again: wrap it in a machine of your own instead');
    },
  };
}

function persistedOf(services: ExecutorServices, { context }: RunSnapshot): PersistedRun {
  const hasStore = services.config.store !== undefined;
  // Until it makes progress, the snapshot of a restored run equals its source.
  const restored = restoredOf(context);
  if (restored && !(context.output && isOver(context.output))) return restored;
  const { progress, output } = redactedRun(context, services.config.redact);
  // A reference is wrong while a lazy checkpointer has written nothing; but the run may be written, and end, after this
  // snapshot.
  const isLazy = context.isDurable && services.registry.live(progress.meta.runId)?.isDurable === false;
  // A setup that cannot continue a run has read its record.
  const isRead = progress.setup !== undefined;
  const isUnresolved = context.limits === unresolved.limits && !isRead;
  const isUnstored = hasStore && (isUnresolved || isLazy);
  return persistedRun(progress, services.config.clock.now(), {
    isStored: hasStore && (context.isDurable || isRead) && !isLazy,
    isUnstored,
    output,
  });
}

/** The snapshot that a run was restored from, until its record has been read. */
function restoredOf({ restored, progress }: RunContext): PersistedRun | undefined {
  return restored?.value.progress === progress ? (restored.value.persisted as PersistedRun) : undefined;
}

/** The effect of an actor of the chart on a run. Never rejects. */
type Effect<Input, Output> = (input: Input, run: ActiveRun) => Promise<Output>;

/** The executor's effects as actors of the chart, one file each. */
function actorsOf(services: ExecutorServices) {
  const actorOf = <Output, Input>(effect: Effect<Input, Output>) =>
    task<Output, Input>(({ input, self }) => effect(input, services.runOf(self)));
  const awaited: Effect<RetryInput, RunInput> = (input, run) => awaitRetry(input, run).then(() => attachAgain(run));
  return {
    resolve: actorOf(resolve),
    'call-model': actorOf(callModelOnce),
    'call-tool': actorOf(makeToolCall),
    'check-output': actorOf(checkOutput),
    'ask-critic': actorOf(askCritic),
    'judge-calls': actorOf(judgeCalls),
    'take-turn': actorOf(takeTurn),
    rest: actorOf(rest),
    settle: actorOf(settle),
    'await-retry': actorOf(awaited),
  };
}

function restoredSeed(services: ExecutorServices, snapshot: Snapshot<unknown>): RunSeed & { done?: RunOutput } {
  try {
    const persisted: PersistedRun = parsePersisted(snapshot);
    const request = requestFrom(persisted);
    const isDone = persisted.status === 'done' && persisted.output !== undefined;
    return {
      request,
      isNewId: false,
      origin: 'hosted',
      persisted,
      ...(isDone ? { done: persisted.output as RunOutput } : {}),
    };
  } catch (thrown) {
    const refusal = asError(thrown);
    return {
      request: refusedRequest(undefined, services.config.newId),
      isNewId: true,
      origin: 'hosted',
      refusal:
        'code' in refusal && refusal.code !== 'RUN_PANIC' ? refusal : new CheckpointCorruptError(refusal.message),
    };
  }
}

/** A run that was done stays done: the same output, and no effect. */
function settled(
  services: ExecutorServices,
  agent: Agent,
  { machine, request, output }: { machine: RunMachine; request: RunRequest; output: RunOutput },
): RunSnapshot {
  const progress = newProgress(services, agent, request);
  const context: RunContext = { ...unresolved, progress, output, isDurable: output.durable };
  return machine.resolveState({ value: 'settled', context, status: 'done', output });
}
