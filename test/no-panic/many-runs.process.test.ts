import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { packageFlags } from '../toolchain/programs.ts';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const isTorture = process.env.PAWL_TORTURE === '1';
const runs = isTorture ? 100_000 : 10_000;
/** Less than a map's entry for a run id: over so many runs noise is smaller, and whatever is kept of a run is more. */
const MAX_BYTES_PER_RUN = 64;

/** Does so many runs in a process of its own, and gives what it measured. */
async function manyRuns(role: 'signal' | 'heap', count: number): Promise<Record<string, unknown>> {
  const args = ['--expose-gc', '--no-flush-bytecode', ...packageFlags, here('many-runs.ts'), role, String(count)];
  const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 2 ** 20 });
  return JSON.parse(stdout);
}

describe.concurrent('many runs in one process', { timeout: 240_000 }, () => {
  test('leave no listener on the signal that 10,000 of them were given, and warn of nothing (executor 5)', async () => {
    expect(await manyRuns('signal', 10_000)).toEqual({ listeners: 0, live: 0, warnings: [] });
  });

  test(`leave the heap as it was: ${runs} runs, each fewer than ${MAX_BYTES_PER_RUN} bytes (executor 5)`, async () => {
    const { bytesPerRun, ...rest } = await manyRuns('heap', runs);
    expect(bytesPerRun).toBeLessThan(MAX_BYTES_PER_RUN);
    expect(rest).toEqual({ live: 0, warnings: [] });
  });
});
