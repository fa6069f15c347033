// The store contract in a process of any runtime: store-host.ts '<StoreJob as JSON>'. It prints a StoreReport.
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { type CheckpointStore, memoryStore } from 'pawl';
import { postgresStore } from 'pawl/stores/postgres';
import { sqliteStore } from 'pawl/stores/sqlite';
import { checkpointStoreContract, type StoreUnderTest } from 'pawl/testing';
import pg from 'pg';
import { checked } from './check-contract.ts';

export interface StoreJob {
  readonly store: 'memory' | 'sqlite' | 'postgres';
  /** For what the stores write. */
  readonly folder: string;
  /** Of the PostgreSQL server. */
  readonly url: string;
}

const { store, folder, url } = JSON.parse(process.argv[2] ?? '') as StoreJob;
const fresh = () => mkdtempSync(join(folder, 'store-'));
let schemas = 0;

interface Closing extends CheckpointStore {
  close(): Promise<void>;
}

/** Each place is a folder or a schema; a store can be opened there again. */
function inPlaces(open: (place: string) => Closing, newPlace: () => string): StoreUnderTest<Closing> {
  const places = new WeakMap<Closing, string>();
  const openIn = async (place: string) => {
    const opened = open(place);
    places.set(opened, place);
    return opened;
  };
  return {
    create: () => openIn(newPlace()),
    reopen: (opened) => openIn(places.get(opened) ?? ''),
    dispose: (opened) => opened.close(),
  };
}

const pool = new pg.Pool({ connectionString: url, max: 5 });
const stores = {
  memory: { create: async () => memoryStore() },
  sqlite: inPlaces((dir) => sqliteStore({ path: join(dir, 'runs.db') }), fresh),
  postgres: inPlaces(
    (schema) => postgresStore({ pool, schema }),
    () => `pawl_${process.pid}_${++schemas}`,
  ),
};
console.log(JSON.stringify(await checked(checkpointStoreContract(stores[store] as StoreUnderTest))));
await pool.end();
