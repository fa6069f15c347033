import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { packageFlags } from '../toolchain/programs.ts';

const worker = fileURLToPath(new URL('heap-worker.ts', import.meta.url));

test('a live run keeps 2 more objects where no provider listens, and at most 30 where one records (otel 31)', () => {
  // A process of its own: other tests would leave objects of theirs, or have them collected meanwhile.
  const { stdout, stderr } = spawnSync(process.execPath, [...packageFlags, worker], { encoding: 'utf8' });
  const { none, idle, recording } = JSON.parse(stdout || `{"stderr":${JSON.stringify(stderr)}}`);
  expect(idle - none, stderr).toBe(2);
  expect(recording - none).toBeLessThanOrEqual(30);
  // A span of the attempt, and one of the request.
  expect(recording - none).toBeGreaterThan(4);
});
