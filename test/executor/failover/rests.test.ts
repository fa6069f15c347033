import { reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { ModelRests } from '../../../src/model/lists/rests.ts';
import { listHost, named, noon, overloaded, refusal } from './lists.ts';

const many = <T>(value: T): T[] => Array(200).fill(value);
const errorOf = (step: ReturnType<typeof refusal>) => (step as { readonly error: unknown }).error;

describe('a model of a list that failed', () => {
  test('is asked again after its rest, once, and is well when it answers (failover 6)', async () => {
    const opus = named('anthropic/opus', [overloaded, overloaded, reply('opus')]);
    const gpt = named('openai/gpt', many(reply('gpt')));
    const { start, clock } = listHost([opus, gpt]);
    const ask = async () => {
      const run = await start();
      await clock.advance(1_500);
      return (await run.result).output;
    };
    expect([await ask(), await ask()]).toEqual(['gpt', 'gpt']);
    expect(opus.calls).toHaveLength(2);
    await clock.advance(25_000);
    expect(await ask()).toBe('gpt');
    await clock.advance(2_000);
    expect(await ask()).toBe('opus');
  });

  test('is tried by one call after its rest, while the others ask the next model (failover 6)', async () => {
    let answer = (_: string) => {};
    const slow = () => new Promise<ReturnType<typeof reply>>((resolve) => (answer = (text) => resolve(reply(text))));
    const opus = named('anthropic/opus', [overloaded, overloaded, slow, reply('opus')]);
    const gpt = named('openai/gpt', many(reply('gpt')));
    const { start, clock } = listHost([opus, gpt]);
    await start();
    await clock.advance(40_000);
    const tried = await start();
    await clock.advance(1);
    const other = await start();
    expect((await other.result).output).toBe('gpt');
    expect(opus.calls).toHaveLength(3);
    answer('tried');
    expect((await tried.result).output).toBe('tried');
    expect((await (await start()).result).output).toBe('opus');
  });

  test('is tried by another call where the run that tried it is cancelled (failover 6)', async () => {
    const opus = named('anthropic/opus', [overloaded, overloaded, { type: 'hang' }, reply('opus')]);
    const { start, clock } = listHost([opus, named('openai/gpt', many(reply('gpt')))]);
    await start();
    await clock.advance(40_000);
    const tried = await start();
    await clock.advance(1);
    tried.cancel();
    await tried.result;
    expect((await (await start()).result).output).toBe('opus');
  });

  test('is asked last where all the others fail in that step too (failover 5, 6)', async () => {
    const opus = named('anthropic/opus', [overloaded, overloaded, reply('opus')]);
    const gpt = named('openai/gpt', [reply('gpt'), refusal(401)]);
    const { start, clock } = listHost([opus, gpt]);
    await start();
    await clock.advance(2_000);
    const run = await start();
    expect((await run.result).output).toBe('opus');
    expect([opus.calls.length, gpt.calls.length]).toEqual([3, 2]);
  });

  test('does not make the refusal of the next one final (failover 3)', async () => {
    const opus = named('anthropic/opus', [overloaded, overloaded, reply('opus')]);
    const gpt = named('openai/gpt', [reply('gpt'), refusal(413)]);
    const { start, clock } = listHost([opus, gpt]);
    await start();
    await clock.advance(2_000);
    expect((await (await start()).result).output).toBe('opus');
  });

  test('rests twice as long after each trial that fails, at most ten minutes (failover 6)', async () => {
    const clock = testClock(noon);
    const rests = new ModelRests(clock, 30_000);
    const model = named('anthropic/opus', []);
    const seen: number[] = [];
    for (let trial = 0; trial < 8; trial++) {
      rests.begin(model)(errorOf(overloaded));
      const from = clock.monotonic();
      while (rests.isResting(model)) await clock.advance(1_000);
      seen.push(clock.monotonic() - from);
    }
    expect(seen).toEqual([30, 60, 120, 240, 480, 600, 600, 600].map((seconds) => seconds * 1_000));
  });

  test('counts once where many calls fail together, and rests as long as its provider asks (failover 6)', async () => {
    const clock = testClock(noon);
    const rests = new ModelRests(clock, 30_000);
    const model = named('anthropic/opus', []);
    const ends = Array.from({ length: 1_000 }, () => rests.begin(model));
    for (const end of ends) end(errorOf(overloaded));
    await clock.advance(29_999);
    expect(rests.isResting(model)).toBe(true);
    await clock.advance(1);
    expect(rests.isResting(model)).toBe(false);
    rests.begin(model)(errorOf(overloaded));
    await clock.advance(59_999);
    expect(rests.isResting(model)).toBe(true);
    await clock.advance(1);
    expect(rests.isResting(model)).toBe(false);
    rests.begin(model)(errorOf(refusal(429, { 'retry-after': '3600' })));
    await clock.advance(3_599_999);
    expect(rests.isResting(model)).toBe(true);
    await clock.advance(1);
    expect(rests.isResting(model)).toBe(false);
  });

  test('of what it refuses for one request alone it knows nothing (failover 6)', () => {
    const rests = new ModelRests(testClock(noon), 30_000);
    const model = named('anthropic/opus', []);
    rests.begin(model)(errorOf(refusal(413)));
    expect(rests.isResting(model)).toBe(false);
    expect(rests.hasFailed(model)).toBe(false);
  });
});
