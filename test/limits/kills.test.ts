import { memoryStore, type RunOutcome, rateLimits } from 'pawl';
import { callTool, reply, type ScriptedEntry, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { torture } from '../crash/random.ts';
import { hostOf, toolOf } from '../fixtures/host.ts';
import { type Method, watchedStore } from '../fixtures/watched-store.ts';
import { noon, timed } from './limited.ts';

const script = [
  callTool('pay', { n: 1 }, 'one'),
  callTool('pay', { n: 2 }, 'two'),
  callTool('pay', { n: 3 }, 'three'),
  reply('end'),
];
const entry: ScriptedEntry = ({ messages }) =>
  script[messages.filter(({ role }) => role === 'assistant').length] ?? reply('?');
const writing: readonly Method[] = [
  'claim',
  'save',
  'append',
  'outcomes.keep',
  'history.end',
  'delete',
  'release',
  'due.leave',
  'limits.takeTurns',
];
const rules = [{ by: 'model', requestsPerMinute: 6 }] as const;

/** A run in processes of one store, the first of which dies before or after one of its writes. */
async function lived(dies: { readonly at: number; readonly isStored: boolean }) {
  const clock = testClock(noon);
  const inner = memoryStore({ clock });
  const life = { writes: 0, isDead: false };
  const never = () => new Promise<never>(() => {});
  const dying = watchedStore(
    {
      before: ({ method }) => {
        if (life.isDead) return never();
        if (writing.includes(method)) life.writes += 1;
        if (life.writes < dies.at || dies.isStored || !writing.includes(method)) return undefined;
        life.isDead = true;
        return never();
      },
      after: ({ method }) => {
        if (life.isDead) return never();
        if (life.writes < dies.at || !dies.isStored || !writing.includes(method)) return undefined;
        life.isDead = true;
        return never();
      },
    },
    inner,
  );
  const paid: unknown[] = [];
  const sent: number[] = [];
  const outcomes: RunOutcome[] = [];
  const born = (store: typeof inner) => {
    const { model, at } = timed(Array(40).fill(entry), clock);
    const { doStream } = model;
    const host = hostOf({
      models: {
        fast: Object.assign(model, {
          doStream: (options: Parameters<typeof doStream>[0]) => {
            if (store !== inner && life.isDead) return never();
            sent.push(clock.monotonic());
            return doStream.call(model, options);
          },
        }),
      },
      tools: [toolOf('pay', 'once', ({ n }) => (store !== inner && life.isDead ? never() : void paid.push(n)))],
      ...{ store, clock, random: () => 0.5, limits: rateLimits({ store, rules, clock }) },
      defaults: { leaseMs: 5_000, dueMs: 500 },
      onOutcome: (outcome) => void (store !== inner && life.isDead ? never() : outcomes.push(outcome)),
    });
    return { host, at };
  };
  void born(dying as typeof inner).host.start({ runId: 'r' });
  await clock.advance(300);
  // Two others: a run at rest is woken by one of them, once.
  const others = [born(inner), born(inner)];
  for (const { host } of others) await host.executor.recover();
  for (let second = 0; second < 90; second++) {
    await clock.advance(1_000);
    // Its caller begins it again, as long as nothing of it is known.
    const isUnknown = second > 5 && outcomes.length === 0 && !(await inner.load('r'));
    if (life.isDead && isUnknown) void others[0]?.host.start({ runId: 'r' });
    if (second % 5 === 4) for (const { host } of others) await host.executor.recover();
  }
  return { paid, sent, outcomes, isDead: life.isDead };
}

describe('a run with a limit', () => {
  test.for([false, true])(
    'whose process dies at each of its writes (stored: %s) ends as without the kill: one answer a step, no call twice, and no request too early (failover 19, 24)',
    { timeout: 60_000 },
    async (isStored) => {
      // Before one write it is as after the one before: each process dies at every second.
      let at = isStored || torture > 1 ? 1 : 2;
      for (; at < 60; at += torture > 1 ? 1 : 2) {
        const { paid, sent, outcomes, isDead } = await lived({ at, isStored });
        if (!isDead) break;
        expect(
          outcomes.map(({ status, output }) => `${status} ${output}`),
          `write ${at}`,
        ).toContain('ok end');
        expect(new Set(paid).size, `write ${at}: ${paid.join()}`).toBe(paid.length);
        const calls = sent.toSorted((a, b) => a - b);
        calls.forEach((from, first) => {
          // Two at once, then one each ten seconds, of which each may be a second late.
          const within = calls.filter((time, i) => i >= first && time <= from + 10_000 - 1_000);
          expect(within.length, `write ${at}: ${calls.join()}`).toBeLessThanOrEqual(2);
        });
      }
      expect(at).toBeGreaterThan(10);
      expect(at).toBeLessThan(60);
    },
  );
});
