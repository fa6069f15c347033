import { createPalette, defineAgent, type Executor, memoryStore } from 'pawl';
import { callTool, fail, reply, type ScriptedEntry } from 'pawl/testing';
import { expect, test } from 'vitest';
import { type HostOptions, hostOf, toolOf, until } from '../fixtures/host.ts';
import { hostMachine, outputOf, startHost } from '../fixtures/host-machine.ts';

type Store = ReturnType<typeof memoryStore>;

const refused = () => fail(Object.assign(new Error('no key'), { statusCode: 400 }));
const request = { runId: 'r', prompt: 'Go.' };

const errorOf = (work: Promise<unknown>): Promise<{ code?: string; message: string }> =>
  work.then(
    () => ({ code: 'none', message: '' }),
    (error: { code?: string; message: string }) => error,
  );

/** Makes a run that a retry refuses. @returns its id, and an executor that has its agent */
type Over = (store: Store) => Promise<{ readonly runId: string; readonly executor: Executor }>;

const bad = (store: Store, more: HostOptions = {}) => hostOf({ store, script: [refused()], ...more });

const over: Record<string, { make: Over; says: RegExp }> = {
  'that has its answer': {
    make: async (store) => {
      const { executor, run } = hostOf({ store, retention: { records: '1h' } });
      await run(request);
      return { runId: 'r', executor };
    },
    says: /it has its answer, and does not continue; fork it$/,
  },
  'that has its answer, and whose record is not kept': {
    make: async (store) => {
      const { executor, run } = hostOf({ store });
      await run(request);
      return { runId: 'r', executor };
    },
    says: /it has its answer, and does not continue$/,
  },
  'that a call of another run began': {
    make: async (store) => {
      const child = defineAgent({ id: 'child', instructions: 'Pay.' });
      const script: ScriptedEntry[] = [callTool('agent__child', { prompt: 'Pay.' }), refused(), reply('done')];
      const ports = { palette: createPalette({ agents: [child] }) };
      const host = bad(store, { script, agent: { subAgents: ['child'] }, ports, retention: { records: '1h' } });
      await host.run(request);
      const line = (await host.executor.history()).find(({ runId }) => runId !== 'r');
      expect(line?.status).toBe('error');
      return { runId: line?.runId ?? '', executor: host.executor };
    },
    says: /the run that began it has read its end; retry that one, r, or fork it$/,
  },
  'that is a turn of a thread': {
    make: async (store) => {
      const { executor, agent } = bad(store);
      const { runId } = await executor.thread('t', { agent, callerId: 'ada' }).send({ id: 'm', text: 'Hi.' });
      await until(async () => (await executor.find(runId))?.status === 'ended');
      return { runId, executor };
    },
    says: /retry its message with thread\.retry, send another one, or fork the run$/,
  },
  "of a host's machine": {
    make: async (store) => {
      const { executor, agent } = bad(store);
      expect(await outputOf(startHost(hostMachine(executor, agent)))).toMatchObject({ status: 'error' });
      return { runId: 'r', executor };
    },
    says: /the machine of its host has its end; spawn it again under another id$/,
  },
};

test.for(Object.entries(over))(
  'a run %s is RUN_ENDED for a retry, which says what to do instead, and changes nothing (lab 6)',
  async ([, { make, says }]) => {
    const store = memoryStore();
    const { runId, executor } = await make(store);
    const before = await store.load(runId, { ended: true });
    for (const retry of [() => executor.retry(runId), () => executor.control(runId).retry()]) {
      const { code, message } = await errorOf(retry());
      expect([code, message]).toEqual(['RUN_ENDED', expect.stringMatching(says)]);
    }
    expect(await store.load(runId, { ended: true })).toEqual(before);
  },
);

test('a run of which nothing is stored is RUN_NOT_FOUND for a retry (lab 6)', async () => {
  const { executor } = hostOf({ store: memoryStore() });
  expect((await errorOf(executor.retry('nobody'))).code).toBe('RUN_NOT_FOUND');
});

test('a run of an agent that the executor does not have is AGENT_NOT_FOUND; the retry of its control makes it due (lab 6)', async () => {
  const store = memoryStore();
  await bad(store, { agent: { id: 'other' } }).run(request);
  const { executor } = hostOf({ store });
  expect((await errorOf(executor.retry('r'))).code).toBe('AGENT_NOT_FOUND');
  await executor.control('r').retry({ by: { id: 'ada' } });
  expect((await store.due.list({ limit: 9 })).runs.map(({ runId }) => runId)).toEqual(['r']);
});

test('a retry and a fork are UNSUPPORTED where the store keeps no records of ended runs, and nothing is written (lab 6, 10)', async () => {
  const inner = memoryStore();
  await bad(inner, { tools: [toolOf('look')], script: [callTool('look'), refused()] }).run(request);
  const { history: _, ...store } = inner;
  const { executor } = hostOf({ store: store as Store });
  const before = await inner.load('r', { ended: true });
  expect((await errorOf(executor.retry('r'))).code).toBe('UNSUPPORTED');
  expect((await errorOf(executor.control('r').retry())).code).toBe('UNSUPPORTED');
  expect((await errorOf(executor.fork('r', { at: 1, runId: 'f', effects: 'live' }))).code).toBe('UNSUPPORTED');
  expect(await inner.load('r', { ended: true })).toEqual(before);
  expect(await inner.load('f')).toBeNull();
});

test.for([
  [1, 'erase it, and start it again'],
  [0, 'it did nothing: start it again'],
] as const)(
  'a run of which only the end is kept, after %i steps, is RECORD_GONE for a retry, which says: %s (lab 7)',
  async ([steps, says]) => {
    const store = memoryStore();
    const script = [...(steps ? [callTool('look')] : []), refused()];
    const host = bad(store, { tools: [toolOf('look')], script, retention: { records: 0 } });
    await host.run(request);
    const { code, message } = await errorOf(host.executor.retry('r'));
    expect([code, message]).toEqual(['RECORD_GONE', expect.stringContaining(says)]);
  },
);

test('a run that did nothing, and of which only the end is kept, begins with `start`, with `ifFailed` too (lab 7, 8)', async () => {
  for (const options of [{}, { ifFailed: 'retry' }] as const) {
    const store = memoryStore();
    await bad(store, { retention: { records: 0 } }).run(request);
    const next = hostOf({ store, script: [reply('begun')] });
    const run = await next.start(request, options);
    expect(run.accepted).toBe('started');
    expect(await run.result).toMatchObject({ status: 'ok', output: 'begun', iterations: 1 });
  }
});
