import { memoryStore } from 'pawl';
import { type TestClock, testClock } from 'pawl/testing';
import { expect, test } from 'vitest';
import { type DefinedSchedule, schedulesIn } from '../../src/schedules/definition.ts';
import { Scheduler } from '../../src/schedules/scheduler.ts';
import { schedulesOf } from '../../src/schedules/schedules.ts';
import type { ScheduleStore } from '../../src/store/schedules/port.ts';
import { sampleRecord } from '../../src/testing/store-contract/records.ts';
import { randomFrom, seed, torture } from '../crash/random.ts';

/*
 * Random histories of one schedule on one store: processes begin and die, all of them at the next write, before or after it is stored, and
 * their clocks differ by up to a second; a person pauses and resumes. What must have run is computed from the history alone.
 */

const MINUTE_MS = 60_000;
const EVERY_MS = 10 * MINUTE_MS;
const HISTORY_MS = 180 * MINUTE_MS;
/** How long a run lasts: longer than the time between two ticks. */
const RUN_MS = 14 * MINUTE_MS;
const START = Date.UTC(2026, 10, 28, 6, 3, 20);
const SLOTS = 3;

type Deed =
  | { readonly does: 'begins' | 'dies'; readonly slot: number }
  | { readonly does: 'all die at a write'; readonly isStored: boolean }
  | { readonly does: 'pause' | 'resume' };
type Event = Deed & { readonly at: number };

interface History {
  readonly overlap: 'skip' | 'allow';
  readonly missed: 'latest' | 'skip';
  readonly events: readonly Event[];
}

/** Not near a tick, nor near the time after which a tick is late, nor near one that ends its run at a tick. */
function quietTime(random: () => number): number {
  for (;;) {
    const time = START + Math.floor(random() * HISTORY_MS);
    const after = time % EVERY_MS;
    const isNear = [0, MINUTE_MS, 2 * EVERY_MS - RUN_MS, EVERY_MS].some((each) => Math.abs(after - each) <= 3_000);
    if (!isNear) return time;
  }
}

function deedOf(random: () => number): Deed {
  const [kind, slot] = [random(), Math.floor(random() * SLOTS)];
  if (kind < 0.4) return { does: 'begins', slot };
  if (kind < 0.55) return { does: 'dies', slot };
  if (kind < 0.8) return { does: 'all die at a write', isStored: random() < 0.5 };
  return { does: kind < 0.9 ? 'pause' : 'resume' };
}

function historyOf(random: () => number): History {
  const deeds = Array.from({ length: 3 + Math.floor(random() * 12) }, () => ({
    ...deedOf(random),
    at: quietTime(random),
  }));
  const events = deeds.sort((a, b) => a.at - b.at);
  return {
    overlap: random() < 0.5 ? 'skip' : 'allow',
    missed: random() < 0.7 ? 'latest' : 'skip',
    events: [{ does: 'begins', slot: 0, at: START }, ...events],
  };
}

interface Result {
  readonly ran: readonly number[];
  readonly skipped: number;
  readonly missed: number;
}

/** What must have run: the table, from one moment to the next. */
function wanted({ overlap, missed: policy, events }: History): Result {
  const alive = new Set<number>();
  let power: 'fails before the write' | 'fails after the write' | undefined;
  const ran: number[] = [];
  const startedAt = new Map<number, number>();
  let [since, last, skipped, missed, isPaused] = [START, 0, 0, 0, false];
  const settle = (now: number) => {
    if (isPaused) return;
    const newest = Math.floor(now / EVERY_MS) * EVERY_MS;
    const base = Math.max(since, last);
    if (newest <= base) return;
    if (alive.size === 0) return;
    const failing = power;
    if (failing) alive.clear();
    power = undefined;
    if (failing === 'fails before the write') return;
    missed += newest / EVERY_MS - 1 - Math.floor(base / EVERY_MS);
    last = newest;
    const before = ran.at(-1);
    if (now - newest > MINUTE_MS && policy === 'skip') missed += 1;
    else if (overlap === 'skip' && before !== undefined && now < (startedAt.get(before) ?? 0) + RUN_MS) skipped += 1;
    else {
      ran.push(newest);
      startedAt.set(newest, now);
    }
  };
  const ticks = Array.from(
    { length: HISTORY_MS / EVERY_MS },
    (_, i) => (Math.floor(START / EVERY_MS) + 1 + i) * EVERY_MS,
  );
  const moments = [...events, ...ticks.map((at) => ({ does: 'tick', at }) as const)].sort((a, b) => a.at - b.at);
  for (const moment of moments) {
    if (moment.does === 'begins') alive.add(moment.slot);
    if (moment.does === 'dies') alive.delete(moment.slot);
    if (moment.does === 'all die at a write' && alive.size > 0)
      power = moment.isStored ? 'fails after the write' : 'fails before the write';
    if (alive.size === 0) power = undefined;
    if (moment.does === 'pause') isPaused = true;
    if (moment.does === 'resume' && isPaused) [isPaused, since] = [false, moment.at];
    settle(moment.at);
  }
  return { ran, skipped, missed };
}

