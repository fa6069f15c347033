import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { InterruptedRun, RunOutcome } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readJsonLines } from './json-lines.ts';
import { beginsIn, readLedger } from './ledger.ts';
import { startFleet } from './trial.ts';

const HEALTHY = 20;
const MAX_BOOTS = 10;

describe('one run that kills its process, and twenty healthy ones, restarted in a loop (recovery 2, faults 11)', () => {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-poison-'));
  const exits: (number | string | null)[] = [];
  let left: readonly InterruptedRun[] = [];
  let outcomes: readonly RunOutcome[] = [];

  beforeAll(async () => {
    while (exits.length < MAX_BOOTS && exits.at(-1) !== 0) exits.push(await boot(folder));
    const store = sqliteStore({ path: join(folder, 'runs.db') });
    left = await store.listInterrupted();
    await store.close();
    outcomes = readJsonLines(join(folder, 'outcomes.jsonl'));
  }, 180_000);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test('the poisonous run is parked after three deaths, with the reason', () => {
    expect(exits).toEqual(['SIGABRT', 'SIGABRT', 'SIGABRT', 0]);
    expect(left.map(({ runId, status }) => [runId, status])).toEqual([['poison', 'parked']]);
    expect(left[0]?.status === 'parked' && left[0].reason).toContain('3 times');
  });

  test('all the others complete', () => {
    expect(new Set(outcomes.map(({ runId }) => runId)).size).toBe(HEALTHY);
    expect(outcomes.filter(({ status }) => status !== 'ok')).toEqual([]);
  });

  test('no once call of any of them began twice', () => {
    const once = beginsIn(readLedger(folder)).filter(({ effect }) => effect === 'once');
    const calls = once.map(({ runId, callId }) => `${runId} ${callId}`);
    expect(new Set(calls).size).toBe(calls.length);
  });
});

async function boot(folder: string): Promise<number | string | null> {
  const child = startFleet({ folder, healthy: HEALTHY, isPoisoned: true });
  return new Promise((resolve) => child.once('close', (code, signal) => resolve(code ?? signal)));
}
