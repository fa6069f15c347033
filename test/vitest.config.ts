import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const fromRoot = (path: string) => fileURLToPath(new URL(`../${path}`, import.meta.url));

/** Tests that put something else in the place of a module, or look at the process that they run in. */
const apart = ['test/record/next-version.test.ts'];

export default defineConfig({
  root: fromRoot(''),
  resolve: {
    // Tests run against the sources. The same doors stand in test/tsconfig.json and in package.json's exports.
    alias: [
      { find: /^pawl$/, replacement: fromRoot('src/index.ts') },
      { find: /^pawl\/testing$/, replacement: fromRoot('src/testing/index.ts') },
      { find: /^pawl\/machines$/, replacement: fromRoot('machines/index.ts') },
      { find: /^pawl\/prices$/, replacement: fromRoot('src/budget/genai-prices.ts') },
      { find: /^pawl\/fan-out$/, replacement: fromRoot('src/fan-out/index.ts') },
      { find: /^pawl\/stores\/file$/, replacement: fromRoot('src/store/file.ts') },
      { find: /^pawl\/stores\/sqlite$/, replacement: fromRoot('src/store/sqlite.ts') },
      { find: /^pawl\/stores\/postgres$/, replacement: fromRoot('src/store/postgres.ts') },
    ],
  },
  test: {
    projects: [
      // Most of a short test file's time is the loading of what it tests: these share their workers.
      { extends: true, test: { name: 'shared', include: ['test/**/*.test.ts'], exclude: apart, isolate: false } },
      { extends: true, test: { name: 'apart', include: apart } },
    ],
    globalSetup: fromRoot('test/toolchain/temporary-folder.ts'),
    // Only what never ends should be ended: a test that starts ten processes takes long on a machine that is busy.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Most of the work is done by the processes that the tests start, and wait for: one worker more than there are cores.
    maxWorkers: availableParallelism() + 1,
    // Hundreds of processes are started, many of them only to be killed: they should not compile the same sources again.
    env: { NODE_COMPILE_CACHE: fromRoot('node_modules/.cache/compile') },
    coverage: { provider: 'v8', include: ['src/**/*.ts', 'machines/**/*.ts'], reporter: ['text', 'html'] },
  },
});
