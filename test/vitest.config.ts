import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { seed } from './crash/random.ts';
import { PATIENCE_MS } from './fixtures/patience.ts';
import { LongestFirst } from './toolchain/test-order.ts';

const fromRoot = (path: string) => fileURLToPath(new URL(`../${path}`, import.meta.url));

/** Tests run against the sources: `pawl-source` stands first in package.json's exports. The others are Vite's own. */
const conditions = ['pawl-source', 'module', 'node', 'development|production'];

/** Files that start processes or servers: test/tidy checks that these are they. */
const processes = ['test/**/*.process.test.ts'];
/** Tests that put something else in the place of a module, or look at the process that they run in. */
const isolated = ['test/record/next-version.test.ts', 'test/record/older-reader.test.ts'];

export default defineConfig({
  root: fromRoot(''),
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    projects: [
      // Most of a short test file's time is the loading of what it tests: files share their workers.
      { extends: true, test: { name: 'processes', include: processes, isolate: false } },
      {
        extends: true,
        test: {
          name: 'in-process',
          include: ['test/**/*.test.ts'],
          // Packages of test/bench/peers have test files of their own.
          exclude: [...processes, ...isolated, '**/node_modules/**'],
          isolate: false,
        },
      },
      { extends: true, test: { name: 'in-process, isolated', include: isolated } },
    ],
    sequence: { sequencer: LongestFirst },
    setupFiles: ['repeatable', 'equal-messages', 'left-timers'].map((name) => fromRoot(`test/toolchain/${name}.ts`)),
    globalSetup: fromRoot('test/toolchain/temporary-folder.ts'),
    // Only what never ends should be ended: a test that starts ten processes takes long on a machine that is busy.
    testTimeout: 180_000,
    expect: { poll: { timeout: PATIENCE_MS } },
    hookTimeout: 180_000,
    // Also of a worker: one that has run hundreds of files takes its time to go.
    teardownTimeout: 60_000,
    // Tests with processes compute for half of their time, and wait for the other half: two workers more than there are cores. Tests
    // of one process wait less, and each further worker compiles the sources again.
    maxWorkers: availableParallelism() + (process.env.PAWL_TEST_IN_PROCESS ? 1 : 2),
    // Hundreds of processes are started, many of them only to be killed: they should not compile the same sources again.
    // All of them draw from one seed.
    env: { NODE_COMPILE_CACHE: fromRoot('node_modules/.cache/compile'), PAWL_SEED: String(seed) },
    coverage: { provider: 'v8', include: ['src/**/*.ts', 'machines/**/*.ts'], reporter: ['text', 'html'] },
  },
});
