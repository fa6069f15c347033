import { type CheckpointStore, type Driven, memoryStore } from 'pawl';
import { testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { wrapStore } from '../../../src/store/read-only.ts';
import { onClock } from '../../fixtures/on-clock.ts';
import { leftOf, type SlicedWorld, slicedWorld } from '../../fixtures/sliced-runs.ts';

const later = { drive: 'later' } as const;

/** A store of which one call fails: before it takes effect, or after it. */
interface Failing {
  /** The number of the call that fails; 0 = none. */
  readonly at: number;
  readonly when: 'before' | 'after';
}

function failing(store: CheckpointStore, { at, when }: Failing) {
  const calls: string[] = [];
  const wrapped = wrapStore(store, (name, call) => async (...args) => {
    calls.push(name);
    const fails = calls.length === at;
    if (fails && when === 'before') throw new Error(`${name} was not sent`);
    const answer = await call(...args);
    if (fails) throw new Error(`the answer of ${name} was lost`);
    return answer;
  });
  return { store: wrapped, calls };
}

/** Drives a run as a queue does: again after an error, and when the answer says so. */
async function driveToEnd(world: SlicedWorld, store: CheckpointStore): Promise<Driven> {
  for (let slices = 0; slices < 60; slices++) {
    const { executor } = world.host({ store });
    const limits = { budgetMs: 30, graceMs: 60_000 };
    const driven = await world.drive(executor, limits).catch((error: { code?: string }) => error.code ?? 'no code');
    if (typeof driven === 'string') expect(driven).toBe('STORE_UNAVAILABLE');
    else if (driven.state === 'ended') return driven;
    else if (driven.wakeAt !== undefined) await world.clock.advance(Math.max(0, driven.wakeAt - world.clock.now()) + 1);
    else expect(driven.state).toBe('more');
  }
  throw new Error('the run did not end');
}

async function driven(fails: Failing) {
  const clock = testClock(1_000_000);
  const inner = memoryStore({ clock });
  const world = slicedWorld({ clock, store: inner });
  await world.host().start({ runId: 'r' }, later);
  const first = failing(inner, fails);
  const end = await driveToEnd(world, first.store);
  return { world, calls: first.calls, end, left: await leftOf(world, world.host().executor) };
}

/** All calls under PAWL_TORTURE; otherwise the first call of each method fails, or the answer of the last one is lost. */
function placesOf(calls: readonly string[], when: Failing['when']): readonly number[] {
  const all = calls.map((_, i) => i + 1);
  if (process.env.PAWL_TORTURE) return all;
  return all.filter((at) => {
    const name = calls[at - 1] as string;
    return when === 'before' ? calls.indexOf(name) === at - 1 : calls.lastIndexOf(name) === at - 1;
  });
}

describe('drive, called again after one call of its store failed,', () => {
  const known = driven({ at: 0, when: 'before' });

  test.each(['before', 'after'] as const)(
    'ends the run as without the failure, whichever call it was (%s it took effect), and pays at most one call again (engine 9, 34)',
    async (when) => {
      const { calls, left: whole } = await known;
      expect(calls).toEqual(expect.arrayContaining(['load', 'claim', 'append', 'release', 'history.end']));
      for (const at of placesOf(calls, when)) {
        const which = `${calls[at - 1]} (${at} of ${calls.length}), ${when} it took effect`;
        const { end, left, world } = await driven({ at, when });
        expect(end, which).toMatchObject({ runId: 'r', state: 'ended' });
        expect(left.outcome.status, which).toBe('ok');
        expect(left.outcome, which).toMatchObject({
          output: whole.outcome.output,
          iterations: whole.outcome.iterations,
        });
        expect(left.messages, which).toEqual(whole.messages);
        expect(left.counted, which).toEqual(whole.counted);
        expect(left.calls, which).toBeLessThanOrEqual(whole.calls + 1);
        expect(
          left.made.filter((name) => name === 'pay'),
          which,
        ).toHaveLength(1);
        // The host may get an outcome twice, and can tell by its id.
        expect(new Set(world.outcomes.map(({ outcomeId }) => outcomeId)).size, which).toBe(1);
      }
    },
  );

  test('finds the slice of the last call of its store whole: a repeat of the last drive changes nothing (engine 9, 34)', async () => {
    const { world } = await known;
    const { executor } = world.host();
    const before = await leftOf(world, executor);
    for (let i = 0; i < 3; i++)
      expect(await world.drive(executor)).toEqual({ runId: 'r', state: 'ended', boundaries: 0 });
    expect(await leftOf(world, executor)).toEqual(before);
    await onClock(world.clock, executor.shutdown());
  });
});
