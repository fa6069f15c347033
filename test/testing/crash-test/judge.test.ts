import type { RunOutcome, ToolEffect } from 'pawl';
import { describe, expect, test } from 'vitest';
import type { History } from '../../../src/testing/crash-test/history.ts';
import { type AllowedFaults, judgeHistories } from '../../../src/testing/crash-test/judge.ts';
import { EffectLedger } from '../../../src/testing/crash-test/ledger.ts';
import { sampleRecord } from '../../../src/testing/store-contract/records.ts';

const strict: AllowedFaults = {
  errorsInARow: 3,
  redoneSteps: 1,
  hasPhasesAnew: false,
  isAlone: true,
  isAppending: true,
};

interface Told {
  /** The calls of one process after the other: the step that each belongs to. */
  readonly lives?: readonly (readonly number[])[];
  readonly effect?: ToolEffect;
  readonly asked?: readonly (readonly number[])[];
  readonly outcome?: Partial<RunOutcome>;
  readonly outcomeIds?: readonly string[];
  /** How often the whole record was handed to the store. */
  readonly saves?: number;
}

const outcomeOf = (more: Partial<RunOutcome>) =>
  ({ runId: 'r', status: 'ok', output: 'done', iterations: 2, phases: [], undelivered: [], ...more }) as RunOutcome;

/** A history in which a run came to its end. */
function historyOf({ lives = [[0, 1]], effect = 'read', asked = [], outcome = {}, ...told }: Told): History {
  const ledger = new EffectLedger('r');
  for (const [life, steps] of lives.entries()) {
    ledger.life = life;
    for (const step of steps) {
      const key = `r:c${step}`;
      ledger.began({ runId: 'r', callId: `c${step}`, name: 'tool', effect, key, attempt: life + 1, step });
    }
    for (const turn of asked[life] ?? []) ledger.asks(turn, true);
  }
  for (let i = 0; i < (told.saves ?? 1); i++) ledger.wrote('save', [{ ...sampleRecord('r'), revision: i }], true);
  ledger.wrote('delete', ['r'], true);
  for (const outcomeId of told.outcomeIds ?? ['r:1']) ledger.onEnded(outcomeOf({ ...outcome, outcomeId }));
  return {
    ledger,
    points: lives.map(() => []),
    crashes: [],
    left: [],
    isHung: false,
    isAside: false,
    isShortOfHelp: false,
  };
}

const broken = (told: Told, allowed: Partial<AllowedFaults> = {}) =>
  judgeHistories(historyOf(told), historyOf({}), { ...strict, ...allowed }).map(
    ({ promise, detail }) => `${promise}: ${detail}`,
  );

describe('the judge of a crash test', () => {
  test('has nothing to say of a history in which one step was redone', () => {
    expect(
      broken({
        lives: [[0, 1], [1]],
        asked: [
          [0, 1, 2],
          [1, 2],
        ],
      }),
    ).toEqual([]);
  });

  test('a: calls are missing, or the answer is another one', () => {
    expect(broken({ lives: [[0]] })).toEqual(['a: call c1 of tool tool was lost: the run ended without it']);
    expect(broken({ outcome: { output: 'other' } })).toEqual([
      'a: the result differs from that of the run without a crash: output is "other" instead of "done"',
    ]);
  });

  test('a: a lost call is said before another answer, which it may have brought (workflow 26)', () => {
    expect(broken({ lives: [[0]], outcome: { output: 'other' } })).toEqual([expect.stringContaining('was lost')]);
  });

  test('b: turns were counted twice, or calls made that no model asked for', () => {
    expect(broken({ outcome: { iterations: 3 } })).toEqual([expect.stringContaining('b: the result differs')]);
    expect(broken({ lives: [[0, 1, 2]] })).toEqual([
      expect.stringContaining('b: call c2 of tool tool does not exist in'),
    ]);
  });

  test('c: a once call began twice', () => {
    const lives = [[0, 1], [1]];
    expect(broken({ lives, effect: 'once' })).toEqual([
      'c: call c1 of tool tool started 2 times, and its effect is "once"',
    ]);
    expect(broken({ lives, effect: 'idempotent' })).toEqual([]);
  });

  test('e: two outcomes', () => {
    expect(broken({ outcomeIds: ['r:1', 'r:1'] })).toEqual([]);
    expect(broken({ outcomeIds: ['r:1', 'r:2'] })).toEqual(['e: the run has several outcomes: r:1, r:2']);
  });

  test('f: more than one step was redone; not where a phase begins again and only read', () => {
    const lives = [
      [0, 1],
      [0, 1],
    ];
    expect(broken({ lives })).toEqual(['f: a crash made 2 steps run again, not only the open one: calls c0, c1']);
    expect(broken({ lives }, { hasPhasesAnew: true })).toEqual([]);
    const asked = [
      [0, 1, 2],
      [0, 1, 2],
    ];
    expect(broken({ asked, lives: [[0, 1], []] })).toEqual(['f: a crash repeated the model calls of turns 1, 2, 3']);
  });

  test('f: a call of a workflow ran again that its record did not have open', () => {
    const lives = [
      [0, 1],
      [0, 1],
    ];
    const ended = historyOf({ lives });
    ended.ledger.open.set(1, new Set(['c1']));
    const judged = (of: History) => judgeHistories(of, historyOf({}), { ...strict, redoneSteps: 0 });
    expect(judged(ended)).toEqual([
      { promise: 'f', detail: 'a crash made 1 steps run again, whose calls were not open: calls c0' },
    ]);
    ended.ledger.open.set(1, new Set(['c0', 'c1']));
    expect(judged(ended)).toEqual([]);
  });

  test('g: the whole record was written each time, to a store that takes what is new', () => {
    expect(broken({ saves: 20 })).toEqual([expect.stringMatching(/^g: the store got \d+ messages of a run with/)]);
    expect(broken({ saves: 20 }, { isAppending: false })).toEqual([]);
  });
});
