import { type DueRun, memoryStore } from 'pawl';
import type { DueStore } from 'pawl/stores/kit';
import { type TestClock, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { DueSweep } from '../../../src/executor/services/due/due-sweep.ts';
import { StuckRuns } from '../../../src/executor/services/due/stuck-runs.ts';
import { gate, settle } from '../../fixtures/host.ts';

const meta = {
  ...{ runId: 'r', agentId: 'a', agentName: 'a', callerId: '', channelId: '', guildId: '' },
  ...{ prompt: 'Go.', modelTier: 'fast', parentRunId: '' },
};
const dueRun = (runId: string, dueAt = 0): DueRun => ({ runId, dueAt, attempts: 0, meta: { ...meta, runId } });
const many = (count: number) => Array.from({ length: count }, (_, i) => dueRun(`r${String(i).padStart(4, '0')}`));

interface Scene {
  /** The runs that are due at each look. */
  readonly due?: () => readonly DueRun[];
  readonly take?: (run: DueRun, stuck: StuckRuns) => unknown;
  readonly random?: () => number;
  readonly clock?: TestClock;
}

/** A sweep of a store that lists these runs, and what it did. */
function sweepOf({ due = () => [], take, random = () => 0.5, clock = testClock() }: Scene = {}) {
  const looks: number[] = [];
  const taken: string[] = [];
  const warned: string[] = [];
  const list: DueStore['list'] = async ({ limit, after }) => {
    const runs = due();
    if (!after) looks.push(clock.monotonic());
    const from = after ? runs.findIndex(({ runId }) => runId === after.runId) + 1 : 0;
    return { now: clock.now(), runs: runs.slice(from, from + limit) };
  };
  const stuck = new StuckRuns(clock);
  const sweep = new DueSweep(
    { ...memoryStore().due, list },
    {
      clock,
      random,
      stuck,
      everyMs: 1_000,
      warn: (message) => warned.push(message),
      takeUp: async (runs) => {
        for (const run of runs) {
          taken.push(run.runId);
          await take?.(run, stuck);
        }
      },
    },
  );
  return { sweep, stuck, clock, looks, taken, warned };
}

describe('the sweep of due runs', () => {
  test('looks each `dueMs`, with one timer for all runs, and not before it begins (waiting 19)', async () => {
    const { sweep, clock, looks } = sweepOf({ due: () => many(3) });
    await clock.advance(5_000);
    expect([looks, clock.pending, sweep.isOn]).toEqual([[], 0, false]);
    sweep.begin();
    sweep.begin();
    expect([clock.pending, sweep.isOn]).toEqual([1, true]);
    await clock.advance(3_500);
    expect([looks, clock.pending]).toEqual([[1_000, 2_000, 3_000].map((ms) => ms + 5_000), 1]);
    sweep.end();
    await clock.advance(10_000);
    expect([looks.length, clock.pending, sweep.isOn]).toEqual([3, 0, false]);
  });

  test('looks at another time than the sweep of another host (waiting 19)', async () => {
    const [early, late] = [sweepOf({ random: () => 0 }), sweepOf({ random: () => 0.999 })];
    for (const { sweep } of [early, late]) sweep.begin();
    for (const { clock } of [early, late]) await clock.advance(1_300);
    expect(early.looks).toEqual([750]);
    expect(late.looks[0]).toBeCloseTo(1_249.5, 1);
  });

  test('has an unreferenced timer, which keeps no process alive; one that is followed keeps it (waiting 19)', async () => {
    const timers: { isReferenced: boolean }[] = [];
    const clock = {
      ...testClock(),
      setTimeout: () => {
        const timer = {
          isReferenced: true,
          unref: () => {
            timer.isReferenced = false;
          },
        };
        timers.push(timer);
        return timer;
      },
    } as unknown as TestClock;
    const { sweep } = sweepOf({ clock });
    sweep.begin();
    expect(timers.map(({ isReferenced }) => isReferenced)).toEqual([false]);
    const controller = new AbortController();
    const followed = sweep.follow(controller.signal);
    expect(timers.at(-1)?.isReferenced).toBe(true);
    controller.abort();
    await followed;
    expect(timers.at(-1)?.isReferenced).toBe(false);
  });

  test('works with timers of a host that have no `unref`, or one that throws (waiting 19)', async () => {
    const clock = testClock();
    const setTimeout: TestClock['setTimeout'] = (callback, ms) =>
      Object.assign(clock.setTimeout(callback, ms) as object, {
        unref: () => {
          throw new Error('no');
        },
      });
    const { sweep, looks } = sweepOf({ clock: { ...clock, setTimeout } });
    sweep.begin();
    await clock.advance(2_500);
    expect(looks).toHaveLength(2);
    sweep.end();
  });

  test('takes up 1,000 runs that are due at once, each once, page by page in a random order (waiting 19)', async () => {
    let seed = 1;
    const random = () => {
      seed = (seed * 16_807) % 2_147_483_647;
      return seed / 2_147_483_647;
    };
    const { sweep, clock, taken } = sweepOf({ due: () => many(1_000), random });
    sweep.begin();
    await clock.advance(1_300);
    const sorted = many(1_000).map(({ runId }) => runId);
    expect(taken.toSorted()).toEqual(sorted);
    expect(taken.slice(0, 100).toSorted()).toEqual(sorted.slice(0, 100));
    expect(taken.slice(0, 100)).not.toEqual(sorted.slice(0, 100));
    sweep.end();
  });

  test('leaves a run that got no further alone for 30 s, then for a minute, and for 10 minutes at most (waiting 19)', async () => {
    const times: number[] = [];
    const { sweep, clock } = sweepOf({
      due: () => [dueRun('r')],
      take: (run, stuck) => {
        times.push(clock.monotonic());
        stuck.note(run, 'stuck');
      },
    });
    sweep.begin();
    await clock.advance(3_600_000);
    const pauses = times.slice(1).map((at, i) => Math.floor((at - (times[i] ?? 0)) / 1_000));
    expect(pauses.slice(0, 7)).toEqual([30, 60, 120, 240, 480, 600, 600]);
    sweep.end();
  });

  test('takes a stuck run up at once when an answer came here, when it is due for another reason, or after it got further (waiting 19)', async () => {
    let dueAt = 5;
    let what: 'stuck' | 'further' = 'stuck';
    const { sweep, stuck, clock, taken } = sweepOf({
      due: () => [dueRun('r', dueAt)],
      take: (run, runs) => runs.note(run, what),
    });
    sweep.begin();
    await clock.advance(5_500);
    expect(taken).toHaveLength(1);
    stuck.retry('r');
    await sweep.look();
    expect(taken).toHaveLength(2);
    dueAt = 0;
    await sweep.look();
    expect(taken).toHaveLength(3);
    stuck.retry('r');
    what = 'further';
    await sweep.look();
    await sweep.look();
    expect(taken).toHaveLength(5);
    sweep.end();
  });

  test('does not let a stuck run keep the others waiting (waiting 19)', async () => {
    const { sweep, clock, taken } = sweepOf({
      due: () => [dueRun('a'), dueRun('stuck'), dueRun('z')],
      take: (run, stuck) => stuck.note(run, run.runId === 'stuck' ? 'stuck' : 'further'),
    });
    sweep.begin();
    await clock.advance(3_500);
    expect(taken.filter((runId) => runId !== 'stuck')).toHaveLength(6);
    expect(taken.filter((runId) => runId === 'stuck')).toHaveLength(1);
    sweep.end();
  });

  test('warns once of a store that fails, and looks again at the next time (waiting 19)', async () => {
    let isDown = true;
    const { sweep, clock, taken, warned } = sweepOf({
      due: () => {
        if (isDown) throw new Error('down');
        return [dueRun('r')];
      },
    });
    sweep.begin();
    await clock.advance(3_500);
    expect([warned, taken]).toEqual([['due.read.failed'], []]);
    isDown = false;
    await clock.advance(1_000);
    expect(taken).toEqual(['r']);
    isDown = true;
    await clock.advance(1_000);
    expect(warned).toHaveLength(2);
    sweep.end();
  });

  test('ends a look at a store that returns the same page each time (waiting 19)', async () => {
    const clock = testClock();
    const page = many(100);
    const list: DueStore['list'] = async () => ({ now: 0, runs: page });
    const taken: string[] = [];
    const takeUp = async (runs: readonly DueRun[]) => void taken.push(...runs.map(({ runId }) => runId));
    const around = { clock, stuck: new StuckRuns(clock), random: () => 0, everyMs: 1_000, warn: () => {}, takeUp };
    const sweep = new DueSweep({ ...memoryStore().due, list }, around);
    sweep.begin();
    await sweep.look();
    expect(taken).toHaveLength(100);
    sweep.end();
  });

  test('takes up no further page when the executor shuts down during a look (waiting 19)', async () => {
    const opened = gate();
    const { sweep, taken } = sweepOf({ due: () => many(150), take: () => opened.pass() });
    sweep.begin();
    const look = sweep.look();
    await opened.reached;
    sweep.end();
    opened.open();
    await look;
    expect(taken).toHaveLength(100);
  });

  test('looks once more for calls that come during a look: a command of that time is not missed (waiting 19)', async () => {
    const opened = gate();
    const { sweep, looks } = sweepOf({ due: () => [dueRun('r')], take: () => opened.pass() });
    sweep.begin();
    const first = sweep.look();
    await opened.reached;
    const others = [sweep.look(), sweep.look()];
    await settle();
    expect(looks).toHaveLength(1);
    opened.open();
    await Promise.all([first, ...others]);
    expect(looks).toHaveLength(2);
    sweep.end();
  });

  test('does nothing on a store without the group `due` (waiting 26)', async () => {
    const clock = testClock();
    const around = {
      clock,
      stuck: new StuckRuns(clock),
      random: () => 0,
      everyMs: 1_000,
      warn: () => {},
      takeUp: async () => {},
    };
    const sweep = new DueSweep(undefined, around);
    sweep.begin();
    expect([sweep.isOn, clock.pending]).toEqual([false, 0]);
    await sweep.look();
  });
});
