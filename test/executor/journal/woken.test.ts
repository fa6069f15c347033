import type { FollowOptions, RunEvent, RunObserver } from 'pawl';
import { reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { beforeRead, type ReadTurns } from '../../../src/run/journal/reader.ts';
import { deskOf, notedStore } from '../../fixtures/approval-desk.ts';

const told = ['run.resumed', 'run.waiting', 'wait.opened', 'wait.answered', 'run.woken', 'tool.done'];

/** A run that waits for an approval and has left its process; the next process has the same store. */
async function resting() {
  const clock = testClock(1_000_000);
  const noted = notedStore(clock);
  const seen: string[] = [];
  const observers: RunObserver[] = [{ onEvent: ({ type }: RunEvent) => void (told.includes(type) && seen.push(type)) }];
  const common = { clock, noted, journal: true as const, observers };
  const desk = deskOf({ ...common });
  const { run, wait } = await desk.begin();
  const { id } = wait();
  await clock.advance(2_000);
  expect((await run.result).status).toBe('waiting');
  const next = deskOf({ ...common, script: [reply('done')] });
  const kept = async () => {
    const page = await noted.inner.journal.read('r', { after: 0, limit: 100 });
    return page?.entries.map(({ event }) => event.type).filter((type) => told.includes(type)) ?? [];
  };
  return { clock, seen, id, desk, next, kept };
}

describe('A run that waits and is continued by another process', () => {
  test('says run.waiting and run.woken once, where an answer is why it continues (edges, small)', async () => {
    const { clock, seen, id, desk, next, kept } = await resting();
    await next.executor.control('r').approve(id, { by: { id: 'ada' } });
    for (let i = 0; i < 8; i++) await clock.advance(1_000);
    expect(await kept()).toEqual([
      ...['wait.opened', 'run.waiting'],
      ...['run.resumed', 'wait.answered', 'run.woken', 'tool.done'],
    ]);
    for (const type of ['run.waiting', 'run.woken']) expect(seen.filter((each) => each === type)).toHaveLength(1);
    expect([...desk.paid, ...next.paid]).toEqual([700]);
  });
});

test.each([
  ['throws', async () => Promise.reject(new Error('not now')), 0],
  ['never comes', () => new Promise<void>(() => {}), 10_000],
])(
  'A reader whose turn to read %s ends no reading of another one, and holds it up for at most 10 s (edges 26)',
  async (_, turn, heldMs) => {
    const { desk, clock } = await resting();
    const seen = async (options: FollowOptions & ReadTurns) => {
      const types: string[] = [];
      for await (const { type } of desk.executor.events('r', options)) {
        types.push(type);
        if (type === 'run.waiting') break;
      }
      return types;
    };
    let isSeen = false;
    const other = seen({}).finally(() => {
      isSeen = true;
    });
    // The turn of the reader that waits last counts for all.
    const late = seen({ [beforeRead]: turn });
    if (heldMs > 0) {
      await clock.advance(heldMs - 1);
      expect(isSeen).toBe(false);
      await clock.advance(1);
    }
    await clock.advance(2_000);
    expect(await other).toContain('run.waiting');
    expect(await late).toContain('run.waiting');
  },
);
