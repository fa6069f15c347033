import { expect, test } from 'vitest';
import type { Clock } from '../../src/values/clock.ts';
import { Turns } from '../../src/values/event-loop.ts';
import { loopTurns } from '../fixtures/loop-turns.ts';

test('Turns of the event loop are given one at a time, and to each caller once before another has a second (edges 26)', async () => {
  const turns = new Turns();
  const order: string[] = [];
  const turn = loopTurns();
  const work = async (by: string) => {
    await turns.own(by);
    order.push(`${by} ${turn()}`);
  };
  await Promise.all(['many', 'many', 'many', 'other', 'many', 'other', 'third'].map(work));
  expect(order.map((each) => each.split(' ')[0])).toEqual(['many', 'other', 'third', 'many', 'other', 'many', 'many']);
  expect(new Set(order.map((each) => each.split(' ')[1])).size).toBe(order.length);
});

test('After a turn that held the event loop the next one waits as long, and at most 100 ms (edges 26)', async () => {
  let nowMs = 0;
  const pauses: number[] = [];
  const clock: Clock = {
    now: () => nowMs,
    monotonic: () => nowMs,
    setTimeout: (callback, ms) => {
      pauses.push(ms);
      setImmediate(callback);
    },
    clearTimeout: () => {},
  };
  const turns = new Turns(clock);
  const work = async (ms: number) => {
    await turns.own();
    nowMs += ms;
  };
  await Promise.all([work(4), work(40), work(500), work(0)]);
  expect(pauses).toEqual([40, 100]);
});

test('A clock of a host that throws costs a turn its pause, and no one the turn (edges 26)', async () => {
  const fails = () => {
    throw new Error('no clock');
  };
  const seen: string[] = [];
  for (const clock of [{ monotonic: fails }, { monotonic: () => performance.now(), setTimeout: fails }]) {
    const turns = new Turns(clock as unknown as Clock);
    const work = async (by: string) => {
      await turns.own(by);
      for (const until = performance.now() + 6; performance.now() < until; );
      seen.push(by);
    };
    await Promise.all([work('a'), work('b')]);
    await turns.own('c');
  }
  expect(seen).toEqual(['a', 'b', 'a', 'b']);
});
