import { memoryStore } from 'pawl';
import type { OwningStore } from 'pawl/stores/kit';
import { callTool, hang, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { hostOf, toolOf, until } from '../fixtures/host.ts';
import { notingBudget } from '../fixtures/noting-ports.ts';
import { afterCrash, plainStore, watchedStore } from '../fixtures/watched-store.ts';

const tools = [toolOf('look')];
const request = { runId: 'r', callerId: 'ann' };

/** The store that a run left whose process died after a step. */
async function left() {
  const store = memoryStore();
  await hostOf({ script: [callTool('look'), hang()], tools, store }).start(request);
  await until(async () => (await store.load('r'))?.iteration === 1);
  return { live: store, dead: await afterCrash(store) };
}

describe('what a start says of its run', () => {
  test.for([true, false])('is started for a new run (durable: %s)', async (isDurable) => {
    const host = hostOf({ script: [hang()], ...(isDurable ? { store: memoryStore() } : {}) });
    const run = await host.start(request);
    expect([run.accepted, run.error]).toEqual(['started', undefined]);
  });

  test('is resumed for a stored run that no process works on', async () => {
    const { dead } = await left();
    const run = await hostOf({ script: [hang()], tools, store: dead }).start(request);
    expect([run.accepted, run.error]).toEqual(['resumed', undefined]);
  });

  test('is joined for the same request while it is live here', async () => {
    const host = hostOf({ script: [hang()], store: memoryStore() });
    const runs = [await host.start(request), await host.start(request), host.executor.get('r')];
    expect(runs.map((run) => run?.accepted)).toEqual(['started', 'joined', 'joined']);
  });

  test('is joined for the same request that another process works on; its result settles with RUN_OWNED_ELSEWHERE', async () => {
    const { live } = await left();
    const run = await hostOf({ script: [], tools, store: live }).start(request);
    expect([run.accepted, run.error]).toEqual(['joined', undefined]);
    expect(await run.result).toMatchObject({ status: 'error', error: { code: 'RUN_OWNED_ELSEWHERE' } });
  });

  test('is refused while another process has the id and has recorded nothing yet: nothing can be compared', async () => {
    const store = memoryStore();
    await store.claim('r', 'another', 1_000_000);
    const run = await hostOf({ script: [], store }).start(request);
    expect([run.accepted, run.error?.code]).toEqual(['refused', 'RUN_OWNED_ELSEWHERE']);
  });

  test('is ended for a request whose answer is kept, also while another process still holds its claim', async () => {
    const store = memoryStore();
    await hostOf({ script: [reply('done')], store }).run(request);
    const ended = await hostOf({ script: [], store }).start(request);
    await store.claim('r', 'another', 1_000_000);
    const held = await hostOf({ script: [], store }).start(request);
    for (const run of [ended, held]) {
      expect([run.accepted, run.error]).toEqual(['ended', undefined]);
      expect(await run.result).toMatchObject({ status: 'ok', output: 'done' });
    }
  });

  test('is refused with RUN_PARKED for a parked run, and only to who repeats its request', async () => {
    const { dead } = await left();
    const host = hostOf({ script: [], tools, store: dead });
    await host.executor.park('r', 'the lawyers look at it');
    const run = await host.start(request);
    expect([run.accepted, run.error?.code]).toEqual(['refused', 'RUN_PARKED']);
    const stranger = await host.start({ ...request, callerId: 'eve' });
    expect(stranger.error?.code).toBe('RUN_ID_CONFLICT');
    expect(JSON.stringify(await stranger.result)).not.toContain('lawyers');
  });

  test.for([
    ['budget', { ports: { budget: notingBudget({ refuseCheck: true }) } }],
    ['tier', { agent: { model: 'none' } }],
    ['durability', { requireDurable: true }],
  ] as const)('is refused, with the error of its result, where the %s refuses it', async ([, options]) => {
    const run = await hostOf(options).start(request);
    expect(run.accepted).toBe('refused');
    expect(run.error).toEqual((await run.result).error);
  });

  test('is refused after a shutdown, and when the actor is stopped before the run began', async () => {
    const host = hostOf();
    await host.executor.shutdown();
    const late = await host.start(request);
    expect([late.accepted, late.error?.code]).toEqual(['refused', 'ERR_SHUTDOWN']);
    const slow = watchedStore({ before: ({ method }) => (method === 'claim' ? new Promise(() => {}) : undefined) });
    const other = hostOf({ store: slow as OwningStore, defaults: { portMs: 50 } });
    const starting = other.start(request);
    (other.executor.get('r') as { actor: { stop(): void } }).actor.stop();
    const stopped = await starting;
    expect([stopped.accepted, stopped.error?.code]).toEqual(['refused', 'ERR_SHUTDOWN']);
  });

  test('is known before the result is: a handle does not wait for the run', async () => {
    const host = hostOf({ script: [hang()], store: plainStore() });
    const runs = [await host.start(request), await host.start({ ...request, callerId: 'eve' })];
    expect(runs.map(({ accepted }) => accepted)).toEqual(['started', 'refused']);
  });
});

describe('a refused id', () => {
  test.for([
    ['', ''],
    ['x'.repeat(513), 'x'.repeat(513)],
    ['a\ud800', 'a\ud800'],
    ['~victim', '~victim'],
    [7, '7'],
    [[], '(object)'],
    [{ toString: () => 'x' }, '(object)'],
    [Symbol('x'), 'Symbol(x)'],
  ] as const)('%j stays the id of the handle and the result, and no id is invented for it', async ([given, shown]) => {
    let invented = 0;
    const ids = () => `invented-${++invented}`;
    const store = watchedStore();
    const host = hostOf({ script: [], store, ids });
    const run = await host.start({ runId: given as string });
    expect([run.runId, run.accepted, run.error?.code]).toEqual([shown, 'refused', 'INVALID_RUN_ID']);
    expect(await run.result).toMatchObject({ runId: shown, status: 'error', error: { code: 'INVALID_RUN_ID' } });
    expect([invented, store.methods]).toEqual([0, []]);
  });

  test('stays with a request that is refused for its inputs', async () => {
    const run = await hostOf({ script: [] }).start({ runId: 'r', inputs: { when: new Date() as never } });
    expect([run.runId, run.accepted, run.error?.code]).toEqual(['r', 'refused', 'NOT_JSON']);
  });
});

describe('inputs', () => {
  test('with a key that begins with pawl. are a wrong call: no key of inputs has a meaning to Pawl', async () => {
    const host = hostOf({ script: [] });
    await expect(host.start({ inputs: { 'pawl.module': '/tmp/evil.ts' } })).rejects.toThrow(
      new TypeError('inputs: "pawl.module" begins with "pawl."; use a key without that prefix'),
    );
    await expect(hostOf().run({ inputs: { pawl: 1, 'a.pawl.b': 2 } })).resolves.toMatchObject({ status: 'ok' });
  });

  test('of a record may have such a key: an older version wrote it, and the run continues', async () => {
    const { dead } = await left();
    const record = await dead.load('r');
    await dead.save({ ...(record as NonNullable<typeof record>), inputs: { 'pawl.module': 'x' } });
    const host = hostOf({ script: [reply('done')], tools, store: dead });
    expect((await host.executor.recover()).resumed).toEqual([{ runId: 'r' }]);
  });
});
