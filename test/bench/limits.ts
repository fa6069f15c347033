import { join } from 'node:path';
import { rateLimits } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { testClock } from 'pawl/testing';
import { type HeldCall, HeldCalls } from '../../src/executor/services/held-calls.ts';
import { systemClock } from '../../src/values/clock.ts';
import { inFolder, measured, usedHeap } from './measure.ts';
import type { Part } from './report.ts';

const PROCESSES = 8;
const MINUTE_MS = 60_000;
const requestsPerMinute = 600;
/** One second's worth that an idle bucket lets begin, and one by which each request may be late. */
const MOST_IN_A_MINUTE = 620;
const HELD = 10_000;

/** What limits cost: eight takers of turns share an SQLite store, and all of their requests wait from the beginning. */
export async function limitRows(isQuick: boolean): Promise<Part> {
  const calls = isQuick ? 2_000 : 10_000;
  const { cpuMs, writes, sentAt } = await sent(calls);
  const bytes = await heldBytes();
  const most = Math.max(...sentAt.map((from, i) => sentAt.findLastIndex((at) => at < from + MINUTE_MS) - i + 1));
  const span = ((sentAt.at(-1) ?? 0) - (sentAt[0] ?? 0)) / MINUTE_MS;
  const used = ((calls - 1) / (span * requestsPerMinute)) * 100;
  return {
    rows: [
      {
        ...{ what: `used of a limit of ${requestsPerMinute} requests a minute`, value: used, unit: '%' },
        ...{
          budget: 95,
          isFloor: true,
          note: `${PROCESSES} takers of turns, ${calls} requests; at most ${most} in any minute`,
        },
      },
      {
        ...{ what: 'CPU for the turn of a request', value: cpuMs / calls, unit: 'ms', budget: 1 },
        note: `${writes} writes to SQLite for ${calls} requests, which came at once`,
      },
      {
        ...{ what: 'memory of a request that is held', value: bytes / 1_024, unit: 'KB' },
        note: `of ${HELD} such: with its promise, and its place at the timer that all share`,
      },
    ],
    broken: [
      ...(most <= MOST_IN_A_MINUTE
        ? []
        : [{ promise: `at most ${MOST_IN_A_MINUTE} requests in any minute`, seen: `${most}` }]),
      ...(writes <= calls ? [] : [{ promise: 'at most one write a request', seen: `${writes} for ${calls}` }]),
    ],
  };
}

const call = { model: 'm', tier: '', callerId: '', labels: {}, inputTokens: 0 };
const never = new AbortController().signal;

async function sent(calls: number) {
  return inFolder(async (folder) => {
    const clock = testClock(Date.UTC(2026, 10, 28));
    const store = sqliteStore({ path: join(folder, 'runs.db'), clock });
    let writes = 0;
    const counting = {
      ...store,
      limits: {
        takeTurns: (...take: Parameters<typeof store.limits.takeTurns>) => {
          writes += 1;
          return store.limits.takeTurns(...take);
        },
      },
    };
    const rules = [{ by: 'model', requestsPerMinute }] as const;
    const takers = Array.from({ length: PROCESSES }, () => rateLimits({ store: counting, rules, clock }));
    const sentAt: number[] = [];
    const { cpuMs } = await measured(async () => {
      const taken = Array.from({ length: calls }, async (_, i) => {
        const turn = await takers[i % PROCESSES]?.take(call, { signal: never });
        sentAt.push(clock.monotonic() + (turn?.waitMs ?? 0));
      });
      const all = Promise.all(taken);
      let isOver = false;
      void all.then(() => {
        isOver = true;
      });
      while (!isOver) await clock.advance(20);
    });
    await store.close();
    return { cpuMs, writes, sentAt: sentAt.sort((a, b) => a - b) };
  });
}

/** Requests whose turn was taken, and has not come: what a run has besides itself while it is held. */
async function heldBytes(): Promise<number> {
  const calls = new HeldCalls(systemClock);
  const entered: HeldCall[] = [];
  const until = systemClock.monotonic() + MINUTE_MS;
  const before = await usedHeap();
  const held = Array.from({ length: HELD }, () => calls.hold(until, (call) => void entered.push(call)));
  const after = await usedHeap();
  for (const call of entered) calls.release(call);
  await Promise.all(held);
  return (after - before) / HELD;
}
