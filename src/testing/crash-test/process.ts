import type { Agent } from '../../agent/agent.ts';
import { createExecutor, type Executor } from '../../executor/executor.ts';
import type { ExecutorOptions, Ports } from '../../executor/host/options.ts';
import type { Model, ModelChoice } from '../../model/port.ts';
import type { RunEvent } from '../../run/events/body.ts';
import type { Invocation } from '../../run/request.ts';
import { isOwning } from '../../store/capabilities.ts';
import type { TakenRuns } from '../../store/due-port.ts';
import type { CheckpointerFactory } from '../../store/factory.ts';
import type { CheckpointStore, Claim } from '../../store/port.ts';
import { type MethodName, wrapStore } from '../../store/read-only.ts';
import type { Tool, ToolContext } from '../../tool/define-tool.ts';
import { toolboxOf } from '../../tool/toolbox.ts';
import type { Clock } from '../../values/clock.ts';
import { nextTurn } from '../../values/event-loop.ts';
import { rewireWorkflow } from '../../workflow/define.ts';
import { isWorkflow, programOf } from '../../workflow/program.ts';
import { agentOfWorkflow, type Workflow } from '../../workflow/workflow.ts';
import type { BadSetup } from './bad-setup.ts';
import { type BegunCall, type EffectLedger, runIdOfKey } from './ledger.ts';
import type { LateWrite, Life } from './life.ts';
import { type ModelMemory, mortalModel } from './model.ts';
import { baseClockOf, type HistoryPerson, letsRest, type MovedTime } from './person.ts';

type Palette = NonNullable<Ports['palette']>;
type Budget = NonNullable<Ports['budget']>;

/** The settings of the host's executors, without those of the crash test. */
export type CrashTestExecutorOptions = Pick<
  ExecutorOptions,
  | 'clock'
  | 'compactor'
  | 'contextTokens'
  | 'defaults'
  | 'retention'
  | 'onSaveError'
  | 'onUnknownOutcome'
  | 'random'
  | 'systemHeader'
> & { readonly ports?: Pick<Ports, 'budget' | 'palette'> };

/** What each process runs. */
export type ProcessJob = JobParts & (AgentJob | WorkflowJob);

interface AgentJob {
  readonly agent: Agent;
  readonly workflow?: undefined;
  readonly invocation: Pick<Invocation, 'prompt'>;
}

interface WorkflowJob {
  readonly workflow: Workflow;
  readonly invocation: { readonly input: unknown };
}

interface JobParts {
  readonly tools: readonly Tool[];
  readonly executor: CrashTestExecutorOptions;
  readonly memory: ModelMemory;
  /** The model of one process, for all agents. */
  readonly modelFor: () => Model;
  /** Whether each turn of the model belongs to the run itself, so that recorded turns can be identified. */
  readonly isAlone: boolean;
  /** The moved time of all processes; absent = time is not moved. */
  readonly time?: MovedTime;
  /** Makes the checkpointer of a process; absent = the default one. */
  readonly checkpointer?: (store: CheckpointStore, clock: Clock) => CheckpointerFactory;
}

interface World {
  readonly store: CheckpointStore;
  readonly life: Life;
  readonly ledger: EffectLedger;
  /** A write of the previous process, which arrives after this one has claimed the run. */
  readonly late?: LateWrite | undefined;
  /** Records that existed before the history: its processes do not see them. */
  readonly isForeign: (runId: string) => boolean;
  /** Answers the waits of a run that its store cannot let rest. */
  readonly person?: HistoryPerson;
  /** What is wrong with the setup of this process; absent = nothing. */
  readonly badSetup?: BadSetup;
}

const writes: readonly MethodName[] = [
  ...(['save', 'append', 'delete', 'outcomes.keep', 'deliveries.mark', 'claim', 'due.take', 'release'] as const),
  ...(['due.leave', 'history.end', 'history.erase'] as const),
  ...(['commands.send', 'commands.acknowledge', 'waits.expect', 'waits.signal'] as const),
];
/** Writes of a dead process that its store must refuse when another process has claimed the run. */
const owned = [
  'store.save',
  'store.append',
  'store.delete',
  'store.outcomes.keep',
  'store.due.leave',
  'store.history.end',
];
/** A list that never ends must not block the test. */
const MAX_PAGES = 1_000;
/** After so many boundaries of a process the event loop has its turn. */
const POINTS_OF_A_TURN = 64;

/** An executor in its own process, and how it starts this process's copy of the agent or workflow. */
export interface MortalProcess {
  readonly executor: Executor;
  readonly start: (runId: string) => ReturnType<Executor['start']>;
}

