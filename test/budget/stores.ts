import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sqliteBudget } from 'pawl/stores/sqlite';
import { afterAll } from 'vitest';
import { memoryBudget } from '../../src/budget/memory.ts';
import type { CallEstimate, CallUse } from '../../src/budget/port.ts';
import type { BudgetStore } from '../../src/budget/store.ts';
import { noUsage } from '../../src/values/usage.ts';

const folders: string[] = [];
const open: { close(): Promise<void> }[] = [];

afterAll(async () => {
  for (const store of open.splice(0)) await store.close();
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** A path for a file in a folder of its own, which goes when the tests of the file are over. */
export function freshPath(name = 'budget.db'): string {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-budget-'));
  folders.push(folder);
  return join(folder, name);
}

/** Both kinds of books: what holds for a budget holds with either. */
export const stores: readonly (readonly [string, () => BudgetStore])[] = [
  ['in memory', memoryBudget],
  [
    'in SQLite',
    () => {
      const store = sqliteBudget({ path: freshPath() });
      open.push(store);
      return store;
    },
  ],
];

/** A call of a run: `call('run', 3)` is its third turn. */
export function call(runId: string, turn: number, rest: Partial<CallEstimate> = {}): CallEstimate {
  return { key: `${runId}:${turn}`, runId, modelTier: 'fast', model: 'acme/small', inputTokens: 10, ...rest };
}

export function use(inputTokens: number, outputTokens = 0, seconds = 0): CallUse {
  return { usage: { ...noUsage, inputTokens, outputTokens }, seconds };
}
