import { setTimeout } from 'node:timers/promises';
import { diagnose } from 'pawl';
import { backupStore, restoreStore, sqliteStore } from 'pawl/stores/sqlite';
import { callTool, reply } from 'pawl/testing';
import { expect, test } from 'vitest';
import { torture } from '../../../crash/random.ts';
import { hostOf, toolOf, until } from '../../../fixtures/host.ts';
import { freshPath } from '../files.ts';

const RUNS = 20;
const BACKUPS = torture > 1 ? 50 : 8;

test(`of ${BACKUPS} backups that are taken while ${RUNS} runs write, each is restored whole: all runs can be read, are parked, and make no once call (operations 18)`, async () => {
  const path = freshPath();
  await using store = sqliteStore({ path });
  let paid = 0;
  const pay = toolOf('pay', 'once', async () => {
    paid += 1;
    await setTimeout(20);
    return 'paid';
  });
  const agent = { maxSteps: 100_000 };
  const script = Array.from({ length: 100_000 }, () => callTool('pay', {}));
  const host = hostOf({ store, tools: [pay], agent, script, defaults: { maxSameToolCallRepeats: 10 ** 6 } });
  for (let i = 0; i < RUNS; i++) await host.start({ runId: `r${i}` });
  const found: { readonly steps: number; readonly started: number }[] = [];
  for (let i = 0; i < BACKUPS; i++) {
    const [backup, restored] = [freshPath(), freshPath()];
    // Each run has begun a step since the backup before.
    const enough = paid + 2 * RUNS;
    await until(() => paid >= enough);
    await backupStore({ path, target: backup });
    const report = await restoreStore({ backup, path: restored });
    expect([report.parked.length, report.resumed, report.unreadable]).toEqual([RUNS, [], []]);
    await using copy = sqliteStore({ path: restored });
    const again: string[] = [];
    const later = hostOf({
      store: copy,
      tools: [toolOf('pay', 'once', async () => void again.push('pay'))],
      script: [reply('no')],
    });
    const verdicts: (string | undefined)[] = [];
    for await (const { verdict, code } of diagnose(copy, { agents: [later.agent] }))
      verdicts.push(`${verdict} ${code}`);
    expect(new Set(verdicts)).toEqual(new Set(['parked RESTORED']));
    expect((await later.executor.recover()).resumed).toEqual([]);
    await later.executor.shutdown();
    expect([again, later.model.calls.length]).toEqual([[], 0]);
    const records = await Promise.all(Array.from({ length: RUNS }, (_, n) => copy.load(`r${n}`)));
    found.push({
      steps: records.reduce((sum, record) => sum + (record?.iteration ?? 0), 0),
      started: records.filter((record) => record?.openStep?.calls.some(({ state }) => state === 'started')).length,
    });
  }
  // They were taken in the middle of work: each has more steps than the one before, and calls were under way.
  for (const [i, { steps }] of found.entries()) expect(steps).toBeGreaterThan(found[i - 1]?.steps ?? 0);
  expect(found.some(({ started }) => started > 0)).toBe(true);
  await host.executor.shutdown({ drainMs: 1_000 });
});
