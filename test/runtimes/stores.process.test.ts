// The store contract in other runtimes, store by store. test/store checks it in Node.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { postgresServer, whyNoPostgres } from '../fixtures/postgres-server.ts';
import type { ContractReport } from './check-contract.ts';
import { inRuntime, others, printedBy, whyNoRuntime } from './runtimes.ts';
import type { StoreJob } from './store-host.ts';

const server = postgresServer(['fsync=off']);
const folder = mkdtempSync(join(tmpdir(), 'pawl-runtimes-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** These take a minute: `npm test` checks the memory store only, and kills runs on the others. */
const whyNotNow = process.env.PAWL_TEST_ENGINES ? undefined : 'npm run test:engines runs it';

const stores = [
  ['memory', 'the memory store', undefined],
  ['sqlite', 'the SQLite store, on node:sqlite,', whyNotNow],
  ['postgres', 'the PostgreSQL store, on pg,', whyNotNow ?? whyNoPostgres],
] as const;
const pairs = others.flatMap((runtime) => stores.map((store) => [runtime, ...store] as const));

const skipped = (reason?: string) => (reason === undefined ? '' : ` (SKIPPED: ${reason})`);

describe.for(pairs)('%s', { concurrent: true }, ([runtime, store, name, whyNot]) => {
  test.skipIf(whyNoRuntime(runtime) ?? whyNot)(
    inRuntime(runtime, `${name} keeps the store contract (engine 35)`) + skipped(whyNot),
    { timeout: 180_000 },
    async () => {
      const job: StoreJob = { store, folder, url: server.url };
      const report = await printedBy<ContractReport>(runtime, './store-host.ts', job);
      expect(report).toMatchObject({ runtime: expect.stringMatching(`^${runtime}/`), failed: [], skipped: 0 });
      expect(report.passed).toBeGreaterThan(150);
    },
  );
});
