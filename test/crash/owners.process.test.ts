import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createExecutor, type Executor } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { describe, expect, onTestFinished, test } from 'vitest';
import { closed, heard, isStopped, lastOutput } from './child-end.ts';
import { Failpoints } from './failpoints.ts';
import type { Job } from './job.ts';
import { beginsIn, readLedger } from './ledger.ts';
import { torture } from './random.ts';
import { startFleet, startWorker } from './trial.ts';
import { twelveTools } from './twelve-tools.ts';

const runId = 'run-1';
const limit = { timeout: 180_000 };

describe('a run that another process works on', () => {
  test('is refused as long as that process lives, and left alone by recover (recovery 3)', limit, async () => {
    const folder = newFolder();
    const owner = await workingOwner(folder);
    const { begin, executor } = hostOn(folder);

    expect((await begin()).error?.code).toBe('RUN_OWNED_ELSEWHERE');
    const report = await executor.recover();
    expect(report.resumed).toEqual([]);
    expect(report.skipped).toMatchObject([{ runId, reason: expect.stringContaining('RUN_OWNED_ELSEWHERE') }]);
    expect(pidsIn(folder)).toEqual([owner.pid]);
  });

  test(
    'is taken over at once when that process is dead, without waiting for its lease (recovery 3)',
    limit,
    async () => {
      const folder = newFolder();
      const owner = await workingOwner(folder);
      const isDead = closed(owner);
      owner.kill('SIGKILL');
      await isDead;

      const { executor } = hostOn(folder);
      expect(await executor.recover()).toMatchObject({ resumed: [{ runId }], skipped: [], failed: [] });
      expect(await executor.get(runId)?.result).toMatchObject({ status: 'ok' });
      expect(pidsIn(folder)).toEqual([owner.pid, process.pid]);
    },
  );

  test(
    'is lost to an owner that slept through its lease: what it does next is refused (recovery 3, faults 9)',
    limit,
    async () => {
      const folder = newFolder();
      const owner = await workingOwner(folder, { leaseMs: 1_500 });
      const { begin } = hostOn(folder);
      let result = await begin();
      for (; result.error?.code === 'RUN_OWNED_ELSEWHERE'; result = await begin()) await sleep(50);
      expect(result.status).toBe('ok');
      const lines = readLedger(folder).length;

      const end = lastOutput(owner);
      owner.kill('SIGCONT');
      expect(await end).toContain('ended LEASE_LOST');
      const later = readLedger(folder).slice(lines);
      expect(
        later.filter(({ phase }) => phase === 'saved'),
        'nothing more of the old owner was saved',
      ).toEqual([]);
      expect(beginsIn(later), 'it began no further call').toEqual([]);
    },
  );

  test(
    'is not refused by a store that lets each process own it: the first test would fail (recovery 9)',
    limit,
    async () => {
      const folder = newFolder();
      await workingOwner(folder, { lies: ['unowned'] });
      const second = startWorker({ folder, runId, agent: 'twelve-tools', lies: ['unowned'] });
      expect(await lastOutput(second)).toContain('ended ok');
    },
  );
});

const [processes, runs] = torture > 1 ? [8, 200] : [3, 10];

test(`${processes} processes that recover ${runs} runs at once share them: no call runs twice (recovery 3, faults 8)`, {
  timeout: 180_000 * torture,
}, async () => {
  const folder = newFolder();
  const job = { folder, healthy: runs, isPoisoned: false };
  const first = startFleet(job);
  onTestFinished(() => void first.kill('SIGKILL'));
  await heard(first, 'started');
  const isDead = closed(first);
  first.kill('SIGKILL');
  await isDead;
  const { length } = readLedger(folder);

  await Promise.all(Array.from({ length: processes }, () => closed(startFleet(job))));
  const later = beginsIn(readLedger(folder).slice(length));
  const calls = later.map((line) => `${line.runId} ${line.callId}`);
  expect(new Set(calls).size).toBe(calls.length);
  expect(new Set(later.map((line) => line.runId)).size).toBe(runs);
  for (const [, lines] of Map.groupBy(later, (line) => line.runId)) {
    expect(new Set(lines.map((line) => line.pid)).size, 'one owner for each run').toBe(1);
  }
});

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-owners-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A process in the middle of the run; stopped within a call, so that it stays there, which is no death. */
async function workingOwner(folder: string, options: Pick<Job, 'leaseMs' | 'lies'> = {}): Promise<ChildProcess> {
  const failpoint = { name: 'within a call with effect idempotent', nth: 2, signal: 'SIGSTOP' } as const;
  const owner = startWorker({ folder, runId, agent: 'twelve-tools', failpoint, ...options });
  onTestFinished(() => void owner.kill('SIGKILL'));
  while (!isStopped(owner)) await sleep(5);
  return owner;
}

function hostOn(folder: string) {
  const store = sqliteStore({ path: join(folder, 'runs.db') });
  const { agent, model } = twelveTools(folder, new Failpoints(undefined));
  const executor: Executor = createExecutor({ models: { fast: model }, agents: [agent], store });
  onTestFinished(async () => {
    await executor.shutdown();
    await store.close();
  });
  return { executor, begin: () => executor.run(agent, { runId, prompt: 'Begin.' }) };
}

const pidsIn = (folder: string) => [...new Set(beginsIn(readLedger(folder)).map((line) => line.pid))];
