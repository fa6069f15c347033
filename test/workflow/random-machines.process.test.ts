import { postgresStore } from 'pawl/stores/postgres';
import { expect, test } from 'vitest';
import { seed, torture } from '../crash/random.ts';
import { postgresServer, whyNoPostgres } from '../fixtures/postgres-server.ts';
import { LeapingClock } from './random/durable.ts';
import { playStories } from './random/play-stories.ts';

const server = whyNoPostgres === undefined ? postgresServer() : undefined;
const machines = torture > 1 ? 300 : 5;

test.skipIf(server === undefined)(
  `random machines that are killed between writes end as XState's own, with the same calls: on PostgreSQL, ${machines} (seed ${seed}) (workflow 2, 30)`,
  async () => {
    const clock = new LeapingClock();
    const store = postgresStore({ pool: server?.pool() as never, schema: server?.freshSchema() ?? '', clock });
    const met = await playStories(machines, () => ({ clock, store }));
    console.log(`seed ${seed}, PostgreSQL: ${JSON.stringify(met)}`);
    expect(met.crashes).toBeGreaterThan(0);
  },
  3_600_000,
);
