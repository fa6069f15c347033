import net from 'node:net';
import fc from 'fast-check';
import { replay } from 'pawl/lab';
import { expect, test, vi } from 'vitest';
import { seed, torture } from '../crash/random.ts';
import { agentsOf, histories, recordingsOf } from './histories.ts';
import { allSame } from './recorded.ts';

const HISTORIES = torture > 1 ? 1_000 : 60;

test(`the baseline of a run equals its record to the byte, runs no tool and opens no socket, after ${HISTORIES} random histories with kills (seed ${seed}) (lab 17, 20)`, {
  timeout: 120_000 * torture,
}, async () => {
  const opened = vi.spyOn(net.Socket.prototype, 'connect');
  const seen: Record<string, number> = {};
  await fc.assert(
    fc.asyncProperty(histories, async (history) => {
      const { runs, count } = await recordingsOf(history);
      const { ran } = count;
      for (const run of runs) {
        seen[run.error?.code ?? run.status] = (seen[run.error?.code ?? run.status] ?? 0) + 1;
        const { agent } = agentsOf(history, count);
        const report = await replay(run, { agent });
        const { spend: _, raisedSteps: __, ...recorded } = run;
        expect(report).toStrictEqual({ ...recorded, usage: report.usage, ...allSame });
      }
      expect(count.ran).toBe(ran);
    }),
    { numRuns: HISTORIES, seed },
  );
  // All ends were met, and runs that a killed process left.
  expect(Object.keys(seen)).toEqual(expect.arrayContaining(['ok', 'interrupted', 'MODEL', 'CANCELLED', 'STEP_LIMIT']));
  expect(opened).not.toHaveBeenCalled();
});
