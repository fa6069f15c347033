import {
  ask,
  type CheckpointStore,
  createExecutor,
  defineTool,
  defineWorkflow,
  diagnose,
  memoryStore,
  step,
} from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { assign, enqueueActions, setup } from 'xstate';
import { z } from 'zod';
import { until } from '../fixtures/host.ts';
import { worldOf } from './world.ts';

const pack = defineTool({
  name: 'pack',
  description: '',
  input: z.object({ order: z.string() }),
  effect: 'idempotent',
  execute: () => new Promise(() => {}),
});

const quick = defineTool({ name: 'pack', description: '', input: {}, effect: 'read', execute: () => 1 });

/** A parcel: it waits for a manager, while a clerk may stop it; a day later it is late. */
const parcel = defineWorkflow({
  id: 'parcel',
  machine: setup({
    types: { events: {} as { type: string } },
    actors: { manager: ask({ question: 'Send it?' }), pack: step(pack) },
    guards: { never: () => false },
    delays: { aDay: 86_400_000 },
  }).createMachine({
    initial: 'open',
    on: { stop: '.stopped', note: {}, 'note.*': {}, '*': {} },
    states: {
      open: {
        type: 'parallel',
        tags: 'waits',
        meta: { shown: 'Waits for the manager' },
        description: 'A manager decides.',
        states: {
          deciding: {
            invoke: { id: 'boss', src: 'manager', onDone: '#parcel.packing' },
            initial: 'asked',
            states: { asked: { on: { note: {}, hurry: { guard: 'never', actions: [] } } } },
          },
          waiting: {
            initial: 'early',
            states: { early: { after: { aDay: 'late' }, on: { stop: undefined } }, late: {} },
          },
        },
      },
      packing: { invoke: { id: 'packer', src: 'pack', input: { order: '7' }, onDone: 'stopped' } },
      stopped: { type: 'final' },
    },
    id: 'parcel',
  }),
});

const newStore = () => memoryStore({ clock: testClock(1_000_000) });

async function resting(store = newStore()) {
  const clock = testClock(1_000_000);
  const executor = createExecutor({ store, workflows: [parcel], clock, defaults: { waitLingerMs: 1 } });
  await executor.start(parcel, { runId: 'p', input: undefined });
  await until(async () => (await executor.waiting({ kind: 'question' })).length === 1);
  return { executor, store, clock };
}

describe('executor.explain of a workflow', () => {
  test('says the state, the timers and the open calls of a live run, and which events its state takes (workflow 22)', async () => {
    const { executor } = await resting();
    const { workflow } = (await executor.explain('p')) ?? {};
    expect(workflow).toMatchObject({
      state: { open: { deciding: 'asked', waiting: 'early' } },
      timers: [{ sendId: 'xstate.after.aDay.parcel.open.waiting.early', dueAt: 1_000_000 + 86_400_000 }],
      calls: [{ actorId: 'boss', name: 'manager', state: 'waiting' }],
      tags: ['waits'],
      meta: { 'parcel.open': { shown: 'Waits for the manager' } },
    });
    await executor.shutdown();
  });

  test('has the states of the machine with their calls and transitions, and where each leads (workflow 22, 23)', async () => {
    const { executor } = await resting();
    const { machine } = (await executor.explain('p'))?.workflow ?? {};
    expect(machine).toMatchObject({ key: 'parcel', type: 'compound', initial: 'open' });
    expect(machine?.states.map(({ key, type }) => [key, type])).toEqual([
      ['open', 'parallel'],
      ['packing', 'atomic'],
      ['stopped', 'final'],
    ]);
    expect(machine?.transitions).toContainEqual({ id: ':stop:0', event: 'stop', targets: ['stopped'] });
    const [open, packing] = machine?.states ?? [];
    expect(open?.description).toBe('A manager decides.');
    expect(packing?.invokes).toEqual([{ id: 'packer', src: 'pack' }]);
    expect(open?.states[0]?.transitions).toEqual([
      { id: 'open.deciding:xstate.done.actor.boss:0', event: 'xstate.done.actor.boss', targets: ['packing'] },
    ]);
    expect(open?.states[0]?.states[0]?.transitions[1]).toEqual({
      ...{ id: 'open.deciding.asked:hurry:0', event: 'hurry', guard: 'never', targets: [] },
    });
    expect(open?.states[1]?.states[0]?.transitions[0]).toMatchObject({
      ...{ event: 'xstate.after.aDay.parcel.open.waiting.early', delayMs: 86_400_000, targets: ['open.waiting.late'] },
    });
    await executor.shutdown();
  });

  test('takes names each type once, with wildcards as written, without types of XState and without a forbidden type (workflow 22)', async () => {
    const { executor } = await resting();
    const { workflow } = (await executor.explain('p')) ?? {};
    expect(workflow?.takes).toEqual(['note', 'hurry', 'note.*', '*']);
    await executor.shutdown();
  });

  test('reads a stored workflow in another process, and without its definition it says what the record says (workflow 22)', async () => {
    const { executor, store } = await resting();
    await executor.shutdown();
    const known = createExecutor({ store, workflows: [parcel] });
    const stranger = createExecutor({ store });
    const [there, here] = [await known.explain('p'), await stranger.explain('p')];
    expect(there?.workflow?.takes).toEqual(['note', 'hurry', 'note.*', '*']);
    expect(here?.workflow).toEqual({
      state: { open: { deciding: 'asked', waiting: 'early' } },
      timers: there?.workflow?.timers,
      calls: there?.workflow?.calls,
    });
    expect(here?.workflow?.calls).toHaveLength(1);
  });

  test('a line of a workflow in list and find says its kind', async () => {
    const { executor, store } = await resting();
    expect(await executor.find('p')).toMatchObject({ kind: 'workflow' });
    await executor.shutdown();
    const stranger = createExecutor({ store });
    expect(await stranger.list()).toMatchObject([{ runId: 'p', kind: 'workflow' }]);
    expect(await stranger.find('p')).toMatchObject({ runId: 'p', kind: 'workflow' });
  });
});

