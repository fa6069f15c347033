import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { torture } from '../crash/random.ts';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** What the process said, see `many-children.ts`. */
interface Seen {
  readonly thousands: readonly number[];
  readonly bytesPerChild: number;
}

/** At least four thousands: how much the later ones cost is compared. */
const [CHILDREN, LATEST] = torture > 1 ? [10_000, 3] : [5_000, 2];

test(`${CHILDREN} children under one parent: the last thousand costs what the second did, and none is kept (supervision 8, faults 38)`, {
  timeout: 300_000,
}, () => {
  // The program sets the births of runs, by which it knows its children: what was built has no place for that.
  const flags = ['--expose-gc', '--no-flush-bytecode', '--conditions=pawl-source'];
  const program = here('../fixtures/many-children.ts');
  const { stdout, stderr, status } = spawnSync(process.execPath, [...flags, program, String(CHILDREN)], {
    encoding: 'utf8',
  });
  expect([stderr, status]).toEqual(['', 0]);
  const seen: Seen = JSON.parse(stdout);
  expect(seen).toMatchObject({
    status: 'ok',
    iterations: CHILDREN / 50 + 1,
    children: CHILDREN,
    live: 0,
    warnings: [],
  });
  // While the parent lives, none of those that ended is: their actors are gone, and of their results the last 1,000 are known.
  expect(seen).toMatchObject({ keptActors: [0, 0], knownFirst: false, knownLast: true });
  // A call and its result in the transcript of the parent.
  expect(seen.bytesPerChild).toBeLessThan(3_000);
  const [, second = 0, ...later] = seen.thousands;
  expect(later).toHaveLength(CHILDREN / 1_000 - 2);
  // The best of the last ones: others take the machine away at times. If each child cost what those before it do, it were 2.3 times.
  expect(Math.min(...later.slice(-LATEST)), JSON.stringify(seen.thousands)).toBeLessThan(2 * second);
});
