import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { postgresStore } from 'pawl/stores/postgres';
import { sqliteStore } from 'pawl/stores/sqlite';
import { describe, expect, test } from 'vitest';
import type { CheckpointStore, StoreGroups } from '../../src/store/port.ts';
import { randomFrom, seed, torture } from '../crash/random.ts';
import { until } from '../fixtures/host.ts';
import { postgresServer, whyNoPostgres } from '../fixtures/postgres-server.ts';
import { type Child, startChild } from '../store/child-process.ts';

const server = postgresServer(['fsync=off']);
const ROUNDS = torture > 1 ? 24 : 3;

interface Place {
  /** Starts a process that looks after the schedule. */
  start(dies?: { readonly at: number; readonly isStored: boolean }): Child;
  /** The ticks of the runs that have ended, in order. */
  ended(): number[];
  readonly store: CheckpointStore & Pick<StoreGroups, 'outcomes' | 'schedules'>;
  close(): Promise<void>;
}

function placeOf(kind: 'SQLite' | 'PostgreSQL'): Place {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-test-'));
  const [path, log] = [join(folder, 'runs.db'), join(folder, 'log')];
  writeFileSync(log, '');
  const schema = kind === 'SQLite' ? undefined : server.freshSchema();
  const store = schema === undefined ? sqliteStore({ path }) : postgresStore({ pool: server.pool(), schema });
  return {
    start: (dies) => {
      const argument = JSON.stringify({ schema, dies });
      const role = schema === undefined ? path : server.url;
      return startChild({ role, path: log, argument, script: '../schedules/child.ts' });
    },
    // A killed process may have told an end that it could not mark: it is told again.
    ended: () => {
      const ids = new Set(readFileSync(log, 'utf8').split('\n').slice(0, -1));
      return [...ids].map((line) => Date.parse(line.slice('tick@'.length, -' ok'.length))).sort((a, b) => a - b);
    },
    store,
    close: () => store.close(),
  };
}

/** Waits until the runs of so many more ticks have ended. */
async function more({ ended }: Place, count: number): Promise<void> {
  const before = ended().length;
  await until(() => ended().length >= before + count);
}

/** Checks that each tick since the store first saw the schedule has one run, or is counted as missed. */
async function checkTicks({ store }: Place): Promise<void> {
  const row = (await store.schedules.list()).find(({ id }) => id === 'tick');
  const last = Number(row?.lastAt);
  const first = Math.floor(Number(row?.since) / 1_000) * 1_000 + 1_000;
  let [known, all] = [0, 0];
  for (let tick = first; tick <= last; tick += 1_000, all++) {
    const runId = `tick@${new Date(tick).toISOString()}`;
    if ((await store.load(runId)) || (await store.outcomes.find(runId))) known += 1;
  }
  expect(row).toMatchObject({ skipped: { count: 0 }, failed: { count: 0 } });
  expect(known + Number(row?.missed.count)).toBe(all);
}

describe.each(['SQLite', 'PostgreSQL'] as const)('a schedule on %s', (kind) => {
  const isThere = kind === 'SQLite' || !whyNoPostgres;

  test.skipIf(!isThere)(
    `with three processes that are killed again and again: each tick has one run, or is counted as missed (seed ${seed}) (schedules 2, 7, 8)`,
    async () => {
      const random = randomFrom(seed);
      const place = placeOf(kind);
      const children = [0, 1, 2].map(() => place.start());
      await more(place, 2);
      for (let i = 0; i < ROUNDS; i++) {
        // Now and then all of them, for more than a tick.
        const isAll = i % 4 === 2;
        const victims = isAll ? [0, 1, 2] : [Math.floor(random() * 3)];
        for (const each of victims) await children[each]?.kill();
        if (isAll) await new Promise((resolve) => setTimeout(resolve, 2_500));
        for (const each of victims) children[each] = place.start();
        await more(place, 1);
      }
      for (const child of children) await child.kill();
      expect((await place.store.schedules.list())[0]?.missed.count).toBeGreaterThan(0);
      await checkTicks(place);
      await place.close();
    },
    120_000 * torture,
  );

  test.skipIf(!isThere)(
    'whose process dies at each of its first writes, before and after it is stored: each tick once or, if it was missed, not at all (schedules 7)',
    async () => {
      const place = placeOf(kind);
      for (const isStored of [false, true]) {
        for (const at of [1, 2, 3]) await place.start({ at, isStored }).exited;
      }
      const survivor = place.start();
      await more(place, 2);
      await survivor.kill();
      await checkTicks(place);
      await place.close();
    },
    120_000,
  );
});
