import { expect, test } from 'vitest';
import { Tab } from '../../src/studio/watch/tab.ts';
import type { WatchFrame } from '../../src/studio/wire.ts';
import { settle } from '../fixtures/host.ts';

/** Gives a tab events of this length as long as it has room. @returns how many it has taken */
function givenTo(tab: Tab, chars: number, signal: AbortSignal): { taken: number } {
  const given = { taken: 0 };
  const frame = { type: 'run', event: { text: 'x'.repeat(chars) } } as unknown as WatchFrame;
  const give = async () => {
    while (!signal.aborted) {
      await tab.event(`${given.taken}`, frame);
      given.taken += 1;
    }
  };
  void give();
  return given;
}

test('a tab whose reader does not read holds few events if they are long, and 200 short ones; it takes others once it is read (studio 20, 33)', async () => {
  const tab = new Tab();
  const stop = new AbortController();
  const long = givenTo(tab, 60_000, stop.signal);
  await settle();
  expect(long.taken).toBe(4);
  const frames = tab.frames(stop.signal);
  expect((await frames.next()).value?.split('\n\n')).toHaveLength(5 + 1 + 1);
  await settle();
  expect(long.taken).toBe(4 + 5);
  const short = givenTo(new Tab(), 10, stop.signal);
  await settle();
  expect(short.taken).toBe(199);
  stop.abort();
});
