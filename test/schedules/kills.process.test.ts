import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sqliteStore } from 'pawl/stores/sqlite';
import { expect, test } from 'vitest';
import { until } from '../fixtures/host.ts';
import { startChild } from '../store/child-process.ts';

const script = '../schedules/child.ts';

/** The ticks of the runs that have ended, in order: a killed process may have told an end that it could not mark. */
function ticksIn(log: string): number[] {
  const ids = new Set(readFileSync(log, 'utf8').split('\n').slice(0, -1));
  return [...ids].map((line) => Date.parse(line.slice('tick@'.length, -' ok'.length))).sort((a, b) => a - b);
}

test('of two processes one is killed: each tick has one run, and no tick is missing (schedules 2, 7)', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-test-'));
  const [path, log] = [join(folder, 'runs.db'), join(folder, 'log')];
  writeFileSync(log, '');
  const [first, second] = [1, 2].map(() => startChild({ role: path, path: log, script }));
  await until(() => ticksIn(log).length >= 3);
  await first?.kill();
  const before = ticksIn(log).length;
  await until(() => ticksIn(log).length >= before + 4);
  await second?.kill();
  await using store = sqliteStore({ path });
  const [row] = await store.schedules();
  // The run of the last tick may not have ended.
  const settled = Array.from({ length: 1_000 }, (_, i) => Number(row?.since) + i * 1_000)
    .map((time) => Math.ceil(time / 1_000) * 1_000)
    .filter((time) => time > Number(row?.since) && time < Number(row?.lastAt));
  expect(ticksIn(log).filter((tick) => tick < Number(row?.lastAt)).length + Number(row?.missed.count)).toBe(
    settled.length,
  );
});
