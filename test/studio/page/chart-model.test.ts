import { defineTool, type JournalEvent, memoryStore } from 'pawl';
import { callTool, callTools, fail, reply } from 'pawl/testing';
import { describe, expect, it } from 'vitest';
import {
  type ChartFacts,
  chartAfter,
  chartFactsOf,
  factsBefore,
  unseen,
} from '../../../src/studio/page/chart/chart-model.ts';
import { layoutOf } from '../../../src/studio/page/chart/layout.ts';
import type { RecordView } from '../../../src/studio/wire.ts';
import { type HostOptions, hostOf, toolOf, until } from '../../fixtures/host.ts';
import { two } from '../../fixtures/phases.ts';

/** The states that a run's machine went through, as the machine itself reports them. */
function machineWatch() {
  const way = ['resolving'];
  const inspect = (event: {
    readonly type: string;
    readonly snapshot?: { readonly value?: unknown };
    readonly actorRef?: object;
  }) => {
    const value = event.snapshot?.value;
    if (event.type !== '@xstate.microstep' || value === undefined) return;
    const [stage, inner] = typeof value === 'string' ? [value] : (Object.entries(value as object)[0] ?? ['']);
    const id = inner === undefined ? stage : `${stage}.${inner}`;
    if (id === way.at(-1)) return;
    if (inner !== undefined && !way.at(-1)?.startsWith(`${stage}.`)) way.push(stage);
    way.push(id);
  };
  const restart = () => way.push('resolving');
  return { way, inspect: inspect as never, restart };
}

const countsOf = (way: readonly string[]) => {
  const counts: Record<string, number> = {};
  for (const id of way) counts[id] = (counts[id] ?? 0) + 1;
  return counts;
};

const once = defineTool({
  name: 'publish',
  description: 'Publishes.',
  input: { type: 'object' },
  effect: 'once',
  needsApproval: true,
  execute: async () => 'published',
}) as unknown as ReturnType<typeof toolOf>;

/** A host with a journal, and the machine of its runs. */
function watchedHost(options: HostOptions, store = memoryStore(), watch = machineWatch()) {
  const tools = [toolOf('look'), toolOf('note', 'idempotent'), once];
  const host = hostOf({ tools, store, journal: true, inspect: watch.inspect, ...options });
  return { ...host, store, watch };
}
type Host = ReturnType<typeof watchedHost>;

async function factsFrom({ executor }: Host): Promise<ChartFacts> {
  let facts = unseen();
  for await (const event of executor.events('r')) facts = chartAfter(facts, event);
  return facts;
}

const approve = async ({ executor, start }: Host) => {
  const run = await start({ runId: 'r' });
  await until(async () => (await executor.waiting()).length > 0);
  const [wait] = await executor.waiting();
  await executor.control('r').approve(wait?.id ?? '');
  await run.result;
};

const stories: readonly {
  readonly name: string;
  readonly options: HostOptions;
  readonly act?: (host: Host) => Promise<unknown>;
}[] = [
  { name: 'answers at once', options: { script: [reply('hi')] } },
  {
    name: 'calls tools in two turns',
    options: {
      script: [
        callTools([
          { name: 'look', input: {} },
          { name: 'note', input: {} },
        ]),
        callTool('look'),
        reply('hi'),
      ],
    },
  },
  { name: 'asks a person', options: { script: [callTool('publish'), reply('hi')] }, act: approve },
  {
    name: 'reaches its limit of steps',
    options: { script: [callTool('look'), callTool('look')], agent: { maxSteps: 1 } },
  },
  {
    name: 'loses its model for good',
    options: { script: [callTool('look'), fail(Object.assign(new Error('no'), { statusCode: 400 }))] },
  },
  {
    name: 'has two phases',
    options: { script: [callTool('look'), reply('seen'), reply('told')], agent: { phases: two } },
  },
  {
    name: 'is cancelled while it waits for a person',
    options: { script: [callTool('publish'), reply('hi')] },
    act: async ({ executor, start }) => {
      const run = await start({ runId: 'r' });
      await until(async () => (await executor.waiting()).length > 0);
      run.cancel('enough');
      await run.result;
    },
  },
];

