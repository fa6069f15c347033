import { callTool, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { limitedHost, noon } from './limited.ts';

const look = (n: number) => callTool('look', { n });

describe('a run whose next model call has a later turn', () => {
  test('is held for a short time, and rests for a longer one: no failure, and no working time (failover 18)', async () => {
    const rules = [{ by: 'model', requestsPerMinute: 6 }] as const;
    const host = limitedHost({ rules, play: [look(1), look(2), look(3), reply('done')] });
    const run = await host.start({ runId: 'r' });
    await host.clock.advance(5_000);
    expect(host.at).toEqual([0, 0.02]);
    const record = await host.store.load('r');
    expect(record?.waiting).toMatchObject({ wakeAt: noon + 9_000 });
    expect(record?.waiting?.waits).toEqual([
      {
        ...{ id: expect.any(String), kind: 'limit', step: 3, createdAt: noon + 40, dueAt: noon + 9_000 },
        ...{ turnAt: noon + 10_000, model: 'scripted/scripted' },
      },
    ]);
    await host.clock.advance(16_000);
    expect(host.at).toEqual([0, 0.02, 10, 20]);
    expect(host.outcomes).toMatchObject([{ status: 'ok', output: 'done', iterations: 4 }]);
    expect(host.of('model.retry')).toEqual([]);
    expect((await run.result).status).toBe('waiting');
  });
});
