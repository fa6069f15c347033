import { Cron } from 'croner';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ticksOf } from '../../src/schedules/ticks.ts';
import { seed, torture } from '../crash/random.ts';

const at = (text: string) => Date.parse(text);
const iso = (time: number | undefined) => (time === undefined ? undefined : new Date(time).toISOString());
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
/** All times of a day come up either way: the step is no part of a day. */
const STEP_MS = 37 * 61_000 * (torture > 1 ? 13 : 83);
/** How often the nights are asked. No expression has a tick between two quarters of an hour, but for one. */
const MINUTES = torture > 1 ? 5 : 15;

/** Each zone with the days before its two nights of two years, and the shift of its clock. */
const zones = [
  ['Europe/Berlin', '2026-10-24', '2027-03-27'],
  ['America/New_York', '2026-10-31', '2027-03-13'],
  ['Australia/Lord_Howe', '2026-10-02', '2027-04-02'],
  ['America/Santiago', '2026-09-04', '2027-04-02'],
  ['Africa/Casablanca', '2026-02-13', '2026-03-20'],
] as const;

const expressions = [
  '30 2 * * *',
  '30 1 * * *',
  '15 2 * * *',
  '0 0 * * *',
  '30 23 * * *',
  '*/30 * * * *',
  '15 * * * *',
  '10,40 1-3 * * *',
  '0 */2 * * 6,0',
] as const;

/** What croner says by itself: one instance, from one tick to the next. */
function oracle(cron: string, timeZone: string, [from, to]: readonly [number, number]): number[] {
  const job = new Cron(cron, { timezone: timeZone, paused: true });
  const ticks: number[] = [];
  for (let tick = job.nextRun(new Date(from)); tick && tick.getTime() <= to; tick = job.nextRun(tick))
    ticks.push(tick.getTime());
  return ticks;
}

