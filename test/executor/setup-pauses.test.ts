import {
  type Agent,
  createExecutor,
  createPalette,
  defineAgent,
  memoryStore,
  type RunCheckpoint,
  type RunOutcome,
} from 'pawl';
import { callTool, fail, hang, reply, type ScriptedEntry, scriptedModel, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { brokenSetups, goodModels } from '../fixtures/broken-setups.ts';
import { hostOf, settle, toolOf, until } from '../fixtures/host.ts';
import { afterCrash } from '../fixtures/watched-store.ts';

const tools = [toolOf('look')];
const HOUR_MS = 3_600_000;
const missingKey = Object.assign(new Error('the key is missing'), { name: 'AI_LoadAPIKeyError' });

/** Runs that have recorded a step, and whose process has died. */
async function left(count: number, clock = testClock(1_000)) {
  const store = memoryStore({ clock });
  const script = Array.from({ length: count }, (): ScriptedEntry[] => [callTool('look'), hang()]);
  for (const [i, each] of script.entries()) {
    const host = hostOf({ script: each, tools, store, clock });
    await host.start({ runId: `r${i}` });
    await until(async () => (await store.load(`r${i}`))?.iteration === 1);
  }
  return { clock, store: await afterCrash(store) };
}

const noTier = { agent: { model: 'gone' }, tools };

describe('a process whose setup is broken', () => {
  test('takes one run of the agent, leaves the others alone for 30 s, and then tries one (edges 1)', async () => {
    const { clock, store } = await left(6);
    const bad = hostOf({ ...noTier, store, clock });
    const worker = bad.executor.work({ concurrency: 1 });
    const takenAfter = async (ms: number) => {
      await clock.advance(ms);
      await settle();
      return worker.stats().taken;
    };
    await settle();
    expect(worker.stats().taken).toBe(1);
    expect(await takenAfter(29_000)).toBe(1);
    expect(await takenAfter(3_000)).toBe(2);
    expect(await takenAfter(55_000)).toBe(2);
    expect(await takenAfter(8_000)).toBe(3);
    const { runs } = await store.due.list({ limit: 10 });
    expect(runs.map(({ dueAt, attempts }) => [dueAt, attempts])).toEqual(Array(6).fill([0, 0]));
    await bad.executor.shutdown();
  });

  test('continues all of them once its setup is whole again (edges 1)', async () => {
    const { clock, store } = await left(6);
    let isWhole = false;
    const models = () => (isWhole ? scriptedModel([reply('done')]) : undefined);
    const ended: string[] = [];
    const onOutcome = ({ runId, status }: RunOutcome) => void ended.push(`${runId} ${status}`);
    const { executor } = hostOf({ tools, models: models as never, store, clock, onOutcome });
    executor.work({ concurrency: 1 });
    await settle();
    isWhole = true;
    await until(async () => {
      await clock.advance(1_000);
      return ended.length === 6;
    });
    expect(ended.toSorted()).toEqual([0, 1, 2, 3, 4, 5].map((n) => `r${n} ok`));
    await executor.shutdown();
  });

  test('says once a minute which agent it cannot continue, why, and how many runs (edges 1)', async () => {
    const { clock, store } = await left(3);
    const bad = hostOf({ ...noTier, store, clock });
    const starts = async () => {
      for (const runId of ['r0', 'r1', 'r2']) await bad.run({ runId });
    };
    await starts();
    await starts();
    await clock.advance(60_000);
    await starts();
    const fields = bad.warned
      .filter(({ message }) => message.includes('setup of this process'))
      .map((each) => each.fields);
    const said = { code: 'SETUP', agentId: 'worker', error: { code: 'UNKNOWN_TIER' } };
    expect(fields).toMatchObject([
      { ...said, runs: 1 },
      { ...said, runs: 3 },
    ]);
  });

  test('answers `drive` with SETUP and a time, also of a run that it has not looked at (edges 1)', async () => {
    const { clock, store } = await left(2);
    const { executor } = hostOf({ ...noTier, store, clock });
    const answer = { state: 'waiting', code: 'SETUP', wakeAt: clock.now() + 30_000 };
    expect(await executor.drive('r0')).toMatchObject(answer);
    expect(await executor.drive('r1')).toMatchObject(answer);
    expect(await executor.drive('due')).toMatchObject(answer);
    expect(((await store.load('r1')) as RunCheckpoint).setup).toBeUndefined();
  });

  test('reports the runs as skipped by `recover`, and tries no more than it had begun (edges 1)', async () => {
    const { clock, store } = await left(4);
    const { executor } = hostOf({ ...noTier, store, clock });
    const { skipped, failed } = await executor.recover({ concurrency: 1 });
    expect(failed).toEqual([]);
    expect(skipped.map(({ runId }) => runId).toSorted()).toEqual(['r0', 'r1', 'r2', 'r3']);
    for (const { reason } of skipped) expect(reason).toMatch(/^SETUP: .*UNKNOWN_TIER/);
    const marks = await Promise.all(skipped.map(async ({ runId }) => (await store.load(runId))?.setup !== undefined));
    expect(marks.filter(Boolean)).toHaveLength(1);
    await executor.shutdown();
  });

  test('parks a run that no process could continue for `setupMs`, counted from the first that tried, and `unpark` tries again (edges 2)', async () => {
    const { clock, store } = await left(1);
    const since = clock.now();
    const tried = async () => hostOf({ ...noTier, store, clock }).run({ runId: 'r0' });
    expect(await tried()).toMatchObject({ status: 'interrupted', error: { code: 'SETUP' } });
    await clock.advance(24 * HOUR_MS - 1);
    expect(await tried()).toMatchObject({ status: 'interrupted', error: { code: 'SETUP' } });
    expect(await store.load('r0')).toMatchObject({ setup: { code: 'UNKNOWN_TIER', since } });
    expect(((await store.load('r0')) as RunCheckpoint).parked).toBeUndefined();
    await clock.advance(1);
    expect(await tried()).toMatchObject({ status: 'interrupted', error: { code: 'SETUP' } });
    expect(await store.load('r0')).toMatchObject({
      parked: { code: 'SETUP', reason: expect.stringContaining('UNKNOWN_TIER') },
    });

    const good = hostOf({ script: [reply('done')], tools, store, clock });
    expect(await good.run({ runId: 'r0' })).toMatchObject({ error: { code: 'RUN_PARKED' } });
    await good.executor.unpark('r0');
    expect(((await store.load('r0')) as RunCheckpoint).setup).toBeUndefined();
    expect(await good.run({ runId: 'r0' })).toMatchObject({ status: 'ok', output: 'done' });
  });

  test('is forgotten by the record with the next step of a process that has what was missing (edges 2)', async () => {
    const { clock, store } = await left(1);
    await hostOf({ ...noTier, store, clock }).run({ runId: 'r0' });
    expect((await store.load('r0'))?.setup).toBeDefined();
    const good = hostOf({ script: [callTool('look', { n: 2 }), hang()], tools, store, clock });
    await good.start({ runId: 'r0' });
    await until(async () => (await store.load('r0'))?.iteration === 2);
    expect((await store.load('r0'))?.setup).toBeUndefined();
    await good.executor.shutdown();
  });

  test('gives a run back with all that it has recorded where the key is missing at a later model call (edges 1)', async () => {
    const store = memoryStore();
    const paid: string[] = [];
    const pay = toolOf('pay', 'once', async () => void paid.push('x'));
    const bad = hostOf({ script: [callTool('pay'), fail(missingKey)], tools: [pay], store });
    const result = await bad.run({ runId: 'r' });
    expect(result).toMatchObject({
      status: 'interrupted',
      iterations: 1,
      error: { code: 'SETUP', cause: { code: 'MODEL' } },
    });
    expect(await store.load('r')).toMatchObject({ iteration: 1, attempts: 0, setup: { code: 'MODEL' } });
    const good = hostOf({ script: [reply('done')], tools: [pay], store });
    expect(await good.run({ runId: 'r' })).toMatchObject({ status: 'ok', iterations: 2 });
    expect(paid).toHaveLength(1);
  });
});

describe('a first start', () => {
  test.for(Object.keys(brokenSetups))(
    'fails at once with %s, and keeps nothing: no record, no outcome, a free id (edges 2)',
    async (fault) => {
      const {
        models = goodModels,
        agent: more = {},
        broken = (agent: Agent) => agent,
        code,
      } = brokenSetups[fault] ?? ({} as never);
      const store = memoryStore();
      const told: unknown[] = [];
      const agent = broken(defineAgent({ id: 'payer', instructions: 'Pay.', ...more }));
      const bad = createExecutor({
        models: models(),
        agents: [agent],
        store,
        onOutcome: (end) => void told.push(end),
      });
      const result = await bad.run(agent, { runId: 'r', prompt: 'Go.' });
      expect(result).toMatchObject({ status: 'error', error: { code } });
      expect([await store.load('r'), await store.outcomes.find('r'), told]).toEqual([null, null, []]);
      const good = hostOf({ store });
      expect(await good.run({ runId: 'r', prompt: 'Another one.' })).toMatchObject({ status: 'ok' });
    },
  );
});

describe('a sub-agent that the setup of the process cannot begin', () => {
  const helper = defineAgent({ id: 'helper', instructions: 'Help.', model: 'deep' });
  const palette = createPalette({ agents: [helper] });
  const boss = { id: 'boss', subAgents: ['helper'] };
  const asking = callTool('agent__helper', { prompt: 'Help!' });
  const faults: { readonly [name: string]: object } = {
    'a tier that no model serves': {},
    'a missing key': { deep: scriptedModel([fail(missingKey), fail(missingKey)]) },
  };

  test.for(Object.keys(faults))('gives the run that called it back: %s (edges 1)', async (fault) => {
    const store = memoryStore();
    const told: unknown[] = [];
    const options = {
      agent: boss,
      store,
      ports: { palette },
      onOutcome: (end: unknown) => void told.push(end),
    };
    const bad = hostOf({ ...options, models: { fast: scriptedModel([asking]), ...faults[fault] } });
    expect(await bad.run({ runId: 'r' })).toMatchObject({ status: 'interrupted', error: { code: 'SETUP' } });
    expect(told).toEqual([]);
    expect(await store.load('r')).toMatchObject({ attempts: 0, setup: expect.anything() });
    const models = { fast: scriptedModel([reply('end')]), deep: scriptedModel([reply('helped')]) };
    const good = hostOf({ ...options, models });
    expect(await good.run({ runId: 'r' })).toMatchObject({ status: 'ok', output: 'end' });
    expect(told).toMatchObject([{ output: 'helped' }, { output: 'end' }]);
  });
});
