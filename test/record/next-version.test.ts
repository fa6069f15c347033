import { createExecutor, defineAgent, type Message, type RunCheckpoint } from 'pawl';
import { callTool, hang, scriptedModel } from 'pawl/testing';
import { describe, expect, test, vi } from 'vitest';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { toolOf, until } from '../fixtures/host.ts';
import { copyOfPinned, pinnedRecords } from '../fixtures/pinned-stores.ts';
import { requestIn } from '../fixtures/records.ts';
import { sql } from '../store/sqlite/files.ts';

/** What the next version could be: one that changes every part of a record, the parts that stores write only once too. */
vi.mock('../../src/record/checkpoint.ts', async (original) => ({ ...(await original<object>()), RECORD_VERSION: 4 }));
vi.mock('../../src/record/upcast.ts', async (original) => {
  const real = await original<typeof import('../../src/record/upcast.ts')>();
  const upcast = (record: Record<string, unknown>) => real.upcast(record, { 1: () => {}, 2: () => {}, 3: toNext }, 4);
  return { ...real, upcast };
});

function toNext({ meta, messages, ...head }: Record<string, unknown>): Record<string, unknown> {
  return {
    ...head,
    elapsedMs: Number(head.elapsedMs) + 500,
    meta: { ...(meta as object), guildId: 'moved' },
    ...(messages ? { messages: (messages as Message[]).map(marked) } : {}),
  };
}

const marked = (message: Message): Message => ({
  ...message,
  providerOptions: { next: { times: timesOf(message) + 1 } },
});
const timesOf = ({ providerOptions }: Message) => Number(providerOptions?.next?.times ?? 0);

/** A record of version 1 as that version reads it. */
const inNext = (runId: string): RunCheckpoint => {
  const record = pinnedRecords().records.find(({ meta }) => meta.runId === runId);
  return { ...toNext({ ...record }), version: 4 } as never;
};

describe('with a next version of records and one step to it (checkpoint 6, faults 12)', () => {
  test('a stored record is read in its form, and a list shows it in that form too', async () => {
    const store = sqliteStore({ path: copyOfPinned('runs.db') });
    expect(JSON.parse(JSON.stringify(await store.load('single')))).toEqual(inNext('single'));
    const listed = await store.listInterrupted();
    expect(listed.map((run) => 'meta' in run && run.meta.guildId)).toEqual(listed.map(() => 'moved'));
    await store.close();
  });

  test('reading changes nothing that is stored', async () => {
    const path = copyOfPinned('runs.db');
    const store = sqliteStore({ path });
    await store.load('single');
    await store.listInterrupted();
    expect(sql(path, 'SELECT DISTINCT version FROM heads')).toEqual([{ version: 1 }]);
    await store.close();
  });

  test('the first write of a run is a whole record, so that no part stays in the old form and none is brought over twice', async () => {
    const path = copyOfPinned('runs.db');
    const store = sqliteStore({ path });
    const model = scriptedModel([callTool('look', { path: 'c.txt' }), hang()]);
    const agent = defineAgent({ id: 'single', version: '3', instructions: 'Look.', tools: [toolOf('look')] });
    const executor = createExecutor({ models: { fast: model }, store });
    await executor.start(agent, requestIn(inNext('single')));
    await until(() => model.calls.length === 2, 'the second model call');

    const record = (await store.load('single')) as RunCheckpoint;
    expect(record).toMatchObject({ version: 4, iteration: 3, meta: { guildId: 'moved' } });
    // What came since: the step, and the message that had been waiting for the run.
    const times = record.messages.map(timesOf);
    expect([times.slice(0, 5), new Set(times.slice(5))]).toEqual([[1, 1, 1, 1, 1], new Set([0])]);
    expect(sql(path, "SELECT meta LIKE '%moved%' AS isMoved FROM runs WHERE run_id = 'single'")).toEqual([
      { isMoved: 1 },
    ]);
    expect(sql(path, 'SELECT r.run_id, h.version FROM runs r JOIN heads h USING (no) WHERE version = 4')).toHaveLength(
      1,
    );
    await executor.shutdown();
    await store.close();
  });

  test('a run that is set aside is stored whole in its form', async () => {
    const path = copyOfPinned('runs.db');
    const store = sqliteStore({ path });
    const executor = createExecutor({ models: { fast: scriptedModel([]) }, store });
    await executor.park('single', 'not today');
    const record = (await store.load('single')) as RunCheckpoint;
    expect(record.parked?.reason).toBe('not today');
    expect(record.messages.map(timesOf)).toEqual([1, 1, 1, 1, 1]);
    expect(record.elapsedMs).toBe(500);
    await store.close();
  });
});
