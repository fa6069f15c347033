import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type AfterFailure,
  afterModelFailure,
  type FailedCall,
  type FailedTurn,
} from '../../../src/run/waits/outage.ts';
import { isWaiting } from '../../../src/run/waits/wait.ts';
import { toErrorData } from '../../../src/values/error-data.ts';
import { ModelError } from '../../../src/values/errors.ts';
import { seed, torture } from '../../crash/random.ts';

const [SECOND, MINUTE, HOUR] = [1_000, 60_000, 3_600_000];
const noon = Date.UTC(2026, 0, 1, 12);
const error = toErrorData(new ModelError('overloaded', { cause: new Error('529') }));
const passing: FailedCall = { kind: 'passing', at: noon, random: 0.5 };
const blocked: FailedCall = { kind: 'blocked', at: noon, random: 0.5 };
const policy = { modelOutageMs: 24 * HOUR, onModelOutage: 'park' as const };
const turnOf = (extra: Partial<FailedTurn> = {}): FailedTurn => ({
  ...{ error, failure: passing, previous: undefined, id: 'w1', step: 3 },
  ...{ isDurable: true, isOptional: false, hasTurn: true },
  ...extra,
});
const decide = (extra: Partial<FailedTurn> = {}, also: Partial<typeof policy> = {}) =>
  afterModelFailure(turnOf(extra), { ...policy, ...also });
const waitIn = (decision: AfterFailure) => {
  if (decision.kind !== 'wait') throw new Error(`ends: ${decision.error.message}`);
  return decision.wait;
};
const itself = { kind: 'ends', how: 'fail', error };

/** The waits of a run whose model fails at each wake, as delays. */
function outage(random: number, failure: Partial<FailedCall> = {}) {
  const delays: number[] = [];
  let decision = decide({ failure: { ...passing, random, ...failure } });
  while (decision.kind === 'wait') {
    const { wait } = decision;
    delays.push((wait.dueAt as number) - wait.createdAt);
    decision = decide({ previous: wait, failure: { ...passing, random, ...failure, at: wait.dueAt as number } });
  }
  return { delays, decision };
}

describe('a durable run whose model does not answer (waiting 29)', () => {
  test('waits half a minute, keeps the failure, the count and the time of the first one', () => {
    expect(decide()).toEqual({
      kind: 'wait',
      wait: {
        ...{ id: 'w1', kind: 'retry', step: 3, createdAt: noon, dueAt: noon + 30 * SECOND },
        ...{ error, failures: 1, since: noon, needsPerson: false },
      },
    });
  });

  test('each wait is twice the one before, up to a quarter of an hour', () => {
    const minutes = outage(0.5).delays.slice(0, 8);
    expect(minutes.map((ms) => ms / MINUTE)).toEqual([0.5, 1, 2, 4, 8, 15, 15, 15]);
  });

  test('a wait is up to a fifth shorter or longer', () => {
    expect(outage(0).delays.slice(0, 2)).toEqual([24 * SECOND, 48 * SECOND]);
    expect(outage(1).delays.slice(0, 2)).toEqual([36 * SECOND, 72 * SECOND]);
  });

  test('the second failure keeps the time of the first', () => {
    const previous = waitIn(decide());
    const later = { ...passing, at: noon + MINUTE };
    expect(waitIn(decide({ previous, failure: later, id: 'w2', step: 4 }))).toMatchObject({
      ...{ id: 'w2', step: 4, failures: 2, since: noon, createdAt: noon + MINUTE, dueAt: noon + 2 * MINUTE },
    });
  });

  test('no wait ends before the time that the provider asks for', () => {
    const dueAt = (retryAfterMs: number) => waitIn(decide({ failure: { ...passing, retryAfterMs } })).dueAt;
    expect(dueAt(2 * HOUR)).toBe(noon + 2 * HOUR);
    expect(dueAt(1)).toBe(noon + 30 * SECOND);
  });

  test('a run without a record ends with the error of the model', () => {
    expect(decide({ isDurable: false })).toEqual(itself);
  });

  test('a wait holds the beginning of a long error only', () => {
    const deep = Array.from({ length: 9 }).reduce(
      (cause: unknown) => new ModelError('x'.repeat(9_000), { cause }),
      null,
    );
    const { error: kept } = waitIn(decide({ error: toErrorData(deep) }));
    expect(JSON.stringify(kept).length).toBeLessThan(2_000);
    expect(kept.cause?.cause).toMatchObject({ code: 'MODEL' });
    expect(kept.cause?.cause?.cause).toBeUndefined();
  });
});

