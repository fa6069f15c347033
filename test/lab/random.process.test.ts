import net from 'node:net';
import fc from 'fast-check';
import type { JsonValue } from 'pawl';
import { replay } from 'pawl/lab';
import { callTools, reply, scriptedModel } from 'pawl/testing';
import { expect, test, vi } from 'vitest';
import { markOf } from '../../src/values/message-mark.ts';
import { seed, torture } from '../crash/random.ts';
import { agentsOf, histories, recordingsOf } from './histories.ts';
import { allSame } from './recorded.ts';

const HISTORIES = torture > 1 ? 1_000 : 60;

test(`the baseline of a run equals its record to the byte, runs no tool and opens no socket, after ${HISTORIES} random histories with kills (seed ${seed}) (lab 17, 20, 31)`, {
  timeout: 120_000 * torture,
}, async () => {
  const opened = vi.spyOn(net.Socket.prototype, 'connect');
  const seen: Record<string, number> = {};
  let compacted = 0;
  await fc.assert(
    fc.asyncProperty(histories, async (history) => {
      const { runs, count } = await recordingsOf(history);
      const { ran } = count;
      if (runs.some(({ steps }) => steps.some(({ message }) => markOf(message)?.compacted))) compacted += 1;
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
  // Good and bad ends were met, and runs that a killed process left.
  expect(Object.keys(seen)).toEqual(expect.arrayContaining(['ok', 'interrupted', 'MODEL', 'CANCELLED']));
  expect(compacted).toBeGreaterThan(HISTORIES / 20);
  expect(opened).not.toHaveBeenCalled();
});

const outputs = fc.record({
  turns: fc.array(
    fc.array(
      fc.record({
        name: fc.constantFrom('look', 'pay', 'pay', 'book', 'agent__helper', 'gone'),
        input: fc.constantFrom<JsonValue>({ n: 1 }, { n: 2 }, { n: 'x' }, 'text', { prompt: 'help' }),
      }),
      { minLength: 1, maxLength: 3 },
    ),
    { maxLength: 4 },
  ),
  tools: fc.constantFrom('recorded', 'strict', 'doubles'),
  onMiss: fc.constantFrom('fail', 'error', 'read-live'),
});

test('no tool with an effect runs in 500 replays with random models and options (lab 20, 31)', {
  timeout: 120_000,
}, async () => {
  const count = { ran: 0 };
  // A bare phase asks again for an answer that is only calls, after a pause.
  const plan = fc.sample(histories, { numRuns: 25, seed }).map((history) => ({
    ...history,
    deaths: [],
    phases: history.phases.map((phase) => ({ ...phase, bare: false })),
  }));
  const recordings = await Promise.all(plan.map((history) => recordingsOf(history)));
  let ended = 0;
  await fc.assert(
    fc.asyncProperty(outputs, fc.nat(plan.length - 1), async ({ turns, tools, onMiss }, at) => {
      const [history, recording] = [plan[at], recordings[at]];
      if (!history || !recording?.runs[0]) return;
      const model = scriptedModel([...turns.map((calls) => callTools(calls)), reply('{"ok":true}')]);
      const { agent } = agentsOf(history, count, ['read']);
      const doubles = { pay: () => 'doubled' };
      const report = await replay(recording.runs[0], {
        ...{ agent, model, onMiss: onMiss as 'fail', tools: tools === 'doubles' ? doubles : (tools as 'strict') },
      });
      if (report.status === 'ok') ended += 1;
      expect(JSON.parse(JSON.stringify(report))).toStrictEqual(report);
    }),
    { numRuns: 500, seed },
  );
  expect(count.ran).toBe(0);
  expect(ended).toBeGreaterThan(50);
});
