import { describe, test } from 'vitest';
import { memoryStore } from '../../../src/store/memory/memory-store.ts';
import { checkpointStoreContract } from '../../../src/testing/store-contract/store-contract.ts';

describe('memory store', () => {
  const cases = checkpointStoreContract({ create: async () => memoryStore() });
  for (const { title, run } of cases) test(title, run);
});
