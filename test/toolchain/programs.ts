import { fileURLToPath } from 'node:url';

/**
 * `npm test` builds the package first. Then the processes that tests start run what was built, as those of users do: they start
 * in half the time. Where Vitest is called by itself they run the sources, and nothing has to be built.
 */
export const isBuilt: boolean = process.env.PAWL_TEST_BUILT === '1';

/** The program of the command `pawl`. */
export const bin: string = fileURLToPath(
  new URL(isBuilt ? '../../dist/src/cli/bin.js' : '../../src/cli/bin.ts', import.meta.url),
);

/** What a program of these tests gets when it imports `pawl`: conditions for a bundler. */
export const packageConditions: readonly string[] = isBuilt ? [] : ['pawl-source'];

/** The same for Node, Bun and Deno. */
export const packageFlags: readonly string[] = packageConditions.map((name) => `--conditions=${name}`);
