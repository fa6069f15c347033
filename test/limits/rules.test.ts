import { createExecutor, type LimitRule, memoryStore, type RateLimitsOptions, rateLimits } from 'pawl';
import { scriptedModel, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import type { LimitStore } from '../../src/store/limits/port.ts';

const store = memoryStore();
const made = (rules: unknown, rest: Partial<RateLimitsOptions> = {}) =>
  rateLimits({ store, rules: rules as readonly LimitRule[], ...rest });
const one = { by: 'model', requestsPerMinute: 60 } as const;
const call = { model: 'm', tier: '', callerId: '', labels: {}, inputTokens: 0 };
const never = new AbortController().signal;

/** A store that notes each take, and answers when it is told. */
function noting(clock = testClock()) {
  const inner = memoryStore({ clock });
  const takes: Parameters<LimitStore['takeTurns']>[] = [];
  const noted = {
    ...inner,
    limits: {
      takeTurns: (...take: Parameters<LimitStore['takeTurns']>) => {
        takes.push(take);
        return inner.limits.takeTurns(...take);
      },
    },
  };
  return { clock, store: noted, takes };
}

describe('rateLimits', () => {
  test.for<[title: string, rules: unknown, message: RegExp]>([
    ['no rule', [], /rules must be a list of one or more rules/],
    ['no list', undefined, /rules must be a list/],
    ['a rule that is no object', [null], /rules\[0\] must be \{ by/],
    ['a rule without a limit', [{ by: 'model' }], /rules\[0\] has no limit/],
    ['an unknown `by`', [{ by: 'tenant', requestsPerMinute: 1 }], /rules\[0\]\.by must be .*not "tenant"/],
    ['a label without a name', [{ by: 'label:', requestsPerMinute: 1 }], /rules\[0\]\.by/],
    ['a limit of 0', [{ by: 'model', requestsPerMinute: 0 }], /requestsPerMinute must be a number above 0, not 0/],
    ['a limit that is no number', [{ by: 'tier', tokensPerMinute: '9' }], /tokensPerMinute must be a number above 0/],
    ['an infinite limit', [{ by: 'tier', tokensPerMinute: Number.POSITIVE_INFINITY }], /above 0, not Infinity/],
    ['one limit twice', [one, { ...one, requestsPerMinute: 2 }], /gives requestsPerMinute by model a second time/],
    ['an unknown field', [{ ...one, perSecond: 1 }], /unknown option rules\[0\]\.perSecond/],
  ])('refuses %s (failover 16)', ([, rules, message]) => {
    expect(() => made(rules)).toThrow(message);
    expect(() => made(rules)).toThrow(TypeError);
  });

  test('refuses a store that gives no turns, a hold of under a second, and an executor refuses what are no limits (failover 16)', () => {
    const { limits: _, ...plain } = store;
    expect(() => made([one], { store: plain as never })).toThrow(/this one has no group limits/);
    expect(() => made([one], { store: undefined as never })).toThrow(/group limits/);
    for (const holdMs of [0, 999, Number.NaN, '9' as never])
      expect(() => made([one], { holdMs })).toThrow(/holdMs must be a number of ms of 1000 or more/);
    expect(made([one], { holdMs: Number.POSITIVE_INFINITY }).holdMs).toBe(Number.POSITIVE_INFINITY);
    const models = { fast: scriptedModel([]) };
    expect(() => createExecutor({ models, limits: { rules: [] } as never })).toThrow(/limits .*take.*rateLimits/);
  });

  test('writes nothing for a call that no rule matches (failover 16)', async () => {
    const { store: noted, takes, clock } = noting();
    const limits = rateLimits({ store: noted, clock, rules: [{ by: 'callerId', requestsPerMinute: 1 }] });
    expect(await limits.take(call, { signal: never })).toEqual({ waitMs: 0 });
    expect(takes).toEqual([]);
  });

  test('has ids of 43 characters for hostile callers and labels, one for each (failover 17)', async () => {
    const { store: noted, takes, clock } = noting();
    const limits = rateLimits({
      store: noted,
      clock,
      rules: [
        { by: 'label:__proto__', requestsPerMinute: 1 },
        { by: 'callerId', requestsPerMinute: 1 },
      ],
    });
    const callers = ['a', 'a\u0000', '\ud800', 'x'.repeat(100_000), 'label:__proto__', '["requests","callerId","a"]'];
    const taken = callers.map((callerId) => limits.take({ ...call, callerId }, { signal: never }));
    await Promise.all(taken);
    const ids = takes.flatMap(([calls]) => calls.flatMap((costs) => costs.flat().map(({ bucket }) => bucket)));
    expect(ids).toHaveLength(callers.length);
    expect(new Set(ids).size).toBe(callers.length);
    for (const id of ids) expect(id).toMatch(/^[\w-]{43}$/);
  });

  test('writes the first call of a process at once, and those of the next 20 ms together (failover 17)', async () => {
    const { store: noted, takes, clock } = noting();
    const limits = rateLimits({ store: noted, clock, rules: [one] });
    const waits: number[] = [];
    const take = () => void limits.take(call, { signal: never }).then(({ waitMs }) => waits.push(waitMs));
    take();
    take();
    await clock.advance(0);
    expect(takes.map(([calls]) => calls.length)).toEqual([2]);
    take();
    await clock.advance(5);
    take();
    await clock.advance(14);
    expect(takes).toHaveLength(1);
    await clock.advance(1);
    expect(takes.map(([calls]) => calls.length)).toEqual([2, 2]);
    expect(waits).toEqual([0, 0, 980, 1_980]);
  });

  test('takes no turn for a run that was stopped before the write (failover 19)', async () => {
    const { store: noted, takes, clock } = noting();
    const limits = rateLimits({ store: noted, clock, rules: [one] });
    await limits.take(call, { signal: never });
    const life = new AbortController();
    const taken = limits.take(call, { signal: life.signal });
    life.abort(new Error('stopped'));
    await Promise.all([expect(taken).rejects.toThrow('stopped'), clock.advance(20)]);
    expect(takes.flatMap(([calls]) => calls)).toHaveLength(1);
  });

  test('moves a bucket of tokens with the next write, or after a second; what was not stored is tried again (failover 16)', async () => {
    const { store: noted, takes, clock } = noting();
    let isAway = false;
    const takeTurns = (...take: Parameters<LimitStore['takeTurns']>) =>
      isAway ? Promise.reject(new Error('away')) : noted.limits.takeTurns(...take);
    const flaky = { ...noted, limits: { takeTurns } };
    const limits = rateLimits({ store: flaky, clock, rules: [{ by: 'model', tokensPerMinute: 60_000 }] });
    await limits.take({ ...call, inputTokens: 500 }, { signal: never });
    limits.report({ ...call, inputTokens: 500 }, 2_500);
    limits.report({ ...call, inputTokens: 500 }, 1_000);
    await clock.advance(20);
    const next = limits.take({ ...call, inputTokens: 500 }, { signal: never });
    await clock.advance(20);
    // 1,500 were expected of each.
    expect(takes[1]?.[1]).toMatchObject([{ byMs: 500 }]);
    expect((await next).waitMs).toBeCloseTo(1_500 - 1_000 + 500 - 20, 0);
    isAway = true;
    limits.report({ ...call, inputTokens: 500 }, 1_600);
    await clock.advance(1_500);
    isAway = false;
    await clock.advance(1_500);
    expect(takes.at(-1)).toMatchObject([[], [{ byMs: 100 }]]);
    for (const used of [Number.NaN, -1, Number.POSITIVE_INFINITY]) limits.report(call, used);
    await clock.advance(5_000);
    expect(takes).toHaveLength(3);
  });
});
