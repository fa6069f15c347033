import type { ErrorData, RunStatus } from 'pawl';
import { classifyCheckpointOutcome } from 'pawl/stores/kit';
import { describe, expect, test } from 'vitest';
import { statusOf } from '../../src/run/finalize.ts';
import { type Classifier, linesMissedBy, matrix, otherCauses, shutdowns } from '../fixtures/finalize-table.ts';

const codeOf = (value: unknown) => (value as { code?: unknown } | null | undefined)?.code;
const causeOf = (value: unknown) => (value as { cause?: unknown } | null | undefined)?.cause;
const ours: Classifier = classifyCheckpointOutcome;

/** What somebody might write instead, each wrong in one way. */
const mutants: Record<string, Classifier> = {
  'always completes': () => 'complete',
  'always fails': () => 'fail',
  'always leaves': () => 'leave-running',
  'completes only without a cause': (error, cause) => (cause ? ours(error ?? 'x', cause) : ours(error, cause)),
  'lets a shutdown beat success': (error, cause) => ours(error ?? (ours('x', cause) === 'fail' ? null : 'x'), cause),
  'leaves on any cause': (error, cause) => ours(error, cause ? { code: 'ERR_SHUTDOWN' } : cause),
  'fails on a shutdown': (error) => (error === undefined || error === null ? 'complete' : 'fail'),
  'swaps leaving and failing': (error, cause) =>
    ({ complete: 'complete', fail: 'leave-running', 'leave-running': 'fail' })[ours(error, cause)] as never,
  'takes anything falsy for success': (error, cause) => ours(error || undefined, cause),
  'takes null for an error': (error, cause) => (error === null ? ours('x', cause) : ours(error, cause)),
  'takes undefined for an error': (error, cause) => (error === undefined ? ours('x', cause) : ours(error, cause)),
  'ignores the cause chain': (error, cause) =>
    ours(error, codeOf(cause) === 'ERR_SHUTDOWN' ? cause : (cause as Error)?.cause && 'x'),
  'looks one layer deep': (error, cause) =>
    ours(error, [cause, causeOf(cause)].some((one) => codeOf(one) === 'ERR_SHUTDOWN') ? { code: 'ERR_SHUTDOWN' } : 'x'),
  'ignores AggregateErrors': (error, cause) => ours(error, cause instanceof AggregateError ? 'x' : cause),
  'knows a shutdown by its class': (error, cause) =>
    ours(error, (cause as object)?.constructor?.name === 'ShutdownError' ? cause : 'x'),
  'knows a shutdown by its name': (error, cause) =>
    ours(error, (cause as Error)?.name === 'ShutdownError' ? { code: 'ERR_SHUTDOWN' } : cause),
  'knows a shutdown by its message': (error, cause) =>
    ours(error, (cause as Error)?.message === 'ERR_SHUTDOWN' ? { code: 'ERR_SHUTDOWN' } : cause),
  'compares codes without regard to case': (error, cause) =>
    ours(error, String(codeOf(cause)).toUpperCase() === 'ERR_SHUTDOWN' ? { code: 'ERR_SHUTDOWN' } : cause),
  'looks at the error instead of the cause': (error) => ours(error, error),
  'looks at the error too': (error, cause) =>
    ours(error, ours('x', error) === 'leave-running' ? { code: 'ERR_SHUTDOWN' } : cause),
  'leaves only when the error is an abort': (error, cause) =>
    ours(error, (error as Error)?.name === 'AbortError' ? cause : 'x'),
  'lets a kill beat a shutdown': (error, cause) => ours(error, codeOf(cause) === 'CRITIC_KILL' ? 'x' : cause),
  'leaves when there is no cause': (error, cause) => ours(error, cause ?? { code: 'ERR_SHUTDOWN' }),
  'trusts every property to be readable': (error, cause) => {
    void (cause as { code?: unknown } | undefined)?.code;
    return ours(error, cause);
  },
};

const causes = [
  ...shutdowns.map((cause) => ({ ...cause, verdict: 'leave-running' as const })),
  ...otherCauses.map((cause) => ({ ...cause, verdict: 'fail' as const })),
];

/** What stands around a cause by the time it arrives. */
const wraps: readonly (readonly [title: string, wrap: (cause: unknown) => unknown])[] = [
  ['nothing', (cause) => cause],
  ['an error', (cause) => new Error('outer', { cause })],
  ['error data', (cause) => ({ name: 'E', code: 'X', cause })],
  ['the cause of an AggregateError', (cause) => new AggregateError([], 'all', { cause })],
  ['an AggregateError, first', (cause) => new AggregateError([cause, new Error('other')])],
  ['an AggregateError, last', (cause) => new AggregateError([new Error('other'), null, cause])],
];

