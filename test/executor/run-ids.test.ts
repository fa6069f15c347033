import { defineAgent, memoryStore } from 'pawl';
import { callTool, hang, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { CheckpointCorruptError } from '../../src/values/errors.ts';
import { hostOf, settle, toolOf, until } from '../fixtures/host.ts';
import { afterCrash, onlyRecord, plainStore, watchedStore } from '../fixtures/watched-store.ts';

const tools = [toolOf('look')];

describe("a run id of the caller's", () => {
  test.for([
    ['empty', ''],
    ['of 513 bytes', 'x'.repeat(513)],
    ['of 512 characters that are more bytes', `${'x'.repeat(511)}é`],
    ['with a lone surrogate', 'a\ud800'],
    ['that is no string', 7],
  ] as const)('%s is refused with INVALID_RUN_ID, and nothing is stored (checkpoint 12)', async ([, runId]) => {
    const store = watchedStore();
    const host = hostOf({ store });
    const result = await host.run({ runId: runId as string });
    expect(result).toMatchObject({ status: 'error', error: { code: 'INVALID_RUN_ID' } });
    expect([host.model.calls, store.methods.filter((name) => name !== 'release')]).toEqual([[], []]);
  });

  test.for([
    'x'.repeat(512),
    '../../etc/passwd',
    'a\0b',
    '__proto__',
    'constructor',
    "'; DROP TABLE runs; --",
    '👍'.repeat(128),
    ' ',
  ])('%j is an id like any other (checkpoint 12)', async (runId) => {
    const store = memoryStore();
    const first = hostOf({ script: [callTool('look'), hang()], tools, store });
    const run = await first.start({ runId });
    expect(run.runId).toBe(runId);
    await until(async () => (await store.load(runId))?.iteration === 1);
    const result = await hostOf({ tools, store: await afterCrash(store) }).run({ runId });
    expect(result).toMatchObject({ runId, status: 'ok', iterations: 2 });
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });

  test('absent: the run gets one from the ids port, or a random one', async () => {
    const ids = ['first', 'second'];
    const host = hostOf({ ids: () => ids.shift() as string });
    expect([(await host.run()).runId, (await host.run()).runId]).toEqual(['first', 'second']);
    expect((await hostOf().run()).runId).toMatch(/^[0-9a-f-]{36}$/);
  });
});

describe('a run id from the ids port', () => {
  const ends = { status: 'error', error: { code: 'RUN_ID_CONFLICT' } };

  test('that a stored run has is a conflict, also for the same request: the record is neither replaced nor joined', async () => {
    const store = memoryStore();
    const first = hostOf({ script: [callTool('look'), hang()], tools, store, ids: () => 'taken' });
    await first.start();
    await until(async () => (await store.load('taken'))?.iteration === 1);
    await first.executor.shutdown();
    const before = await onlyRecord(store);
    const host = hostOf({ tools, store, ids: () => 'taken' });
    const run = await host.start();
    expect(run).toMatchObject({ accepted: 'refused', error: { code: 'RUN_ID_CONFLICT' } });
    expect(run.error?.message).toBe(
      'the port ids returned "taken", the id of another run: it must return a new id at each call',
    );
    expect(await run.result).toMatchObject(ends);
    expect(await onlyRecord(store)).toEqual(before);
    expect(host.model.calls).toEqual([]);
  });

  test('that a stored run has is a conflict with a store of four methods, too', async () => {
    const store = memoryStore();
    const first = hostOf({ script: [callTool('look'), hang()], tools, store, ids: () => 'taken' });
    await first.start();
    await until(async () => (await store.load('taken'))?.iteration === 1);
    await first.executor.shutdown();
    const before = await onlyRecord(store);
    const host = hostOf({ tools, store: plainStore(store), ids: () => 'taken' });
    expect(await host.run()).toMatchObject(ends);
    expect(await onlyRecord(store)).toEqual(before);
  });

  test('that a live run has is a conflict, here and in another process, and the live run continues', async () => {
    const store = memoryStore();
    const host = hostOf({ script: [callTool('look'), hang()], tools, store, ids: () => 'taken' });
    const run = await host.start();
    await until(async () => (await store.load('taken'))?.iteration === 1);
    const other = hostOf({ tools, store, ids: () => 'taken' });
    for (const { start } of [host, other]) {
      const second = await start();
      expect(second.accepted).toBe('refused');
      expect(await second.result).toMatchObject(ends);
    }
    expect(run.actor.getSnapshot().status).toBe('active');
    await until(() => host.model.calls.length === 2);
    await host.executor.shutdown();
  });

  test('that two starts of one turn get is a conflict for the second', async () => {
    const host = hostOf({ store: memoryStore(), ids: () => 'taken' });
    const [first, second] = await Promise.all([host.run(), host.run()]);
    expect(first.status).toBe('ok');
    expect(second).toMatchObject(ends);
  });

  test('that an ended run had is a conflict while its outcome is kept, which is not handed out', async () => {
    const host = hostOf({ script: [reply('secret answer')], store: memoryStore(), ids: () => 'taken' });
    await host.run();
    const second = await host.run();
    expect(second).toMatchObject({ ...ends, output: '' });
    expect(await host.executor.get('taken')?.result).toMatchObject({ status: 'ok', output: 'secret answer' });
  });

  test('costs one look at the store; a random id costs none', async () => {
    const store = watchedStore();
    await hostOf({ store, ids: () => 'new' }).run();
    expect(store.methods.filter((name) => name === 'load' || name === 'outcomes.find')).toEqual([
      'load',
      'outcomes.find',
    ]);
    store.log.length = 0;
    await hostOf({ store }).run();
    expect(store.methods.filter((name) => name === 'load' || name === 'outcomes.find')).toEqual([]);
  });

  test.for(['~child', '..', '', 'a\ud800', 7])(
    'that no host may give (%j) is replaced by a random one, with a warning',
    async (id) => {
      const host = hostOf({ ids: () => id as string });
      expect(await host.run()).toMatchObject({ status: 'ok', runId: expect.stringMatching(/^[0-9a-f-]{36}$/) });
      expect(host.warnings).toEqual(['run: the port ids returned no valid run id; a random one is used']);
    },
  );
});

describe('two starts with one id', () => {
  test('in the same turn are one run: the same actor, the same result, one model call', async () => {
    const host = hostOf({ store: memoryStore() });
    const [first, second] = await Promise.all([host.start({ runId: 'r' }), host.start({ runId: 'r' })]);
    expect(second.actor === first.actor).toBe(true);
    expect(await second.result).toBe(await first.result);
    expect(host.model.calls).toHaveLength(1);
  });

  test('while the first is live are one run, also without a store', async () => {
    const host = hostOf({ script: [hang()] });
    const first = await host.start({ runId: 'r' });
    await settle();
    const second = await host.start({ runId: 'r' });
    expect(second.actor === first.actor).toBe(true);
    await second.cancel();
    expect((await first.result).status).toBe('cancelled');
  });

  test('and another prompt or agent are a conflict while the first is live, which continues', async () => {
    const host = hostOf({ script: [hang()], store: memoryStore() });
    const first = await host.start({ runId: 'r' });
    const other = defineAgent({ id: 'other', instructions: 'x' });
    const refused = [
      await host.start({ runId: 'r', prompt: 'Stop.' }),
      await host.executor.start(other, { runId: 'r', prompt: 'Go.' }),
    ];
    for (const { result } of refused)
      expect(await result).toMatchObject({ status: 'error', error: { code: 'RUN_ID_CONFLICT' } });
    expect(host.executor.get('r')?.actor === first.actor).toBe(true);
    expect(first.actor.getSnapshot().status).toBe('active');
  });

  test('of which one is in another process: the second is refused with RUN_OWNED_ELSEWHERE and touches nothing (recovery 3)', async () => {
    const store = watchedStore();
    const first = hostOf({ script: [callTool('look'), hang()], tools, store });
    await first.start({ runId: 'r' });
    await until(async () => (await store.load('r'))?.iteration === 1);
    const before = await onlyRecord(store);
    store.log.length = 0;
    const second = hostOf({ tools, store });
    expect(await second.run({ runId: 'r' })).toMatchObject({ status: 'error', error: { code: 'RUN_OWNED_ELSEWHERE' } });
    expect(store.methods).toEqual(['claim', 'load']);
    expect(await onlyRecord(store)).toEqual(before);
    expect(second.model.calls).toEqual([]);
  });
});

describe('a stored run', () => {
  async function interrupted() {
    const store = memoryStore();
    const host = hostOf({ script: [callTool('look'), hang()], tools, store });
    await host.start({ runId: 'r' });
    await until(async () => (await store.load('r'))?.iteration === 1);
    await host.executor.shutdown();
    return store;
  }

  test.for(['prompt', 'agent'])(
    'is not taken over by a start with another %s: a conflict, the record as it was',
    async (what) => {
      const store = await interrupted();
      const { revision: _, updatedAt: __, ...before } = await onlyRecord(store);
      const host = hostOf({ store, ...(what === 'agent' ? { agent: { id: 'other' } } : {}) });
      for (let attempt = 0; attempt < 5; attempt++) {
        const result = await host.run({ runId: 'r', ...(what === 'prompt' ? { prompt: 'Another.' } : {}) });
        expect(result).toMatchObject({ status: 'error', error: { code: 'RUN_ID_CONFLICT' } });
      }
      expect(await onlyRecord(store)).toMatchObject(before);
      expect(host.model.calls).toEqual([]);
    },
  );

  test('that is damaged ends the start with CHECKPOINT_CORRUPT and keeps its bytes (checkpoint 7)', async () => {
    const store = watchedStore({
      before: ({ method }) => method === 'load' && Promise.reject(new CheckpointCorruptError('messages')),
    });
    const result = await hostOf({ store }).run({ runId: 'r' });
    expect(result).toMatchObject({ status: 'error', error: { code: 'CHECKPOINT_CORRUPT' } });
    expect(store.methods.filter((name) => ['save', 'append', 'delete'].includes(name))).toEqual([]);
  });
});

describe('starts without progress', () => {
  const dies = toolOf('look', 'read', () => new Promise(() => {}));
  /** Starts the run, lets it come to its work, and gives what its death leaves. */
  async function die(store: ReturnType<typeof memoryStore>, isPlain: boolean) {
    const host = hostOf({
      script: [callTool('look')],
      tools: [dies],
      store: isPlain ? plainStore(store) : store,
    });
    const run = await host.start({ runId: 'r' });
    await until(() => run.actor.getSnapshot().status === 'done' || host.model.calls.length === 1);
    return { host, run, left: await afterCrash(store) };
  }

  test.for([
    ['that owns', false],
    ['of four methods', true],
  ] as const)('on a store %s: after three the run is parked instead of a fourth (recovery 2)', async ([, isPlain]) => {
    let store = memoryStore();
    for (const attempts of [1, 2, 3]) {
      const { left } = await die(store, isPlain);
      expect(await onlyRecord(left)).toMatchObject({ attempts });
      store = left;
    }
    const { run, host } = await die(store, isPlain);
    expect(await run.result).toMatchObject({ status: 'error', error: { code: 'RUN_PARKED' } });
    expect(host.model.calls).toEqual([]);
    expect(await store.listInterrupted()).toMatchObject([
      { runId: 'r', status: 'parked', reason: expect.stringContaining('3') },
    ]);
    const again = hostOf({ store });
    expect(await again.run({ runId: 'r' })).toMatchObject({ error: { code: 'RUN_PARKED' } });
    expect(await onlyRecord(store)).toMatchObject({ attempts: 3, parked: { code: 'TOO_MANY_ATTEMPTS' } });
  });

  test.for([false, true])(
    'begin again with each recorded step: a run that dies after each of ten is never parked (plain store: %s) (recovery 2)',
    async (isPlain) => {
      let store = memoryStore();
      for (let step = 1; step <= 10; step++) {
        const host = hostOf({
          script: [callTool('look', { step }), hang()],
          tools,
          store: isPlain ? plainStore(store) : store,
        });
        await host.start({ runId: 'r' });
        await until(async () => (await store.load('r'))?.iteration === step, `step ${step}`);
        store = await afterCrash(store);
        expect(await onlyRecord(store)).toMatchObject({ attempts: 0 });
      }
      expect(await hostOf({ store }).run({ runId: 'r' })).toMatchObject({ status: 'ok', iterations: 11 });
    },
  );

  test('are not counted when the run was left in good order: it may see any number of deploys (recovery 2)', async () => {
    const store = memoryStore();
    for (let deploy = 0; deploy < 8; deploy++) {
      const host = hostOf({ script: [hang()], store });
      const run = await host.start({ runId: 'r' });
      await host.executor.shutdown();
      expect((await run.result).status).toBe('interrupted');
      expect(await onlyRecord(store)).toMatchObject({ attempts: 0 });
      await settle();
    }
    expect(await hostOf({ store }).run({ runId: 'r' })).toMatchObject({ status: 'ok' });
  });

  test('are written before anything of the run is loaded, where the store owns (recovery 2)', async () => {
    const store = watchedStore();
    const host = hostOf({ script: [callTool('look'), hang()], tools, store });
    await host.start({ runId: 'r' });
    await host.executor.shutdown();
    await settle();
    store.log.length = 0;
    let atLoad: unknown;
    const inner = store.load;
    const watched = {
      ...store,
      async load(runId: string) {
        const record = await inner(runId);
        atLoad ??= record?.attempts;
        return record;
      },
    };
    await hostOf({ script: [hang()], tools, store: watched }).start({ runId: 'r' });
    expect(store.methods[0]).toBe('claim');
    expect(atLoad).toBe(1);
  });
});
