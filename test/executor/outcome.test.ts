import { memoryStore, type RunOutcome } from 'pawl';
import { callTool, fail, hang, reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { LeaseLostError } from '../../src/values/errors.ts';
import { endId } from '../fixtures/child-id.ts';
import { hostOf, settle, toolOf, until } from '../fixtures/host.ts';
import {
  afterCrash,
  headOfWrite,
  isWrite,
  onlyRecord,
  plainStore,
  watchedStore,
  withoutMarks,
} from '../fixtures/watched-store.ts';

const script = () => [callTool('look'), reply('the answer')];
const tools = [toolOf('look')];

describe('the outcome of a run', () => {
  test.for([
    ['ok', script()],
    ['error', [callTool('look'), fail(Object.assign(new Error('down'), { statusCode: 400 }))]],
  ] as const)('with status %s is in the record before the record goes (finalize 6)', async ([status, entries]) => {
    let found: unknown;
    const inner = memoryStore();
    const store = watchedStore(
      {
        before: async ({ method }) => {
          if (method === 'delete' || method === 'history.end') found = await inner.load('r');
        },
      },
      inner,
    );
    const result = await hostOf({ script: entries, tools, store }).run({ runId: 'r' });
    expect(result.status).toBe(status);
    const { messages, ...rest } = result;
    expect(found).toMatchObject({ outcome: { ...rest, outcomeId: endId('r') }, messages });
    expect(await inner.load('r')).toBeNull();
  });

  test('is handed to onOutcome when it is durable and before the record goes (finalize 6)', async () => {
    const order: string[] = [];
    const store = watchedStore({
      before: (call) => void order.push(headOfWrite(call)?.outcome ? 'outcome stored' : call.method),
    });
    const onOutcome = async () => void order.push('delivered');
    await hostOf({ script: script(), tools, store, onOutcome }).run({ runId: 'r' });
    expect(order.filter((name) => ['outcome stored', 'delivered', 'delete'].includes(name))).toEqual([
      'outcome stored',
      'delivered',
      'delete',
    ]);
  });

  /** A store that refuses the outcome so many times. */
  const refusing = (times: number, error: Error = new Error('disk gone')) => {
    let left = times;
    return watchedStore({
      before: (call) => headOfWrite(call)?.outcome && left-- > 0 && Promise.reject(error),
    });
  };

  test('is tried again when its save is refused, and delivered when it is durable (finalize 6)', async () => {
    const delivered: RunOutcome[] = [];
    const store = refusing(2);
    const host = hostOf({ store, onOutcome: (outcome) => void delivered.push(outcome) });
    expect(await host.run({ runId: 'r' })).toMatchObject({ status: 'ok', saveErrors: 1 });
    expect(delivered).toHaveLength(1);
    expect(await store.load('r')).toBeNull();
    expect(host.warnings).toEqual([]);
  });

  test('that cannot be stored is not delivered: the record stays, and the next start ends the run, once (finalize 6)', async () => {
    const delivered: RunOutcome[] = [];
    const onOutcome = (outcome: RunOutcome) => void delivered.push(outcome);
    const store = refusing(4);
    const clock = testClock();
    const host = hostOf({ script: script(), tools, store, clock, onOutcome });
    const run = await host.start({ runId: 'r' });
    await clock.advance(1_000);
    expect(await run.result).toMatchObject({ status: 'ok', output: 'the answer' });
    expect(host.warnings).toEqual(['run: checkpoint complete failed']);
    expect(delivered).toEqual([]);
    expect((await onlyRecord(store)).iteration).toBe(1);
    const next = hostOf({ script: [reply('the answer')], tools, store, onOutcome });
    await next.executor.recover();
    expect((await next.executor.get('r')?.result)?.status).toBe('ok');
    expect(delivered).toHaveLength(1);
  });

  test('that no record can hold ends the run all the same: trying again would not help (checkpoint 25)', async () => {
    const store = refusing(1, Object.assign(new Error('too large'), { code: 'RECORD_TOO_LARGE' }));
    const host = hostOf({ store });
    expect((await host.run({ runId: 'r' })).status).toBe('ok');
    expect(host.warnings).toEqual(['run: outcome save failed']);
    expect(await store.load('r')).toBeNull();
  });

  test('of a run without a store is delivered too', async () => {
    const delivered: RunOutcome[] = [];
    const onOutcome = (outcome: RunOutcome) => void delivered.push(outcome);
    await hostOf({ onOutcome }).run({ runId: 'r' });
    expect(delivered).toMatchObject([
      { runId: 'r', status: 'ok', output: 'done', durable: false, outcomeId: expect.stringMatching(/^r:/) },
    ]);
  });

  test.for([
    ['rejects', () => Promise.reject(new Error('bus down'))],
    [
      'throws',
      () => {
        throw new Error('bus down');
      },
    ],
  ] as const)(
    'whose delivery %s stays in the record on a store without marks, and is delivered again with the same id, without a model call (finalize 6)',
    async ([, onOutcome]) => {
      for (const store of [withoutMarks(memoryStore()), plainStore()]) {
        const first = hostOf({ script: script(), tools, store, onOutcome });
        const result = await first.run({ runId: 'r' });
        expect(result).toMatchObject({ status: 'ok', output: 'the answer' });
        expect(first.warnings.length).toBeGreaterThan(0);
        const kept = (await onlyRecord(store)).outcome;
        expect(await store.listInterrupted()).toMatchObject([{ runId: 'r', status: 'interrupted' }]);
        const delivered: RunOutcome[] = [];
        const second = hostOf({
          script: [],
          tools,
          store,
          onOutcome: (outcome) => void delivered.push(outcome),
        });
        const { messages: _, ...rest } = result;
        expect(await second.run({ runId: 'r' })).toMatchObject(rest);
        expect(delivered).toEqual([kept]);
        expect(second.model.calls).toEqual([]);
        expect(await store.listInterrupted()).toEqual([]);
      }
    },
  );

  test('of a run that died between its answer and its end is delivered by recover, and nothing runs again (finalize 6)', async () => {
    const inner = memoryStore();
    const store = watchedStore(
      { before: ({ method }) => ['outcomes.keep', 'delete'].includes(method) && new Promise(() => {}) },
      inner,
    );
    await hostOf({ script: script(), tools, store }).start({ runId: 'r' });
    await until(async () => (await inner.load('r'))?.outcome);
    const left = await afterCrash(inner);
    const delivered: RunOutcome[] = [];
    const second = hostOf({
      script: [],
      tools,
      store: left,
      onOutcome: (outcome) => void delivered.push(outcome),
    });
    await second.executor.recover();
    await until(() => delivered.length === 1);
    await until(async () => (await left.listInterrupted()).length === 0);
    expect(delivered).toMatchObject([{ status: 'ok', output: 'the answer', outcomeId: endId('r'), iterations: 2 }]);
    expect(second.model.calls).toEqual([]);
  });

  test('is kept: a repeated start gets it without a model call, until retention.outcomes is over (finalize 6)', async () => {
    const clock = testClock(1_000);
    const store = memoryStore({ clock });
    const options = { tools, store, clock, retention: { outcomes: 5_000 } };
    const { messages: _, ...first } = await hostOf({ ...options, script: script() }).run({ runId: 'r' });
    await clock.advance(4_999);
    const repeated = hostOf({ ...options, script: [] });
    expect(await repeated.run({ runId: 'r' })).toMatchObject(first);
    expect(repeated.model.calls).toEqual([]);
    await clock.advance(1);
    const anew = hostOf({ ...options, script: [reply('another answer')] });
    expect(await anew.run({ runId: 'r' })).toMatchObject({ output: 'another answer', iterations: 1 });
  });

  test.for([
    [
      'rejects, on a store without marks',
      () => withoutMarks(memoryStore()),
      () => Promise.reject(new Error('the webhook is down')),
    ],
    ['rejects, on a store with the four methods only', plainStore, () => Promise.reject(new Error('down'))],
    ['never answers', memoryStore, () => new Promise<void>(() => {})],
  ] as const)(
    'is delivered however long the host could not take it: an onOutcome that %s parks no run (recovery 2, promise e)',
    async ([, storeOf, refuse]) => {
      const store = storeOf();
      const clock = testClock();
      const delivered: string[] = [];
      let isDown = true;
      const host = hostOf({
        ...{ script: [reply('done')], store, clock },
        onOutcome: ({ output }) => (isDown ? refuse() : void delivered.push(output)),
      });
      const ended = async () => {
        const result = host.executor.get('r')?.result;
        await settle();
        await clock.advance(10_000);
        await result;
        await settle();
      };
      await host.start({ runId: 'r' });
      await ended();
      for (let sweep = 0; sweep < 5; sweep++) {
        expect((await host.executor.recover()).resumed).toMatchObject([{ runId: 'r' }]);
        await ended();
      }
      isDown = false;
      await host.executor.recover();
      await ended();
      expect(delivered).toEqual(['done']);
      expect(await store.listInterrupted()).toEqual([]);
    },
  );

  test('that is asked for again counts as no failed start of the next run with that id (recovery 2)', async () => {
    const clock = testClock();
    const store = memoryStore({ clock });
    const host = hostOf({ clock, script: [reply('first'), hang()], store, retention: { outcomes: 1_000 } });
    for (let i = 0; i < 5; i++) expect(await host.run({ runId: 'r' })).toMatchObject({ output: 'first' });
    await clock.advance(2_000);
    await host.start({ runId: 'r' });
    expect(await onlyRecord(store)).toMatchObject({ attempts: 1 });
  });

  test('of a failed run is kept as well: the error is given again (finalize 6)', async () => {
    const store = memoryStore();
    const down = fail(Object.assign(new Error('down'), { statusCode: 400 }));
    await hostOf({ script: [callTool('look'), down], tools, store }).run({ runId: 'r' });
    const again = hostOf({ script: [reply('x')], tools, store });
    expect(await again.run({ runId: 'r' })).toMatchObject({ status: 'error', error: { code: 'MODEL' } });
    expect(again.model.calls).toEqual([]);
  });

  test('is not kept by a four-method store: the id may be used again', async () => {
    const store = plainStore();
    await hostOf({ store }).run({ runId: 'r' });
    expect(await hostOf({ store }).run({ runId: 'r' })).toMatchObject({ status: 'ok', durable: true });
  });

  test('of a lost run is not announced: status interrupted, code LEASE_LOST, the record untouched (recovery 3)', async () => {
    const delivered: unknown[] = [];
    const looked: unknown[] = [];
    const lost = () => Promise.reject(new LeaseLostError('taken'));
    let isTaken = false;
    const second = () => {
      isTaken = true;
      return callTool('look', { n: 2 });
    };
    const store = watchedStore({ before: (call) => isWrite(call) && isTaken && lost() });
    const host = hostOf({
      script: [callTool('look', { n: 1 }), second, ...[3, 4, 5, 6].map((n) => callTool('look', { n })), reply('x')],
      tools: [toolOf('look', 'read', ({ n }) => void looked.push(n))],
      store,
      onOutcome: (outcome) => void delivered.push(outcome),
    });
    const result = await host.run({ runId: 'r' });
    expect(result).toMatchObject({ status: 'interrupted', error: { code: 'LEASE_LOST' } });
    expect(delivered).toEqual([]);
    expect(looked).toEqual([1, 2]);
    expect(store.methods).not.toContain('delete');
    expect((await onlyRecord(store)).iteration).toBe(1);
  });
});

describe('an error while finalising', () => {
  const readOnly = () =>
    watchedStore({
      before: ({ method }) => ['delete', 'history.end'].includes(method) && Promise.reject(new Error('read-only')),
    });

  test.for([
    ['complete', script(), 'ok'],
    ['fail', [callTool('look'), fail(Object.assign(new Error('down'), { statusCode: 400 }))], 'error'],
  ] as const)(
    'of a run to %s changes no result and is one warning with the run id (finalize 5)',
    async ([step, entries, status]) => {
      const store = readOnly();
      const good = await hostOf({ script: entries, tools, store: memoryStore() }).run({ runId: 'r' });
      const host = hostOf({ script: entries, tools, store });
      const result = await host.run({ runId: 'r' });
      expect(result).toEqual(good);
      expect(result.status).toBe(status);
      expect(host.warned).toEqual([
        { message: `run: checkpoint ${step} failed`, fields: expect.objectContaining({ runId: 'r' }) },
      ]);
    },
  );

  test('of a store that is gone altogether is still one warning about the end (finalize 5)', async () => {
    let isGone = false;
    const store = watchedStore({ before: () => isGone && Promise.reject(new Error('gone')) });
    const last = () => {
      isGone = true;
      return reply('the answer');
    };
    const host = hostOf({ script: [last], store });
    expect(await host.run({ runId: 'r' })).toMatchObject({ status: 'ok', output: 'the answer' });
    expect(host.warnings.filter((message) => message.startsWith('run: checkpoint complete failed'))).toHaveLength(1);
  });

  test('a store that never answers holds the result up for finalizeMs and no longer (finalize 4)', async () => {
    const clock = testClock();
    const store = watchedStore(
      { before: ({ method }) => method === 'delete' && new Promise(() => {}) },
      memoryStore({ clock }),
    );
    const host = hostOf({ store, clock });
    const run = await host.start({ runId: 'r' });
    let status: string | undefined;
    void run.result.then((result) => {
      status = result.status;
    });
    await clock.advance(9_999);
    expect(status).toBeUndefined();
    await clock.advance(1);
    await settle();
    expect(status).toBe('ok');
    expect(host.warnings).toEqual(['run: checkpoint complete failed']);
  });

  test("ignores the run's own abort: no store call of the end carries an aborted signal (finalize 4)", async () => {
    const store = watchedStore();
    const host = hostOf({ script: [() => new Promise(() => {})], store });
    const run = await host.start({ runId: 'r' });
    await run.cancel();
    expect(store.methods).toContain('history.end');
    const signals = store.log.flatMap(({ args }) =>
      args.map((arg) => (arg as { signal?: AbortSignal } | undefined)?.signal),
    );
    expect(signals.filter((signal) => signal?.aborted)).toEqual([]);
  });

  test('a throwing logger changes nothing either (executor 1)', async () => {
    const logger = {
      warn() {
        throw new Error('log full');
      },
    };
    const host = hostOf({ store: readOnly(), logger });
    expect(await host.run()).toMatchObject({ status: 'ok', output: 'done' });
  });
});
