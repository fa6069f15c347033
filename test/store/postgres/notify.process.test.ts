import { describe, expect, test } from 'vitest';
import type { Claim } from '../../../src/store/port.ts';
import { postgresStore } from '../../../src/store/postgres/index.ts';
import { sampleRecord } from '../../../src/testing/store-contract/records.ts';
import { postgresServer, whyNoPostgres } from '../../fixtures/postgres-server.ts';

const server = postgresServer(['fsync=off']);
const waiting = { waits: [{ id: 'w', kind: 'timer', createdAt: 1, step: 1 }], settled: [] } as const;
const topic = 'a'.repeat(64);

/** A store, and how many notifications came since the last look. */
async function listening(notify?: boolean) {
  const pool = server.pool();
  const store = postgresStore({ pool, schema: server.freshSchema(), ...(notify === undefined ? {} : { notify }) });
  const client = await pool.connect();
  let count = 0;
  client.on('notification', ({ channel }) => {
    if (channel === 'pawl_due') count += 1;
  });
  await client.query('LISTEN pawl_due');
  const heard = async () => {
    // The server delivers what was committed before it answers.
    await client.query('SELECT 1');
    const since = count;
    count = 0;
    return since;
  };
  return { store, heard, end: () => client.release(true) };
}

describe.skipIf(whyNoPostgres)('a PostgreSQL store that notifies', () => {
  test('notifies in each commit that makes a run due, and in no other (engine 15)', async () => {
    const { store, heard, end } = await listening(true);
    await store.load('none');
    expect(await heard()).toBe(0);
    await store.save(sampleRecord('admitted'));
    expect(await heard()).toBe(1);
    const claim = (await store.claim('run', 'me', 600_000)) as Claim;
    await store.save(sampleRecord('run', { waiting }), { claim });
    await store.commands.send('run', { id: 'a', kind: 'steer', text: 'go' });
    await store.due.leave(claim, { dueAt: Date.now() + 600_000, readUpTo: Number.MAX_SAFE_INTEGER });
    expect(await heard()).toBe(0);
    await store.commands.send('run', { id: 'b', kind: 'steer', text: 'go' });
    expect(await heard()).toBe(1);
    const again = (await store.claim('run', 'me', 600_000)) as Claim;
    await store.waits.expect(again, { waitId: 'w', topic });
    await store.due.leave(again, { readUpTo: Number.MAX_SAFE_INTEGER });
    expect(await heard()).toBe(0);
    await store.waits.signal({ topic, id: 's', value: 1, untilMs: Date.now() + 600_000 });
    expect(await heard()).toBe(1);
    const third = (await store.claim('run', 'me', 600_000)) as Claim;
    await store.due.leave(third, { dueAt: 0, readUpTo: Number.MAX_SAFE_INTEGER });
    expect(await heard()).toBe(1);
    await store.release((await store.claim('run', 'me', 600_000)) as Claim);
    expect(await heard()).toBe(1);
    await store.save(sampleRecord('hosted', { hosted: true }));
    expect(await heard()).toBe(0);
    end();
  });

  test('notifies only with the option (engine 15)', async () => {
    const { store, heard, end } = await listening();
    await store.save(sampleRecord('admitted'));
    await store.commands.send('admitted', { id: 'a', kind: 'steer', text: 'go' });
    expect(await heard()).toBe(0);
    end();
  });
});