/** Makes one simulated process of the crash test: an executor on the shared storage that can die. */
export function processOf(job: ProcessJob, world: World): MortalProcess {
  const { tools, executor } = job;
  const { life, ledger } = world;
  const agents = job.workflow ? [] : [mortalAgent(job.agent, job, world)];
  const { palette, budget } = executor.ports ?? {};
  const base = baseClockOf(executor.clock);
  const [store, clock] = [mortalStore(job, world), life.clock(job.time?.clock(base) ?? base)];
  const workflows = job.workflow ? [mortalWorkflow(job, job.workflow, { ...world, now: () => clock.now() })] : [];
  const checkpointer = job.checkpointer?.(store, clock);
  const model = mortalModel(job.modelFor(), life, (options) => ledger.asks(job.memory.turnOf(options), job.isAlone));
  const own = createExecutor({
    random: () => 0,
    ...executor,
    defaults: { waitLingerMs: 1, ...executor.defaults },
    observers: [{ onEvent: (event, { info }) => noteWait(event, info.runId) }],
    models: world.badSetup?.models(model) ?? (() => model),
    agents,
    workflows,
    tools: tools.map((tool) => mortalTool(tool, world)),
    store,
    requireDurable: true,
    clock,
    ports: {
      ...(checkpointer ? { checkpointer } : {}),
      ...(palette ? { palette: mortalPalette(palette, job, world) } : {}),
      ...(budget ? { budget: mortalBudget(budget, life) } : {}),
    },
    logger: { warn: () => {} },
    onOutcome: async (outcome) => {
      await life.pass('before', 'onOutcome');
      ledger.onEnded(outcome);
      await life.pass('after', 'onOutcome');
    },
  });
  const noteWait = (event: RunEvent, runId: string) => {
    if (life.isOver) return;
    if (event.type === 'wait.refused') ledger.refused.add(event.waitId);
    if (event.type === 'run.waiting' && !letsRest(world.store)) void world.person?.answerHere(own, world.store, runId);
  };
  const start = (runId: string) =>
    own.start((workflows[0] ?? agents[0]) as Agent, { ...(job.invocation as Invocation), runId });
  return { executor: own, start };
}

/**
 * Returns the agent with tools that die with the simulated process.
 * @throws {UNKNOWN_TOOL} for a tool name that is not registered
 */
function mortalAgent(agent: Agent, { tools }: Pick<ProcessJob, 'tools'>, world: World): Agent {
  const all = [...toolboxOf(agent.tools, tools).tools.values()];
  const { phases, ...whole } = onTier(agent);
  const mortal = { ...whole, tools: all.map((tool) => mortalTool(tool, world)) };
  return Object.freeze({ ...mortal, ...(phases ? { phases: phases.map(onTier) } : {}) });
}

/** The workflow with tools and agents that die with the simulated process, and a machine whose transitions are noted. */
function mortalWorkflow(job: ProcessJob, workflow: Workflow, world: World & { readonly now: () => number }): Workflow {
  const { life, ledger, now } = world;
  const hasSenders = programOf(agentOfWorkflow(workflow) as Agent)?.agents.some(isWorkflow) ?? false;
  const watched = { life: ledger.life, isOver: () => life.isOver, now, hasSenders };
  return rewireWorkflow(workflow, {
    tool: (tool) => mortalTool(tool, world),
    agent: (agent) => mortalAgent(agent, job, world),
    kernel: (kernel) => ledger.machine.watch(kernel, watched),
  });
}

/** The model of the crash test answers for all: one that an agent, a phase or a skill has of its own is not asked. */
function onTier<Asked extends { readonly model?: ModelChoice }>(asked: Asked): Asked {
  if (typeof asked.model === 'string') return asked;
  const { model: _, ...rest } = asked;
  return rest as Asked;
}

function mortalPalette(palette: Palette, job: ProcessJob, world: World): Palette {
  const resolve = (kind: 'agent' | 'skill', name: string) => {
    if (kind === 'agent') {
      const agent = palette.resolve(kind, name);
      return agent && mortalAgent(agent, job, world);
    }
    const skill = palette.resolve(kind, name);
    return skill && onTier(skill);
  };
  return { resolve: resolve as Palette['resolve'] };
}

/** The budget survives each process. */
function mortalBudget(budget: Budget, life: Life): Budget {
  return new Proxy(budget, {
    get(_, key) {
      const method: unknown = Reflect.get(budget, key);
      if (typeof method !== 'function') return method;
      return (...args: unknown[]) => life.reach(() => method.apply(budget, args));
    },
  });
}

function mortalTool(tool: Tool, { life, ledger }: World): Tool {
  const execute: Tool['execute'] = async (input, context) => {
    if (life.isOver) return new Promise<never>(() => {});
    const { runId, callId, idempotencyKey: key, attempt, runState, signal } = context;
    const { name, effect } = tool;
    const call = ledger.began({ runId, callId, key, attempt, name, effect, signal, step: runState.iteration });
    // A tool may only wait before it awaits anything.
    const dying = life.pass('before', `tool ${name}`);
    if (dying) return dying;
    try {
      const answer = await life.reach(() => tool.execute(input, waitingContext(context, call)));
      ledger.onSucceeded(context);
      return answer;
    } finally {
      await life.pass('after', `tool ${name}`);
    }
  };
  return Object.create(tool, { execute: { value: execute, enumerable: true } }) as Tool;
}

