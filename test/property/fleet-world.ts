import { type Agent, createExecutor, defineAgent, type Executor, memoryStore, type RunOutcome } from 'pawl';
import type { Claim } from 'pawl/stores/kit';
import { callTool, reply, type ScriptedEntry, scriptedModel, type TestClock, testClock } from 'pawl/testing';
import { wrapStore } from '../../src/store/read-only.ts';
import { StoreUnavailableError } from '../../src/values/errors.ts';
import { toolOf } from '../fixtures/host.ts';

type Store = ReturnType<typeof memoryStore>;

/** One process of a fleet, and what it meets. Times in ms since the begin of the world. */
export interface PlannedProcess {
  /** How far its wall clock is ahead. */
  readonly skewMs: number;
  readonly concurrency: number;
  /** It dies then, and another one takes its place a while later; absent = it lives to the end. */
  readonly diesAt: number | undefined;
  /** No call reaches the store from here to there. */
  readonly partition: { readonly from: number; readonly ms: number } | undefined;
  /** It is drained, and replaced by one of the next deployment. */
  readonly upgradedAt: number | undefined;
}

export interface PlannedFleet {
  readonly processes: readonly PlannedProcess[];
  /** When each run is admitted, its steps, how long its calls take, and the tenant that pays for it. */
  readonly runs: readonly {
    readonly at: number;
    readonly steps: number;
    readonly callMs: number;
    readonly tenant: string;
    /** Its agent has phases; the first one is another in each second deployment. */
    readonly isPlanned: boolean;
  }[];
  readonly budgetMs: number;
}

const AFTER_DEATH_MS = 5_000;
const BEGIN = 1_700_000_000_000;
const STEP_MS = 500;
/** So often all processes are replaced by those of the next one: back, and forth again. */
const DEPLOYED_MS = 180_000;
/** Simulated: two hours. */
const MOST_STEPS = 14_400;

/** What happened in the world, over all its processes. */
export class FleetNotes {
  /** How often each `once` call began. */
  readonly begun: Map<string, number> = new Map();
  readonly outcomes: Map<string, Set<string>> = new Map();
  /** The deployment of each claim, by run, in their order. */
  readonly deployments: Map<string, number[]> = new Map();
  /** How often each run was parked by a deployment: `<run> <deployment>`. */
  readonly parked: Map<string, number> = new Map();
  /** How often a process asked for a turn that the store had. */
  redone = 0;
  kills = 0;
  partitions = 0;
  upgrades = 0;
  taken = 0;
}

/** A store, a clock, and many processes of which each works on what is due. */
export class FleetWorld {
  readonly #plan: PlannedFleet;
  readonly clock: TestClock = testClock(BEGIN);
  readonly store: Store = memoryStore({ clock: this.clock });
  readonly notes: FleetNotes = new FleetNotes();
  readonly #processes = new Set<FleetProcess>();

  constructor(plan: PlannedFleet) {
    this.#plan = plan;
  }

  get now(): number {
    return this.clock.monotonic();
  }

  /** Lets the world live until each run has ended. @returns the runs that have not, in two hours, and where they are */
  async live(): Promise<readonly string[]> {
    const { processes, runs } = this.#plan;
    for (const plan of processes) this.boot(plan, 1);
    for (const [i, { at }] of runs.entries()) this.#at(at, () => void this.#admit(i));
    for (let version = 3; version < 40; version++)
      this.#at(DEPLOYED_MS * (version - 2), () => void this.#deploy(version));
    for (let step = 0; step < MOST_STEPS && this.notes.outcomes.size < runs.length; step++)
      await this.clock.advance(STEP_MS);
    for (const process of this.#processes) process.die();
    const left = await this.store.listInterrupted({ limit: 1_000 });
    return left.map((run) => JSON.stringify(run));
  }

  /** Starts a process of a deployment. */
  boot(plan: PlannedProcess, version: number): void {
    const process = new FleetProcess(this, plan, { version, budgetMs: this.#plan.budgetMs });
    this.#processes.add(process);
    const { diesAt, partition, upgradedAt } = plan;
    if (partition) {
      this.#at(partition.from, () => process.isCut || this.#cut(process, partition.ms));
    }
    if (diesAt !== undefined) this.#at(diesAt, () => this.#kill(process, plan, version));
    if (upgradedAt !== undefined && version === 1) this.#at(upgradedAt, () => void this.#upgrade(process, plan));
  }

  #at(ms: number, then: () => void): void {
    if (ms >= this.now) this.clock.setTimeout(then, ms - this.now);
  }

  async #admit(i: number): Promise<void> {
    const run = this.#plan.runs[i] as PlannedFleet['runs'][number];
    const { executor, agent, planner } = hostOf(this, { version: 1, store: this.store, isAlive: () => true });
    const { steps, callMs, tenant, isPlanned } = run;
    const prompt = JSON.stringify({ steps, callMs });
    await executor.start(
      isPlanned ? planner : agent,
      { runId: `run-${i}`, prompt, labels: { tenant } },
      { drive: 'later' },
    );
    await executor.shutdown();
  }

  #cut(process: FleetProcess, ms: number): void {
    this.notes.partitions += 1;
    process.isCut = true;
    this.clock.setTimeout(() => {
      process.isCut = false;
    }, ms);
  }

