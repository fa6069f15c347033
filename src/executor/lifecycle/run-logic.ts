import type { ActorLogic, AnyActorRef, Snapshot, SnapshotFrom } from 'xstate';
import { type RunContext, type RunEmitted, type RunMachineEvent, unresolved } from '../../../machines/context.ts';
import { type RunMachine, runMachine } from '../../../machines/run.ts';
import { type Agent, definitionOf } from '../../agent/agent.ts';
import { beginProgress, type Progress } from '../../run/progress.ts';
import type { Invocation, RunRequest } from '../../run/request.ts';
import type { RunOutput } from '../../run/result.ts';
import { CheckpointCorruptError } from '../../values/errors.ts';
import { askCriticActor } from '../effects/ask-critic.ts';
import { callModelActor } from '../effects/call-model.ts';
import { callToolActor } from '../effects/call-tool.ts';
import { checkOutputActor } from '../effects/check-output.ts';
import { resolveActor } from '../effects/resolve.ts';
import { settleActor } from '../effects/settle.ts';
import { asError } from '../host/guard.ts';
import type { RunOptions } from '../host/options.ts';
import { redactedRun } from '../host/redaction.ts';
import { metaFor, refusedRequest } from '../host/request.ts';
import { type PersistedRun, parsePersisted, persistedRun, requestFrom } from '../host/snapshot.ts';
import type { ExecutorServices } from '../run/active-run.ts';
import type { RunActor } from '../run/run-actor.ts';
import { type RunSeed, seedOf } from '../run/seed.ts';
import { attach } from './attach.ts';

export type RunSnapshot = SnapshotFrom<RunMachine>;

/**
 * A run of an agent as actor logic, to start, invoke or spawn. Input: an Invocation. Output: a RunResult without its
 * messages. Persisted snapshot: a PersistedRun, for which a restored host goes on with the stored run.
 */
export type RunLogic<Data = unknown> = ActorLogic<
  RunSnapshot & { readonly output?: RunOutput<Data> | undefined },
  RunMachineEvent,
  Invocation | undefined,
  AnyActorRef['system'],
  RunEmitted
>;

/**
 * How a run becomes an actor: the agent's machine with the executor's actors, and four methods of its own. Whoever makes
 * the actor (the executor, a host's `invoke` or `spawn`, a restored host), it is attached in the same way.
 *
 * @param run what is known of the one run this logic is for; a host's machine has one logic for many runs and gives none
 */
export function runLogic(
  services: ExecutorServices,
  agent: Agent,
  run: { seed?: RunSeed; options?: RunOptions } = {},
): RunLogic {
  const machine = machineFor(services, agent);
  const { options = {} } = run;
  const logic = Object.create(machine) as RunLogic & { provide: () => never };

  const begin = (actorScope: Parameters<RunLogic['getInitialSnapshot']>[0], seed: RunSeed): RunSnapshot => {
    attach(services, agent, { seed, options, actor: actorScope.self as RunActor });
    const progress = freshProgress(services, agent, seed.request);
    if (seed.persisted) restoredFrom.set(progress, seed.persisted);
    return machine.getInitialSnapshot(actorScope, { progress });
  };
  logic.getInitialSnapshot = (actorScope, input) =>
    begin(actorScope, run.seed ?? seedOf(input, { agentId: agent.id, newId: services.config.newId, isHosted: true }));
  logic.restoreSnapshot = (snapshot, actorScope) => {
    const seed = restoredSeed(services, snapshot);
    return seed.done
      ? settled(services, agent, { machine, request: seed.request, output: seed.done })
      : begin(actorScope, seed);
  };
  logic.getPersistedSnapshot = ({ context, value }) => {
    const hasStore = services.config.store !== undefined;
    // As long as nothing has come of it, a restored run is what its snapshot said.
    const restored = restoredFrom.get(context.progress);
    if (restored && (!context.output || context.output.status === 'interrupted')) return restored;
    const { progress, output } = redactedRun(context, services.config.redact);
    // What a lazy checkpointer has not written yet is no reference; but it may be written, and end, after this snapshot.
    const isLazy = context.isDurable && services.registry.live(progress.meta.runId)?.isDurable === false;
    const isUnstored = hasStore && (value === 'resolving' || isLazy);
    return persistedRun(progress, services.config.clock.now(), {
      isStored: hasStore && context.isDurable && !isLazy,
      isUnstored,
      output,
    });
  };
  logic.provide = () => {
    throw new TypeError('the logic of a run cannot be provided again: wrap it in a machine of your own instead');
  };
  return logic;
}

/** By the progress that a restored run has until its record is in hand. */
const restoredFrom = new WeakMap<Progress, PersistedRun>();

const machines = new WeakMap<ExecutorServices, WeakMap<Agent, RunMachine>>();

/** The chart of an agent's runs with the executor's actors; made once per agent. */
function machineFor(services: ExecutorServices, agent: Agent): RunMachine {
  const known = machines.get(services) ?? new WeakMap<Agent, RunMachine>();
  machines.set(services, known);
  const machine =
    known.get(agent) ??
    runMachine(agent).provide({
      actors: {
        resolve: resolveActor(services),
        'call-model': callModelActor(services),
        'call-tool': callToolActor(services),
        'check-output': checkOutputActor(services),
        'ask-critic': askCriticActor(services),
        settle: settleActor(services),
      },
    });
  known.set(agent, machine);
  return machine;
}

function freshProgress(services: ExecutorServices, agent: Agent, request: RunRequest): Progress {
  const meta = metaFor(agent, request, agent.modelTier ?? services.config.defaults.modelTier);
  return beginProgress(meta, definitionOf(agent), request);
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
  const progress = freshProgress(services, agent, request);
  const context: RunContext = { ...unresolved, progress, output, isDurable: output.durable };
  return machine.resolveState({ value: 'settled', context, status: 'done', output });
}
