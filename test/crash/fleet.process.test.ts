import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { createExecutor, defineAgent } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { scriptedModel } from 'pawl/testing';
import { afterAll, expect, test } from 'vitest';
import { packageFlags } from '../toolchain/programs.ts';
import { torture } from './random.ts';

const RUNS = torture > 1 ? 2_000 : 24;
const KILLS = torture > 1 ? 60 : 1;
const PROCESSES = torture > 1 ? 8 : 2;

const folder = mkdtempSync(join(tmpdir(), 'pawl-fleet-'));
const children = new Set<ChildProcess>();
afterAll(() => {
  for (const child of children) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

function begin(): ChildProcess {
  const worker = fileURLToPath(new URL('./fleet-worker.ts', import.meta.url));
  const child = spawn(process.execPath, [...packageFlags, worker, folder], { stdio: 'ignore' });
  children.add(child);
  return child;
}

const ledger = (what: string) => {
  const path = join(folder, 'ledger');
  const lines = existsSync(path) ? readFileSync(path, 'utf8').split('\n') : [];
  return lines.flatMap((line) => (line.startsWith(`${what} `) ? [line.slice(what.length + 1)] : []));
};

test(`${RUNS} runs on ${PROCESSES} processes, ${KILLS} of them killed: each run ends, and no call with effects is made twice (engine 16, 20, 36)`, {
  timeout: 900_000,
}, async () => {
  const store = sqliteStore({ path: join(folder, 'runs.db') });
  const admitting = createExecutor({ models: { fast: scriptedModel([]) }, store });
  const agent = defineAgent({ id: 'worker', instructions: 'Work.' });
  for (let i = 0; i < RUNS; i++) {
    const run = await admitting.start(agent, { prompt: `run-${i}`, runId: `run-${i}` }, { drive: 'later' });
    expect(run.accepted).toBe('started');
  }
  const fleet = Array.from({ length: PROCESSES }, begin);
  const isOver = () => new Set(ledger('ended')).size === RUNS;
  for (let kill = 1; kill <= KILLS; kill++) {
    while (ledger('paid').length < (RUNS * kill) / (KILLS + 1)) await sleep(20);
    fleet.shift()?.kill('SIGKILL');
    fleet.push(begin());
  }
  while (!isOver()) await sleep(50);
  const paid = ledger('paid');
  expect(new Set(paid).size).toBe(paid.length);
  // A call that had begun when its process died is not made again, whether it happened or not: at most one for each live run.
  expect(paid.length).toBeGreaterThanOrEqual(RUNS - 4 * KILLS);
  while ((await store.listInterrupted()).length > 0) await sleep(20);
  const gone = fleet.map((child) => new Promise<number | null>((resolve) => child.once('exit', resolve)));
  for (const child of fleet) child.kill('SIGTERM');
  // null: the last one was still being loaded, and did not listen for signals yet.
  const [first, ...rest] = await Promise.all(gone);
  expect([first, rest.filter((code) => code !== 0 && code !== null)]).toEqual([0, []]);
  await admitting.shutdown();
});
