import { existsSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { newOwner } from '../../src/store/owner.ts';
import { leaseClock } from '../../src/store/rules/lease-clock.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { sampleOutcome, sampleRecord } from '../../src/testing/store-contract/records.ts';
import { testClock } from '../../src/testing/test-clock.ts';
import { systemClock } from '../../src/values/clock.ts';
import { expectStranger } from './same-host-name.ts';
import { freshPath, sql } from './sqlite/files.ts';

const stores = {
  memory: memoryStore,
  SQLite: ({ clock }: Parameters<typeof memoryStore>[0] & {}) => sqliteStore({ path: freshPath(), clock }),
};

describe.for(Object.entries(stores))('time in the %s store', ([, create]) => {
  test('a lease ends exactly when its time is over', async () => {
    const clock = testClock(1_000_000);
    const store = create({ clock });
    await store.claim('run', 'one', 1_000);
    await clock.advance(999);
    expect(await store.claim('run', 'two', 1_000)).toBe(null);
    await clock.advance(1);
    expect(await store.claim('run', 'two', 1_000)).toMatchObject({ epoch: 2 });
  });

  test('a wall clock that jumps neither ends a lease nor makes it longer', async () => {
    const clock = testClock(1_000_000);
    const store = create({ clock });
    const claim = await store.claim('run', 'one', 1_000);
    clock.wallJump(86_400_000);
    expect(await store.claim('run', 'two', 1_000)).toBe(null);
    await store.save(sampleRecord('run'), { claim: claim ?? undefined });
    clock.wallJump(-2 * 86_400_000);
    await clock.advance(1_000);
    expect(await store.claim('run', 'two', 1_000)).toMatchObject({ epoch: 2 });
  });

  test('an outcome is kept until its time is over, by the wall clock', async () => {
    const clock = testClock(1_000);
    const store = create({ clock });
    await store.outcomes.keep('a', sampleOutcome('a'), 2_000);
    await store.outcomes.keep('b', sampleOutcome('b'), 3_000);
    await clock.advance(999);
    expect(await store.outcomes.find('a')).toEqual(sampleOutcome('a'));
    await clock.advance(1);
    expect(await store.outcomes.find('a')).toBe(null);
    expect(await store.outcomes.find('b')).toEqual(sampleOutcome('b'));
    clock.wallJump(-1_000);
    expect(await store.outcomes.find('a')).toBe(null);
  });

  test.skipIf(!existsSync('/proc/self/stat'))('an owner that is certainly dead holds nothing', async () => {
    const store = create({});
    const [host, boot, namespace, pid, , nonce] = newOwner().split('|');
    const before = [host, boot, namespace, pid, '1', nonce].join('|');
    const claim = await store.claim('run', before, 600_000);
    await store.save(sampleRecord('run'));
    expect((await store.listInterrupted())[0]).not.toHaveProperty('owner');
    expect(await store.claim('run', newOwner(), 600_000)).toMatchObject({ epoch: 2, attempts: 2 });
    await expect(store.save(sampleRecord('run'), { claim: claim ?? undefined })).rejects.toMatchObject({
      code: 'LEASE_LOST',
    });
  });

  test.skipIf(!existsSync('/proc/self/stat'))(
    'the run of a live owner on another machine of the same host name is not taken from it before its lease is over (recovery 3)',
    async () => {
      const clock = testClock();
      const store = create({ clock });
      await expectStranger(store, clock);
    },
  );
});

describe('the lease clock of the SQLite store', () => {
  test('a lease from before a reboot has run out', async () => {
    const path = freshPath();
    await using store = sqliteStore({ path });
    await store.claim('run', 'one', 600_000);
    expect(await store.claim('run', 'two', 600_000)).toBe(null);
    sql(path, "UPDATE claims SET boot = 'an earlier one'");
    expect(await store.claim('run', 'two', 600_000)).toMatchObject({ epoch: 2 });
  });

  test.skipIf(!existsSync('/proc/uptime'))('is the time since boot in each process', () => {
    const { boot, now } = leaseClock();
    expect(boot).toMatch(/^[0-9a-f-]{36}$/);
    expect(leaseClock(systemClock).boot).toBe(boot);
    expect(now()).toBeGreaterThan(performance.now());
  });

  test('released claims of runs without a record are forgotten in the end', async () => {
    const path = freshPath();
    const store = sqliteStore({ path });
    for (const runId of ['a', 'b']) {
      const claim = await store.claim(runId, 'one', 1_000);
      if (runId === 'b') await store.save(sampleRecord('b'), { claim: claim ?? undefined });
      if (claim) await store.release(claim);
    }
    await store.close();
    await using reopened = sqliteStore({ path });
    await reopened.claim('c', 'one', 1_000);
    expect(sql(path, 'SELECT run_id FROM claims ORDER BY 1')).toEqual([{ run_id: 'b' }, { run_id: 'c' }]);
  });

  test('outcomes whose time is over leave the file', async () => {
    const path = freshPath();
    const clock = testClock(1_000);
    await using store = sqliteStore({ path, clock });
    for (const runId of ['a', 'b']) await store.outcomes.keep(runId, sampleOutcome(runId), 2_000);
    await clock.advance(1_000);
    await store.outcomes.keep('c', sampleOutcome('c'), 3_000);
    expect(sql(path, 'SELECT run_id FROM outcomes')).toEqual([{ run_id: 'c' }]);
  });
});
