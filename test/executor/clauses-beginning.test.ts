import { type CheckpointerFactory, memoryStore, type RunInfo } from 'pawl';
import {
  callTool,
  hang,
  recordingCheckpointer,
  recordingFactory,
  reply,
  type ScriptedEntry,
  testClock,
} from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { hostOf, toolOf, until } from '../fixtures/host.ts';
import { hostMachine, startHost } from '../fixtures/host-machine.ts';
import { afterCrash, onlyRecord } from '../fixtures/watched-store.ts';

const look = toolOf('look');
const steps: ScriptedEntry[] = [callTool('look', { n: 1 }), callTool('look', { n: 2 })];

describe('a run begins', () => {
  test('with its model, then its checkpointer and first record, then its work; its outcome is out before its record goes (executor 2)', async () => {
    const log: string[] = [];
    const say = <T>(word: string, value: T): T => {
      if (log.at(-1) !== word) log.push(word);
      return value;
    };
    const own = recordingCheckpointer();
    const checkpointer: CheckpointerFactory = {
      begin: async () =>
        say('begin', {
          durable: true,
          save: (state, options) => say(state.outcome ? 'save the outcome' : 'save', own.save(state, options)),
          complete: () => say('complete', own.complete()),
          fail: (error) => say('fail', own.fail(error)),
        }),
    };
    const { executor, agent, model } = hostOf({
      script: [() => say('ask the model', callTool('look')), () => say('ask the model', reply('done'))],
      tools: [toolOf('look', 'read', () => say('call the tool', 'seen'))],
      ports: { checkpointer },
      models: () => say('choose a model', model),
      onOutcome: () => say('deliver', undefined),
    });
    expect(await executor.run(agent, { prompt: 'Go.' })).toMatchObject({ status: 'ok' });
    expect(log).toEqual([
      'choose a model',
      'begin',
      'save',
      'ask the model',
      'call the tool',
      'save',
      'ask the model',
      'save the outcome',
      'deliver',
      'complete',
    ]);
  });

  test('or does not, when its tools cannot be put together: nothing of a new run is stored, a resumed one keeps its record (executor 2)', async () => {
    const store = memoryStore();
    const broken = { isForeign: true, tools: [look, toolOf('look')], store };
    const fresh = await hostOf(broken).run({ runId: 'r' });
    expect(fresh).toMatchObject({ status: 'error', durable: false });
    expect(fresh.error?.message).toContain('two tools named "look"');
    expect(await store.listInterrupted()).toEqual([]);

    const first = hostOf({ script: [...steps, hang()], tools: [look], store });
    await first.start({ runId: 'r' });
    await until(async () => (await store.load('r'))?.iteration === 2);
    const left = await afterCrash(store);
    expect(await hostOf({ ...broken, store: left }).run({ runId: 'r' })).toMatchObject({
      status: 'interrupted',
      error: { code: 'SETUP' },
      iterations: 2,
    });
    expect(await left.listInterrupted()).toMatchObject([{ runId: 'r' }]);
  });

  test('with a resume state and no handle: begin is called once, for the same run id, and its record continues (executor 3)', async () => {
    const factory = recordingFactory();
    const store = memoryStore();
    const first = hostOf({ script: [...steps, hang()], tools: [look], store });
    await first.start({ runId: 'r' });
    await until(async () => (await store.load('r'))?.iteration === 2);
    const { messages: history, iteration, usage } = await onlyRecord(store);

    const second = hostOf({ script: [reply('three')], tools: [look], ports: { checkpointer: factory } });
    const result = await second.run({ runId: 'r' }, { resume: { history, iteration, usage } });
    expect(result).toMatchObject({ status: 'ok', output: 'three', iterations: 3 });
    expect(factory.infos.map(({ runId }) => runId)).toEqual(['r']);
    const [checkpointer] = factory.checkpointers;
    expect(checkpointer?.states.map((state) => state.iteration)).toEqual([2, 3]);
    expect(checkpointer?.states[0]?.messages).toEqual(history);
    expect(checkpointer?.completed).toBe(1);
  });
});

