// The entry point `pawl/stores/postgres`: what keeps its books in a PostgreSQL database.
export type { PostgresClient, PostgresPool, PostgresQuery } from './pool.ts';
export { type PostgresStore, type PostgresStoreOptions, postgresStore } from './postgres-store.ts';
