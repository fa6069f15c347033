// The entry point `pawl/stores/postgres`: the parts that store data in a PostgreSQL database.
export { type PostgresBudgetOptions, postgresBudget } from './budget/postgres-budget.ts';
export type { PostgresClient, PostgresPool, PostgresQuery } from './pool.ts';
export { type PostgresStore, type PostgresStoreOptions, postgresStore } from './postgres-store.ts';
