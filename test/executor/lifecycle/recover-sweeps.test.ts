import { type InterruptedRun, memoryStore } from 'pawl';
import { hang, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { gate, hostOf, settle, toolOf, until } from '../../fixtures/host.ts';
import { change, leftBehind, replies } from '../../fixtures/left-runs.ts';
import { onlyRecord, plainStore, watchedStore } from '../../fixtures/watched-store.ts';

const tools = [toolOf('look')];
const hangs = (count: number) => Array.from({ length: count }, () => hang());
const liveIn = ({ executor }: ReturnType<typeof hostOf>) => executor.runs.get().length;

/** More runs than fit a page of the list; nobody has the agent of all but the first. */
async function twoPages() {
  const store = await leftBehind(1);
  const record = await onlyRecord(store);
  for (let i = 0; i < 700; i++) {
    const meta = { ...record.meta, runId: `n${i}`, agentId: 'nobody' };
    await store.save({ ...record, meta, updatedAt: record.updatedAt + 1 });
  }
  return store;
}

describe('a recover() whose signal is aborted reports what it took up until then', () => {
  test('nothing, when it is aborted beforehand: no run is touched', async () => {
    const host = hostOf({ store: await leftBehind(2), tools });
    const report = await host.executor.recover({ signal: AbortSignal.abort(new Error('no')) });
    expect(report).toEqual({ resumed: [], parked: [], skipped: [], failed: [], waiting: 0 });
    expect(liveIn(host)).toBe(0);
  });

  test('the runs of the first page, when the store refuses the second because of it', async () => {
    const store = await twoPages();
    const controller = new AbortController();
    const pages: number[] = [];
    const listInterrupted: typeof store.listInterrupted = async (options) => {
      if (pages.push(1) === 2) controller.abort(new Error('enough'));
      return store.listInterrupted(options);
    };
    const host = hostOf({ store: { ...store, listInterrupted }, tools, script: hangs(1) });
    const report = await host.executor.recover({ signal: controller.signal });
    expect([pages.length, report.resumed, report.skipped.length]).toEqual([2, [{ runId: 'r0' }], 499]);
    await host.executor.shutdown();
  });

  test('no further run when it is aborted while it waits for a place, and it waits no longer', async () => {
    const controller = new AbortController();
    const host = hostOf({ store: await leftBehind(3), tools, script: hangs(3) });
    const recovery = host.executor.recover({ concurrency: 1, signal: controller.signal });
    await until(() => host.model.calls.length === 1);
    controller.abort();
    const { resumed } = await recovery;
    expect(resumed).toHaveLength(1);
    await settle();
    expect([liveIn(host), host.model.calls.length]).toEqual([1, 1]);
    expect((await host.executor.recover({ concurrency: 3 })).resumed).toHaveLength(2);
    await host.executor.shutdown();
  });

  test('no further suspect, though the one that was begun has recorded nothing yet', async () => {
    const store = await leftBehind(2);
    for (const runId of ['r0', 'r1']) await change(store, runId, (record) => ({ ...record, attempts: 2 }));
    const controller = new AbortController();
    const host = hostOf({ store, tools, script: hangs(2) });
    const recovery = host.executor.recover({ signal: controller.signal });
    await until(() => host.model.calls.length === 1);
    controller.abort();
    expect((await recovery).resumed).toHaveLength(1);
    await host.executor.shutdown();
  });
});

describe('overlapping sweeps of one executor', () => {
  test('share their bound: three with two places each have two runs live, and each run is reported as resumed once (recovery 1)', async () => {
    let most = 0;
    const opened = gate();
    const slow = async () => {
      most = Math.max(most, liveIn(host));
      await opened.pass();
      await settle(2);
      return reply('end');
    };
    const host = hostOf({ store: await leftBehind(9), tools, script: replies(9).map(() => slow) });
    const sweeps = [];
    for (let i = 0; i < 3; i++) {
      sweeps.push(host.executor.recover({ concurrency: 2 }));
      await settle();
    }
    expect(liveIn(host)).toBe(2);
    opened.open();
    const reports = await Promise.all(sweeps);
    const resumed = reports.flatMap((report) => report.resumed.map(({ runId }) => runId));
    expect(resumed.toSorted()).toEqual(['r0', 'r1', 'r2', 'r3', 'r4', 'r5', 'r6', 'r7', 'r8']);
    expect(reports.flatMap(({ failed, parked }) => [...failed, ...parked])).toEqual([]);
    for (const report of reports) expect(report.resumed.length + report.skipped.length).toBe(9);
    const reasons = new Set(reports.flatMap(({ skipped }) => skipped.map(({ reason }) => reason)));
    expect([...reasons].toSorted()).toEqual(['it ended in the meantime', 'it is live in this process']);
    expect(most).toBe(2);
  });

  test('let only one suspect at a time begin, all of them together (recovery 2)', async () => {
    const store = await leftBehind(3);
    for (const runId of ['r0', 'r1', 'r2']) await change(store, runId, (record) => ({ ...record, attempts: 2 }));
    const host = hostOf({ store, tools, script: hangs(3) });
    const sweeps = [host.executor.recover()];
    await until(() => host.model.calls.length === 1);
    sweeps.push(host.executor.recover());
    await settle(20);
    expect(host.model.calls).toHaveLength(1);
    await host.executor.shutdown();
    await Promise.all(sweeps);
  });

  test('leave to each other what they have no place for: one with more places takes it up', async () => {
    const host = hostOf({ store: await leftBehind(4), tools, script: hangs(4) });
    const narrow = host.executor.recover({ concurrency: 1 });
    await until(() => liveIn(host) === 1);
    expect((await host.executor.recover({ concurrency: 4 })).resumed).toHaveLength(3);
    await host.executor.shutdown();
    await narrow;
  });

  test('wait each for its own bound: one with more places than the others takes up more', async () => {
    const left = await leftBehind(4);
    const host = hostOf({ store: left, tools, script: hangs(4) });
    const controller = new AbortController();
    const first = host.executor.recover({ concurrency: 1, signal: controller.signal });
    await until(() => liveIn(host) === 1);
    controller.abort();
    await first;
    expect((await host.executor.recover({ concurrency: 4 })).resumed).toHaveLength(3);
    await settle();
    expect(liveIn(host)).toBe(4);
    await host.executor.shutdown();
  });

  test('hold nothing of a run: one that is left again is taken up again', async () => {
    const store = await leftBehind(1);
    const record = await onlyRecord(store);
    const host = hostOf({ store, tools, script: replies(2) });
    for (let time = 0; time < 2; time++) {
      expect((await host.executor.recover()).resumed).toEqual([{ runId: 'r0' }]);
      await until(async () => (await store.listInterrupted()).length === 0);
      await settle();
      await store.save(record);
    }
  });

  test('leave a run alone that was started while it waited for its place: the sweep does not wait for its end', async () => {
    const host = hostOf({
      store: await leftBehind(2),
      tools,
      script: [...hangs(2), ...replies(1)],
      random: () => 0,
    });
    const recovery = host.executor.recover({ concurrency: 1 });
    await until(() => liveIn(host) === 1);
    const [taken] = host.executor.runs.get();
    const waiting = taken?.runId === 'r0' ? 'r1' : 'r0';
    const i = waiting === 'r0' ? 0 : 1;
    await host.start({ runId: waiting, prompt: `Go ${i}.`, callerId: `c${i}` });
    await host.executor.control(taken?.runId ?? '').cancel();
    expect(await recovery).toMatchObject({
      resumed: [{ runId: taken?.runId }],
      skipped: [{ runId: waiting, reason: 'it is live in this process' }],
    });
    await host.executor.shutdown();
  });
});

describe('a list', () => {
  test('that fails at its second page is an error, but what was taken up continues, and the next sweep finds the rest', async () => {
    const inner = await twoPages();
    let isDown = true;
    const before = ({ method, args: [options] }: { method: string; args: readonly unknown[] }) => {
      const isSecond = (options as { after?: unknown } | undefined)?.after !== undefined;
      if (isDown && method === 'listInterrupted' && isSecond) throw new Error('down');
    };
    const host = hostOf({ store: watchedStore({ before }, inner), tools, script: hangs(1) });
    await expect(host.executor.recover()).rejects.toThrow('down');
    expect(liveIn(host)).toBe(1);
    isDown = false;
    const { skipped } = await host.executor.recover();
    expect(skipped).toHaveLength(701);
    expect(skipped.filter(({ reason }) => reason?.includes('in hand'))).toEqual([]);
    await host.executor.shutdown();
  });

  test('of a host that knows no pages ends all the same', async () => {
    const store = await twoPages();
    const all = await store.listInterrupted({ limit: 1_000 });
    let reads = 0;
    const listInterrupted = async (): Promise<readonly InterruptedRun[]> => {
      reads += 1;
      if (reads > 50) throw new Error('read without an end');
      // As if the runs were written all the time: their order is another each time.
      return all.map((line) => ({ ...line, updatedAt: reads }) as InterruptedRun);
    };
    const host = hostOf({ store: { ...plainStore(store), listInterrupted }, tools, script: replies(1) });
    const report = await host.executor.recover();
    expect([report.resumed.length, report.skipped.length, reads]).toEqual([1, 700, 2]);
    await host.executor.list();
    expect(reads).toBe(4);
  });
});

test('a bound that is no whole number above 0 is refused, because the first run would wait without end', async () => {
  const host = hostOf({ store: memoryStore() });
  for (const wrong of [0, -1, 1.5, Number.NaN, '2', null]) {
    await expect(host.executor.recover({ concurrency: wrong as never })).rejects.toThrow(TypeError);
    await expect(host.executor.recover({ maxAttempts: wrong as never })).rejects.toThrow(/maxAttempts must be a whole/);
  }
  await host.executor.recover({ concurrency: Number.POSITIVE_INFINITY, maxAttempts: Number.POSITIVE_INFINITY });
});
