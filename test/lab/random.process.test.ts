import net from 'node:net';
import fc from 'fast-check';
import type { JsonValue } from 'pawl';
import { type RecordedRun, type ReplayReport, replay } from 'pawl/lab';
import { callTools, reply, scriptedModel } from 'pawl/testing';
import { expect, test, vi } from 'vitest';
import { canonicalJson, isObject } from '../../src/values/json.ts';
import { markOf } from '../../src/values/message-mark.ts';
import { seed, torture } from '../crash/random.ts';
import { agentsOf, type History, histories, recordingsOf } from './histories.ts';
import { allSame } from './recorded.ts';

const [HISTORIES, REPLAYS] = torture > 1 ? [1_000, 5_000] : [30, 200];

const look = { name: 'look', id: 'call_0', input: '{"n":1}' };
const turn = { text: '', thought: false, calls: [look], fails: false, says: [], nudge: false, cut: false };
/** Found by a seed: a phase that may fail leaves no step, and the last phase, which begins again after a crash, ends the run by itself. */
const passedPhase: History = {
  turns: [turn, turn],
  phases: [
    { isOptional: true, bare: true, boundary: false, maxSteps: 1 },
    { isOptional: false, bare: false, boundary: true, maxSteps: 1 },
  ],
  ...{ hasSchema: true, maxSteps: 1, grant: 0, approves: 'never', hasEarlier: false, hasImage: false },
  ...{ isCompacted: false, deaths: [], cancelledIn: -1, retries: 0 },
};

/** Found by a seed: cancelled in its first step, retried, allowed two more steps, and the first of them is refused. */
const raisedAfterRetry: History = {
  turns: [
    { ...turn, calls: [{ ...look, name: 'skill__sum' }, look] },
    turn,
    { ...turn, calls: [] },
    { ...turn, calls: [] },
  ],
  ...{ phases: [], hasSchema: true, maxSteps: 1, grant: 2, approves: 'never', hasEarlier: false, hasImage: false },
  ...{ isCompacted: false, deaths: [], cancelledIn: 1, retries: 1 },
};

/** Found by a seed: a phase that would begin again keeps its step, because it had called an agent before it was retried. */
const keptPhase: History = {
  turns: [turn, { ...turn, calls: [{ name: 'agent__helper', id: 'call_0', input: '{"prompt":"help"}' }] }],
  phases: [
    { isOptional: false, bare: false, boundary: true, maxSteps: 2 },
    { isOptional: false, bare: false, boundary: false, maxSteps: 1 },
  ],
  ...{ hasSchema: false, maxSteps: 1, grant: 0, approves: 'never', hasEarlier: false, hasImage: false },
  ...{ isCompacted: false, deaths: [], cancelledIn: -1, retries: 1 },
};

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
    { numRuns: HISTORIES, seed, examples: [[passedPhase], [raisedAfterRetry], [keptPhase]] },
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

const own = ['look', 'pay', 'book'];
/** Whether the tools of a history take an input. */
const fits = (input: JsonValue) => isObject(input) && (input.n === undefined || typeof input.n === 'number');

/** The answers of a candidate's calls are those of recorded calls that their tools had taken; a double answers its own. @returns how many there are */
function checkAnswers(report: ReplayReport, { steps }: RecordedRun, tools: string): number {
  const textOf = (call: { name: string; input: JsonValue }) => `${call.name} ${canonicalJson(call.input)}`;
  const missed = new Set(report.missed.map((call) => `${call.step} ${textOf(call)}`));
  const taken = steps.flatMap(({ calls }) => calls).filter(({ input }) => fits(input));
  const made = report.steps.flatMap(({ calls }, i) => calls.filter((call) => !missed.has(`${i + 1} ${textOf(call)}`)));
  const answered = made.filter(({ name, input }) => own.includes(name) && fits(input));
  for (const call of answered) {
    const outputs = taken.filter((each) =>
      tools === 'strict' ? textOf(each) === textOf(call) : each.name === call.name,
    );
    if (tools === 'doubles' && call.name === 'pay') expect(call.output).toEqual({ type: 'text', value: 'doubled' });
    else expect(outputs.map(({ output }) => output)).toContainEqual(call.output);
  }
  return answered.length;
}

test(`no tool with an effect runs in ${REPLAYS} replays with random models and options, and each call has a recorded answer of its tool (lab 18, 20, 31)`, {
  timeout: 120_000 * torture,
}, async () => {
  const count = { ran: 0 };
  // A bare phase asks again for an answer that is only calls, after a pause.
  const plan = fc.sample(histories, { numRuns: REPLAYS / 20, seed }).map((history) => ({
    ...history,
    deaths: [],
    phases: history.phases.map((phase) => ({ ...phase, bare: false })),
  }));
  const recordings = await Promise.all(plan.map((history) => recordingsOf(history)));
  let [ended, answered] = [0, 0];
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
      answered += checkAnswers(report, recording.runs[0], tools);
      expect(JSON.parse(JSON.stringify(report))).toStrictEqual(report);
    }),
    { numRuns: REPLAYS, seed },
  );
  expect(count.ran).toBe(0);
  expect(ended).toBeGreaterThan(REPLAYS / 10);
  expect(answered).toBeGreaterThan(REPLAYS / 10);
});