/** The context of a call, which notes whether the call ended by waiting. */
function waitingContext(context: ToolContext, call: BegunCall): ToolContext {
  const note =
    <Args extends unknown[]>(wait: (...args: Args) => Promise<unknown>) =>
    async (...args: Args) => {
      call.hasWaited = true;
      const value = await wait(...args).finally(() => {
        call.hasWaited = false;
      });
      return value;
    };
  return Object.create(context, {
    ask: { value: note(context.ask) },
    waitFor: { value: note(context.waitFor) },
    sleep: { value: note(context.sleep) },
    sleepUntil: { value: note(context.sleepUntil) },
  }) as ToolContext;
}

/** The store as this process reaches it, with the same methods; those that write are boundaries. */
function mortalStore(job: ProcessJob, world: World): CheckpointStore {
  return wrapStore(world.store, (name, call) => mortalMethod(name, atTime(job, name, call as Method), world));
}

type Method = (...args: readonly unknown[]) => Promise<unknown>;

/** The store's own clock is behind that of the processes if time was moved past a wait. */
function atTime({ time, executor }: ProcessJob, name: MethodName, method: Method): Method {
  if (!time || (name !== 'due.list' && name !== 'due.take')) return method;
  const base = baseClockOf(executor.clock);
  return (options) => method(time.isMoved ? { now: time.clock(base).now(), ...(options as object) } : options);
}

function mortalMethod(name: MethodName, method: Method, world: World): Method {
  const { life, ledger } = world;
  const call = name === 'listInterrupted' ? own(method, world) : method;
  const isWrite = writes.includes(name);
  const what = `store.${name}`;
  return async (...args) => {
    // A workflow that loops over a store in memory would hold the event loop, and with it the limit of its process.
    if (isWrite && life.points.length % POINTS_OF_A_TURN === 0) await nextTurn();
    if (isWrite) await life.pass('before', what, { what, runId: runIdOfKey(args), send: () => call(...args) });
    const asked = () => {
      ledger.writes(args);
      const answer = hold(life, { name, args, answer: note(name, args, { ledger, answer: call(...args) }) });
      life.track(answer);
      return answer;
    };
    const answer = await life.reach(asked);
    for (const { runId } of claimsIn(name, answer)) await arrive(world, runId);
    if (isWrite) await life.pass('after', what);
    return answer;
  };
}

interface Asked {
  readonly name: string;
  readonly args: readonly unknown[];
  readonly answer: Promise<unknown>;
}

/** Notes which claims the process has. A claim that the store gives to a process that died meanwhile has a lease, too. */
async function hold(life: Life, { name, args, answer }: Asked): Promise<unknown> {
  const value = await answer;
  for (const claim of claimsIn(name, value)) life.claims.set(claim.runId, claim);
  if (name === 'release' || (name === 'due.leave' && value)) life.claims.delete((args[0] as Claim).runId);
  return value;
}

/** The claims that an answer of the store gave to this process. */
function claimsIn(name: string, answer: unknown): readonly Claim[] {
  if (name === 'due.take') return (answer as TakenRuns).claims;
  return name === 'claim' && answer ? [answer as Claim] : [];
}

/** Also for a process that died meanwhile: its sent calls arrive. */
async function note(
  name: string,
  args: readonly unknown[],
  { ledger, answer }: { ledger: EffectLedger; answer: Promise<unknown> },
): Promise<unknown> {
  try {
    const value = await answer;
    ledger.wrote(name, args, true);
    return value;
  } catch (error) {
    ledger.wrote(name, args, false);
    throw error;
  }
}

const arrived = new WeakSet<LateWrite>();

/** The write of the dead process arrives after its successor has claimed the run: it must be refused. */
async function arrive({ store, late, ledger }: World, runId: string): Promise<void> {
  if (!late || runId !== late.runId || !isOwning(store) || arrived.has(late)) return;
  if (!owned.includes(late.what)) return;
  arrived.add(late);
  try {
    await late.send();
  } catch {
    return;
  }
  ledger.complain(
    'd',
    `a late ${late.what} of the dead process was accepted although another process had claimed the run`,
  );
}

type List = (options: { after?: unknown; limit?: number }) => Promise<readonly { runId: string; updatedAt?: number }[]>;

/** The list without foreign runs, all on one page. */
function own(method: Method, { isForeign }: World): Method {
  const list = method as unknown as List;
  return async (options) => {
    const found: unknown[] = [];
    let page = await list((options ?? {}) as object);
    for (let pages = 1; ; pages++) {
      found.push(...page.filter(({ runId }) => !isForeign(runId)));
      const last = page.findLast(({ updatedAt }) => updatedAt !== undefined);
      const limit = (options as { limit?: number } | undefined)?.limit;
      if (!last || limit === undefined || page.length < limit || pages >= MAX_PAGES) return found;
      page = await list({ ...(options as object), after: { updatedAt: last.updatedAt, runId: last.runId } });
    }
  };
}
