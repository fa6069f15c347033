import { type CheckpointStore, createExecutor, type Driven, type JournalEvent } from 'pawl';
import { scriptedModel, testClock } from 'pawl/testing';
import { expect, test } from 'vitest';
import { onClock, type TestClock } from '../../fixtures/on-clock.ts';
import { leftOf, slicedWorld } from '../../fixtures/sliced-runs.ts';

const later = { drive: 'later' } as const;

/** The tests of slices that hold on each store. */
export function anySlicing(makeStore: (clock: TestClock) => CheckpointStore, budgets: readonly number[]): void {
  const worldOf = () => {
    const clock = testClock(1_000_000);
    return slicedWorld({ clock, store: makeStore(clock) });
  };

  /** The same work without slices. */
  const whole = async () => {
    const world = worldOf();
    const { start, executor } = world.host();
    await onClock(world.clock, (await start({ runId: 'r' })).result, { everyMs: 10 });
    return leftOf(world, executor);
  };

  test.each(budgets)(
    'slices of %i ms, each in a process of its own, give the record, the answer and the calls of one run (engine 1, 11)',
    async (budgetMs) => {
      const world = worldOf();
      await world.host().start({ runId: 'r' }, later);
      let slices = 0;
      for (let state: Driven['state'] = 'more'; state === 'more' && slices < 50; slices++) {
        const { executor } = world.host();
        const driven = await world.drive(executor, { budgetMs, graceMs: 60_000 });
        state = driven.state;
        expect(JSON.stringify(driven).length).toBeLessThan(512);
        expect(await world.store.load('r')).toEqual(
          state === 'ended' ? null : expect.objectContaining({ attempts: 0 }),
        );
        await executor.shutdown();
      }
      expect(slices).toBeGreaterThan(1);
      const { executor } = world.host();
      expect(await leftOf(world, executor)).toEqual(await whole());
      expect(await world.drive(executor)).toEqual({ runId: 'r', state: 'ended', boundaries: 0 });
    },
  );

  test('a reader of its events sees one text over many slices, and one end (engine 1, 11)', async () => {
    const world = worldOf();
    const journal = { flushMs: 10 };
    await world.host({ journal }).start({ runId: 'r' }, later);
    const reader = createExecutor({
      ...{ models: { fast: scriptedModel([]) }, store: world.store, clock: world.clock, journal },
    });
    const events: JournalEvent[] = [];
    const reading = (async () => {
      for await (const event of reader.events('r')) events.push(event);
    })();
    let slices = 0;
    for (let state: Driven['state'] = 'more'; state === 'more'; slices++)
      ({ state } = await world.drive(world.host({ journal }).executor, { budgetMs: 0, graceMs: 60_000 }));
    await onClock(world.clock, reading);
    expect(slices).toBeGreaterThan(3);
    const types = events.map(({ type }) => type);
    expect(types.indexOf('run.ended')).toBe(types.length - 1);
    const seqs = events.map(({ seq }) => seq);
    expect(seqs).toEqual(seqs.toSorted((a, b) => a - b));
    expect(textOf(events)).toBe('done: look {"at":"b"}');
    expect(types.filter((type) => type === 'tool.done')).toHaveLength(4);
  });
}

/** The text of the last step as a page shows it. */
function textOf(events: readonly JournalEvent[]): string {
  let text = '';
  for (const event of events) {
    if (event.type === 'step.started' || event.type === 'step.reset') text = '';
    if (event.type === 'model.delta') text += event.text;
    if (event.type === 'step.snapshot')
      text = event.content.map((part) => (part.type === 'text' ? part.text : '')).join('');
  }
  return text;
}
