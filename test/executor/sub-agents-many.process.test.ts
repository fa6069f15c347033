import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** What the process said, see `many-children.ts`. */
interface Seen {
  readonly thousands: readonly number[];
  readonly bytesPerChild: number;
}

test('10,000 children under one parent: the last thousand costs what the second did, and none is kept (supervision 8, faults 38)', {
  timeout: 300_000,
}, () => {
  // The program sets the births of runs, by which it knows its children: what was built has no place for that.
  const flags = ['--expose-gc', '--no-flush-bytecode', '--conditions=pawl-source'];
  const program = here('../fixtures/many-children.ts');
  const { stdout, stderr, status } = spawnSync(process.execPath, [...flags, program, '10000'], { encoding: 'utf8' });
  expect([stderr, status]).toEqual(['', 0]);
  const seen: Seen = JSON.parse(stdout);
  expect(seen).toMatchObject({ status: 'ok', iterations: 201, children: 10_000, live: 0, warnings: [] });
  // While the parent lives, none of those that ended is: their actors are gone, and of their results the last 1,000 are known.
  expect(seen).toMatchObject({ keptActors: [0, 0], knownFirst: false, knownLast: true });
  // A call and its result in the transcript of the parent.
  expect(seen.bytesPerChild).toBeLessThan(3_000);
  const [, second = 0, ...later] = seen.thousands;
  expect(later).toHaveLength(8);
  // The best of the last three: others take the machine away at times. If each child cost what those before it do, it were four times.
  expect(Math.min(...later.slice(-3)), JSON.stringify(seen.thousands)).toBeLessThan(2 * second);
});
