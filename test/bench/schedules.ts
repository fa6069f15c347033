import { join } from 'node:path';
import { createExecutor, defineAgent, type Schedule } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { scriptedModel, testClock } from 'pawl/testing';
import { inFolder, measured } from './measure.ts';
import type { Part, Row } from './report.ts';

const MINUTE_MS = 60_000;
const SCHEDULES = 1_000;

/** What schedules cost one process besides their runs: those are admitted, and no process takes them. */
export async function scheduleRows(isQuick: boolean): Promise<Part> {
  const minutes = isQuick ? 3 : 10;
  const busy = await costOf({ every: '1m', cron: '* * * * *' }, minutes);
  const idle = await costOf({ every: '1d', cron: '0 0 * * *' }, minutes);
  return {
    rows: [busyRow(busy, minutes), idleRow(idle, minutes)],
    broken: [
      ...(busy.missed === 0 ? [] : [{ promise: 'no tick is missed', seen: `${busy.missed} were` }]),
      ...(idle.writes === 0 ? [] : [{ promise: 'between ticks nothing is written', seen: `${idle.writes} writes` }]),
    ],
  };
}

interface Measured {
  readonly cpuMs: number;
  /** How often schedules were written, and read. */
  readonly writes: number;
  readonly reads: number;
  readonly missed: number;
}

/** Half of the schedules have an interval, the others an expression; all have their ticks at the same second. */
async function costOf(
  { every, cron }: { readonly every: string; readonly cron: string },
  minutes: number,
): Promise<Measured> {
  return inFolder(async (folder) => {
    const clock = testClock(Date.UTC(2026, 10, 28, 6, 0, 30));
    const store = sqliteStore({ path: join(folder, 'runs.db'), clock });
    const agent = defineAgent({ id: 'ticker', instructions: 'Tick.' });
    const start: Schedule['start'] = () => ({ agent, invocation: { prompt: 'Tick.' } });
    let [writes, reads] = [0, 0];
    const counting = {
      ...store,
      schedules: {
        note: (...given: Parameters<typeof store.schedules.note>) => {
          writes += 1;
          return store.schedules.note(...given);
        },
        list: () => {
          reads += 1;
          return store.schedules.list();
        },
      },
      due: {
        ...store.due,
        list: async () => ({ now: clock.now(), runs: [] }),
        take: async () => ({ now: clock.now(), claims: [] }),
      },
      // Each earlier run has ended, as far as its schedule can see.
      load: async (...given: Parameters<typeof store.load>) => {
        await store.load(...given);
        return null;
      },
    };
    const executor = createExecutor({
      models: { fast: scriptedModel([]) },
      agents: [agent],
      store: counting,
      clock,
      schedules: Array.from({ length: SCHEDULES }, (_, i) =>
        i % 2 === 0 ? { id: `s-${i}`, every, start } : { id: `s-${i}`, cron, timeZone: 'Europe/Berlin', start },
      ),
      logger: { warn: () => {} },
      defaults: { dueMs: MINUTE_MS },
    });
    await executor.recover();
    // The first minute compiles the code.
    await clock.advance(MINUTE_MS);
    [writes, reads] = [0, 0];
    const { cpuMs } = await measured(() => clock.advance(minutes * MINUTE_MS));
    const counted = { cpuMs, writes, reads };
    await executor.shutdown();
    const missed = (await store.schedules.list()).reduce((sum, row) => sum + row.missed.count, 0);
    await store.close();
    return { ...counted, missed };
  });
}

function busyRow({ cpuMs, reads }: Measured, minutes: number): Row {
  const value = (cpuMs / (minutes * MINUTE_MS)) * 100;
  const each = (cpuMs / (minutes * SCHEDULES)).toFixed(3);
  const note = `${each} ms of CPU a tick, with its run admitted in SQLite; all at one second; ${reads} reads of schedules`;
  return { what: `${SCHEDULES} schedules that tick each minute, of one core`, value, unit: '%', budget: 5, note };
}

function idleRow({ cpuMs, writes, reads }: Measured, minutes: number): Row {
  const value = (cpuMs / (minutes * MINUTE_MS)) * 100;
  return {
    what: `${SCHEDULES} schedules between their ticks, of one core`,
    value,
    unit: '%',
    budget: 1,
    note: `${writes} writes and ${reads} reads of schedules in ${minutes} minutes`,
  };
}
