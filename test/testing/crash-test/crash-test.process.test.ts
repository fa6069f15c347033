import { type CheckpointStore, defineAgent, memoryStore, type Tool } from 'pawl';
import type { KeepingStore } from 'pawl/stores/kit';
import { postgresStore } from 'pawl/stores/postgres';
import { sqliteStore } from 'pawl/stores/sqlite';
import { type CrashTestOptions, callTool, callTools, crashTest, fail, hang, reply, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { torture } from '../../crash/random.ts';
import { toolOf } from '../../fixtures/host.ts';
import { notingBudget } from '../../fixtures/noting-ports.ts';
import { postgresServer, whyNoPostgres } from '../../fixtures/postgres-server.ts';
import { freshPath } from '../../store/sqlite/files.ts';
import { leadAndHelper } from './lead-and-helper.ts';
import { honestStore, liars } from './lying-stores.ts';

const tools = [toolOf('look', 'read'), toolOf('send', 'idempotent'), toolOf('pay', 'once')];
const till = defineAgent({ id: 'till', instructions: 'Charge once.', tools });
const script = [
  callTools([
    { name: 'look', input: {} },
    { name: 'pay', input: { cents: 5 } },
    { name: 'send', input: {} },
  ]),
  callTool('look', { order: 7 }),
  callTool('pay', { cents: 6 }),
  reply('Charged twice.'),
];
const charging = (store: () => CheckpointStore, rest: Partial<CrashTestOptions> = {}) =>
  crashTest({ agent: till, prompt: 'Charge.', model: () => scriptedModel(script), store, ...rest });
const shared = <T>(store: T) => {
  return () => store;
};
/** Enough to come to every kind of boundary, for stores that take their time. */
const few = { limit: 12, doubleCrashes: 3 };
const DOUBLE_CRASHES = torture > 1 ? 200 : 8;

describe('crashTest (recovery 10)', () => {
  test('is quiet on an honest store of four methods: no crash breaks a promise', async () => {
    const report = await charging(shared(honestStore(new Map())), { doubleCrashes: DOUBLE_CRASHES });
    expect(report.violations).toEqual([]);
    expect(report.undisturbed).toEqual({ status: 'ok', output: 'Charged twice.' });
    // Two crashes each in the histories that have a second one.
    expect(report.runs).toBe(1 + report.boundaries + DOUBLE_CRASHES);
    expect(report.crashes).toBe(report.boundaries + 2 * DOUBLE_CRASHES);
  });

  test('is quiet on the stores of this package', async () => {
    const path = freshPath();
    const stores: { [name: string]: () => CheckpointStore } = {
      memory: shared(memoryStore()),
      SQLite: () => sqliteStore({ path, durability: 'process' }),
    };
    for (const [name, open] of Object.entries(stores)) {
      const report = await charging(open, few);
      expect(report.violations, name).toEqual([]);
      expect(report.crashes, name).toBe(18);
    }
  });

  test('is quiet with history: a crash around the commit that ends a run leaves it ended once, and its record kept (web 16)', async () => {
    const path = freshPath();
    const stores: { [name: string]: () => CheckpointStore & KeepingStore } = {
      memory: shared(memoryStore()),
      SQLite: () => sqliteStore({ path, durability: 'process' }),
    };
    for (const [name, open] of Object.entries(stores)) {
      const executor = { retention: { records: 86_400_000 } };
      // Each boundary in memory, and in torture; on a disk so many that each kind is among them.
      const rest = name === 'memory' || torture > 1 ? { doubleCrashes: 5 } : few;
      const report = await charging(open, { executor, ...rest });
      expect(report.violations, name).toEqual([]);
      const store = open();
      const kept = await store.history.list({ limit: 1_000 });
      expect(
        kept.map(({ status }) => status),
        name,
      ).toEqual(Array.from({ length: report.runs }, () => 'ok'));
      expect(await store.listInterrupted(), name).toEqual([]);
      for (const { runId } of kept) expect((await store.load(runId, { ended: true }))?.messages, name).toHaveLength(8);
    }
  });

  describe.skipIf(whyNoPostgres)('on PostgreSQL', () => {
    const server = postgresServer(['fsync=off']);

    test('is quiet as well', async () => {
      const pool = server.pool();
      const schema = server.freshSchema();
      const report = await charging(() => postgresStore({ pool, schema }), few);
      expect(report.violations).toEqual([]);
      expect(report.crashes).toBe(18);
    });
  });

  /** The promise that each breaks for certain, whatever else it breaks. */
  const broken: { readonly [name: string]: string } = {
    'drops every third write': 'b',
    'lets two writes land in the wrong order': 'b',
    'reads what was there before the last write': 'a',
    'loses with the process what it acknowledged last': 'b',
    'tears the record it is writing': 'a',
    'forgets the calls that are under way': 'c',
    'keeps what was deleted': 'e',
    'gives everybody the claim, and looks at none': 'd',
    'is another one each time': 'a',
  };

  test.each(Object.entries(liars))('is loud on a store that %s, and names the promise', async (name, liar) => {
    const { violations, crashes } = await charging(liar(), { limit: torture > 1 ? 24 : 12, doubleCrashes: 0 });
    const example = violations.find(({ promise }) => promise === broken[name]);
    console.log(
      `${name}: ${violations.length} complaints of ${crashes} crashes, for example ${JSON.stringify(example)}`,
    );
    expect(violations.map(({ promise }) => promise)).toContain(broken[name]);
    expect(JSON.parse(JSON.stringify(violations))).toEqual(violations);
  });

  test('comes to each boundary: writes, calls of tools and models, and the delivery of the outcome', async () => {
    const lost = await charging(liars['is another one each time']?.() as never, { doubleCrashes: 0 });
    const places = new Set(lost.violations.map(({ crashAt }) => crashAt.replace(/ \d+$/, '')));
    for (const place of [
      'after store.save',
      'before store.save',
      'before store.delete',
      'during model call',
      'before tool pay',
      'after tool pay',
      'before onOutcome',
      'after onOutcome',
    ]) {
      expect(places, place).toContain(place);
    }
  });

  test('a model that never says the same twice, a failing one and a pipeline are no obstacles', async () => {
    let said = 0;
    const model = () =>
      scriptedModel([
        callTool('look', {}),
        fail(Object.assign(new Error('overloaded'), { isRetryable: true })),
        callTool('pay', {}),
        () => reply(`Answer ${++said}.`),
        ({ messages }) => reply(`Report ${++said} of ${messages.length}.`),
      ]);
    const phases = [
      { name: 'survey', instructions: 'Look at {{.Query}}', recovery: 'boundary' as const },
      { name: 'report', instructions: 'From {{.survey}}' },
    ];
    const agent = defineAgent({ id: 'two', instructions: '', tools, phases });
    const report = await crashTest({ agent, prompt: 'Go.', model, doubleCrashes: torture > 1 ? 5 : 2 });
    expect(report.violations).toEqual([]);
    expect(report.undisturbed).toEqual({ status: 'ok', output: 'Report 2 of 1.' });
    expect(said).toBe(2);
  });

  test('agents that put others to work are crashed with them', async () => {
    const helper = defineAgent({ id: 'helper', instructions: 'Help.', description: 'Helps.', tools });
    const report = await crashTest({ ...leadAndHelper(helper, { helper: callTool('pay', {}) }), ...few });
    expect(report.violations).toEqual([]);
    expect(report.undisturbed.output).toBe('Done.');
  });

  test('a budget outlives each process, and each turn is in its books once', async () => {
    const budget = notingBudget();
    const script = [callTool('look'), reply('done')];
    const options = { agent: till, prompt: 'Go.', model: () => scriptedModel(script), ...few };
    const report = await crashTest({ ...options, executor: { ports: { budget } } });
    expect(report.violations).toEqual([]);
    expect(budget.counted.size).toBe(2 * report.runs);
    expect(budget.open.size).toBe(0);
  });

  test('a run that fails without a crash fails in the same way after one', async () => {
    const report = await crashTest({
      agent: till,
      prompt: 'Go.',
      model: () => scriptedModel([callTool('look')]),
      ...{ ...few, doubleCrashes: 0 },
    });
    expect(report.undisturbed).toMatchObject({ status: 'error', error: expect.stringContaining('this is call 2') });
    expect(report.violations).toEqual([]);
  });
});

describe('crashTest is bounded', () => {
  test('an agent that hangs is a violation, and the test ends', async () => {
    const stuck = defineAgent({
      id: 'stuck',
      instructions: '',
      tools: [toolOf('wait', 'read', () => new Promise(() => {}))],
    });
    const report = await crashTest({
      ...{ agent: stuck, prompt: 'Go.', lifeMs: 30 },
      model: () => scriptedModel([callTool('wait')]),
    });
    expect(report).toMatchObject({ runs: 1, crashes: 0 });
    expect(report.violations).toEqual([
      { promise: 'a', crashAt: 'no crash', detail: expect.stringContaining('did not answer within 30 ms') },
    ]);
  });

  test('one that hangs only after a crash is given up after three times', async () => {
    let calls = 0;
    const moody: Tool = toolOf('wait', 'read', () => (++calls > 1 ? new Promise(() => {}) : 'ok'));
    const report = await crashTest({
      ...{ agent: defineAgent({ id: 'moody', instructions: '', tools: [moody] }), prompt: 'Go.', lifeMs: 500 },
      model: () => scriptedModel([callTool('wait'), reply('ok')]),
    });
    expect(report.violations.filter(({ promise }) => promise === 'a')).toHaveLength(3);
    expect(report.runs).toBeLessThan(report.boundaries);
  });

  test('a limit leaves boundaries out, evenly, and the progress is reported', async () => {
    const told: number[] = [];
    const report = await charging(shared(memoryStore()), {
      ...{ limit: 5, doubleCrashes: 3 },
      onHistory: ({ played, total }) => {
        told.push(played);
        if (played === total) throw new Error('nobody minds');
      },
    });
    expect(report).toMatchObject({ runs: 9, crashes: 11, violations: [] });
    expect(told).toEqual([2, 3, 4, 5, 6, 7, 8, 9]);
  });

  test('records that are in the storage already are left alone', async () => {
    const store = memoryStore();
    const left = defineAgent({ id: 'till', instructions: 'Charge once.', tools });
    const { createExecutor } = await import('pawl');
    const executor = createExecutor({ models: { fast: scriptedModel([hang()]) }, agents: [left], store });
    await executor.start(left, { runId: 'mine', prompt: 'Wait.' });
    await executor.shutdown();
    const before = await store.load('mine');
    const report = await charging(shared(store), few);
    expect(report.violations).toEqual([]);
    expect(await store.load('mine')).toEqual(before);
  });
});

describe('crashTest rejects nothing but a wrong call', () => {
  const good: CrashTestOptions = { agent: till, prompt: 'Charge.', model: () => scriptedModel([reply('ok')]) };

  test.each([
    ['no options', undefined, 'agent'],
    ['no agent', { ...good, agent: {} }, 'agent'],
    ['no prompt', { ...good, prompt: '' }, 'prompt'],
    ['a model instead of a function', { ...good, model: scriptedModel([]) }, 'model'],
    ['a function that gives no model', { ...good, model: () => 'gpt' }, 'gpt'],
    ['a store instead of a function', { ...good, store: memoryStore() }, 'store: () => store'],
    ['a function that gives no store', { ...good, store: () => ({ save: () => {} }) }, 'has no load'],
    ['a store that cannot be opened', { ...good, store: () => Promise.reject(new Error('no disk')) }, 'no disk'],
    ['a tool that is not there', { ...good, agent: { ...till, tools: ['fly'] } }, '"fly"'],
    ['a limit of 0', { ...good, limit: 0 }, 'limit'],
    ['half a double crash', { ...good, doubleCrashes: 0.5 }, 'doubleCrashes'],
    ['no time', { ...good, lifeMs: -1 }, 'lifeMs'],
  ])('%s', async (_, options, what) => {
    const wrong = crashTest(options as CrashTestOptions);
    await expect(wrong).rejects.toThrow(TypeError);
    await expect(wrong).rejects.toThrow(what);
  });

  test('a storage that cannot be opened again is a violation', async () => {
    const store = memoryStore();
    let opened = 0;
    const open = () => {
      if (++opened > 4) throw new Error('disk gone');
      return store;
    };
    const { violations } = await crashTest({ ...good, store: open, limit: 2, doubleCrashes: 0 });
    expect(violations[0]).toMatchObject({ promise: 'a', detail: expect.stringContaining('disk gone') });
  });
});