describe('the finalize matrix', () => {
  test('has a line for every error against every cause', () => {
    expect(matrix.length).toBeGreaterThan(900);
    for (const verdict of ['complete', 'leave-running', 'fail'])
      expect(matrix.filter((line) => line.verdict === verdict).length).toBeGreaterThan(100);
  });

  test('classifyCheckpointOutcome follows every line of it (finalize 1)', () => {
    expect(linesMissedBy(classifyCheckpointOutcome)).toEqual([]);
  });

  test('and where a cause is wrapped, twice, in each way in which a cause may arrive (finalize 2)', () => {
    const wrongs = wraps.flatMap(([outer, wrapOuter]) =>
      wraps.flatMap(([inner, wrapInner]) =>
        causes.flatMap(({ title, make, verdict }) => {
          const found = ours(new Error('x'), wrapOuter(wrapInner(make())));
          return found === verdict ? [] : [`${title} in ${inner} in ${outer}: ${found}`];
        }),
      ),
    );
    expect(wrongs).toEqual([]);
  });

  test('and where two causes come at one moment: a shutdown among them leaves the run (finalize 2)', () => {
    const wrongs = causes.flatMap((one) =>
      causes.flatMap((other) => {
        const found = ours(new Error('x'), new AggregateError([one.make(), other.make()]));
        const expected = one.verdict === 'fail' ? other.verdict : one.verdict;
        return found === expected ? [] : [`${one.title}, ${other.title}: ${found}`];
      }),
    );
    expect(wrongs).toEqual([]);
  });

  test.for(Object.entries(mutants))('a classifier that %s is caught by it (finalize 2)', ([, mutant]) => {
    const missedByOurs = new Set(linesMissedBy(classifyCheckpointOutcome));
    expect(linesMissedBy(mutant).filter((line) => !missedByOurs.has(line))).not.toEqual([]);
  });
});

const data = (code: string, cause?: ErrorData): ErrorData => ({
  name: 'E',
  code,
  message: 'm',
  ...(cause ? { cause } : {}),
});

describe('the status that a result shows', () => {
  const rows: [RunStatus, ...Parameters<typeof statusOf>][] = [
    ['ok', 'complete', undefined, undefined],
    ['ok', 'complete', undefined, data('ERR_SHUTDOWN')],
    ['ok', 'complete', undefined, data('CRITIC_KILL')],
    ['interrupted', 'leave-running', data('ERR_SHUTDOWN'), data('ERR_SHUTDOWN')],
    ['interrupted', 'leave-running', data('MODEL'), data('ERR_SHUTDOWN')],
    ['interrupted', 'leave-running', data('DEADLINE_EXCEEDED'), data('ERR_SHUTDOWN')],
    ['timeout', 'fail', data('DEADLINE_EXCEEDED'), data('DEADLINE_EXCEEDED')],
    ['cancelled', 'fail', data('CANCELLED'), data('CANCELLED')],
    ['killed', 'fail', data('CRITIC_KILL'), data('CRITIC_KILL')],
    ['killed', 'fail', data('MODEL'), data('CRITIC_KILL')],
    ['killed', 'fail', data('DEADLINE_EXCEEDED'), data('X', data('CRITIC_KILL'))],
    ['error', 'fail', data('MODEL'), data('CANCELLED')],
    ['error', 'fail', data('MODEL'), data('DEADLINE_EXCEEDED')],
    ['error', 'fail', data('MODEL'), undefined],
    ['error', 'fail', data('TOOL_LOOP'), undefined],
    ['error', 'fail', data('STEP_LIMIT'), undefined],
    ['error', 'fail', data('BUDGET_EXCEEDED'), undefined],
    ['error', 'fail', data('RUN_PANIC'), undefined],
    ['error', 'fail', data('ERR_SHUTDOWN'), undefined],
    ['interrupted', 'fail', data('LEASE_LOST'), data('LEASE_LOST')],
  ];

  test.for(rows)('is %s when the record is to %s with error %o and cause %o (finalize 7)', ([status, ...args]) => {
    expect(statusOf(...args)).toBe(status);
  });

  test.for(['CANCELLED', 'DEADLINE_EXCEEDED', 'LEASE_LOST'])(
    "a provider's own error with code %s behind a model error is no word about the run: status error (finalize 7)",
    (code) => {
      expect(statusOf('fail', data('MODEL', data(code)), undefined)).toBe('error');
    },
  );
});

test('a run that waits, by the own code of its cause, is left with the status waiting; a code deeper in the chain says nothing (finalize 1, 7, waiting 17)', () => {
  const waits = { code: 'RUN_WAITS', name: 'RunWaitsError', message: 'later' };
  const wrapped = { code: 'CANCELLED', name: 'Error', message: 'no', cause: waits };
  const error = { code: 'ABORTED', name: 'Error', message: 'stopped' };
  expect(classifyCheckpointOutcome(error, waits)).toBe('leave-running');
  expect(classifyCheckpointOutcome(undefined, waits)).toBe('complete');
  expect(classifyCheckpointOutcome(error, wrapped)).toBe('fail');
  expect(classifyCheckpointOutcome(waits, undefined)).toBe('fail');
  expect(statusOf('leave-running', waits, waits)).toBe('waiting');
  expect(statusOf('leave-running', error, { ...error, code: 'ERR_SHUTDOWN', cause: waits })).toBe('interrupted');
});

test('a run whose slice is over, by the own code of its cause, is left with the status interrupted (finalize 1, engine 1)', () => {
  const sliced = { code: 'RUN_SLICED', name: 'RunSlicedError', message: 'later' };
  const wrapped = { code: 'CANCELLED', name: 'Error', message: 'no', cause: sliced };
  expect(classifyCheckpointOutcome(sliced, sliced)).toBe('leave-running');
  expect(classifyCheckpointOutcome(undefined, sliced)).toBe('complete');
  expect(classifyCheckpointOutcome(sliced, wrapped)).toBe('fail');
  expect(statusOf('leave-running', sliced, sliced)).toBe('interrupted');
});
