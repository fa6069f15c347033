import { memoryStore } from 'pawl';
import { callTool, hang, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { hostOf, toolOf } from '../fixtures/host.ts';
import { leftBehind } from '../fixtures/left-runs.ts';
import { watchedStore } from '../fixtures/watched-store.ts';
import { base } from '../http/web-host.ts';
import { root, studioHost } from './studio-host.ts';

const write = { write: true } as const;

describe('POST /runs/:runId/park and unpark', () => {
  test('set a run aside and free it, and record the person (studio 25)', async () => {
    const store = await leftBehind(1);
    const { ask } = studioHost({ store, studio: write });
    const parked = await ask('/runs/r0/park', { body: { reason: 'a look first' } });
    expect([parked.status, parked.body]).toEqual([200, { runId: 'r0', state: 'parked' }]);
    expect((await store.load('r0'))?.parked).toEqual({ code: 'PARKED', reason: 'a look first', by: { id: 'ada' } });
    const seen = (await ask('/runs/r0/record')).body;
    expect(seen).toMatchObject({ line: { state: 'park' }, record: { parked: { by: { id: 'ada' } } } });
    expect((await ask('/runs/r0/unpark', { body: {} })).body).toEqual({ runId: 'r0', state: 'unparked' });
    expect((await store.load('r0'))?.parked).toBeUndefined();
    expect((await hostOf({ store }).executor.recover()).resumed).toEqual([{ runId: 'r0' }]);
  });

  test('claim the run for that one write, and give it back (studio 17, 25)', async () => {
    const store = watchedStore({}, await leftBehind(1));
    const { ask } = studioHost({ store, studio: write });
    await ask('/runs/r0/park', { body: {} });
    const writes = store.methods.filter((method) => ['claim', 'append', 'save', 'renew', 'release'].includes(method));
    expect(writes).toEqual(['claim', 'append', 'release']);
    expect((await store.load('r0'))?.parked?.reason).toBe('parked by hand');
  });

  test('are refused while a process works on the run, for a run of another caller, and for a wrong body (studio 25)', async () => {
    const store = memoryStore();
    const other = hostOf({ store, script: [hang()] });
    await other.start({ runId: 'r', callerId: 'ada' });
    const { ask } = studioHost({ store, studio: write });
    expect((await ask('/runs/r/park', { body: {} })).body).toMatchObject({ status: 409, code: 'RUN_OWNED_ELSEWHERE' });
    expect((await ask('/runs/r/park', { as: 'bob', body: {} })).status).toBe(404);
    expect((await ask('/runs/r/unpark', { as: 'bob', body: {} })).status).toBe(404);
    expect((await ask('/runs/r/park', { body: { reason: 'x'.repeat(5_000) } })).status).toBe(400);
    expect((await ask('/runs/r/park', { body: { by: { id: 'eve' } } })).status).toBe(400);
    await other.executor.shutdown();
  });

  test('do not exist without write, like each route that writes (studio 25, lab 29)', async () => {
    const store = watchedStore({}, await leftBehind(1));
    const { ask } = studioHost({ store });
    for (const what of ['fork', 'retry', 'park', 'unpark', 'cancel', 'steer', 'answers/w'])
      expect((await ask(`/runs/r0/${what}`, { body: {} })).status).toBe(404);
    // Its events can be read.
    expect((await ask('/runs/r0/events', { body: {} })).status).toBe(405);
    for (const path of [
      '/store',
      '/store/doctor',
      '/runs',
      '/runs/r0',
      '/runs/r0/record',
      '/runs/r0/messages',
      '/waiting',
    ])
      expect((await ask(path)).status).toBe(200);
    const reads = [
      'load',
      'journal.loadPart',
      'listInterrupted',
      'history.list',
      'commands.inbox',
      'due.heldUntil',
      'outcomes.find',
    ];
    expect(store.methods.filter((method) => !reads.includes(method))).toEqual([]);
  });
});

describe('POST /runs/:runId/cancel', () => {
  test('records in the error of the run who cancelled it (studio 25)', async () => {
    const store = await leftBehind(2);
    const { ask, executor } = studioHost({ store, retention: { records: 60_000 }, studio: write });
    expect((await ask('/runs/r0/cancel', { body: { reason: 'not needed' } })).body.state).toBe('ended');
    await ask('/runs/r1/cancel', { body: {} });
    const messageOf = async (runId: string) => (await executor.explain(runId))?.outcome?.error?.message;
    expect(await messageOf('r0')).toBe('not needed (by ada)');
    expect(await messageOf('r1')).toBe('the run was cancelled (by ada)');
    expect((await ask('/runs/r0/record')).body.result.error).toEqual({
      code: 'CANCELLED',
      message: 'not needed (by ada)',
    });
  });
});

describe('a request that a browser calls foreign', () => {
  const from = (site: string, rest: Readonly<Record<string, string>> = {}) => ({ 'sec-fetch-site': site, ...rest });

  test('is refused with 403 and all headers, but for the page that a link opens in a tab (studio 23, 24)', async () => {
    const { open } = studioHost({ store: await leftBehind(1) });
    for (const site of ['cross-site', 'same-site', 'anything']) {
      const answer = await open('/runs', { headers: from(site) });
      expect(answer.status).toBe(403);
      expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'");
      expect(answer.headers.get('cache-control')).toBe('no-store');
    }
    for (const site of ['none', 'same-origin']) expect((await open('/runs', { headers: from(site) })).status).toBe(200);
    const tab = { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' };
    expect((await open('/runs', { headers: from('cross-site', tab) })).status).toBe(403);
    expect((await open('/', { headers: from('cross-site', { ...tab, 'sec-fetch-dest': 'iframe' }) })).status).toBe(403);
    expect((await open('/', { headers: from('cross-site', tab) })).status).not.toBe(403);
  });

  test('passes from an origin that the host has named (studio 23)', async () => {
    const origin = 'https://admin.example';
    const { open } = studioHost({ store: await leftBehind(1), studio: { origins: [origin] } });
    expect((await open('/runs', { headers: from('cross-site', { origin }) })).status).toBe(200);
    expect((await open('/runs', { headers: from('cross-site', { origin: 'https://evil.example' }) })).status).toBe(403);
  });

  test('has the headers on each kind of answer: data, errors, streams, redirects (studio 24)', async () => {
    const { handler } = studioHost({ store: await leftBehind(1), studio: { basePath: '/studio' } });
    const headers = { authorization: `Bearer ${root}` };
    for (const path of ['/studio', '/studio/runs', '/studio/none', '/studio/watch?runs=1', '/elsewhere']) {
      const answer = await handler(new Request(`${base}${path}`, { headers }));
      expect(answer.headers.get('content-security-policy'), path).toContain("require-trusted-types-for 'script'");
      expect(answer.headers.get('x-content-type-options'), path).toBe('nosniff');
      expect(answer.headers.get('referrer-policy'), path).toBe('no-referrer');
      expect(answer.headers.get('cross-origin-opener-policy'), path).toBe('same-origin');
      await answer.body?.cancel();
    }
  });
});

describe('POST /runs/:runId/fork', () => {
  const pay = () => toolOf('pay', 'once', async () => 'paid');

  test('stores another run with the first steps, which a process with the agent continues; the origin stays (lab 29)', async () => {
    const store = memoryStore();
    const tools = [pay()];
    const script = [callTool('pay'), reply('done')];
    const origin = await hostOf({ store, tools, script, retention: { records: 60_000 } }).run({
      runId: 'r',
      callerId: 'ada',
    });
    const { ask, model } = studioHost({ store, tools, studio: write });
    const forked = await ask('/runs/r/fork', { body: { at: 1, effects: 'refuse' } });
    expect([forked.status, forked.body]).toEqual([201, { runId: expect.any(String), state: 'due' }]);
    const { runId } = forked.body;
    expect(await store.load(runId)).toMatchObject({
      iteration: 1,
      effects: 'refuse',
      forkedFrom: { runId: 'r', at: 1 },
    });
    expect(model.calls.length).toBe(0);
    const worker = hostOf({
      store,
      tools,
      script: [callTool('pay'), reply('not paid')],
      retention: { records: 60_000 },
    });
    expect((await worker.executor.recover()).resumed).toEqual([{ runId }]);
    expect((await worker.executor.get(runId)?.result)?.output).toBe('not paid');
    expect((await store.load('r', { ended: true }))?.outcome?.output).toBe(origin.output);
  });

  test('is refused with what to do for steps that are not there, an agent that is not known, and a run of another caller (lab 29)', async () => {
    const store = memoryStore();
    const other = hostOf({ store, agent: { id: 'other' }, retention: { records: 60_000 } });
    await other.run({ runId: 'r', callerId: 'ada' });
    const { ask } = studioHost({ store, studio: write });
    const fork = async (body: object, as?: string) => (await ask('/runs/r/fork', { body, ...(as ? { as } : {}) })).body;
    expect(await fork({ at: 9, effects: 'ask' })).toMatchObject({
      status: 400,
      detail: expect.stringContaining('at must be 0 to 1'),
    });
    expect(await fork({ at: 1, effects: 'ask' })).toMatchObject({
      status: 400,
      detail: expect.stringContaining('--agent'),
    });
    expect(await fork({ at: 1 })).toMatchObject({ status: 400 });
    expect(await fork({ at: 1, effects: 'all' })).toMatchObject({ status: 400 });
    expect(await fork({ at: 1, effects: 'ask' }, 'bob')).toMatchObject({ status: 404 });
  });
});
