import assert from 'node:assert/strict';
import type { RunEventBody } from '../../run/events.ts';
import type { JournalEntry } from '../../run/journal/entry.ts';
import type { Claim, JournalStore } from '../../store/port.ts';
import { type Draft, journalStore, refuses } from './case.ts';
import { sampleRecord, userMessage } from './records.ts';

const LONG = 600_000;

function entry(place: number, body: RunEventBody, more: Partial<JournalEntry> = {}): JournalEntry {
  return { place, keep: 'kept', event: { ...body, runId: 'run', seq: place, at: 7 }, ...more };
}

const parked = (place: number) => entry(place, { type: 'run.parked', code: `C${place}`, reason: 'é"\n' });
const piece = (place: number, text = `piece ${place}`): JournalEntry =>
  entry(
    place,
    { type: 'model.delta', step: 1, kind: 'text', block: 0, offset: 0, text },
    { keep: 'passing', attempt: 3 },
  );

async function begun(store: JournalStore, runId = 'run'): Promise<Claim> {
  const claim = await store.claim(runId, 'me', LONG);
  assert(claim);
  await store.save(sampleRecord(runId), { claim });
  return claim;
}

async function placesOf(store: JournalStore, after = 0): Promise<number[] | null> {
  const page = await store.readEvents('run', { after, limit: 100 });
  return page === null ? null : page.entries.map(({ place }) => place);
}

/** Cases of a store with a journal. */
export const journalCases: readonly Draft[] = [
  journalStore(
    'entries that are published come back as they were, in the order of places (web 1, 2)',
    async ({ store }) => {
      const claim = await begun(store);
      const entries = [parked(3), piece(4), piece(5, '\ud83d\ude00\u2028"')];
      await store.publish('run', entries.slice(0, 2), { claim });
      await store.publish('run', entries.slice(2), { claim });
      assert.deepEqual(await store.readEvents('run', { limit: 10 }), { entries, next: 5 });
      assert.deepEqual(await store.readEvents('run', { after: 3, limit: 10 }), { entries: entries.slice(1), next: 5 });
      assert.deepEqual(await store.readEvents('run', { after: 5, limit: 10 }), { entries: [], next: 5 });
    },
  ),

  journalStore('a run without a record has no journal (web 8)', async ({ store }) => {
    assert.equal(await placesOf(store), null);
    const claim = await begun(store);
    assert.deepEqual(await placesOf(store), []);
    await store.publish('run', [parked(1)], { claim });
    await store.delete('run', { claim });
    assert.equal(await placesOf(store), null);
    await begun(store);
    assert.deepEqual(await placesOf(store), []);
  }),

  journalStore('an entry is published only by the newest claim (web 7)', async ({ store }) => {
    const claim = await begun(store);
    await store.release(claim);
    const next = await store.claim('run', 'another', LONG);
    assert(next);
    await refuses(store.publish('run', [parked(1)], { claim }), 'LEASE_LOST');
    await store.publish('run', [parked(2)], { claim: next });
    assert.deepEqual(await placesOf(store), [2]);
  }),

  journalStore('a save and an append bring events with them, and delete passing ones (web 1, 4)', async ({ store }) => {
    const claim = await begun(store);
    await store.publish('run', [piece(1), piece(2), parked(3)], { claim });
    await store.publish('run', [piece(4)], { claim });
    const record = await store.load('run');
    assert(record);
    await store.save({ ...record, revision: 2 }, { claim, events: { entries: [parked(5)], dropTo: 2 } });
    assert.deepEqual(await placesOf(store), [3, 4, 5]);
    assert.deepEqual(await placesOf(store, 3), [4, 5]);
  }),

  journalStore('a write that is refused brings no events with it (web 1, 7)', async ({ store }) => {
    const claim = await begun(store);
    await store.release(claim);
    await store.claim('run', 'another', LONG);
    await refuses(store.save(sampleRecord('run'), { claim, events: { entries: [parked(1)] } }), 'LEASE_LOST');
    assert.deepEqual(await placesOf(store), []);
  }),

  journalStore('entries that are written twice come once (web 1)', async ({ store }) => {
    const claim = await begun(store);
    await store.publish('run', [parked(1), parked(2)], { claim });
    await store.publish('run', [parked(1), parked(2), parked(3)], { claim });
    await store.publish('run', [parked(1), parked(2)], { claim });
    assert.deepEqual(await placesOf(store), [1, 2, 3]);
  }),

  journalStore('a journal is read in pages (web 6)', async ({ store }) => {
    const claim = await begun(store);
    for (let place = 1; place <= 20; place++) {
      await store.publish('run', [place % 3 === 0 ? piece(place) : parked(place)], { claim });
    }
    const read: number[] = [];
    for (let after = 0; ; ) {
      const page = await store.readEvents('run', { after, limit: 3 });
      assert(page);
      if (page.next === after) break;
      assert(page.entries.length <= 3);
      read.push(...page.entries.map(({ place }) => place));
      after = page.next;
    }
    assert.deepEqual(
      read,
      Array.from({ length: 20 }, (_, i) => i + 1),
    );
  }),

  journalStore('the content of an event comes from the record (web 1)', async ({ store }) => {
    const claim = await begun(store);
    const record = await store.load('run');
    assert(record);
    const call = { type: 'tool-call' as const, toolCallId: 'c', toolName: 'look', input: { at: 'é' } };
    const output = { type: 'text' as const, value: 'seen' };
    const messages = [
      ...record.messages,
      { role: 'assistant' as const, content: [{ type: 'text' as const, text: 'I look.' }, call] },
      {
        role: 'tool' as const,
        content: [{ type: 'tool-result' as const, toolCallId: 'c', toolName: 'look', output }],
      },
      userMessage('thanks'),
    ];
    const content = { message: record.messages.length };
    const done = { step: 1, callId: 'c', name: 'look', effect: 'once', ms: 4 } as const;
    const entries = [
      entry(1, { type: 'step.snapshot', step: 1, content: [] }, { content, attempt: 9 }),
      entry(2, { type: 'tool.done', ...done, output: { type: 'text', value: '' } }, { content }),
      entry(3, { type: 'tool.done', ...done, callId: 'gone', output: { type: 'text', value: '' } }, { content }),
    ];
    await store.save({ ...record, revision: 2, messages }, { claim, events: { entries } });
    const page = await store.readEvents('run', { limit: 10 });
    assert.deepEqual(
      page?.entries.map(({ event }) => ('output' in event ? event.output : 'content' in event ? event.content : event)),
      [[{ type: 'text', text: 'I look.' }, call], output],
    );
    assert.equal(page?.next, 3);
  }),

  journalStore('a run keeps its journal over appends and replaced records (web 1)', async ({ store }) => {
    const claim = await begun(store);
    await store.publish('run', [parked(1)], { claim });
    const record = await store.load('run');
    assert(record);
    const long = Array.from({ length: 3 }, (_, i) => userMessage(`${i} ${'x'.repeat(600_000)}`));
    await store.save({ ...record, revision: 2, messages: long }, { claim, events: { entries: [parked(2)] } });
    await store.save({ ...record, revision: 3, messages: [] }, { claim, events: { entries: [parked(3)] } });
    assert.deepEqual(await placesOf(store), [1, 2, 3]);
  }),
];
