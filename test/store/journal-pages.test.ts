import { type MemoryStore, type Message, memoryStore } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { expect, test } from 'vitest';
import type { JournalEntry } from '../../src/run/journal/entry.ts';
import { nextStep, sampleRecord, userMessage } from '../../src/testing/store-contract/records.ts';

const STEPS = 40;
const CHARS = 100_000;

/** About how many characters of content a page has: the last message that is read may go beyond it. */
const PAGE_CHARS = 2 ** 18 + CHARS;

type JournalStore = Pick<MemoryStore, 'claim' | 'save' | 'append' | 'journal'>;
const stores: readonly (readonly [string, () => JournalStore])[] = [
  ['in memory', () => memoryStore()],
  ['in SQLite', () => sqliteStore({ path: ':memory:' })],
];

const said = (step: number): Message => ({
  role: 'assistant',
  content: [{ type: 'text', text: `${step} `.padEnd(CHARS, 'x') }],
});

function snapshot(step: number): JournalEntry {
  const event: JournalEntry['event'] = { type: 'step.snapshot', step, content: [], runId: 'run', seq: step, at: 7 };
  return { place: step, keep: 'kept', event, content: { message: 2 * step - 1 }, attempt: step };
}

/** A run whose record has long messages, and a journal that shows each. */
async function longRun(store: JournalStore): Promise<void> {
  const claim = await store.claim('run', 'me', 60_000);
  if (!claim) throw new Error('another owner has the run');
  const steps = Array.from({ length: STEPS }, (_, i) => i + 1);
  let record = sampleRecord('run', { messages: [] });
  await store.save(record, { claim });
  for (const step of steps) {
    const next = nextStep(record, [userMessage(`ask ${step}`), said(step)]);
    const events = step === STEPS ? { events: { entries: steps.map(snapshot) } } : {};
    await store.append(next.delta, { claim, ...events });
    record = next.record;
  }
}

test.for(stores)(
  'A page of a journal %s has about 256 Ki characters of content, and the pages together have all of it (web 1, edges 26)',
  async ([, make]) => {
    const store = make();
    await longRun(store);
    const seen: number[] = [];
    let pages = 0;
    for (let after = 0; ; pages++) {
      const page = await store.journal.read('run', { after, limit: 500 });
      if (!page || page.next === after) break;
      expect(JSON.stringify(page).length).toBeLessThan(PAGE_CHARS);
      for (const { event } of page.entries) {
        expect(event).toMatchObject({ type: 'step.snapshot', content: said((event as { step: number }).step).content });
        seen.push((event as { step: number }).step);
      }
      after = page.next;
    }
    expect(seen).toEqual(Array.from({ length: STEPS }, (_, i) => i + 1));
    expect(pages).toBeGreaterThan(2);
  },
);
