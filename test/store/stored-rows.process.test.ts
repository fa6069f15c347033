import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createExecutor, defineAgent, defineTool } from 'pawl';
import { postgresStore } from 'pawl/stores/postgres';
import { sqliteStore } from 'pawl/stores/sqlite';
import { callTool, reply, scriptedModel, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import type { StoredRows } from '../../src/store/counting/rows.ts';
import { until } from '../fixtures/host.ts';
import { postgresServer, whyNoPostgres } from '../fixtures/postgres-server.ts';

const server = postgresServer(['fsync=off', 'autovacuum=off']);
const HOUR = 3_600_000;
const START = Date.UTC(2026, 10, 30);

const stores = [
  [
    'SQLite',
    undefined,
    (clock: ReturnType<typeof testClock>) =>
      sqliteStore({ path: join(mkdtempSync(join(tmpdir(), 'pawl-rows-')), 'runs.db'), clock }),
  ],
  [
    'PostgreSQL',
    whyNoPostgres,
    (clock: ReturnType<typeof testClock>) =>
      postgresStore({ pool: server.pool(), schema: server.freshSchema(), clock }),
  ],
] as const;

const ask = defineTool({
  name: 'ask',
  description: 'Asks.',
  input: { type: 'object' },
  needsApproval: true,
  execute: async () => 'ok',
});

describe.each(stores)('a store in %s', (_, missing, open) => {
  test.skipIf(missing)(
    'says rows, bytes and the oldest of what it holds, and what the next prune takes (operations 16)',
    async () => {
      const clock = testClock(START);
      const store = open(clock);
      const agent = defineAgent({ id: 'clerk', instructions: 'Work.', tools: [ask] });
      const executor = createExecutor({
        models: { fast: scriptedModel([reply('done'), reply('done'), callTool('ask')]) },
        agents: [agent],
        store,
        clock,
        audit: true,
        retention: { records: HOUR, outcomes: HOUR, audit: HOUR },
        logger: { warn: () => {} },
      });
      const read = async () => new Map((await store.storedRows()).map((row) => [row.kind, row]));
      const rowsOf = (all: ReadonlyMap<string, StoredRows>) =>
        [...all.values()].map(({ kind, rows, expired }) => [kind, rows, expired]);
      expect(rowsOf(await read())).toEqual([
        ['records', 0, 0],
        ['outcomes', 0, 0],
        ['events', 0, 0],
        ['signals', 0, 0],
        ['threads', 0, 0],
        ['audit', 0, 0],
      ]);
      for (const runId of ['first', 'second']) {
        const { status } = await executor.run(agent, { runId, prompt: 'Go.' });
        expect(status).toBe('ok');
        await clock.advance(60_000);
      }
      const waiting = await executor.start(agent, { runId: 'waits', prompt: 'Go.' });
      await until(async () => (await executor.waiting()).length === 1);
      await clock.advance(5_000);
      await waiting.result;
      await executor.signal('news', {}, { id: 's1' });
      const before = await read();
      expect(before.get('records')).toMatchObject({ rows: 3, oldestAt: START, firstUntil: START + HOUR, expired: 0 });
      expect(before.get('outcomes')).toMatchObject({ rows: 2, firstUntil: START + HOUR, expired: 0 });
      expect(before.get('signals')?.rows).toBe(1);
      expect(before.get('audit')).toMatchObject({ oldestAt: START, expired: 0 });
      expect(before.get('events')?.rows).toBeGreaterThan(0);
      for (const { bytes } of before.values()) expect(bytes).toBeGreaterThan(1_000);
      await executor.shutdown();
      clock.wallJump(HOUR - 90_000);
      const after = await read();
      expect([after.get('records')?.expired, after.get('outcomes')?.expired]).toEqual([1, 1]);
      expect([await store.history.forget(), await store.outcomes.forget()]).toEqual([1, 1]);
      expect((await read()).get('records')).toMatchObject({ rows: 2, expired: 0 });
      await store.close();
    },
  );
});
