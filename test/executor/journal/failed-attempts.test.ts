import { type MemoryStore, memoryStore } from 'pawl';
import { testClock } from 'pawl/testing';
import { expect, test } from 'vitest';
import { hostOf } from '../../fixtures/host.ts';
import { finish, modelOf, streamOf, text } from '../../model/fake-model.ts';

const PIECE = 10_000;
const PROCESSES = 24;

/** How many characters of texts the journal has. */
async function charsIn(store: MemoryStore): Promise<number> {
  const page = await store.journal.read('r', { after: 0, limit: 10_000 });
  const texts = page?.entries.map(({ event }) => (event.type === 'model.delta' ? event.text.length : 0)) ?? [];
  return texts.reduce((sum, chars) => sum + chars, 0);
}

/** A process whose model shows a piece at each attempt, and then breaks off, or is left in the middle. */
function processOf(store: MemoryStore, clock: ReturnType<typeof testClock>, end: 'breaks' | 'hangs' | 'answers') {
  const parts = text('x'.repeat(PIECE));
  const stream = () => {
    if (end === 'hangs') return new ReadableStream({ start: (to) => parts.forEach((part) => void to.enqueue(part)) });
    return streamOf(end === 'answers' ? [...parts, finish] : parts);
  };
  const models = { fast: modelOf(async () => ({ stream: stream() })) };
  return hostOf({
    models,
    clock,
    store,
    journal: true,
    random: () => 0.5,
    defaults: { modelAttempts: 1 },
  });
}

test.for([
  ['breaks', 1_000_000],
  ['hangs', 1_000],
] as const)(
  'the journal has the pieces of two processes at most, however many have asked a model that %s (edges 29)',
  async ([end, ms]) => {
    const clock = testClock(1_000_000);
    const store = memoryStore({ clock });
    let most = 0;
    for (let i = 0; i < PROCESSES; i++) {
      const { executor, start } = processOf(store, clock, end);
      if (i === 0) await start({ runId: 'r' });
      else await executor.recover();
      await clock.advance(ms);
      most = Math.max(most, await charsIn(store));
      await executor.shutdown();
    }
    expect(most).toBeGreaterThanOrEqual(PIECE);
    expect(most).toBeLessThanOrEqual(2 * PIECE);
    const last = processOf(store, clock, 'answers');
    await last.executor.recover();
    await clock.advance(1_000_000);
    expect((await store.outcomes.find('r'))?.output).toBe('x'.repeat(PIECE));
    expect(await charsIn(store)).toBe(0);
    await last.executor.shutdown();
  },
);
