import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createExecutor, defineAgent, type Executor, type JournalEvent, memoryStore, type Phase } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { callTool, hang, reply, type ScriptedEntry, scriptedModel } from 'pawl/testing';
import { afterEach, expect, test } from 'vitest';
import { toolOf } from '../../fixtures/host.ts';

const stores = {
  memory: () => memoryStore(),
  SQLite: () => sqliteStore({ path: join(mkdtempSync(join(tmpdir(), 'pawl-journal-')), 'runs.db') }),
};
const opened: Executor[] = [];
afterEach(async () => {
  for (const executor of opened.splice(0)) await executor.shutdown();
});

const look = toolOf('look', 'read', () => 'a fish');
const phasesOf = (recovery: 'step' | 'boundary'): readonly Phase[] => [
  { name: 'a', instructions: 'Look.', recovery },
  { name: 'b', instructions: 'Tell of {{.a}}.' },
];

/** A process whose runs have two phases, or none. */
function hostOn(
  store: ReturnType<(typeof stores)[keyof typeof stores]>,
  script: readonly ScriptedEntry[],
  phases?: readonly Phase[],
) {
  const agent = defineAgent({ id: 'desk', instructions: 'Look.', tools: [look], ...(phases ? { phases } : {}) });
  const executor = createExecutor({
    models: { fast: scriptedModel(script) },
    agents: [agent],
    store,
    journal: { flushMs: 1 },
    logger: { warn: () => {} },
  });
  opened.push(executor);
  return { agent, executor };
}

/** What a reader of another process gets of a run, up to an event. */
async function readUntil(executor: Executor, isLast: (event: JournalEvent) => boolean): Promise<JournalEvent[]> {
  const events: JournalEvent[] = [];
  for await (const event of executor.events('r')) {
    events.push(event);
    if (isLast(event)) break;
  }
  return events;
}

/** The content of steps, without what differs from process to process. */
const contentOf = (events: readonly JournalEvent[]) =>
  events.flatMap((event): object[] => {
    if (event.type === 'step.snapshot') return [{ type: event.type, content: event.content.map(({ type }) => type) }];
    if (event.type === 'tool.started') return [{ type: event.type, input: event.input }];
    if (event.type === 'tool.done') return [{ type: event.type, name: event.name, output: event.output }];
    return event.type === 'step.done' ? [{ type: event.type, tools: event.tools }] : [];
  });

const steps = [callTool('look', { at: 'sea' }, 'c'), reply('seen')];

test.for(
  (['memory', 'SQLite'] as const).flatMap((store) =>
    (['step', 'boundary'] as const).flatMap((recovery) =>
      (['lives', 'has ended'] as const).map((state) => [store, recovery, state] as const),
    ),
  ),
)(
  'a late reader over %s gets of a finished phase (recovery %s) what it gets of a finished loop, while the run %s (edges 24)',
  async ([kind, recovery, state]) => {
    const loop = hostOn(stores[kind](), steps);
    await loop.executor.run(loop.agent, { prompt: 'Go.', runId: 'r' });
    const expected = contentOf(await readUntil(loop.executor, ({ type }) => type === 'run.ended'));
    expect(expected.length).toBeGreaterThanOrEqual(5);

    const store = stores[kind]();
    const first = hostOn(store, [...steps, state === 'lives' ? hang() : reply('told')], phasesOf(recovery));
    const run = await first.executor.start(first.agent, { prompt: 'Go.', runId: 'r' });
    if (state === 'has ended') await run.result;
    const reader = hostOn(store, [], phasesOf(recovery));
    const events = await readUntil(reader.executor, (event) => event.type === 'phase.started' && event.index === 1);
    expect(contentOf(events)).toEqual(expected);
    expect(events.filter(({ type }) => type === 'phase.done')).toMatchObject([{ name: 'a', output: 'seen' }]);
  },
);

test('the beginning of a phase reaches other processes before its first step ends (edges 24)', async () => {
  const store = memoryStore();
  const first = hostOn(store, [hang()], phasesOf('step'));
  await first.executor.start(first.agent, { prompt: 'Go.', runId: 'r' });
  const events = await readUntil(hostOn(store, []).executor, ({ type }) => type === 'phase.started');
  expect(events.at(-1)).toMatchObject({ type: 'phase.started', index: 0, name: 'a' });
});
