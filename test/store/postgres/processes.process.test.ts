import { existsSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { Claim } from '../../../src/store/port.ts';
import { postgresStore } from '../../../src/store/postgres/index.ts';
import { nextStep, sampleRecord } from '../../../src/testing/store-contract/records.ts';
import { postgresServer, whyNoPostgres } from '../../fixtures/postgres-server.ts';
import { type Child, startChild } from '../child-process.ts';

const server = postgresServer(['fsync=off']);

function start(role: string, schema: string): Child {
  return startChild({ script: './postgres/child.ts', role, path: server.url, argument: schema });
}

describe.skipIf(whyNoPostgres)('several processes on one schema', () => {
  const open = () => {
    const schema = server.freshSchema();
    return { schema, store: postgresStore({ pool: server.pool(), schema }) };
  };

  test('of several that claim all runs at once, each run goes to one (recovery 3)', async () => {
    const { schema, store } = open();
    const ids = Array.from({ length: 60 }, (_, i) => `run-${i}`);
    await Promise.all(ids.map((runId) => store.save(sampleRecord(runId))));
    const children = Array.from({ length: 3 }, () => start('race', schema));
    await Promise.all(children.map((child) => child.next()));
    for (const child of children) child.tell();
    const claimed = (await Promise.all(children.map((child) => child.next()))) as string[][];
    expect(claimed.flat().sort()).toEqual([...ids].sort());
    for (const child of children) child.tell();
    await Promise.all(children.map((child) => child.exited));
  });

  test('that write to the same runs at once: each record is a whole one that one of them wrote (checkpoint 14)', async () => {
    const { schema, store } = open();
    await store.load('run');
    const children = Array.from({ length: 2 }, () => start('quarrel', schema));
    await Promise.all(children.map((child) => child.next()));
    for (const child of children) child.tell();
    expect(await Promise.all(children.map((child) => child.next()))).toEqual(['done', 'done']);
    expect(await store.listInterrupted()).toHaveLength(20);
    for (let i = 0; i < 20; i++) {
      const [one, two] = (await store.load(`run-${i}`))?.messages ?? [];
      expect(JSON.stringify(two)).toBe(JSON.stringify(one).replace('"}]', ' again"}]'));
    }
    const [parts] = await server.sql(
      `SELECT (SELECT count(*) FROM "${schema}".messages) AS messages, (SELECT count(*) FROM "${schema}".starts) AS starts`,
    );
    expect(parts, 'nothing of what was replaced is left').toEqual({ messages: '20', starts: '20' });
  });

  test.skipIf(!existsSync('/proc/self/stat'))(
    'the run of a process that was killed is free at once, not when its lease ends (recovery 3)',
    async () => {
      const { schema, store } = open();
      await store.save(sampleRecord('run'));
      const child = start('hold', schema);
      const held = (await child.next()) as Claim;
      expect(await store.claim('run', 'heir', 1_000)).toBe(null);
      expect(await store.listInterrupted()).toMatchObject([{ owner: held.owner }]);
      await child.kill();
      expect((await store.listInterrupted())[0]).not.toHaveProperty('owner');
      const claim = await store.claim('run', 'heir', 1_000);
      expect(claim).toMatchObject({ epoch: held.epoch + 1, attempts: held.attempts + 1 });
      await expect(store.save(sampleRecord('run'), { claim: held })).rejects.toMatchObject({ code: 'LEASE_LOST' });
    },
  );

  test.skipIf(!existsSync('/proc/self/stat'))(
    'the run of a process that was killed can be taken at once (engine 14)',
    async () => {
      const { schema, store } = open();
      await store.save(sampleRecord('run'));
      const child = start('hold', schema);
      const held = (await child.next()) as Claim;
      const wish = { owner: 'heir', ttlMs: 1_000, limit: 1 };
      expect((await store.due.take(wish)).claims).toEqual([]);
      await child.kill();
      expect((await store.due.take(wish)).claims).toMatchObject([{ runId: 'run', epoch: held.epoch + 1 }]);
    },
  );

  test('a process killed at any moment has lost no step that the store confirmed (recovery 5)', async () => {
    for (const steps of [1, 13]) {
      const { schema, store } = open();
      const child = start('append', schema);
      let stored = 0;
      for (let step = 0; step < steps; step++) stored = Number(await child.next());
      await child.kill();
      const record = await store.load('run');
      expect(record?.revision).toBeGreaterThanOrEqual(stored);
      expect(record?.messages.length).toBe(record?.revision);
      await store.append(nextStep(record ?? sampleRecord('run')).delta);
    }
  });
});