test.each([
  ['on memory', (): CheckpointStore => memoryStore()],
  ['on SQLite', (): CheckpointStore => sqliteStore({ path: ':memory:' })],
])('a workflow that waits for machine events alone is listed as waiting, %s (workflow 1)', async (_, open) => {
  const door = defineWorkflow({
    id: 'door',
    machine: setup({ types: { events: {} as { type: 'go' } } }).createMachine({
      initial: 'open',
      states: { open: { on: { go: 'gone' } }, gone: { type: 'final' } },
    }),
  });
  const store = open();
  const executor = createExecutor({ store, workflows: [door], defaults: { waitLingerMs: 1 } });
  const run = await executor.start(door, { runId: 'd' });
  expect(await run.result).toMatchObject({
    status: 'waiting',
    waits: [],
    error: {
      message: 'run d waits: it is in state open, with no call and no timer: it continues with an event (go)',
    },
  });
  expect(await executor.list()).toMatchObject([{ runId: 'd', status: 'waiting' }]);
  expect(await executor.waiting()).toEqual([]);
  expect(await executor.explain('d')).toMatchObject({
    verdict: 'waits',
    reason: 'it is in state open, with no call and no timer: it continues with an event (go)',
  });
  await executor.control(door, 'd').send({ type: 'go' });
  await until(async () => (await executor.list()).length === 0);
  await executor.shutdown();
});

test('a workflow without states, to which nothing comes, is said to have none (workflow 22)', async () => {
  const bare = defineWorkflow({ id: 'bare', machine: setup({}).createMachine({}) });
  const executor = createExecutor({ store: memoryStore(), workflows: [bare], defaults: { waitLingerMs: 1 } });
  const { error } = await executor.run(bare, { runId: 'b' });
  expect(error?.message).toMatch(
    /^run b waits: it has no states, no call and no timer, and no event leads out of it: /,
  );
  await executor.shutdown();
});

test('a workflow in a state that nothing leads out of is said by its result, by a warning, by explain and by diagnose (workflow 22)', async () => {
  const store = memoryStore();
  const stuck = defineWorkflow({
    id: 'stuck',
    machine: setup({ actors: { pack: step(quick) } }).createMachine({
      initial: 'packing',
      states: { packing: { invoke: { src: 'pack', input: {}, onDone: 'packed' } }, packed: {} },
    }),
  });
  const warnings: unknown[] = [];
  const logger = { warn: (message: string, { event }: { event?: unknown }) => void warnings.push([event, message]) };
  const executor = createExecutor({ store, workflows: [stuck], defaults: { waitLingerMs: 1 }, logger });
  const run = await executor.start(stuck, { runId: 's' });
  const text =
    'it is in state packed, with no call and no timer, and no event leads out of it: it can only be cancelled or migrated';
  expect((await run.result).error?.message).toBe(`run s waits: ${text}`);
  expect(warnings).toEqual([['workflow.dead-end', expect.stringContaining(text)]]);
  expect(await executor.explain('s')).toMatchObject({ verdict: 'waits', reason: text, needsPerson: true });
  // A process without the machine does not know which events it takes.
  for await (const found of diagnose(store))
    expect(found).toMatchObject({ needsPerson: false, reason: expect.stringContaining('it continues with an event') });
  await executor.shutdown();
});

test('a workflow of 1,000 transitions without a rest is a warning, once; one that rests between them is none (workflow 15)', async () => {
  const most = 1_000;
  const warned = async (before: number, after: number) => {
    const machine = setup({
      types: { context: {} as { n: number }, events: {} as { type: 'own' } | { type: 'go' } },
      guards: { isOver: ({ context }) => context.n >= before + after, isHalf: ({ context }) => context.n === before },
      actions: { count: assign({ n: ({ context }) => context.n + 1 }) },
    }).createMachine({
      context: { n: 0 },
      initial: 'working',
      states: {
        working: {
          entry: ['count', enqueueActions(({ enqueue, self }) => enqueue.sendTo(self, { type: 'own' }))],
          on: {
            own: [
              { guard: 'isOver', target: 'done' },
              { guard: 'isHalf', target: 'resting' },
              { target: 'working', reenter: true },
            ],
          },
        },
        resting: { on: { go: 'working' } },
        done: { type: 'final' },
      },
    });
    const flow = defineWorkflow({ id: 'loop', machine });
    const { boot, settle, warnings } = worldOf([flow]);
    const executor = boot();
    const run = await executor.start(flow, { runId: 'r' });
    if (after > 0) {
      while ((await executor.explain('r'))?.workflow?.state !== 'resting') await settle();
      await executor.control('r').send({ type: 'go' });
    }
    expect(await run.result).toMatchObject({ status: 'ok' });
    return warnings.map(({ message }) => message);
  };
  const text = `run: the workflow has made ${most} transitions without a rest; at 100000 it fails`;
  expect(await warned(2 * most + 10, 0)).toEqual([text]);
  expect(await warned(most / 2 + 10, most / 2 + 10)).toEqual([]);
});