/** A process, whose calls have no effect and no answer once it is dead. */
class Mortal {
  isDead = false;
  readonly #scheduler: Scheduler;

  constructor(schedules: readonly DefinedSchedule[], world: World, off: number) {
    const { clock, store } = world;
    const alive = <T>(call: () => Promise<T>) => (this.isDead ? new Promise<never>(() => {}) : call());
    const note: ScheduleStore['note'] = async (row, run) => {
      const stored = (await store.list()).find(({ id }) => id === row.id);
      const isFirst = (stored?.revision ?? 0) === row.revision - 1;
      if (isFirst && world.power === 'fails before the write') world.fail();
      const isNoted = await alive(() => store.note(row, run));
      if (isNoted && run) world.startedAt.set(run.record.meta.runId, clock.now());
      if (isNoted && world.power === 'fails after the write') world.fail();
      return alive(async () => isNoted);
    };
    this.#scheduler = new Scheduler(schedules, {
      store: { list: () => alive(() => store.list()), note },
      clock: { ...clock, now: () => clock.now() + off },
      random: world.random,
      warn: () => {},
      deployment: undefined,
      ms: 30_000,
      recordOf: async (_, { runId }) => ({ record: sampleRecord(runId, { attempts: 0 }) }),
      hasEnded: async (runId) => clock.now() >= (world.startedAt.get(runId) ?? 0) + RUN_MS,
      redacted: (text) => text,
      admitted: () => {},
      outlive: (work) => work,
    });
    this.#scheduler.begin();
  }

  end(): void {
    this.isDead = true;
    this.#scheduler.end();
  }
}

interface World {
  readonly clock: TestClock;
  readonly store: ScheduleStore;
  readonly random: () => number;
  readonly startedAt: Map<string, number>;
  power: 'fails before the write' | 'fails after the write' | undefined;
  /** All processes die. */
  fail(): void;
}

async function played({ overlap, missed, events }: History, random: () => number): Promise<Result> {
  const clock = testClock(START);
  const store = memoryStore({ clock });
  const slots = new Map<number, Mortal>();
  const fail = () => {
    world.power = undefined;
    for (const process of slots.values()) process.end();
  };
  const world: World = { clock, store: store.schedules, random, startedAt: new Map(), power: undefined, fail };
  const start = () => ({}) as never;
  const schedules = schedulesIn([{ id: 'tick', every: '10m', overlap, missed, start }]);
  const desk = schedulesOf({ schedules: [], store: store.schedules, hasStore: true, clock, deployment: undefined });
  const offs = [0, -900, 900];
  for (const event of [...events, { does: 'end', at: START + HISTORY_MS } as const]) {
    await clock.advance(event.at - clock.now());
    if (event.does === 'end') break;
    if ('slot' in event) {
      const found = slots.get(event.slot);
      const living = found?.isDead === false ? found : undefined;
      if (event.does === 'begins' && !living)
        slots.set(event.slot, new Mortal(schedules, world, offs[event.slot] ?? 0));
      if (event.does === 'dies') living?.end();
      await clock.advance(1_000);
    } else if (event.does === 'all die at a write') {
      world.power = event.isStored ? 'fails after the write' : 'fails before the write';
    } else {
      await desk[event.does]('tick');
    }
    if ([...slots.values()].every(({ isDead }) => isDead)) world.power = undefined;
  }
  const [row] = await store.schedules.list();
  const ran = [...world.startedAt.keys()].map((runId) => Date.parse(runId.slice('tick@'.length)));
  for (const process of slots.values()) process.end();
  return { ran: ran.sort((a, b) => a - b), skipped: row?.skipped.count ?? 0, missed: row?.missed.count ?? 0 };
}

const histories = torture > 1 ? 20_000 : 500;

test(`in ${histories} random histories of kills, pauses and downtimes each tick runs once, or is counted (seed ${seed}) (schedules 2, 3, 4, 5, 7, 8)`, async () => {
  for (let i = 0; i < histories; i++) {
    const random = randomFrom(seed * 1_000_003 + i);
    const history = historyOf(random);
    const [got, want] = [await played(history, random), wanted(history)];
    if (JSON.stringify(got) !== JSON.stringify(want)) {
      const told = history.events.map(({ at, ...deed }) => `${new Date(at).toISOString()} ${JSON.stringify(deed)}`);
      expect({ i, ...got, ran: got.ran.map(isoOf) }, [history.overlap, history.missed, ...told].join('\n')).toEqual({
        i,
        ...want,
        ran: want.ran.map(isoOf),
      });
    }
  }
}, 600_000);

const isoOf = (time: number) => new Date(time).toISOString();
