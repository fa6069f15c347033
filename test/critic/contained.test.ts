import { describe, expect, test } from 'vitest';
import type { EscalatorState } from '../../src/critic/escalator.ts';
import { watched } from './supervised-run.ts';

const thrower = (key: string) =>
  Object.defineProperty({}, key, {
    enumerable: true,
    get() {
      throw new Error('no');
    },
  });

/** Each answers the first question in its way, and the second one well. */
const failures: Readonly<Record<string, () => unknown>> = {
  'throws an error': () => {
    throw new Error('no');
  },
  'throws null': () => {
    throw null;
  },
  'rejects with nothing': () => Promise.reject(),
  'never answers': () => new Promise(() => {}),
  'answers with a thenable that throws': () => thrower('then'),
  'answers with a function': () => () => ({ kill: true }),
  'answers with a text': () => 'kill',
  'answers with a list': () => [{ kill: true }],
  'answers with a decision whose kill throws': () => thrower('kill'),
  'answers with a decision whose nudge throws': () => thrower('nudge'),
  'answers with a kill that is not true': () => ({ kill: 'yes' }),
  'answers with a nudge that is no text': () => ({ nudge: () => 'go on' }),
  'answers with an empty nudge': () => ({ nudge: '  ' }),
  'extends by NaN': () => ({ extendByMs: Number.NaN }),
  'extends by a negative time': () => ({ extendByMs: -1 }),
  'extends for ever': () => ({ extendByMs: Number.POSITIVE_INFINITY }),
  'raises by NaN': () => ({ raiseStepsBy: Number.NaN }),
  'raises by half a step': () => ({ raiseStepsBy: 0.5 }),
  'raises by a BigInt': () => ({ raiseStepsBy: 5n }),
  'raises by less than nothing': () => ({ raiseStepsBy: -3 }),
  'answers with a revoked proxy': () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    return proxy;
  },
};

describe('an escalator that fails is contained', () => {
  test.for(Object.entries(failures))(
    'one that %s has decided nothing, and is asked again (supervision 3)',
    async ([, fail]) => {
      const answer = (state: EscalatorState) => (state.alarms === 1 ? fail() : { nudge: 'Go on.' });
      const { run, handle, shown } = watched(answer);
      await run.clock.advance(200);
      expect([run.done, shown.length]).toEqual([[], 1]);
      handle.onActivity({ type: 'delta' });
      await run.clock.advance(100);
      expect(run.done).toEqual(['nudge: Go on.']);
      expect(shown[1]).toMatchObject({ failures: 1, alarms: 2 });
      expect(run.clock.pending).toBe(1);
    },
  );

  test.for(Object.entries(failures))('one that %s leaves the step limit as it is (supervision 3)', async ([, fail]) => {
    const { run, handle } = watched(() => fail());
    const waiting = handle.onOutOfSteps();
    await run.clock.advance(50);
    await waiting;
    expect(run.done).toEqual([]);
  });

  test('what makes sense of an answer counts, and the rest is a failure (supervision 3)', async () => {
    const { run, handle } = watched(() => ({ nudge: 'Go on.', extendByMs: -5 }));
    await run.clock.advance(100);
    expect(run.done).toEqual(['nudge: Go on.']);
    expect(handle.state()).toMatchObject({ failures: 1, nudges: 1 });
  });

  test('an answer after its deadline is dropped, a kill included (supervision 3)', async () => {
    let decide: (decision: unknown) => void = () => {};
    const { run, handle } = watched(
      () =>
        new Promise((resolve) => {
          decide = resolve;
        }),
    );
    await run.clock.advance(150);
    decide({ kill: true });
    await run.clock.advance(10);
    expect(run.done).toEqual([]);
    expect(handle.state()).toMatchObject({ failures: 1 });
  });

  test('huge texts and numbers are cut to a size (supervision 3)', async () => {
    const answers = [
      { nudge: 'x'.repeat(1e6), raiseStepsBy: 1e9 },
      { kill: true, reason: 'y'.repeat(1e6) },
    ];
    const { run, handle } = watched(() => answers.shift());
    await run.clock.advance(100);
    handle.onActivity({ type: 'delta' });
    await run.clock.advance(100);
    expect(run.done.map((line) => line.length)).toEqual(['raise: 1000'.length, 4_000 + 7, 500 + 6]);
  });

  test('an inspector that throws, or is an observer, changes nothing', async () => {
    const seen: string[] = [];
    const inspectors = [
      () => {
        throw new Error('no');
      },
      { next: (event: { type: string }) => void seen.push(event.type) },
    ];
    for (const inspect of inspectors) {
      const { run } = watched(() => ({ nudge: 'Go on.' }), { options: { inspect } });
      await run.clock.advance(200);
      expect(run.done).toEqual(['nudge: Go on.']);
    }
    expect(seen).toContain('@xstate.snapshot');
  });
});
