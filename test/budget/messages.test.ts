import { createBudget } from 'pawl';
import { testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { memoryBudget } from '../../src/budget/memory.ts';
import { call, use } from './stores.ts';

const exactly = { outputTokens: 0, seconds: 0 };
const noon = Date.UTC(2026, 10, 22, 12);

const messageOf = (promise: Promise<unknown>) =>
  promise.then(
    () => '',
    ({ message }: Error) => message,
  );

describe('a refusal', () => {
  test('says whose budget it was, which limit, how much of it is used, and when it frees up (supervision 4)', async () => {
    const clock = testClock(noon);
    const budget = createBudget({ tokens: 1_000, clock, expected: exactly });
    await budget.commit(await budget.reserve('ada', call('run', 1)), use(400));
    await clock.advance(86_400_000);
    await budget.commit(await budget.reserve('ada', call('run', 2)), use(600));
    expect(await messageOf(budget.check('ada'))).toBe(
      'the budget of caller "ada" is used up: 1,000 tokens spent in 7 days, the limit is 1,000 tokens; ' +
        'it frees up in 6 days, at 2026-11-29T12:00:00.000Z',
    );
    expect(await messageOf(budget.reserve('ada', call('run', 3, { inputTokens: 500 })))).toContain(
      'frees up in 6 days',
    );
  });

  test('of a call beside others says what does not fit, and that the others hold it (supervision 4)', async () => {
    const budget = createBudget({ tokens: 1_000, windowMs: 3_600_000, expected: exactly });
    await budget.commit(await budget.reserve('', call('run', 1)), use(300));
    await budget.reserve('', call('run', 2, { inputTokens: 400 }));
    expect(await messageOf(budget.reserve('', call('other', 1, { inputTokens: 500 })))).toBe(
      'a model call of about 500 tokens does not fit the budget of runs without a caller: 300 tokens spent in ' +
        '60 minutes and 400 tokens held by calls under way, the limit is 1,000 tokens; it frees up when calls that are ' +
        'under way have ended',
    );
  });

  test('of a caller who went over the limit says when enough of it has left the window (supervision 4)', async () => {
    const clock = testClock(noon);
    const budget = createBudget({ tokens: 100, windowMs: 3_600_000, clock, expected: exactly });
    for (const tokens of [40, 50, 70]) {
      await budget.commit(await budget.reserve('ada', call('run', tokens)), use(tokens));
      await clock.advance(60_000);
    }
    expect(await messageOf(budget.check('ada'))).toContain('it frees up in 58 minutes, at 2026-11-22T13:01:00.000Z');
  });

  test('where nothing is allowed says so (supervision 4)', async () => {
    expect(await messageOf(createBudget({ tokens: 0 }).check('ada'))).toMatch(
      /the limit is 0 tokens; nothing is allowed$/,
    );
  });

  test('for the sake of more calls than anybody would look through says when the last of them is out (supervision 4)', async () => {
    const store = { ...memoryBudget(), leaving: async () => [] };
    const budget = createBudget({ tokens: 10, windowMs: 3 * 86_400_000, store, expected: exactly });
    await budget.commit(await budget.reserve('ada', call('run', 1)), use(10));
    expect(await messageOf(budget.check('ada'))).toMatch(/; it frees up within 3 days$/);
  });

  test('for the sake of calls under way says that these hold it (supervision 4)', async () => {
    const budget = createBudget({ seconds: 60, expected: { seconds: 30 } });
    await budget.reserve('ada', call('run', 1));
    await budget.reserve('ada', call('run', 2));
    expect(await messageOf(budget.check('ada'))).toMatch(
      /: 0 s spent in 7 days and 60 s held by calls under way, the limit is 60 s; it frees up when calls .* have ended$/,
    );
  });

  test('speaks of dollars as such, and does not repeat an endless caller (supervision 4)', async () => {
    const budget = createBudget({ usd: 0.25, prices: () => 0.125, expected: exactly });
    const caller = 'x'.repeat(10_000);
    for (const turn of [1, 2]) await budget.commit(await budget.reserve(caller, call('run', turn)), use(1));
    const message = await messageOf(budget.check(caller));
    expect(message).toContain('$0.25 spent in 7 days, the limit is $0.25');
    expect(message.length).toBeLessThan(400);
  });
});

describe('createBudget', () => {
  test.for([
    ['no limit', {}, 'at least one limit'],
    ['a limit that is NaN', { tokens: Number.NaN }, 'tokens must be a number >= 0, not NaN'],
    ['a negative limit', { seconds: -1 }, 'seconds must be a number >= 0, not -1'],
    ['an infinite limit', { tokens: Number.POSITIVE_INFINITY }, 'tokens must be a number >= 0, not Infinity'],
    ['a limit that is no number', { tokens: '5' }, 'tokens must be a number >= 0, not string'],
    ['dollars without prices', { usd: 1 }, 'a limit in usd needs prices'],
    ['a window that is no time', { tokens: 1, windowMs: Number.NaN }, 'windowMs must be a finite number from 0'],
    ['an expectation that is none', { tokens: 1, expected: { seconds: -1 } }, 'expected.seconds must be'],
    ['prices that are none', { usd: 1, prices: 'cheap' }, 'prices must be a table'],
    [
      'a price that is none',
      { usd: 1, prices: { 'a/b': { inputPerMillion: 1 } } },
      'outputPerMillion must be US dollars',
    ],
  ] as const)('%s is refused with a TypeError (supervision 4)', ([_, options, message]) => {
    expect(() => createBudget(options as never)).toThrow(TypeError);
    expect(() => createBudget(options as never)).toThrow(message);
  });
});
