import { memoryStore } from 'pawl';
import { createCheckpointerFactory } from 'pawl/stores/kit';
import { callTool, hang, recordingFactory, reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { hostOf, settle, toolOf, until } from '../fixtures/host.ts';
import { look, tell, two } from '../fixtures/phases.ts';
import {
  headOfWrite,
  isWrite,
  onlyRecord,
  plainStore,
  type StoreCall,
  watchedStore,
} from '../fixtures/watched-store.ts';

const three = [...two, { name: 'c', instructions: 'C saw {{.b}}' }];
const replies = () => [reply('one'), reply('two'), reply('three')];
const namesIn = (call: StoreCall) =>
  headOfWrite(call)
    ?.completedPhases.map(({ name }) => name)
    .join('') ?? '';

describe('after each phase', () => {
  test('there is a save by force, with all that are complete in their order (pipeline 7)', async () => {
    const factory = recordingFactory();
    const { run } = hostOf({ agent: { phases: three }, script: replies(), ports: { checkpointer: factory } });
    await run();
    const { states = [], forced = [] } = factory.checkpointers[0] ?? {};
    const complete = states.map(({ completedPhases = [] }) => completedPhases.map(({ name }) => name).join(''));
    expect(complete).toEqual(['', 'a', 'ab', 'abc', 'abc']);
    expect(forced).toEqual(complete.map(() => true));
    expect(states[2]?.completedPhases).toMatchObject([
      { name: 'a', output: 'one', index: 0, hash: expect.any(String) },
      { name: 'b', output: 'two', index: 1, hash: expect.any(String) },
    ]);
  });

  test('the throttle puts nothing off (pipeline 7, checkpoint 18)', async () => {
    const clock = testClock();
    const store = memoryStore({ clock });
    const host = hostOf({
      agent: { phases: two },
      tools: [toolOf('look')],
      script: [callTool('look'), reply('one'), callTool('look'), hang()],
      ports: { checkpointer: createCheckpointerFactory(store, { throttleMs: 60_000, clock }) },
      clock,
    });
    const run = await host.start({ runId: 'r' });
    await until(() => host.model.calls.length === 4);
    await settle();
    // The boundary is there at once; the step behind it waits for the window to end.
    expect(await store.load('r')).toMatchObject({ completedPhases: [{ name: 'a', output: 'one' }], iteration: 2 });
    await clock.advance(60_000);
    expect(await store.load('r')).toMatchObject({ openPhase: { index: 1 }, iteration: 3 });
    await run.cancel();
  });

  test('the record holds the outputs, the messages of the phases, and where each begins (checkpoint 3)', async () => {
    const store = memoryStore();
    const host = hostOf({
      agent: { phases: two },
      tools: [toolOf('look', 'read', async () => 'a very long text')],
      store,
      script: [callTool('look'), reply('one'), hang()],
    });
    const run = await host.start({ runId: 'r' });
    await until(async () => (await store.load('r'))?.completedPhases.length === 1);
    const record = await onlyRecord(store);
    expect(record).toMatchObject({ completedPhases: [{ from: 0 }], iteration: 2, attempts: 0 });
    expect(record.messages).toHaveLength(4);
    expect(record).not.toHaveProperty('openPhase');
    expect(JSON.stringify(record)).toContain('a very long text');
    await run.cancel();
  });

  test.for([
    ['appends', (store: ReturnType<typeof watchedStore>) => store],
    ['has four methods', plainStore],
  ] as const)(
    'the record of a store that %s gets the messages of each phase, each of them once (checkpoint 3)',
    async ([, as]) => {
      const inner = watchedStore();
      const sizes: number[] = [];
      const store = watchedStore(
        { after: async () => sizes.push((await inner.load('r'))?.messages.length ?? 0) },
        inner,
      );
      const steps = [1, 2].flatMap((n) => [callTool('look', { n }), callTool('look', { n: -n }), reply('x')]);
      const host = hostOf({ agent: { phases: two }, tools: [toolOf('look')], store: as(store), script: steps });
      expect(await host.run({ runId: 'r' })).toMatchObject({ status: 'ok', saveErrors: 0 });
      expect(sizes.filter((size, i) => size !== sizes[i - 1])).toEqual([0, 1, 3, 5, 6, 8, 10, 11, 0]);
      // Only the first record is written whole.
      if (as(store) === store) expect(store.methods.filter((method) => method === 'save')).toHaveLength(1);
    },
  );
});

describe('a save at the end of a phase that fails', () => {
  /** A store that refuses the first write which says that phase a is complete. */
  const refusing = () => {
    let isRefused = false;
    return watchedStore({
      before: (call) => {
        if (isRefused || !isWrite(call) || namesIn(call) !== 'a') return;
        isRefused = true;
        throw new Error('the disk is busy');
      },
    });
  };

  const onSaveError = { maxUnsavedSteps: 0 };

  test('is made good by the next: beyond maxUnsavedSteps nothing of the next phase is acted upon before (pipeline 7)', async () => {
    const clock = testClock();
    const store = refusing();
    const looked: string[] = [];
    const tools = [toolOf('look', 'read', (_, { callId }) => looked.push(callId))];
    const script = [reply('one'), callTool('look'), reply('two')];
    const host = hostOf({ agent: { phases: two }, tools, script, store, clock, onSaveError });
    const run = await host.start({ runId: 'r' });
    await until(() => host.model.calls.length === 2);
    await settle();
    expect([looked, (await store.load('r'))?.completedPhases]).toEqual([[], []]);
    await clock.advance(250);
    await until(async () => looked.length === 1);
    expect(await run.result).toMatchObject({ status: 'ok', output: 'two', saveErrors: 1 });
    expect([...new Set(store.log.filter(isWrite).map(namesIn))]).toEqual(['', 'a', 'ab']);
  });

  test('is made good by what is saved meanwhile, a steered message for example (pipeline 7)', async () => {
    const clock = testClock();
    const store = refusing();
    const script = [reply('one'), callTool('look'), reply('two')];
    const tools = [toolOf('look')];
    const host = hostOf({ agent: { phases: two }, tools, script, store, clock, onSaveError });
    const run = await host.start({ runId: 'r' });
    await until(() => host.model.calls.length === 2);
    await settle();
    expect(await run.steer('also X')).toBe('durable');
    expect((await store.load('r'))?.completedPhases).toMatchObject([{ name: 'a', output: 'one' }]);
    expect(await run.result).toMatchObject({ status: 'ok', output: 'two', saveErrors: 1 });
  });

  test('ends the run where the host wants that: the next phase does nothing (pipeline 7, checkpoint 21)', async () => {
    const looked: string[] = [];
    const tools = [toolOf('look', 'read', (_, { callId }) => looked.push(callId))];
    const host = hostOf({
      agent: { phases: [look, { ...tell, optional: true }] },
      tools,
      script: [reply('one'), callTool('look'), reply('two')],
      store: refusing(),
      // biome-ignore lint/suspicious/noThenProperty: the option is called so
      onSaveError: { maxUnsavedSteps: 0, then: 'fail' },
    });
    const result = await host.run({ runId: 'r' });
    const error = { code: 'STORE_UNAVAILABLE', cause: { message: 'the disk is busy' } };
    expect(result).toMatchObject({ status: 'error', output: 'one', error });
    expect(looked).toEqual([]);
  });
});
