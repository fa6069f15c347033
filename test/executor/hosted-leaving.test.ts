import { memoryStore } from 'pawl';
import { createCheckpointerFactory } from 'pawl/stores/kit';
import { callTool, hang, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { gate, hostOf, settle, toolOf, until } from '../fixtures/host.ts';
import {
  afterTwoSteps,
  type Host,
  type HostMachine,
  hostMachine,
  outputOf,
  restoreHost,
  startHost,
} from '../fixtures/host-machine.ts';
import { afterCrash, onlyRecord, watchedStore } from '../fixtures/watched-store.ts';

const tools = [toolOf('look')];

describe('a host that leaves the state which invoked the run', () => {
  test('leaves the run: record kept without a failed start, claim released, status interrupted', async () => {
    const { host, executor, store } = await afterTwoSteps();
    const handle = executor.get('r');
    host.send({ type: 'leave' });
    expect(await handle?.result).toMatchObject({
      status: 'interrupted',
      error: { code: 'ERR_SHUTDOWN' },
      iterations: 2,
    });
    expect(await onlyRecord(store)).toMatchObject({ iteration: 2, attempts: 0 });
    const next = hostOf({ tools, store });
    expect(await next.run({ runId: 'r' })).toMatchObject({ status: 'ok', iterations: 3 });
  });

  test('leaves it with its newest state, past the throttle', async () => {
    const store = memoryStore();
    const checkpointer = createCheckpointerFactory(store, { throttleMs: 3_600_000 });
    const parts = hostOf({
      script: [callTool('look', { n: 1 }), callTool('look', { n: 2 }), hang()],
      tools,
      ports: { checkpointer },
    });
    const host = startHost(hostMachine(parts.executor, parts.agent));
    await until(() => parts.model.calls.length === 3);
    expect((await onlyRecord(store)).iteration).toBe(0);
    const handle = parts.executor.get('r');
    host.send({ type: 'leave' });
    await handle?.result;
    expect(await onlyRecord(store)).toMatchObject({ iteration: 2, attempts: 0 });
  });

  test('aborts the model call that was under way', async () => {
    const { host, model } = await afterTwoSteps();
    host.send({ type: 'leave' });
    await settle();
    expect(model.calls[2]?.signal?.aborted).toBe(true);
  });

  test.for(['claim', 'load', 'outcomes.find', 'save'])(
    'while the run resolves, in store.%s: the claim is released and no timer is left',
    async (method) => {
      const slow = gate();
      let isFirst = true;
      const pending = new Set<unknown>();
      const clock = {
        now: () => 0,
        monotonic: () => 0,
        setTimeout: (callback: () => void) => {
          pending.add(callback);
          return callback;
        },
        clearTimeout: (timer: unknown) => void pending.delete(timer),
      };
      const inner = memoryStore({ clock });
      const store = watchedStore({ before: (call) => call.method === method && isFirst && slow.pass() }, inner);
      const parts = hostOf({ script: [hang()], store, clock });
      const host = startHost(hostMachine(parts.executor, parts.agent));
      await slow.reached;
      isFirst = false;
      host.send({ type: 'leave' });
      await settle();
      slow.open();
      await settle(50);
      expect(await inner.claim('r', 'another', 1_000)).not.toBeNull();
      expect(pending.size).toBe(0);
      expect(parts.model.calls).toEqual([]);
    },
  );

  test('while the run ends does not end it twice: the outcome stands', async () => {
    const slow = gate();
    const store = watchedStore({ before: ({ method }) => method === 'delete' && slow.pass() });
    const parts = hostOf({ store });
    const host = startHost(hostMachine(parts.executor, parts.agent));
    await slow.reached;
    host.send({ type: 'leave' });
    slow.open();
    await until(async () => (await store.listInterrupted()).length === 0);
    await settle();
    expect(await hostOf({ store }).run({ runId: 'r' })).toMatchObject({ status: 'ok', output: 'done' });
  });

  test('after run.cancel was sent to the run, ends it as cancelled', async () => {
    const { host, executor, store } = await afterTwoSteps();
    const handle = executor.get('r');
    handle?.actor?.send({ type: 'run.cancel', reason: 'enough' });
    host.send({ type: 'leave' });
    await until(async () => (await store.listInterrupted()).length === 0);
    expect(await handle?.result).toMatchObject({ status: 'cancelled' });
  });
});

describe('one run, known to several', () => {
  const counting = () => {
    let runs = 0;
    return { tool: toolOf('look', 'once', () => ++runs), count: () => runs };
  };

  test.for(['recover first', 'host first'])(
    'to a restored host and to recover(): it runs once, and the host gets the result (%s)',
    async (order) => {
      const { snapshot, store } = await afterTwoSteps();
      const left = await afterCrash(store);
      const { tool, count } = counting();
      const parts = hostOf({ script: [callTool('look', { n: 3 }), reply('once')], tools: [tool], store: left });
      const machine = hostMachine(parts.executor, parts.agent);
      let host: Host | undefined;
      const restore = () => {
        host = restoreHost(machine as HostMachine, snapshot);
      };
      if (order === 'host first') restore();
      const recovery = parts.executor.recover();
      if (order === 'recover first') {
        await until(() => parts.executor.get('r'));
        restore();
      }
      await recovery;
      expect(await outputOf(host as Host)).toMatchObject({ status: 'ok', output: 'once', iterations: 4 });
      expect([parts.model.calls.length, count()]).toEqual([2, 1]);
      expect(await left.listInterrupted()).toEqual([]);
    },
  );

  test('to a host and to start: the second gets the result of the first', async () => {
    const { host, executor, agent } = await afterTwoSteps();
    const run = await executor.start(agent, { prompt: 'Go.', runId: 'r' });
    const result = await run.cancel();
    expect(result.status).toBe('cancelled');
    expect(await outputOf(host)).toMatchObject({ status: 'cancelled' });
  });
});
