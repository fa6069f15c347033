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

test('`pawl stats --now` counts the runs that have not ended by agent, caller or label, with the codes of those that are parked (operations 36)', async () => {
  const cwd = emptyFolder();
  mkdirSync(join(cwd, '.pawl'));
  const parked = (code: string) => ({ code, reason: 'no model', parkedAt: Date.now() });
  const [acme, zeta] = [{ tenant: 'acme' }, { tenant: 'ze\u001b[2Jta' }];
  await storeRuns(
    join(cwd, '.pawl/runs.db'),
    interruptedRun({ runId: 'a', labels: acme }),
    interruptedRun({ runId: 'b', labels: acme, parked: parked('SETUP') }),
    interruptedRun({ runId: 'c', labels: acme, parked: parked('PARKED') }),
    interruptedRun({ runId: 'd', labels: zeta, parked: parked('SETUP') }),
    interruptedRun({ runId: 'e' }),
  );
  const { stdout, code } = await pawl(['stats', '--now', 'label:tenant'], { cwd });
  expect([code, stdout.replaceAll(/ +/g, ' ').replaceAll(' \n', '\n')]).toEqual([
    0,
    [
      'LABEL:TENANT LIVE INTERRUPTED WAITING PARKED QUARANTINED CODES',
      'acme 0 1 0 2 0 1 SETUP, 1 PARKED',
      '- 0 1 0 0 0',
      'zeta 0 0 0 1 0 1 SETUP',
      '',
    ].join('\n'),
  ]);
  const { runs } = JSON.parse((await pawl(['stats', '--now', 'agent', '--json'], { cwd })).stdout);
  expect(runs).toMatchObject([{ interrupted: 2, parked: 3, codes: { SETUP: 2, PARKED: 1 } }]);
  const wrong = await pawl(['stats', '--now', 'weather'], { cwd });
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('is none of agent, caller, label:<name>')]);
});
