import { describe, test } from 'vitest';
import { type SqliteStore, sqliteStore } from '../../../src/store/sqlite/index.ts';
import { checkpointStoreContract } from '../../../src/testing/store-contract/store-contract.ts';
import { damageRun, freshPath } from './files.ts';

const paths = new WeakMap<SqliteStore, string>();

function open(path: string): SqliteStore {
  const store = sqliteStore({ path });
  paths.set(store, path);
  return store;
}

describe('SQLite store', () => {
  const cases = checkpointStoreContract<SqliteStore>({
    create: async () => open(freshPath()),
    reopen: async (store) => open(paths.get(store) ?? ''),
    damage: async (store, runId, kind) => damageRun(paths.get(store) ?? '', runId, kind),
    dispose: (store) => store.close(),
  });
  for (const { title, run } of cases) test(title, run);
});
