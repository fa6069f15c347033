// For workerd: the store contract on the memory store, in one request.
import { memoryStore } from 'pawl';
import { checkpointStoreContract } from 'pawl/testing';
import { checked } from './check-contract.ts';

export default {
  fetch: async () => Response.json(await checked(checkpointStoreContract({ create: async () => memoryStore() }))),
};
