import { describe, test } from 'vitest';
import { type SqliteStore, sqliteStore } from '../../src/store/sqlite/index.ts';
import { checkpointStoreContract } from '../../src/testing/store-contract/store-contract.ts';
import { torture } from '../crash/random.ts';
import { freshPath } from '../store/sqlite/files.ts';
import { codecOf } from './keys.ts';
import { damageEncrypted } from './sqlite-encrypted.ts';

const paths = new WeakMap<SqliteStore, string>();

function open(path: string): SqliteStore {
  const store = sqliteStore({ path, codec: codecOf(), durability: 'process' });
  paths.set(store, path);
  return store;
}

describe('encrypted SQLite store', () => {
  const cases = checkpointStoreContract<SqliteStore>({
    create: async () => open(freshPath()),
    reopen: async (store) => open(paths.get(store) ?? ''),
    damage: async (store, runId, kind) => damageEncrypted(paths.get(store) ?? '', runId, kind),
    dispose: (store) => store.close(),
  });
  // Each sixth case, of all parts of the contract; all of them in torture. Without a codec they all run in test/store.
  for (const [i, { title, run }] of cases.entries()) test.skipIf(torture === 1 && i % 6 > 0)(title, run);
});