describe('the ticks of an expression', () => {
  test.each([
    ['30 2 * * *', 'Europe/Berlin', '2027-03-27T12:00Z', '2027-03-28T01:00:00.000Z', '2027-03-29T00:30:00.000Z'],
    ['30 2 * * *', 'Europe/Berlin', '2026-10-24T12:00Z', '2026-10-25T00:30:00.000Z', '2026-10-26T01:30:00.000Z'],
    ['30 1 * * *', 'America/New_York', '2026-10-31T12:00Z', '2026-11-01T05:30:00.000Z', '2026-11-02T06:30:00.000Z'],
    ['15 2 * * *', 'Australia/Lord_Howe', '2026-10-03T00:00Z', '2026-10-03T15:30:00.000Z', '2026-10-04T15:15:00.000Z'],
  ])('%s in %s, after %s, is at %s, then at %s (schedules 3)', (cron, timeZone, from, first, second) => {
    const { next } = ticksOf({ cron, timeZone }, 'a schedule');
    expect([iso(next(at(from))), iso(next(next(at(from)) ?? 0))]).toEqual([first, second]);
  });

  test('a half-hourly one has each half hour of both nights of Berlin (schedules 3)', () => {
    const { next } = ticksOf({ cron: '*/30 * * * *', timeZone: 'Europe/Berlin' }, 'a schedule');
    for (const night of ['2026-10-24T20:00Z', '2027-03-27T20:00Z'])
      for (let time = at(night), i = 0; i < 20; i++, time += HOUR_MS / 2) expect(next(time)).toBe(time + HOUR_MS / 2);
  });

  test('a zone whose clock is set by half an hour has one hour without a quarter past (schedules 3)', () => {
    const { due } = ticksOf({ cron: '15 * * * *', timeZone: 'Australia/Lord_Howe' }, 'a schedule');
    let [count, from] = [0, at('2026-01-01T00:00Z')];
    for (const to = at('2027-01-01T00:00Z'); from < to; from += 20 * DAY_MS) {
      const found = due(from, Math.min(to, from + 20 * DAY_MS));
      count += found ? found.older + 1 : 0;
    }
    expect(count).toBe(8_759);
  });

  test.each(zones)('in %s, over two years, are those of croner, asked at any time (schedules 8)', (timeZone) => {
    const [from, to] = [at('2026-01-01T00:00Z'), at('2028-01-01T00:00Z')];
    for (const cron of ['30 2 * * *', '15 1,2,3 * * *', '0 0 1 * *', '45 6 * * 1-5']) {
      const { next, due } = ticksOf({ cron, timeZone }, 'a schedule');
      const ticks = oracle(cron, timeZone, [from, to]);
      let place = 0;
      for (let time = from; time < to - 40 * DAY_MS; time += STEP_MS) {
        while ((ticks[place] ?? 0) <= time) place += 1;
        if (next(time) !== ticks[place])
          expect([cron, iso(time), iso(next(time))]).toEqual([cron, iso(time), iso(ticks[place])]);
        const later = time + 3 * DAY_MS + 7 * HOUR_MS;
        const found = due(time, later);
        const wanted = ticks.filter((tick) => tick > time && tick <= later);
        if (found?.newest !== wanted.at(-1) || (found?.older ?? -1) !== wanted.length - 1)
          expect([cron, iso(time), found]).toEqual([cron, iso(time), wanted.map(iso)]);
      }
    }
  });

  test.each(zones)(
    `in both nights of %s are those of croner, asked each ${MINUTES} minutes (schedules 8)`,
    (timeZone, ...nights) => {
      for (const cron of expressions) {
        const { next, due } = ticksOf({ cron, timeZone }, 'a schedule');
        for (const night of nights) {
          const from = at(`${night}T12:00Z`);
          const ticks = oracle(cron, timeZone, [from - DAY_MS, from + 9 * DAY_MS]);
          for (let time = from; time < from + 1.5 * DAY_MS; time += MINUTES * 60_000) {
            const wanted = ticks.find((tick) => tick > time);
            if (next(time) !== wanted)
              expect([cron, iso(time), iso(next(time))]).toEqual([cron, iso(time), iso(wanted)]);
            const before = time - 2 * HOUR_MS;
            const found = due(before, time)?.newest;
            const newest = ticks.findLast((tick) => tick <= time && tick > before);
            if (found !== newest) expect([cron, iso(time), iso(found)]).toEqual([cron, iso(time), iso(newest)]);
          }
        }
      }
    },
  );

  test('of a long gap are counted up to 1,000, and the newest is found (schedules 3)', () => {
    const { due } = ticksOf({ cron: '*/5 * * * * *' }, 'a schedule');
    const from = at('2026-01-01T00:00Z');
    expect(due(from, from + 400 * DAY_MS + 7_000)).toEqual({
      newest: from + 400 * DAY_MS + 5_000,
      older: 1_000,
      olderAt: from + 400 * DAY_MS,
    });
    const rare = ticksOf({ cron: '*/5 * 3 * * *' }, 'a schedule').due(from, from + 10 * DAY_MS);
    expect(iso(rare?.newest)).toBe('2026-01-10T03:59:55.000Z');
  });
});

test('the ticks of an interval are the multiples since 1970, and none is counted one by one (schedules 1, 8)', () => {
  const units = { s: 1_000, m: 60_000, h: HOUR_MS, d: DAY_MS } as const;
  fc.assert(
    fc.property(
      ...[fc.integer({ min: 1, max: 300 }), fc.constantFrom('s', 'm', 'h', 'd'), fc.nat(2e12), fc.nat(1e11)],
      (amount, unit, after, more) => {
        const { next, due } = ticksOf({ every: `${amount}${unit}` }, 'a schedule');
        const ms = amount * units[unit as 's'];
        const first = next(after) ?? 0;
        expect(first % ms).toBe(0);
        expect(first > after && first - ms <= after).toBe(true);
        const found = due(after, after + more);
        if (first > after + more) {
          expect(found).toBeUndefined();
          return;
        }
        const newest = Math.floor((after + more) / ms) * ms;
        const older = (newest - first) / ms;
        expect(found).toEqual({ newest, older, ...(older > 0 ? { olderAt: newest - ms } : {}) });
      },
    ),
    { seed, numRuns: 2_000 },
  );
});
