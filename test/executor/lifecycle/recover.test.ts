import { memoryStore } from 'pawl';
import { hang, reply, type ScriptedEntry } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { gate, hostOf, settle, toolOf, until } from '../../fixtures/host.ts';
import { change, leftBehind, replies } from '../../fixtures/left-runs.ts';
import { afterCrash, onlyRecord, plainStore, watchedStore, withoutDue } from '../../fixtures/watched-store.ts';

const tools = [toolOf('look')];

describe('recover', () => {
  test('continues every interrupted run, each with its own record, and reports them as resumed (recovery 1)', async () => {
    const store = await leftBehind(5);
    const host = hostOf({ script: replies(5), tools, store });
    const report = await host.executor.recover();
    const runIds = report.resumed.map(({ runId }) => runId).sort();
    expect(runIds).toEqual(['r0', 'r1', 'r2', 'r3', 'r4']);
    expect(report).toEqual({
      resumed: report.resumed.map(({ runId }) => ({ runId })),
      parked: [],
      skipped: [],
      failed: [],
      waiting: 0,
    });
    const results = await Promise.all(report.resumed.map(({ runId }) => host.executor.get(runId)?.result));
    for (const result of results) expect(result).toMatchObject({ status: 'ok', output: 'end', iterations: 2 });
    expect(host.model.calls.map(({ messages }) => messages.length)).toEqual([3, 3, 3, 3, 3]);
    expect(await store.listInterrupted()).toEqual([]);
  });

  test('takes the runs of a store without the group due up in an order of its own: hosts that boot together seldom meet at one run (recovery 1)', async () => {
    const store = await leftBehind(5);
    const order = async (random: () => number) => {
      const host = hostOf({ script: replies(5), tools, store: withoutDue(await afterCrash(store)), random });
      return (await host.executor.recover()).resumed.map(({ runId }) => runId);
    };
    const [one, two] = [await order(() => 0), await order(() => 0.99)];
    expect(one).not.toEqual(two);
    expect([...one].sort()).toEqual([...two].sort());
  });

  test('works on a store of four methods, and on an empty one, and without any (recovery 1)', async () => {
    const host = hostOf({ script: replies(2), tools, store: plainStore(await leftBehind(2)) });
    expect((await host.executor.recover()).resumed).toHaveLength(2);
    const nothing = { resumed: [], parked: [], skipped: [], failed: [], waiting: 0 };
    expect(await hostOf({ store: memoryStore() }).executor.recover()).toEqual(nothing);
    expect(await hostOf().executor.recover()).toEqual(nothing);
  });

  test("understands a host's own list that leaves status and attempts out", async () => {
    const store = await leftBehind(1);
    const bare = {
      ...plainStore(store),
      listInterrupted: async () =>
        (await store.listInterrupted()).map((entry) => ({ ...entry, status: undefined, attempts: undefined }) as never),
    };
    const host = hostOf({ script: replies(1), tools, store: bare });
    expect((await host.executor.recover()).resumed).toEqual([{ runId: 'r0' }]);
  });

  test('leaves alone a run whose agent is not registered: skipped, AGENT_NOT_FOUND, its record as it was (recovery 1)', async () => {
    const store = await leftBehind(2);
    await change(store, 'r1', (record) => ({ ...record, meta: { ...record.meta, agentId: 'gone' } }));
    const before = await store.load('r1');
    const host = hostOf({ script: replies(1), tools, store });
    const report = await host.executor.recover();
    expect(report.resumed).toEqual([{ runId: 'r0' }]);
    expect(report.skipped).toEqual([{ runId: 'r1', reason: expect.stringContaining('AGENT_NOT_FOUND') }]);
    expect(await store.load('r1')).toEqual(before);
  });

  test('leaves alone a run one of whose tools is gone: skipped, UNKNOWN_TOOL, not counted as a start (recovery 1)', async () => {
    const store = await leftBehind(1);
    for (let boot = 0; boot < 5; boot++) {
      const report = await hostOf({ agent: { tools: ['look'] }, store }).executor.recover();
      expect(report.skipped).toEqual([{ runId: 'r0', reason: expect.stringContaining('UNKNOWN_TOOL') }]);
    }
    expect(await store.load('r0')).toMatchObject({ iteration: 1, attempts: 0 });
  });

  test('reports a run that is parked, and parks one that started too often (recovery 2)', async () => {
    const store = await leftBehind(3);
    await change(store, 'r0', (record) => ({ ...record, parked: { code: 'X', reason: 'by hand' } }));
    await change(store, 'r1', (record) => ({ ...record, attempts: 3 }));
    const host = hostOf({ script: replies(1), tools, store });
    const report = await host.executor.recover();
    expect(report.resumed).toEqual([{ runId: 'r2' }]);
    expect(report.parked).toEqual(
      expect.arrayContaining([
        { runId: 'r0', reason: 'X: it is parked: by hand' },
        { runId: 'r1', reason: expect.stringContaining('RUN_PARKED') },
      ]),
    );
    await host.executor.get('r2')?.result;
    expect((await store.listInterrupted()).map(({ status }) => status)).toEqual(['parked', 'parked']);
    expect(await host.run({ runId: 'r1', prompt: 'Go 1.', callerId: 'c1' })).toMatchObject({
      error: { code: 'RUN_PARKED' },
    });
  });

  test('takes maxAttempts from its options (recovery 2)', async () => {
    const store = await leftBehind(1);
    await change(store, 'r0', (record) => ({ ...record, attempts: 1 }));
    const host = hostOf({ script: replies(1), tools, store });
    expect((await host.executor.recover({ maxAttempts: 1 })).parked).toHaveLength(1);
  });

  test('reports a quarantined record as skipped with its reason, and takes up the others (recovery 6)', async () => {
    const store = await leftBehind(1);
    const host = hostOf({
      script: replies(1),
      tools,
      store: {
        ...store,
        listInterrupted: async () => [
          { runId: 'bad', status: 'quarantined', reason: 'CHECKPOINT_CORRUPT: head' },
          ...(await store.listInterrupted()),
        ],
      },
    });
    const report = await host.executor.recover();
    expect(report.skipped).toEqual([{ runId: 'bad', reason: 'CHECKPOINT_CORRUPT: it cannot be read: head' }]);
    expect(report.resumed).toEqual([{ runId: 'r0' }]);
  });

  test('skips a run that is live here, and one that another process holds', async () => {
    const store = await leftBehind(2);
    const elsewhere = hostOf({ script: [hang()], tools, store });
    await elsewhere.start({ runId: 'r0', prompt: 'Go 0.', callerId: 'c0' });
    const host = hostOf({ script: [hang()], tools, store });
    await host.start({ runId: 'r1', prompt: 'Go 1.', callerId: 'c1' });
    const { skipped, resumed } = await host.executor.recover();
    expect(resumed).toEqual([]);
    expect(skipped).toEqual(
      expect.arrayContaining([
        { runId: 'r0', reason: expect.stringContaining('RUN_OWNED_ELSEWHERE') },
        { runId: 'r1', reason: expect.stringContaining('live') },
      ]),
    );
  });

  test('does not claim a run that the list names an owner of (recovery 3)', async () => {
    const inner = await leftBehind(2);
    await inner.claim('r0', 'elsewhere|1', 60_000);
    const store = watchedStore({}, inner);
    const host = hostOf({ script: replies(1), tools, store });
    const report = await host.executor.recover();
    expect(report.skipped).toEqual([{ runId: 'r0', reason: 'RUN_OWNED_ELSEWHERE: a process works on it' }]);
    expect(report.resumed).toEqual([{ runId: 'r1' }]);
    expect(store.methods).not.toContain('claim');
    expect(store.log.filter(({ method }) => method === 'due.take').map(({ args }) => args[0])).toEqual([
      expect.objectContaining({ runIds: ['r1'] }),
    ]);
  });

  test.for([1, 2, 7])(
    'has never more than %i runs live at once when told so, and takes up all (recovery 1)',
    async (concurrency) => {
      const store = await leftBehind(12);
      let live = 0;
      let most = 0;
      const slow: ScriptedEntry = async () => {
        most = Math.max(most, ++live);
        await settle(3);
        live -= 1;
        return reply('end');
      };
      const host = hostOf({ script: Array.from({ length: 12 }, () => slow), tools, store });
      const report = await host.executor.recover({ concurrency });
      expect(report.resumed).toHaveLength(12);
      await until(async () => (await store.listInterrupted()).length === 0);
      expect(most).toBe(Math.min(concurrency, 12));
    },
  );

  test('takes up more runs than fit a page of the list', async () => {
    const store = memoryStore();
    const record = await onlyRecord(await leftBehind(1));
    for (let i = 0; i < 603; i++) {
      const runId = `run-${String(i).padStart(4, '0')}`;
      await store.save({ ...record, meta: { ...record.meta, runId }, updatedAt: i % 7 });
    }
    const host = hostOf({ script: replies(603), tools, store });
    const report = await host.executor.recover();
    expect(new Set(report.resumed.map(({ runId }) => runId)).size).toBe(603);
    await until(async () => (await store.listInterrupted()).length === 0);
    expect(host.model.calls).toHaveLength(603);
  });

  test('stops taking up runs when its signal is aborted', async () => {
    const store = await leftBehind(6);
    const controller = new AbortController();
    const first = gate();
    const host = hostOf({
      script: [() => first.pass().then(() => reply('end')), ...replies(5)],
      tools,
      store,
    });
    const recovery = host.executor.recover({ concurrency: 1, signal: controller.signal });
    await first.reached;
    controller.abort();
    first.open();
    expect((await recovery).resumed.length).toBeLessThan(6);
    expect((await store.listInterrupted()).length).toBeGreaterThan(0);
  });

  test("rejects with the store's own error when the list cannot be read, and touches no run", async () => {
    const store = watchedStore(
      { before: ({ method }) => method === 'listInterrupted' && Promise.reject(new Error('down')) },
      await leftBehind(2),
    );
    const host = hostOf({ tools, store });
    await expect(host.executor.recover()).rejects.toThrow('down');
    expect(store.methods.filter((name) => name !== 'listInterrupted')).toEqual([]);
  });

  test('never begins a run again whose record went between the list and the look: skipped, RUN_NOT_FOUND', async () => {
    const store = await leftBehind(1);
    const list = await store.listInterrupted();
    await store.delete('r0');
    const host = hostOf({ tools, store: { ...store, listInterrupted: async () => list } });
    const report = await host.executor.recover();
    expect(report.skipped).toEqual([{ runId: 'r0', reason: expect.stringContaining('RUN_NOT_FOUND') }]);
    expect([host.model.calls, await store.load('r0')]).toEqual([[], null]);
  });

  test('one run that cannot be loaded does not hold the others up: it is reported as failed', async () => {
    const store = watchedStore(
      {
        before: ({ method, args }) => method === 'load' && args[0] === 'r1' && Promise.reject(new Error('bad sector')),
      },
      await leftBehind(3),
    );
    const host = hostOf({ script: replies(2), tools, store });
    const report = await host.executor.recover();
    expect(report.resumed.map(({ runId }) => runId).sort()).toEqual(['r0', 'r2']);
    expect(report.failed).toEqual([{ runId: 'r1', reason: expect.stringContaining('bad sector') }]);
  });

  test('twice at once takes each run up once', async () => {
    const store = await leftBehind(5);
    const host = hostOf({ script: replies(5), tools, store });
    await Promise.all([host.executor.recover(), host.executor.recover()]);
    await until(async () => (await store.listInterrupted()).length === 0);
    expect(host.model.calls).toHaveLength(5);
  });
});
