import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { packageFlags } from '../toolchain/programs.ts';
import { torture } from './random.ts';

const RUNS = torture > 1 ? 10_000 : 100;
const MOST_MEMORY_MB = 300;
/** V8's nursery may grow to 134 MB in Node 24, with what is allocated and with the load of the machine; here it may not. */
const NURSERY = '--max-semi-space-size=16';

const folder = mkdtempSync(join(tmpdir(), 'pawl-boot-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function boot(what: 'leave' | 'recover'): string {
  const worker = fileURLToPath(new URL('./boot-worker.ts', import.meta.url));
  const args = [NURSERY, ...packageFlags, worker, join(folder, 'runs.db'), String(RUNS), what];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`boot-worker ${what} failed: ${stderr}`);
  return stdout;
}

test(`${RUNS} interrupted runs are all taken up at a boot and end well, in less than ${MOST_MEMORY_MB} MB (recovery 1, faults 37)`, {
  timeout: 600_000,
}, () => {
  boot('leave');
  const { mostMemory, ...report } = JSON.parse(boot('recover'));
  console.log(`${RUNS} runs: ${Math.round(mostMemory)} MB at most`);
  // Two of four calls were left to each run: none was lost, none ran again.
  expect(report).toEqual({ resumed: RUNS, others: 0, left: 0, tools: 2 * RUNS });
  expect(mostMemory).toBeLessThan(MOST_MEMORY_MB);
});
