import { type CheckpointStore, type ExecutorOptions, memoryStore, type WorkOptions } from 'pawl';
import { hang, reply, type ScriptedEntry, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { hostOf, settle } from '../../fixtures/host.ts';

type Clock = ReturnType<typeof testClock>;

/** Stores runs that an earlier process left, due. */
async function leave(store: CheckpointStore, clock: Clock, runIds: readonly string[]): Promise<void> {
  const host = hostOf({ clock, checkpoints: store, script: runIds.map(() => hang()) });
  for (const runId of runIds) await host.start({ runId });
  await host.executor.shutdown();
}

const ids = (count: number, prefix = 'run') => Array.from({ length: count }, (_, i) => `${prefix}-${i}`);

/** A process of a fleet. */
function workerOf(
  store: CheckpointStore,
  clock: Clock,
  { script = [], ...options }: Partial<ExecutorOptions> & { script?: readonly ScriptedEntry[] } = {},
) {
  const ended: string[] = [];
  const host = hostOf({
    clock,
    checkpoints: store,
    random: () => 0.5,
    script,
    onOutcome: ({ runId }) => void ended.push(runId),
    ...options,
  });
  return { ...host, ended, work: (work: WorkOptions = {}) => host.executor.work(work) };
}

const replies = (count: number) => Array.from({ length: count }, () => reply('done'));

describe('a worker', () => {
  test('takes due runs as long as it has free places, and two processes end each of them once (engine 15, 16)', async () => {
    const clock = testClock(1_000_000);
    const store = memoryStore({ clock });
    await leave(store, clock, ids(40));
    const [one, two] = [
      workerOf(store, clock, { script: replies(40) }),
      workerOf(store, clock, { script: replies(40) }),
    ];
    const workers = [one.work({ concurrency: 4 }), two.work({ concurrency: 4 })];
    for (let i = 0; i < 20; i++) {
      await settle();
      expect(workers.every((worker) => worker.stats().live <= 4)).toBe(true);
    }
    await clock.advance(2_000);
    expect([...one.ended, ...two.ended].sort()).toEqual(ids(40).sort());
    expect(one.ended.length).toBeGreaterThan(5);
    expect(two.ended.length).toBeGreaterThan(5);
    expect(one.model.calls.length + two.model.calls.length).toBe(40);
    expect(await store.listInterrupted()).toEqual([]);
    expect(one.warnings).toEqual([]);
    await Promise.all([one.executor.shutdown(), two.executor.shutdown()]);
  });
});