describe('what ports know of a run', () => {
  const asked = { runId: 'r', callerId: 'ada', channelId: 'ch', guildId: 'g', parentRunId: 'p', inputs: { depth: 2 } };
  const told = { ...asked, subjectId: 'worker', name: 'Worker', startedAt: 5_000 };
  const agent = { model: 'deep', maxSteps: 7 };

  test('is who asked, what for and within which limits, tier and limits resolved, as one frozen object (executor 4)', async () => {
    const factory = recordingFactory();
    const clock = testClock(5_000);
    const host = hostOf({ ports: { checkpointer: factory }, clock });
    await host.run(asked);
    expect(factory.infos[0]).toMatchObject({ ...told, modelTier: 'fast', maxIterations: 20 });
    const deep = hostOf({ agent, ports: { checkpointer: factory }, clock, models: () => host.model });
    await deep.run(asked);
    expect(factory.infos[1]).toMatchObject({ ...told, modelTier: 'deep', maxIterations: 7 });
    for (const info of factory.infos) expect(Object.isFrozen(info)).toBe(true);
  });

  test('is the same of a run inside a host’s machine (executor 4)', async () => {
    const infos: RunInfo[] = [];
    const checkpointer: CheckpointerFactory = {
      begin: async (info) => {
        infos.push(info);
        return recordingCheckpointer();
      },
    };
    const parts = hostOf({ agent: { maxSteps: 7 }, ports: { checkpointer }, clock: testClock(5_000) });
    const host = startHost(hostMachine(parts.executor, parts.agent, { prompt: 'Go.', ...asked }));
    await until(() => host.getSnapshot().status === 'done');
    expect(infos).toHaveLength(1);
    expect(infos[0]).toMatchObject({ ...told, modelTier: 'fast', maxIterations: 7 });
    expect(Object.isFrozen(infos[0])).toBe(true);
  });
});

describe('the opening turn', () => {
  const images = [
    { mediaType: 'image/png', data: new Uint8Array([1, 2, 3]) },
    { mediaType: 'image/jpeg', data: 'BAUG' },
    { mediaType: 'image/webp', data: new URL('https://example.com/a.webp') },
    { mediaType: 'image/gif', data: 'http://example.com/b.gif' },
  ];
  const file = (mediaType: string, data: object) => ({ type: 'file', mediaType, data });
  const stored = [
    file('image/png', { type: 'data', data: 'AQID' }),
    file('image/jpeg', { type: 'data', data: 'BAUG' }),
    file('image/webp', { type: 'url', url: 'https://example.com/a.webp' }),
    file('image/gif', { type: 'url', url: 'http://example.com/b.gif' }),
  ];
  const sent = [
    ...stored.slice(0, 2),
    file('image/webp', { type: 'url', url: new URL('https://example.com/a.webp') }),
    file('image/gif', { type: 'url', url: new URL('http://example.com/b.gif') }),
  ];

  test('is the prompt and the images, as plain JSON in the record and as the provider wants them in each request (executor 10)', async () => {
    const store = memoryStore();
    const script = [callTool('look'), hang()];
    const first = hostOf({ script, tools: [look], store, agent: { instructions: 'See.' } });
    await first.start({ runId: 'r', prompt: 'What is this?', images });
    await until(async () => (await store.load('r'))?.iteration === 1);
    const opening = { role: 'user', content: [{ type: 'text', text: 'What is this?' }, ...sent] };
    expect(first.model.calls[0]).toMatchObject({ system: 'See.', messages: [opening] });

    const record = await onlyRecord(store);
    expect(record.messages[0]).toEqual({ role: 'user', content: [{ type: 'text', text: 'What is this?' }, ...stored] });
    expect(record.images).toEqual(stored);

    const second = hostOf({ tools: [look], store: await afterCrash(store) });
    const result = await second.run({ runId: 'r', prompt: 'What is this?', images });
    expect(second.model.calls[0]?.messages[0]).toEqual(opening);
    expect(second.model.calls[0]?.messages.filter(({ role }) => role === 'user')).toHaveLength(1);
    expect(result.messages[0]).toEqual(record.messages[0]);
  });

  test('may be images alone (executor 10)', async () => {
    const host = hostOf();
    expect(await host.run({ prompt: '', images: images.slice(0, 1) })).toMatchObject({ status: 'ok' });
    await expect(host.start({ prompt: '' })).rejects.toThrow(TypeError);
    await expect(host.start({ images: [{ mediaType: 'image/png', data: 'file:///a.png' }] })).rejects.toThrow(
      /images\[0\]\.data is a file: URL/,
    );
  });
});
