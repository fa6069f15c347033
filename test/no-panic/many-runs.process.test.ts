import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { packageFlags } from '../toolchain/programs.ts';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const isTorture = process.env.PAWL_TORTURE === '1';
/** Those that are given one signal, which warm the process up, and those of which the heap is measured. */
const [signalled, runs] = isTorture ? [10_000, 100_000] : [3_000, 5_000];
/** Less than a map's entry for a run id: over so many runs noise is smaller, and whatever is kept of a run is more. */
const MAX_BYTES_PER_RUN = 64;

describe('many runs in one process', { timeout: 240_000 }, () => {
  let seen: Record<string, unknown> = {};
  beforeAll(async () => {
    const flags = ['--expose-gc', '--no-flush-bytecode', ...packageFlags];
    const args = [...flags, here('many-runs.ts'), String(signalled), String(runs)];
    const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 2 ** 20 });
    seen = JSON.parse(stdout);
  }, 240_000);

  test(`leave no listener on the signal that ${signalled} of them were given, and warn of nothing (executor 5)`, () => {
    expect(seen).toMatchObject({ listeners: 0, live: 0, warnings: [] });
  });

  test(`leave the heap as it was: ${runs} runs, each fewer than ${MAX_BYTES_PER_RUN} bytes (executor 5)`, () => {
    expect(seen.bytesPerRun).toBeLessThan(MAX_BYTES_PER_RUN);
  });
});