describe('the chart of a run with a journal (studio 5)', () => {
  it.each(stories)('counts the visits of the machine itself in a run that $name', async ({ options, act }) => {
    const host = watchedHost(options);
    if (act) await act(host);
    else await host.run({ runId: 'r' });
    const facts = await factsFrom(host);
    expect(facts.visits).toEqual(countsOf(host.watch.way));
    expect(facts.at).toBe('settled');
    expect(facts.last).toMatch(/^(completing|failing)>settled$/);
  });

  it('shows a run that waits in waiting, with the edge that led there', async () => {
    const host = watchedHost({ script: [callTool('publish'), reply('hi')] });
    const run = await host.start({ runId: 'r' });
    await until(async () => (await host.executor.waiting()).length > 0);
    const events: JournalEvent[] = [];
    const reader = host.executor.events('r');
    let facts = unseen();
    for await (const event of reader) {
      events.push(event);
      facts = chartAfter(facts, event);
      if (event.type === 'run.waiting') break;
    }
    expect(facts).toMatchObject({ at: 'running.waiting', last: 'running.calling-tools>running.waiting' });
    expect(facts.visits).toEqual(countsOf(host.watch.way));
    run.cancel();
    await run.result;
  });

  it('names only states and edges that it draws, in whichever order events come', () => {
    const types = [
      'run.started',
      'run.resumed',
      'step.started',
      'step.snapshot',
      'tool.started',
      'tool.done',
      'step.done',
      'run.waiting',
      'run.woken',
      'run.ended',
      'phase.started',
      'phase.done',
      'wait.opened',
      'unheard-of',
    ];
    const wrong: string[] = [];
    let seed = 7;
    const random = (below: number) => {
      seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
      return Math.floor((seed / 2 ** 31) * below);
    };
    for (let story = 0; story < 20; story += 1) {
      let facts = unseen();
      for (let at = 0; at < 40; at += 1) {
        const type = types[random(types.length)];
        const event = {
          type,
          index: facts.done,
          tools: random(2) ? ['look'] : [],
          status: ['ok', 'error', 'cancelled', 'interrupted'][random(4)],
          wait: { kind: random(2) ? 'approval' : 'retry' },
          error: random(2) ? { code: ['STEP_LIMIT', 'OUTPUT_INVALID', 'MODEL'][random(3)] } : undefined,
        };
        facts = chartAfter(facts, event as never);
        const stages = Array.from({ length: Math.max(1, facts.phases) }, (_, open) => layoutOf(facts.phases, open));
        const states = new Set(['', ...stages.flatMap(({ nodes, boxes }) => [...nodes, ...boxes].map(({ id }) => id))]);
        const edges = new Set(['', ...stages.flatMap((layout) => layout.edges.map(({ id }) => id))]);
        if (facts.phases > 0 && facts.last === 'resolved>running') continue;
        if (!states.has(facts.at) || !edges.has(facts.last)) wrong.push(`${type}: ${facts.at}, ${facts.last}`);
      }
    }
    expect(wrong).toEqual([]);
  });
});

describe('the chart of a run without a journal (studio 5)', () => {
  const view = (facts: object) => ({ waits: [], line: { state: 'wait' }, ...facts }) as unknown as RecordView;

  it('shows the state of the last save, and the steps that the record has', () => {
    const facts = chartFactsOf(
      view({ state: { name: 'running.waiting', isLive: false }, record: { iteration: 3, attempts: 2 } }),
    );
    expect(facts).toMatchObject({ at: 'running.waiting', last: '', phases: 0 });
    expect(facts.visits).toEqual({
      resolving: 2,
      resolved: 2,
      running: 1,
      'running.entering': 3,
      'running.calling-model': 3,
      'running.landing': 3,
      'running.waiting': 1,
    });
  });

  it('gives the newest events the phases of the record, and counts the steps before them by their numbers', () => {
    const phases = [
      { name: 'survey', isDone: true },
      { name: 'report', isDone: false },
    ];
    const view = { record: { phases } } as unknown as RecordView;
    const base = { runId: 'r', seq: 1, at: 1, cursor: '1' };
    const done = { ...base, type: 'step.done', step: 41, tools: ['look'], usage: { inputTokens: 0, outputTokens: 0 } };
    const facts = factsBefore(done as never, view);
    expect(facts).toMatchObject({ phases: 2, done: 1 });
    const after = chartAfter(facts, done as never);
    expect(after).toMatchObject({ at: 'phase(1).entering', step: 41 });
    expect(after.visits['phase(1).landing']).toBe(41);
    expect(factsBefore({ ...base, type: 'run.started' } as never, view)).toEqual(unseen());
  });

  it('opens the first phase that is not done, and counts no steps of a phase', () => {
    const phases = [
      { name: 'a', isDone: true },
      { name: 'b', isDone: false },
    ];
    const facts = chartFactsOf(
      view({ state: { name: 'phase(1).entering', isLive: false }, record: { iteration: 3, attempts: 1, phases } }),
    );
    expect(facts).toMatchObject({ phases: 2, done: 1, at: 'phase(1).entering' });
    expect(facts.visits).toEqual({ resolving: 1, resolved: 1, 'phase(0)': 1, 'phase(1)': 1, 'phase(1).entering': 1 });
  });

  it('says of a run that has ended only that it has', () => {
    expect(chartFactsOf(view({ result: { status: 'ok', output: '' } }))).toMatchObject({
      at: 'settled',
      visits: { settled: 1 },
    });
  });
});
