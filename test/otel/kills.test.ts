import {
  type Agent,
  createExecutor,
  createPalette,
  defineAgent,
  defineTool,
  type Executor,
  type Tool,
  type ToolContext,
} from 'pawl';
import { callTool, callTools, reply, type ScriptedRequest, type ScriptedStep } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { randomFrom, seed, torture } from '../crash/random.ts';
import { answeringModel, turnsOf } from '../fixtures/answering-model.ts';
import { settle, toolOf } from '../fixtures/host.ts';
import { type Left, type MortalProcess, mortalProcess } from '../fixtures/mortal-process.ts';
import { type Collected, collecting, droppedOf, faultsOf, leftSpans } from './spans.ts';

type Call = Parameters<typeof callTools>[0][number];

const ask = (agent: string): Call => ({ name: `agent__${agent}`, input: { prompt: 'help' }, callId: `ask-${agent}` });
const pay = { name: 'pay', input: {}, callId: 'pay' };
const sign = { name: 'sign', input: {}, callId: 'sign' };

/** The calls of each turn of an agent, or of a phase. */
const turns: { readonly [system: string]: readonly (readonly Call[])[] } = {
  plain: [[], [pay, ask('helper')]],
  signs: [[sign, ask('clerk')]],
  clerk: [[sign]],
  helper: [[]],
  first: [[], [pay]],
  second: [[ask('helper')]],
};

function answer(request: ScriptedRequest): ScriptedStep {
  const { system = '' } = request;
  const turn = turnsOf(request);
  const calls = turns[system]?.[turn];
  if (!calls) return reply(`${system} has ended`);
  return calls.length === 0 ? callTool('look', { turn }, `look-${turn}`) : callTools([...calls]);
}

interface Host {
  readonly executor: Executor;
  readonly agentOf: (id: string) => Agent;
}

/** What a process does with the run, and until when: each process of a scenario does the same. */
interface Scenario {
  readonly name: string;
  readonly options?: { readonly onUnknownOutcome: 'park' };
  /** Resolves when the run is over. */
  live(host: () => Host): Promise<unknown>;
}

const request = { runId: 'a', prompt: 'Go.' };

/** Works on the run until it is over: a person approves what it asks. */
async function workOn({ executor, agentOf }: Host, id: string): Promise<void> {
  for (;;) {
    const { status } = await executor.run(agentOf(id), request);
    if (status !== 'waiting' && status !== 'interrupted') return;
    for (const { runId, id: waitId, kind } of await executor.waiting())
      if (kind === 'approval') await executor.control(runId).approve(waitId, { by: { id: 'ada' } });
    await executor.recover();
    // The runs below it need their turns of the event loop.
    await settle(2);
  }
}

/** By slices that have no time: each makes one step. */
async function driveOn({ executor }: Host): Promise<void> {
  for (;;) {
    const { state } = await executor.drive('a', { budgetMs: 0 });
    if (state === 'ended') return;
    if (state !== 'waiting') continue;
    await executor.recover();
    await settle(2);
  }
}

const scenarios: readonly Scenario[] = [
  { name: 'a `once` call and a sub-agent', live: (host) => workOn(host(), 'plain') },
  { name: 'approvals of its own and of a sub-agent', live: (host) => workOn(host(), 'signs') },
  { name: 'two phases', live: (host) => workOn(host(), 'line') },
  {
    name: 'slices of one step',
    live: async (host) => {
      const slices = host();
      await slices.executor.start(slices.agentOf('plain'), request, { drive: 'later' });
      await driveOn(slices);
    },
  },
  {
    name: 'an admission by a process that does not work on it',
    live: async (host) => {
      const web = host();
      await web.executor.start(web.agentOf('plain'), request, { drive: 'later' });
      await web.executor.shutdown();
      await workOn(host(), 'plain');
    },
  },
  {
    name: 'a parking in each process',
    live: async (host) => {
      const worker = host();
      const { executor } = worker;
      const run = await executor.start(worker.agentOf('plain'), request);
      const parked = await executor.park('a', 'a look').catch(() => undefined);
      await run.result;
      await executor.unpark('a').catch(() => parked);
      await workOn(worker, 'plain');
    },
  },
  {
    name: 'a parking for each call of unknown outcome',
    options: { onUnknownOutcome: 'park' },
    live: (host) => freeAndWorkOn(host(), 'plain'),
  },
];

/** The run is parked for a `once` call of unknown outcome, and a person frees it. */
async function freeAndWorkOn({ executor, agentOf }: Host, id: string): Promise<void> {
  for (;;) {
    const { error } = await executor.run(agentOf(id), request);
    if (error?.code !== 'RUN_PARKED') return;
    await executor.unpark('a');
  }
}

