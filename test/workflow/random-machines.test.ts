import { memoryStore } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { expect, test } from 'vitest';
import { seed, torture } from '../crash/random.ts';
import { LeapingClock } from './random/durable.ts';
import { playStories } from './random/play-stories.ts';

const inMemory = () => {
  const clock = new LeapingClock();
  return { clock, store: memoryStore({ clock }) };
};

const onSqlite = () => {
  const clock = new LeapingClock();
  return { clock, store: sqliteStore({ path: ':memory:', clock }) };
};

test.each([
  ['memory', torture > 1 ? 2_000 : 60, inMemory, ['unknown', 'active', 'done', 'error']],
  ['SQLite', torture > 1 ? 2_000 : 8, onSqlite, []],
] as const)(
  `random machines that are killed between writes end as XState's own, with the same calls: on %s, %i (seed ${seed}) (workflow 2, 30)`,
  async (name, machines, open, kinds) => {
    const met = await playStories(machines, open);
    console.log(`seed ${seed}, ${name}: ${JSON.stringify(met)}`);
    for (const kind of ['crashes', 'calls', ...kinds]) expect(met[kind] ?? 0, kind).toBeGreaterThan(0);
    expect(met.excepted ?? 0).toBeLessThan(machines / 3);
  },
  3_600_000,
);
