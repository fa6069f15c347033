import fc from 'fast-check';
import type { Message, RunCheckpoint, RunResult } from 'pawl';
import { expect, test } from 'vitest';
import { outcomeUnknown } from '../../src/run/open-step.ts';
import { seed, torture } from '../crash/random.ts';
import { type History, live, stops } from './pipeline-lives.ts';
import { type Plan, plans } from './pipeline-plans.ts';

const HISTORIES = 400 * torture;

/** Calls of `once` tools of which a crash left nobody knowing whether they took effect: the model is told so. */
const unknownIn = (left: History['left']) =>
  left
    .flatMap((record) => record?.openStep?.calls ?? [])
    .filter(({ effect, state }) => effect === 'once' && state === 'started');

const partsOf = (messages: readonly Message[]) =>
  messages.flatMap(({ role, content }) => (role === 'tool' ? content : []));
/** The calls whose results a record holds. */
const recordedIn = ({ messages, openStep }: RunCheckpoint) => [
  ...partsOf(messages).map((part) => (part as { toolCallId: string }).toolCallId),
  ...(openStep?.calls ?? []).filter(({ state }) => state === 'done').map(({ callId }) => callId),
];

function judgeResult(history: History, whole: History, { phases }: Plan): void {
  const unknown = unknownIn(history.left);
  // To the model an unknown outcome is a failed call: among others that fail it makes the guards end the phase earlier.
  const canFail = phases.some(({ steps, tools }) => tools || JSON.stringify(steps).includes('"break"'));
  if (unknown.length > 2 || (unknown.length > 0 && canFail)) return;
  expect(history.books).toEqual(whole.books);
  const { messages, ...result } = history.result;
  const { messages: expected, ...rest } = whole.result;
  expect(result).toEqual(rest);
  if (unknown.length > 0) return;
  expect(history.last?.counters).toEqual(whole.last?.counters);
  expect(history.last?.completedPhases).toEqual(whole.last?.completedPhases);
  const isTold = (history.left.at(-1)?.completedPhases.length ?? 0) < phases.length && !history.left.at(-1)?.outcome;
  if (isTold) expect(messages).toEqual(expected);
}

function judgeCalls({ calls, asked, left }: History): void {
  for (const [life, record] of left.entries()) {
    if (!record) continue;
    const complete = record.completedPhases.length;
    const later = <T extends { life: number; phase: number }>(all: readonly T[]) =>
      all.filter((each) => each.life > life);
    for (const call of [...later(calls), ...later(asked)]) expect(call.phase).toBeGreaterThanOrEqual(complete);
    const recorded = new Set(recordedIn(record));
    for (const call of later(calls)) expect(recorded).not.toContain(call.callId);
    const turns = record.openPhase?.iteration ?? 0;
    for (const { phase, step } of later(asked)) if (phase === complete) expect(step).toBeGreaterThanOrEqual(turns);
  }
  for (const group of Map.groupBy(calls, ({ callId }) => callId).values()) {
    const [{ effect, phase }] = group as [History['calls'][number]];
    if (effect === 'once') expect(group).toHaveLength(1);
    expect(new Set(group.map((call) => call.phase))).toEqual(new Set([phase]));
  }
}

const told = (result: RunResult) => result.messages.some((message) => JSON.stringify(message).includes(outcomeUnknown));

test(
  `a pipeline that is stopped after any save ends as if it had not been, in ${HISTORIES} random histories (seed ${seed}; pipeline 4-9, faults F31)`,
  async () => {
    const seen = { stopped: 0, amid: 0, between: 0, anew: 0, kept: 0, unknown: 0, failed: 0, delivered: 0, spent: 0 };
    const histories = fc.record({ plan: plans, stops, isPlain: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(histories, async ({ plan, isPlain, ...rest }) => {
        const whole = await live(plan, { stops: [], isPlain });
        const history = await live(plan, { ...rest, isPlain });
        judgeResult(history, whole, plan);
        judgeCalls(history);
        for (const record of history.left) {
          seen.stopped += 1;
          const open = record?.openPhase && plan.phases[record.openPhase.index];
          if (open) seen.amid += 1;
          if (open?.recovery === 'boundary') seen.kept += 1;
          const next = record && plan.phases[record.completedPhases.length];
          if (record && !open && record.completedPhases.length > 0) seen.between += 1;
          if (record && !open && next?.recovery === 'boundary') seen.anew += 1;
          if (record?.outcome) seen.delivered += 1;
        }
        if (history.result.status !== 'ok') seen.failed += 1;
        if (unknownIn(history.left).length > 0 || told(history.result)) seen.unknown += 1;
        if ((history.result.spend?.tokens ?? 0) > 0) seen.spent += 1;
      }),
      { numRuns: HISTORIES, seed },
    );
    console.log(`seed ${seed}: ${JSON.stringify(seen)}`);
    expect(seen.stopped).toBeGreaterThan(HISTORIES);
    for (const [what, count] of Object.entries(seen)) expect(count, what).toBeGreaterThan(HISTORIES / 200);
  },
  60_000 * torture,
);
