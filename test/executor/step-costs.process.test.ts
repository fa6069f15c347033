import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { whyNoStrace } from '../crash/system-calls.ts';
import { packageFlags } from '../toolchain/programs.ts';

/*
 * What one step of a run takes from the machine, as counts of a process that does nothing else. What it does inside the
 * process is counted in step-counts.test.ts.
 */

const worker = fileURLToPath(new URL('../bench/step-worker.ts', import.meta.url));
const limit = { timeout: 180_000 };

/** A young generation that is never full: the heap grows by all that is allocated. Optimised code allocates less, at times. */
const NOTHING_COLLECTED = ['--min-semi-space-size=256', '--max-semi-space-size=256', '--no-opt', '--no-maglev'];

/** It takes 176.7 KB, of which the model and the tool of this benchmark are a part; seven runs differed by 0.1 KB. */
const MOST_BYTES = 182_000;

test('one step of a run, saved in memory, allocates at most 182 KB', limit, () => {
  const args = [...packageFlags, ...NOTHING_COLLECTED, worker, 'none', '400'];
  const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  expect(Number.parseInt(stdout, 10), stderr).toBeLessThanOrEqual(MOST_BYTES);
});

test.skipIf(whyNoStrace)(
  'one step of a run, saved in SQLite, waits once for the disk, writes 12 times to files and asks 6 times for a lock',
  limit,
  () => {
    // Before the first megabyte of the log is copied into the file.
    const fewer = systemCalls(105);
    const more = systemCalls(155);
    const perStep = ([name, count]: readonly [string, number]) => [
      name,
      Math.round((count - (fewer.get(name) ?? 0)) / 50),
    ];
    // The log gets about six pages of 1 KB, each with a header of its own.
    expect(Object.fromEntries([...more].map(perStep))).toEqual({ fsync: 1, ftruncate: 0, pwrite64: 12, fcntl: 6 });
  },
);

/** What a run of so many steps asks of the system for its files. */
function systemCalls(steps: number): ReadonlyMap<string, number> {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-step-costs-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const log = join(folder, 'calls.log');
  const traced = ['-f', '-qq', '-o', log, '-e', 'trace=fsync,fdatasync,pwrite64,fcntl,ftruncate'];
  const args = [...traced, process.execPath, ...packageFlags, worker, join(folder, 'runs.db'), String(steps)];
  const { status, stderr } = spawnSync('strace', args, { encoding: 'utf8' });
  expect(status, stderr).toBe(0);
  const counts = new Map<string, number>();
  for (const [, call = ''] of readFileSync(log, 'utf8').matchAll(/^\d+ +(\w+)\(/gm)) {
    counts.set(call, (counts.get(call) ?? 0) + 1);
  }
  return counts;
}
