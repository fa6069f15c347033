import { memoryStore, type RunInfo } from 'pawl';
import { createCheckpointerFactory } from 'pawl/stores/kit';
import { testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { stateOf } from '../../src/record/state.ts';
import { beginProgress } from '../../src/run/progress.ts';
import { metaOf, statesOf } from '../fixtures/states.ts';
import { watchedStore } from '../fixtures/watched-store.ts';

const info: RunInfo = Object.freeze({
  runId: 'run-1',
  subjectId: 'worker',
  name: 'Worker',
  callerId: 'caller',
  channelId: 'channel',
  guildId: 'guild',
  parentRunId: 'parent',
  modelTier: 'fast',
  prompt: 'Go.',
  inputs: {},
  startedAt: 1,
  maxIterations: 5,
});
const [first, second] = statesOf(1);

describe('the default factory', () => {
  test('makes every run durable, and writes nothing before the first save (checkpoint 23)', async () => {
    const store = watchedStore();
    const checkpointer = await createCheckpointerFactory(store).begin(info);
    expect(checkpointer?.durable).toBe(true);
    expect(store.log).toEqual([]);
  });

  test('shows its store, for recover and list to read (checkpoint 22)', () => {
    const store = memoryStore();
    expect(createCheckpointerFactory(store).store).toBe(store);
  });

  test("the record's nine attributes are those of the RunInfo (checkpoint 1)", async () => {
    const store = memoryStore();
    const checkpointer = await createCheckpointerFactory(store).begin(info);
    await checkpointer?.save(first as never);
    expect((await store.load('run-1'))?.meta).toEqual({
      runId: 'run-1',
      agentId: 'worker',
      agentName: 'Worker',
      callerId: 'caller',
      channelId: 'channel',
      guildId: 'guild',
      prompt: 'Go.',
      modelTier: 'fast',
      parentRunId: 'parent',
    });
  });

  test('without a store gives every run a checkpointer that is not durable and does nothing (checkpoint 15)', async () => {
    const checkpointer = await createCheckpointerFactory(undefined).begin(info);
    expect(checkpointer?.durable).toBe(false);
    await expect(checkpointer?.save(first as never)).resolves.toBeUndefined();
  });

  test('hands throttle and clock on to each checkpointer (checkpoint 16)', async () => {
    const clock = testClock(7);
    const store = watchedStore({}, memoryStore({ clock }));
    const checkpointer = await createCheckpointerFactory(store, { throttleMs: 1_000, clock }).begin(info);
    await checkpointer?.save(first as never);
    await checkpointer?.save(second as never);
    expect(store.methods).toEqual(['save']);
    await clock.advance(1_000);
    expect(store.methods).toEqual(['save', 'append']);
    expect((await store.load('run-1'))?.updatedAt).toBe(1_007);
  });

  test('writes under the claim it was begun with', async () => {
    const store = watchedStore();
    const claim = await store.claim('run-1', 'me', 10_000);
    const checkpointer = await createCheckpointerFactory(store).begin(info, { claim: claim ?? undefined });
    await checkpointer?.save(first as never);
    expect(store.log.at(-1)?.args[1]).toEqual({ claim });
    const stranger = await createCheckpointerFactory(store).begin(info);
    await expect(stranger?.save(second as never)).rejects.toMatchObject({ code: 'RUN_OWNED_ELSEWHERE' });
  });
});

describe('maxRecordBytes', () => {
  test('a save over it is refused before anything is written, and names the largest message (checkpoint 25)', async () => {
    const store = watchedStore();
    const states = statesOf(3, 'run-1', 600);
    const checkpointer = await createCheckpointerFactory(store, { maxRecordBytes: 2_000 }).begin(info);
    await checkpointer?.save(states[1] as never);
    store.log.length = 0;
    await expect(checkpointer?.save(states[3] as never)).rejects.toMatchObject({
      code: 'RECORD_TOO_LARGE',
      message: expect.stringMatching(/run-1.*2000.*message, number [123], has [67]\d\d bytes/),
    });
    expect(store.log).toEqual([]);
  });

  test('counts inputs and images too: a large image is refused with the first record (checkpoint 25)', async () => {
    const store = watchedStore();
    const data = 'A'.repeat(5_000);
    const image = { type: 'file' as const, mediaType: 'image/png', data: { type: 'data' as const, data } };
    const checkpointer = await createCheckpointerFactory(store, { maxRecordBytes: 2_000 }).begin(info);
    const state = { iteration: 0, messages: [], images: [image] };
    await expect(checkpointer?.save(state)).rejects.toMatchObject({ code: 'RECORD_TOO_LARGE' });
    expect(store.log).toEqual([]);
  });

  test("counts the prompt, and any field of a host's own state (checkpoint 25)", async () => {
    const store = watchedStore();
    const long = 'x'.repeat(400_000);
    const factory = createCheckpointerFactory(store, { maxRecordBytes: 300_000 });
    const state = { iteration: 0, messages: [] };
    const tooLarge = { code: 'RECORD_TOO_LARGE' };
    await expect((await factory.begin({ ...info, prompt: long }))?.save(state)).rejects.toMatchObject(tooLarge);
    const ofARun = stateOf(beginProgress(metaOf(), { version: '1', hash: 'h' }), { elapsedMs: 0, seq: 0 });
    await expect((await factory.begin({ ...info, prompt: long }))?.save(ofARun)).rejects.toMatchObject(tooLarge);
    const own = { ...state, notes: long };
    await expect((await factory.begin(info))?.save(own)).rejects.toMatchObject(tooLarge);
    expect(store.log).toEqual([]);
  });
});
