import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { crc32 } from 'node:zlib';
import { createExecutor, defineAgent, type Executor, type KeptRun } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { reply, scriptedModel } from 'pawl/testing';
import { inFolder, median } from './measure.ts';
import type { Part, Row } from './report.ts';

const TENANTS = 1_000;
const AGENTS = 20;
const PAGE = 50;
/** One run ends each second. */
const GAP_MS = 1_000;
const ROUNDS = 5;

type Filter = Parameters<Executor['history']>[0];

/** What finding runs that ended costs, by agent, caller, time, status and labels, where a million of them are kept. */
export function historyRows(isQuick: boolean): Promise<Part> {
  const count = isQuick ? 100_000 : 1_000_000;
  return inFolder(async (folder) => {
    const path = join(folder, 'ended.db');
    const newest = await endOne(path);
    addEnds(path, count, newest);
    const store = sqliteStore({ path });
    const executor = createExecutor({ store });
    const at = (ago: number) => newest - Math.round(ago * count) * GAP_MS;
    const queries: readonly (readonly [what: string, filter: Filter, found: number, budget?: number])[] = [
      ['the newest', {}, PAGE, 50],
      ['of one agent of 20', { agentId: 'agent-7' }, PAGE, 50],
      ['of one caller of 1,000', { callerId: 'tenant-7' }, PAGE, 50],
      ['of an hour, half way back', { since: at(0.5), until: at(0.5) + 3_600_000 }, PAGE, 50],
      ['that failed, 1 in 100', { status: 'error' }, PAGE, 100],
      ['with a label of 1 in 1,000', { labels: { tenant: 'tenant-7' } }, PAGE, 1_000],
      [
        'that failed, of one caller, in the last tenth',
        { status: 'error', callerId: 'tenant-0', since: at(0.1) },
        PAGE,
        1_000,
      ],
      ['with a label that no run of the last tenth has', { labels: { tenant: 'none' }, since: at(0.1) }, 0],
      ['with a label that no run has', { labels: { tenant: 'none' } }, 0],
    ];
    const rows: Row[] = [];
    for (const [what, filter, found, budget] of queries) {
      const rounds = budget === undefined ? 1 : ROUNDS;
      rows.push({
        what: `${PAGE} ended runs ${what}`,
        value: await msOf(executor, filter ?? {}, { found, rounds }),
        unit: 'ms',
        ...(budget === undefined ? {} : { budget }),
        note: `of ${count}, SQLite${rounds > 1 ? `; median of ${rounds}` : ''}`,
      });
    }
    await executor.shutdown();
    await store.close();
    return { rows, broken: [] };
  });
}

/** Lets one run end in the store. @returns when it ended */
async function endOne(path: string): Promise<number> {
  const store = sqliteStore({ path });
  const agent = defineAgent({ id: 'agent', instructions: 'Work.', model: scriptedModel([reply('done')]) });
  const executor = createExecutor({ store, agents: [agent], retention: { records: Number.POSITIVE_INFINITY } });
  await executor.run(agent, { runId: 'run', prompt: 'Work.', callerId: 'tenant', labels: { tenant: 'tenant' } });
  const [run] = await executor.history({});
  await executor.shutdown();
  await store.close();
  if (!run) throw new Error('the run that ended is not in the history');
  return run.endedAt;
}

/** Adds copies of the run that ended, each a second before the last: ending each by an executor would take an hour. */
function addEnds(path: string, count: number, newest: number): void {
  const db = new DatabaseSync(path);
  const row = db.prepare('SELECT * FROM ended').get() as unknown as {
    readonly line: string;
    readonly keep_until: number;
  };
  const run = JSON.parse(row.line) as { readonly meta: object };
  const insert = db.prepare(
    'INSERT INTO ended (no, run_id, ended_at, keep_until, epoch, agent, caller, checksum, line) VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?)',
  );
  db.exec('PRAGMA synchronous = OFF; BEGIN');
  for (let i = 1; i < count; i++) {
    const [runId, agentId, tenant] = [`run-${i}`, `agent-${i % AGENTS}`, `tenant-${i % TENANTS}`];
    const line = JSON.stringify({
      ...run,
      meta: { ...run.meta, runId, agentId, callerId: tenant },
      labels: { tenant },
      status: i % 100 === 0 ? 'error' : 'ok',
    });
    insert.run(1_000 + i, runId, newest - i * GAP_MS, row.keep_until, agentId, tenant, crc32(line), line);
  }
  db.exec('COMMIT');
  db.close();
}

async function msOf(
  executor: Executor,
  filter: NonNullable<Filter>,
  { found: wanted, rounds }: { readonly found: number; readonly rounds: number },
): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const from = performance.now();
    const found: readonly KeptRun[] = await executor.history({ ...filter, limit: PAGE });
    times.push(performance.now() - from);
    if (found.length !== wanted) throw new Error(`${JSON.stringify(filter)} found ${found.length} runs, not ${wanted}`);
  }
  return median(times);
}