  #kill(process: FleetProcess, plan: PlannedProcess, version: number): void {
    if (!process.isAlive) return;
    this.notes.kills += 1;
    process.die();
    this.clock.setTimeout(
      () => this.boot({ ...plan, diesAt: undefined, partition: undefined }, version),
      AFTER_DEATH_MS,
    );
  }

  async #upgrade(process: FleetProcess, plan: PlannedProcess): Promise<void> {
    if (!process.isAlive) return;
    this.notes.upgrades += 1;
    await process.drain();
    process.die();
    this.boot({ ...plan, diesAt: undefined, partition: undefined, upgradedAt: undefined }, 2);
  }

  /** Replaces one process after the other. A deployment that goes back has a new number. */
  async #deploy(version: number): Promise<void> {
    for (const process of [...this.#processes]) {
      if (!process.isAlive) continue;
      await process.drain();
      process.die();
      this.boot({ ...process.plan, diesAt: undefined, partition: undefined, upgradedAt: undefined }, version);
    }
  }
}

interface HostOptions {
  readonly version: number;
  readonly store: Store;
  readonly isAlive: () => boolean;
  readonly skewMs?: number;
}

/** One process: its clock is wrong, its network may be cut, and when it is dead it never answers. */
class FleetProcess {
  isAlive = true;
  isCut = false;
  readonly plan: PlannedProcess;
  readonly version: number;
  readonly #world: FleetWorld;
  readonly #worker: ReturnType<Executor['work']>;

  constructor(world: FleetWorld, plan: PlannedProcess, rest: { readonly version: number; readonly budgetMs: number }) {
    this.#world = world;
    this.plan = plan;
    this.version = rest.version;
    const { skewMs, concurrency } = plan;
    const { version, budgetMs } = rest;
    const store = this.#reached(world.store, version);
    const { executor } = hostOf(world, { version, store, skewMs, isAlive: () => this.isAlive });
    this.#worker = executor.work({ concurrency, budgetMs, graceMs: 20_000 });
  }

  die(): void {
    this.isAlive = false;
  }

  async drain(): Promise<void> {
    await this.#worker.drain({ drainMs: 20_000 });
  }

  /** The store as this process reaches it. Its claims are noted. */
  #reached(store: Store, version: number): Store {
    const { notes } = this.#world;
    const noteClaim = ({ runId }: Claim) =>
      notes.deployments.set(runId, [...(notes.deployments.get(runId) ?? []), version]);
    return wrapStore(store, (name, call) => async (...args) => {
      await this.#network();
      const answer = await call(...args);
      if (name === 'due.take') {
        const { claims } = answer as Awaited<ReturnType<Store['due']['take']>>;
        notes.taken += claims.length;
        for (const claim of claims) noteClaim(claim);
      }
      const { runId = '', head } = (name === 'append' ? args[0] : {}) as {
        runId?: string;
        head?: { parked?: object };
      };
      if (head?.parked) notes.parked.set(`${runId} ${version}`, (notes.parked.get(`${runId} ${version}`) ?? 0) + 1);
      if (name === 'claim' && answer) noteClaim(answer as Claim);
      // An answer may be lost as well.
      await this.#network();
      return answer;
    });
  }

  async #network(): Promise<void> {
    if (!this.isAlive) await new Promise(() => {});
    if (!this.isCut) return;
    await new Promise<void>((resolve) => this.#world.clock.setTimeout(resolve, 1_000));
    throw new StoreUnavailableError('simulated: no network');
  }
}

/** A program of the fleet: the same agent everywhere; each turn follows from the conversation. */
function hostOf(
  world: FleetWorld,
  { version, store, isAlive, skewMs = 0 }: HostOptions,
): {
  readonly executor: Executor;
  readonly agent: Agent;
  readonly planner: Agent;
} {
  const { clock, notes } = world;
  const sleep = async (ms: number) => {
    await new Promise<void>((resolve) => clock.setTimeout(resolve, ms));
    if (!isAlive()) await new Promise(() => {});
  };
  const pay = toolOf('pay', 'once', async ({ ms }, { runId, callId }) => {
    const call = `${runId} ${callId}`;
    notes.begun.set(call, (notes.begun.get(call) ?? 0) + 1);
    await sleep(Number(ms));
    return 'paid';
  });
  const turn: ScriptedEntry = async ({ messages }) => {
    const [prompt] = messages;
    const part = prompt?.role === 'user' ? prompt.content.find(({ type }) => type === 'text') : undefined;
    const { steps, callMs } = JSON.parse(part?.type === 'text' ? part.text : '{}') as { steps: number; callMs: number };
    const done = messages.filter(({ role }) => role === 'assistant').length;
    await sleep(callMs);
    return done >= steps ? reply(`done after ${done}`) : callTool('pay', { ms: callMs, turn: done }, `call-${done}`);
  };
  const rest = { instructions: 'Work.', maxSteps: 1_000, maxRuntimeMs: 1e9, tools: [pay] };
  const agent = defineAgent({ id: 'worker', name: 'Worker', ...rest });
  const phases = [
    { name: 'first', instructions: version % 2 === 0 ? 'Work well.' : 'Work.' },
    { name: 'second', instructions: 'Work on.' },
  ];
  const planner = defineAgent({ id: 'planner', name: 'Planner', ...rest, phases });
  const executor = createExecutor({
    ...{ agents: [agent, planner], store, deployment: version, fairBy: 'tenant' },
    models: { fast: scriptedModel(Array.from({ length: 2_000 }, () => turn)) },
    clock: {
      now: () => clock.now() + skewMs,
      monotonic: () => clock.monotonic(),
      setTimeout: (callback, ms) => clock.setTimeout(() => isAlive() && callback(), ms),
      clearTimeout: (timer) => clock.clearTimeout(timer),
    },
    logger: { warn: () => {} },
    onOutcome: ({ runId, outcomeId }: RunOutcome) => {
      if (isAlive()) notes.outcomes.set(runId, new Set([...(notes.outcomes.get(runId) ?? []), outcomeId]));
    },
  });
  return { executor, agent, planner };
}
