import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { sqliteStore } from 'pawl/stores/sqlite';
import { expect, test } from 'vitest';
import { sampleOutcome } from '../../src/testing/store-contract/records.ts';
import { emptyFolder, pawl } from './pawl.ts';
import { interruptedRun, storeRuns } from './stored-runs.ts';

test('`pawl stats --rows` says what fills the store, and what `pawl prune` takes from it (operations 16)', async () => {
  const cwd = emptyFolder();
  mkdirSync(join(cwd, '.pawl'));
  const path = join(cwd, '.pawl/runs.db');
  await storeRuns(path, interruptedRun({ runId: 'waits' }));
  await using store = sqliteStore({ path });
  await store.outcomes.keep('late', sampleOutcome('late'), Date.now() + 3_600_000);
  await store.outcomes.keep('past', sampleOutcome('past'), Date.now() - 10_000);
  const { stdout, code } = await pawl(['stats', '--rows'], { cwd });
  expect(code).toBe(0);
  expect(stdout).toMatch(/^KIND +ROWS +SIZE +OLDEST +FIRST EXPIRES +TO PRUNE\nrecords +1 +0\.\d+ MB +.+ ago +- +0\n/);
  expect(stdout).toMatch(/\noutcomes +2 +0\.\d+ MB +- +.+ ago +1\n/);
  const { rows } = JSON.parse((await pawl(['stats', '--rows', '--json'], { cwd })).stdout);
  expect(rows[1]).toMatchObject({ kind: 'outcomes', rows: 2, expired: 1 });
  expect((await pawl(['prune', '--dry-run'], { cwd })).stderr).toContain('1 outcome');
});

test('`pawl stats` says how many runs are due and since when, wait and for what, and are parked, without an audit (operations 36)', async () => {
  const cwd = emptyFolder();
  mkdirSync(join(cwd, '.pawl'));
  const path = join(cwd, '.pawl/runs.db');
  const parked = { code: 'SETUP', reason: 'no model', parkedAt: Date.now() } as const;
  await storeRuns(
    path,
    interruptedRun({ runId: 'a' }),
    interruptedRun({ runId: 'b' }),
    interruptedRun({ runId: 'p', parked }),
  );
  const { stdout, code } = await pawl(['stats'], { cwd });
  expect([code, stdout]).toEqual([
    0,
    expect.stringMatching(/^now: 0 live · 2 due, the oldest for \S.+ · 0 waiting · 1 parked\n/),
  ]);
  const { now } = JSON.parse((await pawl(['stats', '--json'], { cwd })).stdout);
  expect(now).toMatchObject({ live: 0, due: 2, parked: 1, waiting: {} });
});
