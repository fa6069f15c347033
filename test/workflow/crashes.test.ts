import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defineWorkflow, memoryStore, step } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { crashTest } from 'pawl/testing';
import { afterAll, describe, expect, test } from 'vitest';
import { assign, createActor, enqueueActions, setup } from 'xstate';
import { torture } from '../crash/random.ts';
import { refundOf } from './refund.ts';
import { noted, worldOf } from './world.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-workflow-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.each([
  ['memory', 24, () => memoryStore()],
  ['SQLite', 8, () => sqliteStore({ path: join(folder, 'runs.db') })],
] as const)('a workflow on %s, killed at each boundary', (_, points, open) => {
  test.each(['small', 'large'])(
    'has the same end, and repeats no call that was recorded: a %s refund (workflow 3, 7, 26)',
    async (order) => {
      const store = open();
      const report = await crashTest({
        workflow: refundOf({ paid: [] }),
        input: { order },
        store: () => store,
        limit: torture > 1 ? 1_000 : points,
        doubleCrashes: torture > 1 ? 200 : 4,
        answers: ({ kind }) => (kind === 'timer' ? undefined : { how: 'answer', value: 'yes' }),
      });
      expect(report.violations).toEqual([]);
      expect(report.undisturbed.status).toBe('ok');
      expect(report.boundaries).toBeGreaterThan(20);
      expect(report.crashes).toBeGreaterThan(points);
    },
  );
});

test('a timer whose end was stored when its process died fires in the next one (workflow 6)', async () => {
  const flow = defineWorkflow({
    id: 'flow',
    machine: setup({}).createMachine({ initial: 'a', states: { a: { after: { 60000: 'b' } }, b: { type: 'final' } } }),
  });
  const { boot, pass, store } = worldOf([flow]);
  const first = boot();
  await first.start(flow, { runId: 'r' });
  await pass(4_000);
  await first.shutdown();
  const record = (await store.load('r')) as NonNullable<Awaited<ReturnType<typeof store.load>>>;
  const [timer] = record.waiting?.waits ?? [];
  const settled = [{ id: timer?.id ?? '', kind: 'timer', how: 'expire', at: 1 } as const];
  await store.save({ ...record, revision: record.revision + 1, waiting: { waits: [], settled } });
  await boot().recover();
  await pass(4_000);
  expect(await store.outcomes.find('r')).toMatchObject({ status: 'ok' });
});

test('an event that a machine sends itself comes before the results that are there (workflow 2)', async () => {
  const look = noted('look', 'read', () => 1);
  const machine = setup({
    types: { context: {} as { seen: string[] }, output: {} as string[] },
    actors: { look: step(look.tool) },
    actions: {
      note: assign({ seen: ({ context, event }) => [...context.seen, event.type] }),
      sendSelf: enqueueActions(({ enqueue, self }) => enqueue.sendTo(self, { type: 'own' })),
    },
  }).createMachine({
    context: { seen: [] },
    invoke: [
      { src: 'look', id: 'first', input: {}, onDone: { actions: ['note', 'sendSelf'] } },
      { src: 'look', id: 'second', input: {}, onDone: { actions: 'note' } },
    ],
    on: { own: { actions: 'note' } },
    initial: 'a',
    states: { a: { after: { 1000: 'b' } }, b: { type: 'final' } },
    output: ({ context }) => context.seen,
  });
  const flow = defineWorkflow({ id: 'flow', machine });
  const { boot, pass } = worldOf([flow]);
  const run = await boot().start(flow, { runId: 'r' });
  await pass(4_000);
  expect((await run.result).data).toEqual(['xstate.done.actor.first', 'own', 'xstate.done.actor.second']);
});

test('the eventless transitions of parallel states are taken in the order of the document, as by a fresh actor (workflow 2)', async () => {
  const machine = setup({
    types: { context: {} as { isOn: boolean; seen: string[] }, output: {} as string[], events: {} as { type: 'on' } },
    guards: { isOn: ({ context }) => context.isOn && context.seen.length < 2 },
    actions: { note: assign({ seen: ({ context }, { by }: { by: string }) => [...context.seen, by] }) },
  }).createMachine({
    context: { isOn: false, seen: [] },
    type: 'parallel',
    on: { on: { actions: assign({ isOn: true }) } },
    states: {
      outer: {
        type: 'parallel',
        states: { inner: { always: { guard: 'isOn', actions: { type: 'note', params: { by: 'inner' } } } } },
      },
      second: { always: { guard: 'isOn', actions: { type: 'note', params: { by: 'second' } } } },
    },
  });
  const plain = createActor(machine).start();
  plain.send({ type: 'on' });
  const flow = defineWorkflow({ id: 'flow', machine });
  const { boot, settle } = worldOf([flow]);
  const executor = boot();
  await executor.start(flow, { runId: 'r' });
  await executor.control('r').send({ type: 'on' });
  await settle();
  const explained = await executor.explain('r');
  expect(explained?.record?.workflow?.snapshot.context).toEqual(plain.getSnapshot().context);
  expect(plain.getSnapshot().context.seen).toEqual(['inner', 'second']);
});

test('the end of a timer is one save with the transition that takes it, and leaves nothing in the record (workflow 3, 29)', async () => {
  const flow = defineWorkflow({
    id: 'flow',
    machine: setup({}).createMachine({ initial: 'a', states: { a: { after: { 500: 'b' } }, b: { on: { x: 'a' } } } }),
  });
  const { boot, pass, store } = worldOf([flow], { defaults: { waitLingerMs: 100_000 } });
  await boot().start(flow, { runId: 'r' });
  await pass(100);
  const before = await store.load('r');
  await pass(1_000);
  const after = await store.load('r');
  expect([after?.workflow?.snapshot.value, after?.revision]).toEqual(['b', (before?.revision ?? 0) + 1]);
  expect(after?.waiting).toEqual({ waits: [], settled: [] });
});
