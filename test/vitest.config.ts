import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const fromRoot = (path: string) => fileURLToPath(new URL(`../${path}`, import.meta.url));

export default defineConfig({
  root: fromRoot(''),
  resolve: {
    // Tests run against the sources. The same doors stand in test/tsconfig.json and in package.json's exports.
    alias: [
      { find: /^pawl$/, replacement: fromRoot('src/index.ts') },
      { find: /^pawl\/testing$/, replacement: fromRoot('src/testing/index.ts') },
      { find: /^pawl\/machines$/, replacement: fromRoot('machines/index.ts') },
      { find: /^pawl\/prices$/, replacement: fromRoot('src/budget/genai-prices.ts') },
      { find: /^pawl\/stores\/file$/, replacement: fromRoot('src/store/file.ts') },
      { find: /^pawl\/stores\/sqlite$/, replacement: fromRoot('src/store/sqlite.ts') },
      { find: /^pawl\/stores\/postgres$/, replacement: fromRoot('src/store/postgres.ts') },
    ],
  },
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/bench/**'],
    testTimeout: 20_000,
    // Hundreds of processes are started, many of them only to be killed: they should not compile the same sources again.
    env: { NODE_COMPILE_CACHE: fromRoot('node_modules/.cache/compile') },
    coverage: { provider: 'v8', include: ['src/**/*.ts', 'machines/**/*.ts'], reporter: ['text', 'html'] },
  },
});
