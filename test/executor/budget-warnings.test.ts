import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createBudget, memoryStore } from 'pawl';
import { postgresBudget, postgresStore } from 'pawl/stores/postgres';
import { sqliteBudget } from 'pawl/stores/sqlite';
import { describe, expect, test } from 'vitest';
import { hostOf, type Warning } from '../fixtures/host.ts';

/** A pool whose database is away: what is asked here is said without it. */
const pool = {
  connect: () => Promise.reject(new Error('no database')),
  on: () => undefined,
  removeListener: () => undefined,
};
const postgres = () => postgresStore({ pool: pool as never, timeoutMs: 1 });
const eventsOf = (warned: readonly Warning[]) => warned.map(({ fields }) => fields.event);

describe('the budget of an executor', () => {
  test('that each computer has for itself, beside a store that they share, is one warning (operations 15)', async () => {
    const file = sqliteBudget({ path: join(mkdtempSync(join(tmpdir(), 'pawl-budget-')), 'budget.db') });
    for (const store of [undefined, file]) {
      const budget = createBudget({ tokens: 100, ...(store && { store }) });
      expect(eventsOf(hostOf({ store: postgres(), ports: { budget } }).warned)).toEqual(['budget.local']);
      expect(hostOf({ store: memoryStore(), ports: { budget } }).warned).toEqual([]);
    }
    await file.close();
    const shared = createBudget({ tokens: 100, store: postgresBudget({ pool: pool as never }) });
    expect(hostOf({ store: postgres(), ports: { budget: shared } }).warned).toEqual([]);
  });

  test('is shared by runs without a caller: an executor says so once (operations 15)', async () => {
    const budget = createBudget({ tokens: 1_000 });
    const { run, warned } = hostOf({ ports: { budget } });
    await run({ callerId: 'ada' });
    expect(warned).toEqual([]);
    await run({ runId: 'first' });
    await run({ runId: 'second' });
    expect(warned.map(({ fields }) => [fields.event, fields.runId])).toEqual([['budget.shared', 'first']]);
    const free = hostOf();
    await free.run();
    expect(free.warned).toEqual([]);
  });
});