/** One process, which begins the run or takes up what was left; it ends with the run, or dies. */
async function live({ process, collected, pass }: Process, scenario: Scenario): Promise<boolean> {
  /** A boundary of a call is before it and after it. */
  const bounded = <A extends unknown[], R>(call: (...args: A) => R) =>
    process.reaching(async (...args: A) => {
      pass();
      if (process.isDead) return new Promise<never>(() => {});
      const result = await call(...args);
      pass();
      return result;
    });
  const paid = bounded(async (_: unknown, { attempt }: ToolContext) => `paid ${attempt}`);
  const look = toolOf(
    'look',
    'read',
    bounded(async () => 'seen'),
  );
  const tools = [
    look,
    toolOf('pay', 'once', paid),
    defineTool({
      name: 'sign',
      description: 'Signs.',
      effect: 'once',
      needsApproval: true,
      input: { type: 'object' },
      execute: paid,
    }) as unknown as Tool,
  ];
  const subs = ['helper', 'clerk'].map((id) => defineAgent({ id, instructions: id, tools }));
  const subAgents = subs.map(({ id }) => id);
  const phases = ['first', 'second'].map((name) => ({ name, instructions: name }));
  const agents = [
    ...['plain', 'signs'].map((id) => defineAgent({ id, instructions: id, tools, subAgents })),
    defineAgent({ id: 'line', instructions: '', tools, subAgents, phases }),
    ...subs,
  ];
  const model = answeringModel(answer);
  const doStream = bounded(model.doStream.bind(model));
  const executors: Executor[] = [];
  const host = () => {
    const executor = createExecutor({
      models: { fast: { ...model, doStream } as never },
      ...{ agents, store: process.store, ports: { palette: createPalette({ agents: subs }) } },
      ...{ logger: { warn: () => {} }, defaults: { waitLingerMs: 1, controlMs: 5, dueMs: 20, maxAttempts: 100 } },
      ...scenario.options,
      tracing: collected.process({}, process),
    });
    executors.push(executor);
    return { executor, agentOf: (id: string) => agents.find((agent) => agent.id === id) as Agent };
  };
  const whole = async () => {
    await scenario.live(host);
    await Promise.all(executors.map((executor) => executor.shutdown()));
    return true;
  };
  return (await Promise.race([whole(), process.died])) ?? false;
}

interface Process {
  readonly process: MortalProcess;
  readonly collected: Collected;
  /** It passes a boundary of a model call or a tool. */
  pass(): void;
}

/** Where a process dies: after a write of its store, or at a boundary of a call. */
type Place = 'write' | 'call';

/** Lets processes of a run die at these places, one after the other; the last one ends the run. */
async function kill(
  scenario: Scenario,
  place: Place,
  at: readonly number[],
): Promise<{ faults: readonly string[]; deaths: number }> {
  const collected = collecting();
  const ended = new Set<unknown>();
  const leaving = new Set<string>();
  let left: Left | undefined;
  let deaths = 0;
  for (const dies of [...at, Number.POSITIVE_INFINITY]) {
    const process = mortalProcess(left, place === 'write' ? dies : undefined);
    let calls = 0;
    const pass = () => {
      calls += 1;
      if (place === 'call' && calls === dies) process.die();
    };
    if (await live({ process, collected, pass }, scenario)) break;
    deaths += 1;
    left = await process.left(true);
    for (const { runId } of left.outcomes) ended.add(runId);
    for (const record of left.records) for (const id of leftSpans(record)) leaving.add(id);
  }
  const but = { ended, left: leaving };
  const dropped = droppedOf(collected, randomFrom(seed), but).map((name) => `dropped: ${name}`);
  return { deaths, faults: [...faultsOf(collected, but), ...dropped] };
}

describe('the trace of a run whose processes die', () => {
  test.for(
    scenarios.flatMap((scenario) => (['write', 'call'] as const).map((place) => [scenario.name, place] as const)),
  )(
    `with %s, at each %s, up to three times in a row: each parent is exported, each span is ended or told, and a backend drops none, seed ${seed} (otel 4, 32, 33, 37)`,
    { timeout: 180_000 * torture },
    async ([name, place]) => {
      const scenario = scenarios.find((each) => each.name === name) as Scenario;
      const random = randomFrom(seed);
      const drawn = (most: number) => 1 + Math.floor(random() * most);
      // Each place of the first scenario; of the others some, which differ from one to the next.
      const nth = scenarios.indexOf(scenario);
      const stride = torture > 1 || nth === 0 ? 1 : 4;
      let points = 0;
      for (let first = 1 + (nth % stride), isKilled = true; isKilled; first += stride) {
        for (let again = 0; again < torture; again++) {
          const at = [first, ...Array.from({ length: drawn(3) - 1 }, () => drawn(first))];
          const { faults, deaths } = await kill(scenario, place, at);
          expect(faults, `killed at ${place} ${at.join(', ')}`).toEqual([]);
          points += deaths;
          isKilled = deaths > 0;
          if (!isKilled) break;
        }
      }
      // How many writes a life has depends on what comes together: some less in a few of them.
      expect(points).toBeGreaterThan(stride === 1 ? 15 : 2);
    },
  );
});
