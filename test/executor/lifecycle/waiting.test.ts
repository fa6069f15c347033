import { createPalette, defineAgent, type ListedWait, type ListWaitsOptions, memoryStore, type WaitCursor } from 'pawl';
import { callTool, callTools, hang, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import type { ReadableRun } from '../../../src/record/interrupted.ts';
import { hostOf, toolOf, until } from '../../fixtures/host.ts';
import { deskOf, refundTool, START } from '../../fixtures/resting-runs.ts';
import { plainStore } from '../../fixtures/watched-store.ts';

const shown = (waits: readonly ListedWait[]) => waits.map(({ runId, kind }) => `${runId} ${kind}`);

async function pagesOf(
  executor: { waiting(options: ListWaitsOptions): Promise<readonly ListedWait[]> },
  limit: number,
) {
  const pages: string[][] = [];
  let after: WaitCursor | undefined;
  for (;;) {
    const page = await executor.waiting({ limit, ...(after ? { after } : {}) });
    pages.push(page.map(({ runId, callId = '' }) => `${runId}/${callId}`));
    if (page.length < limit) return pages;
    after = JSON.parse(JSON.stringify(page.at(-1))) as WaitCursor;
  }
}

describe('executor.waiting', () => {
  test('gives the open wait of a run that rests, with its run, its path and the input of its call (waiting 20)', async () => {
    const desk = deskOf();
    await desk.rested('r', { callerId: 'ada', labels: { team: 'shop' } });
    const waits = await desk.executor.waiting();
    expect(waits).toEqual([
      {
        ...{ id: expect.any(String), kind: 'approval', createdAt: START, dueAt: START + 604_800_000, step: 1 },
        ...{ callId: expect.any(String), tool: 'refund', digest: expect.any(String), prompt: 'Pay 700 cents?' },
        ...{
          quorum: 1,
          votes: [],
          editable: true,
          onExpiry: 'deny',
          input: { cents: 700 },
          toolHash: expect.any(String),
        },
        ...{ runId: 'r', rootRunId: 'r', path: [{ runId: 'r', agentId: 'worker' }], agentId: 'worker' },
        ...{ callerId: 'ada', labels: { team: 'shop' }, updatedAt: START + 1_000 },
      },
    ]);
    const [wait] = waits;
    await desk.executor.control('r').approve(wait?.id ?? '', { digest: (wait as { digest: string }).digest });
    await desk.time.advance(3_000);
    expect(desk.paid).toEqual([700]);
    expect(await desk.executor.waiting()).toEqual([]);
    await desk.executor.shutdown();
  });

  test('gives the same waits while the run is live here, is live in another process, and after a crash (waiting 20)', async () => {
    const desk = deskOf();
    await desk.start({ runId: 'r' });
    await until(async () => (await desk.executor.waiting()).length === 1);
    const live = await desk.executor.waiting();
    const other = deskOf({ store: desk.store, time: desk.time });
    const elsewhere = await other.executor.waiting();
    const { updatedAt, ...rest } = elsewhere[0] as ListedWait;
    expect([rest]).toEqual(live);
    expect(updatedAt).toBe(START);
    // The process dies: its lease ends.
    await desk.time.advance(0);
    expect(shown(await other.executor.waiting({ kind: 'approval' }))).toEqual(['r approval']);
    await desk.executor.shutdown();
    expect(await other.executor.waiting()).toMatchObject([{ runId: 'r', input: { cents: 700 } }]);
    await other.executor.shutdown();
  });

  test('gives pages: live runs by id, then stored ones by their last record; a page may end within a run (waiting 20)', async () => {
    const two = callTools([
      { name: 'refund', input: { cents: 1 }, callId: 'c1' },
      { name: 'refund', input: { cents: 2 }, callId: 'c2' },
    ]);
    const desk = deskOf({ script: Array.from({ length: 5 }, () => two) });
    for (const runId of ['s2', 's1', 's3']) await desk.rested(runId);
    for (const runId of ['b', 'a']) await desk.start({ runId });
    await until(async () => (await desk.executor.waiting()).length === 10);
    const all = ['a/c1', 'a/c2', 'b/c1', 'b/c2', 's2/c1', 's2/c2', 's1/c1', 's1/c2', 's3/c1', 's3/c2'];
    const within = (pages: readonly (readonly string[])[]) => pages.map((page) => page.length);
    for (const limit of [1, 3, 5, 10]) {
      const pages = await pagesOf(desk.executor, limit);
      expect(pages.flat().toSorted()).toEqual(all.toSorted());
      expect(pages.flat().map((each) => each.split('/')[0])).toEqual(all.map((each) => each.split('/')[0]));
      expect(Math.max(...within(pages))).toBeLessThanOrEqual(limit);
    }
    await desk.executor.shutdown();
  });

  test('gives 100 waits where no limit is set (waiting 20)', async () => {
    const desk = deskOf();
    for (let i = 0; i < 101; i++) await desk.start({ runId: `r${i}` });
    await desk.time.advance(2_000);
    const first = await desk.executor.waiting();
    const after = first.at(-1) as ListedWait;
    expect([first.length, (await desk.executor.waiting({ after })).length]).toEqual([100, 1]);
    expect(await desk.executor.waiting({ limit: 1_000 })).toHaveLength(101);
    await desk.executor.shutdown();
  });

  test('takes a run, an agent, a caller and kinds (waiting 20)', async () => {
    const desk = deskOf();
    await desk.rested('r1', { callerId: 'ada' });
    await desk.rested('r2', { callerId: 'bob' });
    const other = defineAgent({ id: 'other', instructions: '', tools: [refundTool()] });
    await desk.executor.start(other, { runId: 'live', prompt: 'Go.' });
    await until(async () => (await desk.executor.waiting()).length === 3);
    const ids = async (options: ListWaitsOptions) => (await desk.executor.waiting(options)).map(({ runId }) => runId);
    expect(await ids({ runId: 'r2' })).toEqual(['r2']);
    expect(await ids({ runId: 'live' })).toEqual(['live']);
    expect(await ids({ runId: 'gone' })).toEqual([]);
    expect(await ids({ rootRunId: 'r1' })).toEqual(['r1']);
    expect(await ids({ agentId: 'other' })).toEqual(['live']);
    expect(await ids({ callerId: 'bob' })).toEqual(['r2']);
    expect(await ids({ kind: ['timer', 'question'] })).toEqual([]);
    expect(await ids({ kind: ['timer', 'approval'], callerId: 'ada' })).toEqual(['r1']);
    await desk.executor.shutdown();
  });

  test('shows the runs above a child that waits, from the root down (waiting 20, 23)', async () => {
    const time = testClock(START);
    const store = memoryStore({ clock: time });
    const child = defineAgent({ id: 'clerk', description: 'Pays.', instructions: '', tools: [refundTool()] });
    const script = [
      callTool('agent__clerk', { prompt: 'Pay.' }),
      callTool('refund', { cents: 5 }),
      ...Array.from({ length: 5 }, () => hang()),
    ];
    const ports = { palette: createPalette({ agents: [child] }) };
    const host = hostOf({ store, clock: time, script, agent: { subAgents: ['clerk'] }, ports });
    await host.start({ runId: 'root' });
    await until(async () => (await host.executor.waiting({ kind: 'approval' })).length === 1);
    const [wait] = await host.executor.waiting({ kind: 'approval' });
    const callId = expect.any(String);
    expect(wait).toMatchObject({ rootRunId: 'root', agentId: 'clerk', input: { cents: 5 } });
    expect(wait?.path).toEqual([
      { runId: 'root', agentId: 'worker' },
      { runId: wait?.runId, agentId: 'clerk', callId },
    ]);
    const other = hostOf({ store, clock: time });
    const [stored] = await other.executor.waiting({ rootRunId: 'root', kind: 'approval' });
    expect(stored?.path).toEqual(wait?.path);
    await host.executor.shutdown();
    await other.executor.shutdown();
  });

  test('shows what records have: an input and a question without their secrets, live or stored (waiting 13)', async () => {
    const redact = (text: string) => text.replaceAll('hunter2', '***');
    const pay = refundTool();
    const desk = deskOf({
      redact,
      script: [callTool('refund', { cents: 7, note: 'hunter2' })],
      tools: [{ ...pay, input: pay.input, approval: { ...pay.approval, prompt: () => 'Pay hunter2?' } } as never],
    });
    await desk.start({ runId: 'r' });
    await until(async () => (await desk.executor.waiting()).length === 1);
    const live = JSON.stringify(await desk.executor.waiting());
    const other = deskOf({ store: desk.store, time: desk.time });
    const stored = JSON.stringify(await other.executor.waiting());
    for (const text of [live, stored]) {
      expect(text).not.toContain('hunter2');
      expect(text).toContain('***');
    }
    await desk.executor.shutdown();
    await other.executor.shutdown();
  });

  test('reads the record of a run where the list of a store lacks its waits, or the input of one of many calls (waiting 20)', async () => {
    const calls = Array.from({ length: 40 }, (_, i) => ({ name: 'refund', input: { cents: i }, callId: `c${i}` }));
    const desk = deskOf({ script: [callTools(calls)] });
    await desk.rested('many');
    const waits = await desk.executor.waiting();
    expect(waits.map(({ input }) => input)).toEqual(
      expect.arrayContaining([{ cents: 0 }, { cents: 20 }, { cents: 39 }]),
    );
    expect(waits).toHaveLength(40);
    const list: typeof desk.store.listInterrupted = async () =>
      (await desk.store.listInterrupted({ status: 'waiting' })).map((entry) => {
        const { waits: _, status: __, ...rest } = entry as ReadableRun;
        return rest;
      });
    const plain = hostOf({ store: { ...plainStore(desk.store), listInterrupted: list } });
    expect(await plain.executor.waiting()).toHaveLength(40);
    await desk.executor.shutdown();
  });

  test('leaves out parked runs and unreadable records, and gives the live runs of an executor without a store (waiting 20)', async () => {
    const desk = deskOf();
    await desk.rested('parked');
    await desk.executor.park('parked', 'by hand');
    await desk.rested('r');
    const listInterrupted: typeof desk.store.listInterrupted = async (options) => [
      { runId: 'torn', status: 'quarantined', reason: 'CHECKPOINT_CORRUPT: torn' },
      ...(await desk.store.listInterrupted(options)),
    ];
    const other = hostOf({ store: { ...desk.store, listInterrupted } });
    expect(shown(await other.executor.waiting())).toEqual(['r approval']);
    const without = hostOf({ script: [callTool('refund', { cents: 1 })], tools: [refundTool()] });
    await without.start({ runId: 'memory' });
    await until(async () => (await without.executor.waiting()).length === 1);
    expect(await without.executor.waiting()).toMatchObject([{ runId: 'memory', input: { cents: 1 } }]);
    for (const { executor } of [desk, other, without]) await executor.shutdown();
  });

  test.each<[unknown, string]>([
    [{ limit: 0 }, 'executor.waiting: limit must be a whole number from 1 to 1,000, not 0'],
    [{ limit: 1_001 }, 'executor.waiting: limit must be a whole number from 1 to 1,000, not 1001'],
    [{ after: 'r' }, 'executor.waiting: after must be the last entry of a page'],
    [{ after: { runId: 'r', id: 'w' } }, 'executor.waiting: after must be the last entry of a page'],
    [{ runId: 7 }, 'executor.waiting: runId must be a string, not the number 7'],
    [{ kind: [] }, 'executor.waiting: kind must be one or more of approval, question,'],
    [{ kind: 'nap' }, 'executor.waiting: there is no kind of wait "nap"; known: approval, question,'],
    [{ kinds: 'timer' }, 'executor.waiting: unknown option kinds; did you mean kind?'],
  ])('refuses the options %j (waiting 20)', async (options, message) => {
    const { executor } = hostOf();
    await expect(executor.waiting(options as ListWaitsOptions)).rejects.toThrow(TypeError);
    await expect(executor.waiting(options as ListWaitsOptions)).rejects.toThrow(message);
  });

  test('passes on the error of a store whose list cannot be read (waiting 20)', async () => {
    const store = memoryStore();
    const listInterrupted = async () => {
      throw new Error('down');
    };
    const { executor } = hostOf({ store: { ...store, listInterrupted } });
    await expect(executor.waiting()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  });
});

describe('a run that waits, in executor.list', () => {
  test('has the status `waiting`, its waits and its time, whether it rests or not (waiting 22)', async () => {
    const desk = deskOf({ more: [toolOf('look')] });
    await desk.rested('rests');
    await desk.start({ runId: 'live' });
    await desk.time.advance(0);
    const store = desk.store;
    const other = deskOf({ store, time: desk.time });
    const lines = await other.executor.list();
    expect(lines.map(({ runId, status }) => [runId, status])).toEqual([
      ['live', 'live'],
      ['rests', 'waiting'],
    ]);
    const [line] = await other.executor.list({ status: 'waiting' });
    expect(line).toMatchObject({ runId: 'rests', waits: [{ kind: 'approval' }], dueAt: START + 604_800_000 });
    expect(await other.executor.list({ status: ['interrupted', 'parked'] })).toEqual([]);
    await desk.executor.shutdown();
    expect((await other.executor.list()).map(({ status }) => status)).toEqual(['waiting', 'waiting']);
    expect(await other.executor.list({ limit: 1 })).toHaveLength(1);
    await other.executor.shutdown();
  });
});
