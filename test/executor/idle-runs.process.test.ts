import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { packageFlags } from '../toolchain/programs.ts';

/** It takes 17.8 to 18.5 KB, by machine. It took 20.9 to 22.1 KB before the runs of an agent shared its logic and tools. */
const MOST_BYTES = 19_000;

test('a run that waits for its model takes at most 19 KB of heap', { timeout: 180_000 }, () => {
  const worker = fileURLToPath(new URL('../bench/idle-worker.ts', import.meta.url));
  const { stdout, stderr } = spawnSync(process.execPath, [...packageFlags, '--expose-gc', worker, '1000'], {
    encoding: 'utf8',
  });
  expect(Number.parseInt(stdout, 10), stderr).toBeLessThanOrEqual(MOST_BYTES);
});
