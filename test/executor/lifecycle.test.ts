import { createExecutor, memoryStore } from 'pawl';
import { createCheckpointerFactory, type RunCheckpointState } from 'pawl/stores/kit';
import { callTool, fail, recordingCheckpointer, recordingFactory, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { RECORD_VERSION } from '../../src/record/checkpoint.ts';
import { hostOf, toolOf } from '../fixtures/host.ts';
import { onlyRecord, plainStore, watchedStore } from '../fixtures/watched-store.ts';

const three = [callTool('look', { n: 1 }), callTool('look', { n: 2 }), reply('found')];
const tools = [toolOf('look')];
const invocation = {
  runId: 'run-1',
  prompt: 'Find it.',
  callerId: 'caller',
  channelId: 'channel',
  guildId: 'guild',
  parentRunId: 'parent',
  inputs: { depth: 2 },
};
const roles = (state: RunCheckpointState | undefined) => state?.messages?.map(({ role }) => role);

describe('a run with a checkpointer', () => {
  test('begins once, with a frozen RunInfo that carries run id, subject, tier and guild (executor 4)', async () => {
    const factory = recordingFactory();
    const host = hostOf({ ports: { checkpointer: factory }, agent: { maxSteps: 7, model: 'fast' } });
    await host.run(invocation);
    expect(factory.infos).toEqual([
      {
        runId: 'run-1',
        subjectId: 'worker',
        name: 'Worker',
        callerId: 'caller',
        channelId: 'channel',
        guildId: 'guild',
        parentRunId: 'parent',
        modelTier: 'fast',
        prompt: 'Find it.',
        inputs: { depth: 2 },
        startedAt: expect.any(Number),
        maxIterations: 7,
      },
    ]);
    expect(Object.isFrozen(factory.infos[0])).toBe(true);
    expect(Object.isFrozen(factory.infos[0]?.inputs)).toBe(true);
  });

  test('saves its transcript at each step and completes, once (executor 11)', async () => {
    const factory = recordingFactory();
    const host = hostOf({ script: three, tools, ports: { checkpointer: factory } });
    const result = await host.run(invocation);
    const [checkpointer] = factory.checkpointers;
    const steps = checkpointer?.states ?? [];
    expect(steps.map(({ iteration }) => iteration)).toEqual([0, 1, 2, 3]);
    expect(steps.map(roles)).toEqual([
      ['user'],
      ['user', 'assistant', 'tool'],
      ['user', 'assistant', 'tool', 'assistant', 'tool'],
      ['user', 'assistant', 'tool', 'assistant', 'tool', 'assistant'],
    ]);
    expect(steps.map(({ outcome }) => outcome?.status)).toEqual([undefined, undefined, undefined, 'ok']);
    expect(steps.at(-1)?.messages).toEqual(result.messages);
    expect([checkpointer?.completed, checkpointer?.failed]).toEqual([1, 0]);
    expect(result).toMatchObject({ status: 'ok', output: 'found', iterations: 3, durable: true, saveErrors: 0 });
  });

  test('fails its checkpoint with the error when it ends with one (finalize 1)', async () => {
    const factory = recordingFactory();
    const host = hostOf({
      script: [fail(Object.assign(new Error('the model is down'), { statusCode: 400 }))],
      ports: { checkpointer: factory },
    });
    const result = await host.run();
    const [checkpointer] = factory.checkpointers;
    expect([checkpointer?.completed, checkpointer?.failed]).toEqual([0, 1]);
    expect(checkpointer?.error).toMatchObject({ code: 'MODEL', message: expect.stringContaining('the model is down') });
    expect(result).toMatchObject({ status: 'error', error: { code: 'MODEL' } });
  });

  test('is a recovery candidate until it completes, and then no more (checkpoint 8)', async () => {
    const store = memoryStore();
    const seen: number[] = [];
    const look = toolOf('look', 'read', async () => {
      seen.push((await store.listInterrupted()).length);
    });
    const result = await hostOf({ script: three, tools: [look], store }).run(invocation);
    expect(seen).toEqual([1, 1]);
    expect(result.status).toBe('ok');
    expect(await store.listInterrupted()).toEqual([]);
    expect(await store.load('run-1')).toBeNull();
  });

  test('has its first record in the store when start resolves, with all nine attributes (checkpoint 1, 23)', async () => {
    for (const store of [memoryStore(), plainStore()]) {
      const host = hostOf({ script: [() => new Promise(() => {})], store });
      await host.start({ ...invocation, images: [{ mediaType: 'image/png', data: new Uint8Array([1, 2, 3]) }] });
      const { inputs: _, ...attributes } = invocation;
      const record = await onlyRecord(store);
      expect(record.meta).toEqual({ ...attributes, agentId: 'worker', agentName: 'Worker', modelTier: 'fast' });
      expect(record).toMatchObject({ version: RECORD_VERSION, iteration: 0, attempts: 1, inputs: { depth: 2 } });
      expect(record.images).toEqual([{ type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'AQID' } }]);
    }
  });

  test('has the empty string for each attribute that is not given (checkpoint 1)', async () => {
    const factory = recordingFactory();
    await hostOf({ ports: { checkpointer: factory }, agent: { name: 'W' } }).run({ runId: 'r' });
    expect(factory.infos[0]).toMatchObject({ callerId: '', channelId: '', guildId: '', parentRunId: '', inputs: {} });
  });

  test('claims, reads, begins and saves in this order, and the claim goes with the record (executor 2)', async () => {
    const store = watchedStore();
    const factory = createCheckpointerFactory(store);
    const begin: typeof factory.begin = async (...args) => {
      store.log.push({ method: 'begin' as never, args });
      return factory.begin(...args);
    };
    await hostOf({ ports: { checkpointer: { ...factory, begin } } }).run(invocation);
    const order = store.methods.filter((name) => name !== 'append');
    expect(order).toEqual(['claim', 'load', 'outcomes.find', 'begin', 'save', 'outcomes.keep', 'delete']);
  });

  test('that was given in the options is used instead of the factory, and needs none (executor 3)', async () => {
    const factory = recordingFactory();
    for (const ports of [{ ports: { checkpointer: factory } }, {}]) {
      const own = recordingCheckpointer();
      const result = await hostOf({ script: three, tools, ...ports }).run({}, { checkpointer: own });
      expect(result).toMatchObject({ status: 'ok', durable: true });
      expect(own.states.at(-1)?.iteration).toBe(3);
      expect(own.completed).toBe(1);
    }
    expect(factory.infos).toEqual([]);
  });

  test('written by a host with save, complete and fail only counts as durable (checkpoint 24)', async () => {
    const calls: string[] = [];
    const note = (name: string) => async () => void calls.push(name);
    const own = { save: note('save'), complete: note('complete'), fail: note('fail') };
    expect((await hostOf().run({}, { checkpointer: own })).durable).toBe(true);
    expect(calls.at(-1)).toBe('complete');
  });
});