describe('a model that stays away for modelOutageMs (waiting 30)', () => {
  test('is tried for the last time at the end of it; then the run is parked with MODEL_OUTAGE', () => {
    const { delays, decision } = outage(0.5);
    expect(delays.reduce((sum, ms) => sum + ms)).toBe(24 * HOUR);
    expect(decision).toMatchObject({
      kind: 'ends',
      how: 'park',
      error: { name: 'ModelOutageError', code: 'MODEL_OUTAGE', cause: error },
    });
    expect((decision as { error: Error }).error.message).toBe(
      'no model call succeeded for 86400000 ms (defaults.modelOutageMs is 86400000): overloaded',
    );
  });

  test('fails the run where the executor says so', () => {
    const previous = { ...waitIn(decide()), since: noon - 24 * HOUR };
    expect(decide({ previous }, { onModelOutage: 'fail' as never })).toMatchObject({
      how: 'fail',
      error: { code: 'MODEL_OUTAGE' },
    });
  });

  test('with 0 no run waits: it ends with the error of the model', () => {
    expect(decide({}, { modelOutageMs: 0 })).toEqual(itself);
  });

  test('with Infinity a run waits without an end', () => {
    const previous = { ...waitIn(decide()), since: 0, failures: 1e6 };
    expect(waitIn(decide({ previous }, { modelOutageMs: Number.POSITIVE_INFINITY })).dueAt).toBe(noon + 15 * MINUTE);
  });

  test('a provider that asks for a wait past that end ends the outage at once', () => {
    const decision = decide({ failure: { ...passing, retryAfterMs: 25 * HOUR } });
    expect(decision).toMatchObject({ how: 'park', error: { code: 'MODEL_OUTAGE' } });
    expect((decision as { error: Error }).error.message).toMatch(/^the provider asks for a wait of 90000000 ms/);
  });

  test('a final error during the outage ends the run with that error', () => {
    const failure = { ...passing, kind: 'final' as const };
    expect(decide({ previous: waitIn(decide()), failure })).toEqual(itself);
  });
});

describe('a model that refuses the account or the address (waiting 31)', () => {
  test('is tried every quarter of an hour, and the wait needs a person', () => {
    expect(waitIn(decide({ failure: blocked }))).toMatchObject({ needsPerson: true, dueAt: noon + 15 * MINUTE });
    expect(outage(0.1, { kind: 'blocked' }).delays.slice(0, 3)).toEqual([15 * MINUTE, 15 * MINUTE, 15 * MINUTE]);
  });

  test('ends a run that has no model turn yet, with the error of the model', () => {
    expect(decide({ failure: blocked, hasTurn: false })).toEqual(itself);
    expect(decide({ hasTurn: false }).kind).toBe('wait');
  });

  test('no optional phase waits: it ends with the error of the model', () => {
    for (const failure of [passing, blocked]) expect(decide({ failure, isOptional: true })).toEqual(itself);
  });
});

const failed: fc.Arbitrary<FailedCall> = fc.record(
  {
    kind: fc.constantFrom('passing', 'blocked', 'final'),
    at: fc.integer({ min: noon, max: noon + 48 * HOUR }),
    random: fc.double({ min: 0, max: 1, noNaN: true }),
    retryAfterMs: fc.oneof(fc.integer({ min: 0, max: HOUR }), fc.double({ min: 0, max: 1e15, noNaN: true })),
  },
  { requiredKeys: ['kind', 'at', 'random'] },
);
const turn: fc.Arbitrary<FailedTurn> = fc.record({
  error: fc.constant(error),
  failure: failed,
  previous: fc.option(
    fc.record({
      since: fc.integer({ min: noon, max: noon + 48 * HOUR }),
      failures: fc.integer({ min: 1, max: 5_000 }),
    }),
    { nil: undefined },
  ) as fc.Arbitrary<FailedTurn['previous']>,
  ...{ id: fc.string(), step: fc.nat() },
  ...{ isDurable: fc.boolean(), isOptional: fc.boolean(), hasTurn: fc.boolean() },
});
const anyPolicy = fc.record({
  modelOutageMs: fc.oneof(fc.constantFrom(0, Number.POSITIVE_INFINITY), fc.integer({ min: 1, max: 48 * HOUR })),
  onModelOutage: fc.constantFrom('park' as const, 'fail' as const),
});

test(`any failure of any turn gives a wait that can be stored and is in time, or the one right end (seed ${seed}) (waiting 29, 30, 31)`, () => {
  const isRight = fc.property(turn, anyPolicy, (given, rules) => {
    const decision = afterModelFailure(given, rules);
    const { failure, previous, hasTurn } = given;
    const mayWait =
      failure !== undefined &&
      (failure.kind === 'passing' || (failure.kind === 'blocked' && hasTurn)) &&
      given.isDurable &&
      !given.isOptional &&
      rules.modelOutageMs > 0;
    if (decision.kind === 'ends') {
      if (!mayWait) return void expect(decision).toEqual({ kind: 'ends', how: 'fail', error });
      expect(decision).toMatchObject({ how: rules.onModelOutage, error: { code: 'MODEL_OUTAGE', cause: error } });
      const end = (previous?.since ?? failure.at) + rules.modelOutageMs;
      return void expect(failure.at + (failure.retryAfterMs ?? 0)).toBeGreaterThanOrEqual(end);
    }
    expect(mayWait).toBe(true);
    const { wait } = decision;
    const { at, kind, retryAfterMs = 0 } = failure as FailedCall;
    const end = wait.since + rules.modelOutageMs;
    expect(isWaiting(JSON.parse(JSON.stringify({ waits: [wait], settled: [] })))).toBe(true);
    expect(wait).toMatchObject({ needsPerson: kind === 'blocked', failures: (previous?.failures ?? 0) + 1 });
    expect(wait.since).toBe(previous?.since ?? at);
    const delay = (wait.dueAt as number) - at;
    expect(delay).toBeGreaterThanOrEqual(Math.floor(retryAfterMs));
    expect(delay).toBeGreaterThanOrEqual(Math.min(24 * SECOND, end - at));
    expect(delay).toBeLessThanOrEqual(Math.ceil(Math.max(18 * MINUTE, retryAfterMs)));
    expect(wait.dueAt).toBeLessThanOrEqual(Math.ceil(end));
  });
  fc.assert(isRight, { seed, numRuns: 2_000 * torture });
});
