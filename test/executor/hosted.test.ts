import { memoryStore } from 'pawl';
import { asSnapshot, type PersistedRun } from 'pawl/stores/kit';
import { callTool, hang, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { createActor } from 'xstate';
import { gate, hostOf, settle, toolOf, until } from '../fixtures/host.ts';
import {
  afterTwoSteps,
  childOf,
  hostMachine,
  outputOf,
  restored,
  restoreHost,
  roundTrip,
  startHost,
} from '../fixtures/host-machine.ts';
import { afterCrash, onlyRecord, watchedStore } from '../fixtures/watched-store.ts';

const tools = [toolOf('look')];
describe("a run inside a host's machine", () => {
  test('is invoked with its invocation, and gives its result without messages as output', async () => {
    const { executor, agent } = hostOf({ store: memoryStore() });
    const host = startHost(hostMachine(executor, agent));
    expect(await outputOf(host)).toMatchObject({ runId: 'r', status: 'ok', output: 'done', durable: true });
    expect(host.getSnapshot().context.output).not.toHaveProperty('messages');
  });

  test.for([true, false])(
    'continues when the host is persisted as JSON and restored (durable: %s)',
    async (isDurable) => {
      const { snapshot, store } = await afterTwoSteps(isDurable ? memoryStore() : null);
      const next = restored(snapshot, store ? { store: await afterCrash(store) } : {});
      expect(await outputOf(next.host)).toMatchObject({
        status: 'ok',
        output: 'done',
        iterations: 3,
        durable: isDurable,
      });
      expect(next.model.calls).toHaveLength(1);
      expect(next.model.calls[0]?.messages.map(({ role }) => role)).toEqual([
        'user',
        'assistant',
        'tool',
        'assistant',
        'tool',
      ]);
    },
  );

  test('is in the snapshot of its host as a reference without messages when it is durable, whole when it is not', async () => {
    const durable = childOf((await afterTwoSteps()).snapshot);
    expect(durable).toMatchObject({ stored: true, status: 'active', messages: [], iteration: 2, meta: { runId: 'r' } });
    expect(JSON.stringify(durable)).not.toContain('look ok');
    const whole = childOf((await afterTwoSteps(null)).snapshot);
    expect(whole.messages).toHaveLength(5);
    expect(whole).not.toHaveProperty('stored');
  });

  test('that was done stays done in a restored host: the same output, no model call, no store call', async () => {
    const { executor, agent } = hostOf({ store: memoryStore() });
    const actor = createActor(executor.logic(agent), { input: { prompt: 'Go.', runId: 'r' } }).start();
    await until(() => actor.getSnapshot().status === 'done');
    const persisted = roundTrip(actor.getPersistedSnapshot()) as PersistedRun;
    expect(persisted).toMatchObject({ status: 'done', messages: [], output: { status: 'ok', output: 'done' } });
    const store = watchedStore();
    const next = hostOf({ store });
    const again = createActor(next.executor.logic(next.agent), { snapshot: persisted }).start();
    await settle();
    expect(again.getSnapshot()).toMatchObject({ status: 'done', output: actor.getSnapshot().output });
    const { snapshot } = await afterTwoSteps();
    const child = {
      children: { run: { ...(snapshot as never as { children: { run: object } }).children.run, snapshot: persisted } },
    };
    const host = restoreHost(hostMachine(next.executor, next.agent), { ...(snapshot as object), ...child });
    await settle();
    expect([next.model.calls, store.log]).toEqual([[], []]);
    host.stop();
  });

  test('that a shutdown left is not done: it is persisted as a run that continues (edges 14)', async () => {
    const store = memoryStore();
    const first = hostOf({ script: [callTool('look'), hang()], tools, store });
    const actor = createActor(first.executor.logic(first.agent), { input: { prompt: 'Go.', runId: 'r' } }).start();
    await until(() => first.model.calls.length === 2);
    await first.executor.shutdown();
    expect(actor.getSnapshot()).toMatchObject({ status: 'active', context: { output: { status: 'interrupted' } } });
    const persisted = roundTrip(actor.getPersistedSnapshot()) as PersistedRun;
    expect(persisted).toMatchObject({ status: 'active', stored: true });
    const next = hostOf({ tools, store });
    const again = createActor(next.executor.logic(next.agent), { snapshot: persisted }).start();
    await until(() => again.getSnapshot().status === 'done');
    expect(again.getSnapshot().output).toMatchObject({ status: 'ok', iterations: 2 });
  });

  test.for([
    ['without meta', ({ meta: _, ...rest }: PersistedRun) => rest],
    ['with messages that are no messages', (record: PersistedRun) => ({ ...record, messages: [7] })],
    ['without a version', ({ version: _, ...rest }: PersistedRun) => rest],
    ['done without an output', (record: PersistedRun) => ({ ...record, status: 'done' })],
  ] as const)(
    'whose record in the snapshot is damaged (%s) ends with CHECKPOINT_CORRUPT, and the store is untouched',
    async ([, damage]) => {
      const { snapshot, store } = await afterTwoSteps();
      const left = watchedStore({}, await afterCrash(store));
      const before = await onlyRecord(left);
      left.log.length = 0;
      const run = (snapshot as never as { children: { run: object } }).children.run;
      const damaged = { ...(snapshot as object), children: { run: { ...run, snapshot: damage(childOf(snapshot)) } } };
      const next = restored(damaged, { store: left });
      expect(await outputOf(next.host)).toMatchObject({ status: 'error', error: { code: 'CHECKPOINT_CORRUPT' } });
      expect([next.model.calls, left.log]).toEqual([[], []]);
      expect(await onlyRecord(left)).toEqual(before);
    },
  );

  test('whose record in the snapshot is of a newer version ends with CHECKPOINT_TOO_NEW', async () => {
    const { snapshot } = await afterTwoSteps();
    const run = (snapshot as never as { children: { run: object } }).children.run;
    const newer = {
      ...(snapshot as object),
      children: { run: { ...run, snapshot: { ...childOf(snapshot), version: 99 } } },
    };
    const next = restored(newer, { store: memoryStore() });
    expect(await outputOf(next.host)).toMatchObject({ status: 'error', error: { code: 'CHECKPOINT_TOO_NEW' } });
  });

  test('continues from the store when the snapshot of its host is older', async () => {
    const store = memoryStore();
    const third = gate();
    const parts = hostOf({
      script: [callTool('look', { n: 1 }), () => third.pass().then(() => callTool('look', { n: 2 })), hang()],
      tools,
      store,
    });
    const host = startHost(hostMachine(parts.executor, parts.agent));
    await third.reached;
    const old = roundTrip(host.getPersistedSnapshot());
    expect(childOf(old).iteration).toBe(1);
    third.open();
    await until(async () => (await store.load('r'))?.iteration === 2);
    const next = restored(old, { store: await afterCrash(store) });
    expect(await outputOf(next.host)).toMatchObject({ status: 'ok', iterations: 3 });
    expect(next.model.calls).toHaveLength(1);
  });

  test('that ended meanwhile answers with its kept outcome', async () => {
    const { snapshot, store } = await afterTwoSteps();
    const left = await afterCrash(store);
    await hostOf({ tools, store: left }).run({ runId: 'r' });
    const next = restored(snapshot, { store: left });
    expect(await outputOf(next.host)).toMatchObject({ status: 'ok', output: 'done', iterations: 3 });
    expect(next.model.calls).toEqual([]);
  });

  test('whose reference has no record any more ends with RUN_NOT_FOUND and never begins again', async () => {
    const { snapshot } = await afterTwoSteps();
    const empty = memoryStore();
    const next = restored(snapshot, { store: empty });
    expect(await outputOf(next.host)).toMatchObject({ status: 'error', error: { code: 'RUN_NOT_FOUND' } });
    expect(next.model.calls).toEqual([]);
    expect(await empty.listInterrupted()).toEqual([]);
  });
});

describe('the logic of a run', () => {
  test('cannot be provided again: a TypeError, not a run without its store', () => {
    const { executor, agent } = hostOf();
    const logic = executor.logic(agent) as unknown as { provide: (implementations: object) => unknown };
    expect(() => logic.provide({})).toThrow(TypeError);
  });

  test('given asSnapshot(record) continues from the record, also with an empty store, and is saved there', async () => {
    const { store } = await afterTwoSteps();
    const record = await onlyRecord(store);
    const empty = memoryStore();
    const slow = gate();
    const parts = hostOf({ script: [() => slow.pass().then(() => reply('end'))], tools, store: empty });
    const actor = createActor(parts.executor.logic(parts.agent), { snapshot: asSnapshot(record) }).start();
    await slow.reached;
    expect(parts.model.calls[0]?.messages).toEqual(record.messages);
    expect(await onlyRecord(empty)).toMatchObject({ iteration: 2, messages: record.messages });
    slow.open();
    await until(() => actor.getSnapshot().status === 'done');
    expect(actor.getSnapshot().output).toMatchObject({ status: 'ok', iterations: 3 });
    expect(await empty.listInterrupted()).toEqual([]);
  });

  test.for([null, {}, { prompt: 7 }, { prompt: 'x', runId: '' }])(
    'given the bad input %j ends with an error as its result, and the host does not hang',
    async (input) => {
      const { executor, agent, model } = hostOf({ store: memoryStore() });
      const host = startHost(hostMachine(executor, agent, input as never));
      expect(await outputOf(host)).toMatchObject({ status: 'error' });
      expect(model.calls).toEqual([]);
    },
  );
});