test.for([
  ['no options', undefined],
  ['models null', { models: null }],
  ['no tier in models', { models: {} }],
  ['a default of 0', { models: { fast: {} }, defaults: { maxSteps: 0 } }],
  ['a default that is no number', { models: { fast: {} }, defaults: { leaseMs: 'soon' } }],
  ['a default that is none', { models: { fast: {} }, defaults: { retention: { outcomes: 500 } } }],
] as const)('an executor is not made with %s: a TypeError says what is wrong (executor 6)', ([, options]) => {
  expect(() => createExecutor(options as never)).toThrow(TypeError);
});

test('a wrong call of start rejects with a TypeError, and nothing else does', async () => {
  const host = hostOf();
  await expect(host.executor.start({} as never, { prompt: 'x' })).rejects.toThrow(TypeError);
  await expect(host.start({ prompt: '  ' })).rejects.toThrow(TypeError);
  await expect(host.start({ prompt: 7 as never })).rejects.toThrow(TypeError);
  await expect(host.start({ callerId: 7 as never })).rejects.toThrow(TypeError);
  await expect(host.executor.start(host.agent, undefined as never)).rejects.toThrow(TypeError);
});

test('an unknown tier ends the run with a typed error before anything is begun or stored (executor 2)', async () => {
  const store = watchedStore();
  const factory = recordingFactory();
  for (const options of [{ store }, { ports: { checkpointer: factory } }]) {
    const result = await hostOf({ ...options, agent: { model: 'deep' } }).run({ runId: 'run-1' });
    expect(result).toMatchObject({ status: 'error', error: { code: 'UNKNOWN_TIER' } });
  }
  expect(factory.infos).toEqual([]);
  expect(store.methods.filter((name) => name === 'save')).toEqual([]);
  expect(store.methods.at(-1)).toBe('release');
});
