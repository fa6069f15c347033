import { describe, test } from 'vitest';
import { type FileStore, fileStore } from '../../../src/store/file/index.ts';
import { checkpointStoreContract } from '../../../src/testing/store-contract/store-contract.ts';
import { damageRun, freshDir } from './folder.ts';

const dirs = new WeakMap<FileStore, string>();

function open(dir: string): FileStore {
  const store = fileStore({ dir });
  dirs.set(store, dir);
  return store;
}

describe('file store', () => {
  const cases = checkpointStoreContract<FileStore>({
    create: async () => open(freshDir()),
    reopen: async (store) => open(dirs.get(store) ?? ''),
    damage: async (store, runId, kind) => damageRun(dirs.get(store) ?? '', runId, kind),
    dispose: (store) => store.close(),
  });
  for (const { title, run } of cases) test(title, run);
});
