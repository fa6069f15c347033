import { memoryStore, type Run } from 'pawl';
import { callTool, hang, reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { createActor, setup } from 'xstate';
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
import { afterCrash, onlyRecord, plainStore, watchedStore } from '../fixtures/watched-store.ts';

const tools = [toolOf('look')];
const DAY_MS = 86_400_000;

describe('a hosted run that is stopped while it resolves', () => {
  test('leaves its record as it was: nothing that was recorded is written over (promise b)', async () => {
    const { snapshot, store } = await afterTwoSteps();
    const left = await afterCrash(store);
    const before = await onlyRecord(left);
    const slow = gate();
    const checkpoints = watchedStore({ before: ({ method }) => method === 'load' && slow.pass() }, left);
    const parts = hostOf({ tools, script: [hang()], store: checkpoints });
    const host = restoreHost(hostMachine(parts.executor, parts.agent), snapshot);
    await slow.reached;
    host.send({ type: 'leave' });
    slow.open();
    await until(() => checkpoints.methods.includes('release'));
    await settle();
    const { messages, iteration, usage } = await onlyRecord(left);
    expect({ messages, iteration, usage }).toEqual({
      messages: before.messages,
      iteration: before.iteration,
      usage: before.usage,
    });
    const next = hostOf({ tools, store: left });
    expect(await next.run({ runId: 'r' })).toMatchObject({ status: 'ok', iterations: 3 });
  });

  test('keeps the outcome that was only to be delivered, and the next start delivers it (promise e)', async () => {
    const store = memoryStore();
    const first = hostOf({ script: [reply('the answer')], store, onOutcome: () => new Promise(() => {}) });
    void first.run({ runId: 'r' });
    await until(async () => (await store.load('r'))?.outcome);
    const left = await afterCrash(store);
    const second = hostOf({ script: [], store: left });
    const starting = second.start({ runId: 'r' });
    (second.executor.get('r') as Run).actor.stop();
    await (await starting).result;
    const delivered: unknown[] = [];
    const onOutcome = ({ output }: { output: string }) => void delivered.push(output);
    const third = hostOf({ script: [], store: left, onOutcome });
    expect(await third.run({ runId: 'r' })).toMatchObject({ status: 'ok', output: 'the answer' });
    expect(delivered).toEqual(['the answer']);
  });
});

describe('a host that continues while its executor shuts down', () => {
  test('begins no further run: the first is left, and its host gets no end (executor 8, edges 14)', async () => {
    const store = memoryStore();
    const { executor, agent, model } = hostOf({ script: [hang(), hang()], store });
    const { createMachine } = setup({ actors: { run: executor.logic(agent) } });
    const invoked = (runId: string) => ({ src: 'run' as const, input: { prompt: 'Go.', runId } });
    const chain = createMachine({
      initial: 'first',
      states: {
        first: { invoke: { ...invoked('first'), onDone: 'second' } },
        second: { invoke: { ...invoked('second'), onDone: 'done' } },
        done: { type: 'final' },
      },
    });
    const host = createActor(chain).start();
    await until(() => model.calls.length === 1);
    await executor.shutdown();
    expect(host.getSnapshot().value).toBe('first');
    expect(model.calls).toHaveLength(1);
    expect(executor.runs.get()).toEqual([]);
    expect((await store.listInterrupted()).map(({ runId }) => runId)).toEqual(['first']);
  });
});

describe('a snapshot that is taken again while a restored run resolves', () => {
  test.for([
    ['durable', memoryStore()],
    ['not durable', null],
  ] as const)('says where the run was: it is %s', async ([, store]) => {
    const { snapshot } = await afterTwoSteps(store);
    const parts = hostOf({ script: [hang()], tools, ...(store ? { store } : {}) });
    const host = restoreHost(hostMachine(parts.executor, parts.agent), snapshot);
    expect(childOf(host.getPersistedSnapshot())).toEqual(childOf(snapshot));
    await parts.executor.shutdown();
  });

  test('says so also of one that got a message, and is refused: the sender gets an error', async () => {
    const { snapshot, store } = await afterTwoSteps();
    const slow = gate();
    const checkpoints = watchedStore(
      {
        before: async ({ method }) => {
          if (method !== 'load') return;
          await slow.pass();
          throw new Error('down');
        },
      },
      await afterCrash(store),
    );
    const { executor, agent } = hostOf({ tools, script: [], store: checkpoints });
    const actor = createActor(executor.logic(agent), { snapshot: childOf(snapshot) }).start();
    await slow.reached;
    const steered = (executor.get('r') as Run).steer('more');
    const leaving = executor.shutdown();
    slow.open();
    await expect(steered).rejects.toMatchObject({ code: 'UNDELIVERED' });
    await leaving;
    expect(roundTrip(actor.getPersistedSnapshot())).toEqual(childOf(snapshot));
  });

  test('begins nothing again: a reference stays one, and the `once` call the only one (promise c)', async () => {
    const clock = testClock();
    const paying = gate();
    let effects = 0;
    const pay = toolOf('pay', 'once', async () => {
      effects += 1;
      await paying.pass();
    });
    const store = memoryStore({ clock });
    const options = {
      script: [callTool('pay'), reply('paid')],
      tools: [pay],
      ...{ store, clock, retention: { outcomes: DAY_MS } },
    };
    const { executor, agent } = hostOf(options);
    const host = startHost(hostMachine(executor, agent));
    await paying.reached;
    const reference = roundTrip(host.getPersistedSnapshot());
    paying.open();
    await outputOf(host);
    await clock.advance(2 * DAY_MS);
    const second = restored(reference, options).host;
    const again = roundTrip(second.getPersistedSnapshot());
    second.stop();
    await settle();
    expect(await outputOf(restored(again, options).host)).toMatchObject({ error: { code: 'RUN_NOT_FOUND' } });
    expect(effects).toBe(1);
  });
});

describe('a snapshot that was taken before the first record was stored', () => {
  /** A host that persisted at once; then its run paid, and ended. */
  async function persistedAtOnce(outcomes: number, isPlain = false) {
    const clock = testClock();
    const store = memoryStore({ clock });
    const state = { effects: 0 };
    const options = {
      script: [callTool('pay'), reply('paid')],
      tools: [toolOf('pay', 'once', () => `paid ${++state.effects}`)],
      ...{ store: isPlain ? plainStore(store) : store, clock, retention: { outcomes } },
    };
    const { executor, agent } = hostOf(options);
    const host = startHost(hostMachine(executor, agent));
    const snapshot = roundTrip(host.getPersistedSnapshot());
    const end = async () => void (await outputOf(host));
    return { clock, store, state, options, snapshot, end };
  }

  test('is whole, and begins the run when its process died at once', async () => {
    const { snapshot, options, state } = await persistedAtOnce(DAY_MS);
    expect(childOf(snapshot)).toMatchObject({ unstored: true, status: 'active', meta: { runId: 'r' } });
    const next = restored(snapshot, { ...options, store: memoryStore() });
    expect(await outputOf(next.host)).toMatchObject({ status: 'ok', output: 'paid' });
    expect(state.effects).toBeGreaterThan(0);
  });

  test('answers with the outcome as long as that is kept', async () => {
    const { snapshot, options, end, state } = await persistedAtOnce(DAY_MS);
    await end();
    expect(await outputOf(restored(snapshot, options).host)).toMatchObject({ status: 'ok', output: 'paid' });
    expect(state.effects).toBe(1);
  });

  test.for([
    ['the outcome of its run may be forgotten', DAY_MS, false],
    ['outcomes are not kept', 0, false],
    ['the store keeps no outcomes', DAY_MS, true],
  ] as const)(
    'begins nothing again where %s: RUN_NOT_FOUND, and the `once` call stays the only one (promise c)',
    async ([, outcomes, isPlain]) => {
      const { clock, snapshot, options, end, state } = await persistedAtOnce(outcomes, isPlain);
      await end();
      await clock.advance(DAY_MS + 1);
      const next = restored(snapshot, options);
      expect(await outputOf(next.host)).toMatchObject({ status: 'error', error: { code: 'RUN_NOT_FOUND' } });
      expect(state.effects).toBe(1);
    },
  );
});
