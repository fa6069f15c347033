import { memoryStore } from 'pawl';
import { callTool, hang, reply, type ScriptedEntry } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { hostOf, settle, toolOf, until } from '../fixtures/host.ts';
import { change, leftBehind, replies } from '../fixtures/left-runs.ts';

const tools = [toolOf('look')];

describe('from one executor to the next', () => {
  test('shutdown leaves the runs, the second executor continues them without doing a step again (finalize 3, recovery 1)', async () => {
    const store = memoryStore();
    const counted: unknown[] = [];
    const work = toolOf('look', 'once', (_, { runId }) => void counted.push(runId));
    const script = Array.from(
      { length: 8 },
      (): ScriptedEntry =>
        ({ messages }) =>
          messages.length === 1 ? callTool('look') : hang(),
    );
    const first = hostOf({ script, tools: [work], store });
    for (let i = 0; i < 4; i++) await first.start({ runId: `r${i}` });
    await until(() => first.model.calls.length === 8);
    await first.executor.shutdown();
    await settle();
    expect(await store.listInterrupted()).toMatchObject(
      Array.from({ length: 4 }, () => ({ status: 'interrupted', attempts: 0, iteration: 1 })),
    );
    const second = hostOf({ script: replies(4), tools: [work], store });
    expect((await second.executor.recover()).resumed).toHaveLength(4);
    await until(async () => (await store.listInterrupted()).length === 0);
    expect(counted).toHaveLength(4);
  });

  test('list shows what is live, interrupted and parked, and get gives handles of live and ended runs', async () => {
    const store = await leftBehind(3);
    await change(store, 'r2', (record) => ({ ...record, parked: { code: 'X', reason: 'by hand' } }));
    const host = hostOf({ script: [hang(), reply('end')], tools, store });
    const live = await host.start({ runId: 'r0', prompt: 'Go 0.', callerId: 'c0' });
    expect((await host.executor.list()).map(({ runId, status }) => [runId, status])).toEqual([
      ['r0', 'live'],
      ['r1', 'interrupted'],
      ['r2', 'parked'],
    ]);
    expect(host.executor.get('r0')?.actor === live.actor).toBe(true);
    await until(() => host.model.calls.length === 1);
    await host.run({ runId: 'r9' });
    expect(await host.executor.get('r9')?.result).toMatchObject({ status: 'ok', output: 'end', messages: [] });
    expect(host.executor.get('nobody')).toBeUndefined();
  });
});
