import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createExecutor } from 'pawl';
import { fileStore } from 'pawl/stores/file';
import { describe, expect, onTestFinished, test } from 'vitest';
import { closed, heard, isStopped, lastOutput } from './child-end.ts';
import { Failpoints } from './failpoints.ts';
import { beginsIn, readLedger } from './ledger.ts';
import { torture } from './random.ts';
import { startFleet, startWorker } from './trial.ts';
import { twelveTools } from './twelve-tools.ts';

const job = { runId: 'run-1', agent: 'twelve-tools', store: 'file' } as const;
const limit = { timeout: 180_000 * torture };
const [processes, runs] = torture > 1 ? [8, 200] : [3, 20];

describe('several processes on the file store', () => {
  // Tried again: where the start was slow the stop falls into a renewal, and a stopped process keeps the lock that it holds.
  const mayMeetRenewal = { ...limit, retry: 2 };
  test(
    'an owner that slept through its lease loses the run, and writes nothing more (recovery 3, faults 9)',
    mayMeetRenewal,
    async () => {
      const folder = newFolder();
      // Alone in its step, and before the first renewal: nothing is being written when it stops.
      const failpoint = { name: 'within a call with effect idempotent', nth: 1, signal: 'SIGSTOP' } as const;
      const owner = startWorker({ ...job, folder, failpoint, leaseMs: 4_500 });
      onTestFinished(() => void owner.kill('SIGKILL'));
      while (!isStopped(owner)) await sleep(5);

      const store = fileStore({ dir: join(folder, 'runs.store') });
      const { agent, model } = twelveTools(folder, new Failpoints(undefined));
      const executor = createExecutor({ models: { fast: model }, agents: [agent], checkpoints: store });
      onTestFinished(async () => {
        await executor.shutdown();
        await store.close();
      });
      const begin = () => executor.run(agent, { runId: job.runId, prompt: 'Begin.' });
      let result = await begin();
      for (; result.error?.code === 'RUN_OWNED_ELSEWHERE'; result = await begin()) await sleep(50);
      expect(result.status).toBe('ok');
      const lines = readLedger(folder).length;

      const end = lastOutput(owner);
      owner.kill('SIGCONT');
      expect(await end).toContain('ended LEASE_LOST');
      const later = readLedger(folder).slice(lines);
      expect(later.filter(({ phase }) => phase === 'saved')).toEqual([]);
      expect(beginsIn(later)).toEqual([]);
    },
  );

  test(
    `${processes} that recover ${runs} runs at once share them: no call runs twice (recovery 3, faults 8)`,
    limit,
    async () => {
      const folder = newFolder();
      const fleet = { folder, healthy: runs, isPoisoned: false, store: 'file' } as const;
      const first = startFleet(fleet);
      onTestFinished(() => void first.kill('SIGKILL'));
      await heard(first, 'started');
      const isDead = closed(first);
      first.kill('SIGKILL');
      await isDead;
      const { length } = readLedger(folder);

      await Promise.all(Array.from({ length: processes }, () => closed(startFleet(fleet))));
      const later = beginsIn(readLedger(folder).slice(length));
      const calls = later.map((line) => `${line.runId} ${line.callId}`);
      expect(new Set(calls).size).toBe(calls.length);
      expect(new Set(later.map((line) => line.runId)).size).toBe(runs);
      for (const [, lines] of Map.groupBy(later, (line) => line.runId)) {
        expect(new Set(lines.map((line) => line.pid)).size, 'one owner for each run').toBe(1);
      }
      expect(readdirSync(join(folder, 'runs.store', 'runs'))).toEqual([]);
      expect(readdirSync(join(folder, 'runs.store', 'outcomes'))).toHaveLength(runs);
    },
  );
});

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-file-owners-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
