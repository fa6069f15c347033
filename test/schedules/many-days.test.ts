import { Cron } from 'croner';
import { memoryStore } from 'pawl';
import { testClock } from 'pawl/testing';
import { expect, test } from 'vitest';
import { schedulesIn } from '../../src/schedules/definition.ts';
import { Scheduler } from '../../src/schedules/scheduler.ts';
import { sampleRecord } from '../../src/testing/store-contract/records.ts';
import { torture } from '../crash/random.ts';

const zones = ['Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'America/Santiago', 'Africa/Casablanca'];
const DAY_MS = 86_400_000;
/** 250 days have both nights of each zone. */
const [begins, days] =
  torture > 1 ? (['2026-01-01T00:00:30Z', 730] as const) : (['2026-08-15T00:00:30Z', 250] as const);

test(`over ${days} days on a test clock, in five zones, the runs that began are the ticks of croner, each once and in time (schedules 2, 3, 8)`, async () => {
  const from = Date.parse(begins);
  const to = from + days * DAY_MS;
  const clock = testClock(from);
  const store = memoryStore({ clock });
  const began: string[] = [];
  const late: string[] = [];
  const schedules = schedulesIn(
    zones.map((timeZone) => ({ id: timeZone, cron: '30 2 * * *', timeZone, start: () => ({}) as never })),
  );
  const scheduler = new Scheduler(schedules, {
    store: store.schedules,
    clock,
    random: () => 0.5,
    warn: (...given) => void late.push(JSON.stringify(given)),
    deployment: undefined,
    ms: 30_000,
    recordOf: async (_, { runId }) => ({ record: sampleRecord(runId, { attempts: 0 }) }),
    hasEnded: async () => true,
    redacted: (text) => text,
    admitted: (runId) => void began.push(`${runId} at ${new Date(clock.now()).toISOString()}`),
    outlive: (work) => work,
  });
  scheduler.begin();
  await clock.advance(to - from);
  scheduler.end();
  const wanted = zones.flatMap((timeZone) => {
    const job = new Cron('30 2 * * *', { timezone: timeZone, paused: true });
    const ticks: string[] = [];
    for (let tick = job.nextRun(new Date(from)); tick && tick.getTime() <= to; tick = job.nextRun(tick))
      ticks.push(`${timeZone}@${tick.toISOString()} at ${tick.toISOString()}`);
    return ticks;
  });
  expect(wanted.length).toBe(zones.length * days);
  expect(began.sort()).toEqual(wanted.sort());
  expect(late).toEqual([]);
}, 300_000);
