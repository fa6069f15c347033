import assert from 'node:assert/strict';
import type { RunEventBody } from '../../run/events/body.ts';
import type { JournalEntry } from '../../run/journal/entry.ts';
import { isAppending } from '../../store/capabilities.ts';
import type { Claim } from '../../store/port.ts';
import { type Draft, type JournalingStore, journalStore, refusedId, refuses } from './case.ts';
import { LONG_MS, nextStep, sampleRecord, userMessage } from './records.ts';

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
type Given = Parameters<JournalingStore['journal']['publish']>;
const publish = ({ journal }: JournalingStore, ...given: Given) => journal.publish(...given);

async function begin(store: JournalingStore, runId = 'run'): Promise<Claim> {
  const claim = await store.claim(runId, 'me', LONG_MS);
  assert(claim);
  await store.save(sampleRecord(runId), { claim });
  return claim;
}

async function placesOf(store: JournalingStore, after = 0, runId = 'run'): Promise<number[] | null> {
  const page = await store.journal.read(runId, { after, limit: 100 });
  return page === null ? null : page.entries.map(({ place }) => place);
}

/** Reads a journal in pages to its end. */
async function read(store: JournalingStore, limit: number): Promise<readonly JournalEntry[]> {
  const entries: JournalEntry[] = [];
  for (let after = 0; ; ) {
    const page = await store.journal.read('run', { after, limit });
    assert(page);
    if (page.next === after) return entries;
    assert(page.entries.length <= limit);
    entries.push(...page.entries);
    after = page.next;
  }
}

/** Ids that a file, a statement or a key might take for something else. */
const hostileIds = [
  '../../etc/passwd',
  'a\u0000b',
  "x'); DROP TABLE runs; --",
  'RUN',
  'run ',
  'é',
  'e\u0301',
  '𐀀%_*',
  '__proto__',
];

/** Cases of a store with a journal. */
export const journalCases: readonly Draft[] = [
  journalStore(
    'entries that are published come back as they were, in the order of places (web 1, 2)',
    async ({ store }) => {
      const claim = await begin(store);
      const entries = [parked(3), piece(4), piece(5, '\ud83d\ude00\u2028"')];
      await publish(store, 'run', entries.slice(0, 2), { claim });
      await publish(store, 'run', entries.slice(2), { claim });
      assert.deepEqual(await store.journal.read('run', { limit: 10 }), { entries, next: 5 });
      const late = await store.journal.read('run', { after: 3, limit: 10 });
      assert.deepEqual(late, { entries: entries.slice(1), next: 5 });
      assert.deepEqual(await store.journal.read('run', { after: 5, limit: 10 }), { entries: [], next: 5 });
    },
  ),

  journalStore('a run without a record has no journal (web 8)', async ({ store }) => {
    assert.equal(await placesOf(store), null);
    const claim = await begin(store);
    assert.deepEqual(await placesOf(store), []);
    for (let place = 1; place <= 30; place++) await publish(store, 'run', [parked(place), piece(place)], { claim });
    await store.delete('run', { claim });
    assert.equal(await placesOf(store), null);
    await begin(store);
    assert.deepEqual(await placesOf(store), []);
  }),

  journalStore('an entry is published only by the newest claim (web 7)', async ({ store }) => {
    const claim = await begin(store);
    await store.release(claim);
    const next = await store.claim('run', 'another', LONG_MS);
    assert(next);
    await refuses(publish(store, 'run', [parked(1)], { claim }), 'LEASE_LOST');
    await publish(store, 'run', [parked(2)], { claim: next });
    assert.deepEqual(await placesOf(store), [2]);
  }),

  journalStore('a save and an append bring events with them, and delete passing ones (web 1, 4)', async ({ store }) => {
    const claim = await begin(store);
    await publish(store, 'run', [piece(1), piece(2), parked(3)], { claim });
    await publish(store, 'run', [piece(4)], { claim });
    const record = await store.load('run');
    assert(record);
    await store.save({ ...record, revision: 2 }, { claim, events: { entries: [parked(5)], dropTo: 2 } });
    assert.deepEqual(await placesOf(store), [3, 4, 5]);
    assert.deepEqual(await placesOf(store, 3), [4, 5]);
  }),

  journalStore('a write that is refused brings no events with it (web 1, 7)', async ({ store }) => {
    const claim = await begin(store);
    await store.release(claim);
    await store.claim('run', 'another', LONG_MS);
    await refuses(store.save(sampleRecord('run'), { claim, events: { entries: [parked(1)] } }), 'LEASE_LOST');
    assert.deepEqual(await placesOf(store), []);
  }),

  journalStore('entries that are written twice come once (web 1)', async ({ store }) => {
    const claim = await begin(store);
    await publish(store, 'run', [parked(1), parked(2)], { claim });
    await publish(store, 'run', [parked(1), parked(2), parked(3)], { claim });
    await publish(store, 'run', [parked(1), parked(2)], { claim });
    assert.deepEqual(await placesOf(store), [1, 2, 3]);
  }),

  journalStore('a journal is read in pages (web 6)', async ({ store }) => {
    const claim = await begin(store);
    for (let place = 1; place <= 20; place++)
      await publish(store, 'run', [place % 3 === 0 ? piece(place) : parked(place)], { claim });
    const entries = await read(store, 3);
    assert.deepEqual(
      entries.map(({ place }) => place),
      Array.from({ length: 20 }, (_, i) => i + 1),
    );
  }),

  journalStore('the content of an event comes from the record (web 1)', async ({ store }) => {
    const claim = await begin(store);
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
    const page = await store.journal.read('run', { limit: 10 });
    assert.deepEqual(
      page?.entries.map(({ event }) => ('output' in event ? event.output : 'content' in event ? event.content : event)),
      [[{ type: 'text', text: 'I look.' }, call], output],
    );
    assert.equal(page?.next, 3);
  }),

  journalStore('a run keeps its journal over appends and replaced records (web 1)', async ({ store }) => {
    const claim = await begin(store);
    await publish(store, 'run', [parked(1)], { claim });
    const record = await store.load('run');
    assert(record);
    const long = Array.from({ length: 3 }, (_, i) => userMessage(`${i} ${'x'.repeat(600_000)}`));
    await store.save({ ...record, revision: 2, messages: long }, { claim, events: { entries: [parked(2)] } });
    await store.save({ ...record, revision: 3, messages: [] }, { claim, events: { entries: [parked(3)] } });
    assert.deepEqual(await placesOf(store), [1, 2, 3]);
  }),

  journalStore(
    'the entries of a save outlive it, and are read in another process (web 1, 6)',
    async ({ store, reopen }) => {
      const claim = await begin(store);
      const record = await store.load('run');
      assert(record);
      await store.save({ ...record, revision: 2 }, { claim, events: { entries: [parked(1), parked(2)] } });
      await publish(store, 'run', [piece(3)], { claim });
      const other = await reopen();
      assert.deepEqual(await other.journal.read('run', { limit: 10 }), {
        entries: [parked(1), parked(2), piece(3)],
        next: 3,
      });
      const later = await other.load('run');
      assert(later);
      await other.save({ ...later, revision: 3 }, { claim, events: { entries: [parked(4)], dropTo: 3 } });
      assert.deepEqual(await placesOf(store), [1, 2, 4]);
    },
    'reopen',
  ),

  journalStore(
    'each append takes the passing entries of its step away, and leaves the kept ones (web 4)',
    async ({ store }) => {
      const claim = await begin(store);
      let record = await store.load('run');
      assert(record);
      const kept: number[] = [];
      for (let place = 1; place < 40; place += 4) {
        await publish(store, 'run', [piece(place), piece(place + 1)], { claim });
        await publish(store, 'run', [piece(place + 2)], { claim });
        assert.deepEqual(await placesOf(store), [...kept, place, place + 1, place + 2]);
        const events = { entries: [parked(place + 3)], dropTo: place + 2 };
        const next = nextStep(record);
        const write = { claim, events };
        await (isAppending(store) ? store.append(next.delta, write) : store.save(next.record, write));
        record = next.record;
        kept.push(place + 3);
        assert.deepEqual(await placesOf(store), kept);
      }
    },
  ),

  journalStore('an append that is sent again adds its events once (web 1)', async ({ store }) => {
    if (!isAppending(store)) return;
    const claim = await begin(store as JournalingStore);
    const record = await store.load('run');
    assert(record);
    const events = { entries: [parked(1), parked(2)] };
    const { delta } = nextStep(record);
    await store.append(delta, { claim, events });
    await store.append(delta, { claim, events });
    assert.deepEqual(await placesOf(store as JournalingStore), [1, 2]);
  }),

  journalStore('a claim that was released or never given publishes nothing (web 7)', async ({ store }) => {
    const claim = await begin(store);
    await refuses(publish(store, 'run', [parked(1)], { claim: { ...claim, epoch: claim.epoch + 1 } }), 'LEASE_LOST');
    await refuses(publish(store, 'run', [parked(1)], { claim: { ...claim, owner: 'another' } }), 'LEASE_LOST');
    await store.release(claim);
    await refuses(publish(store, 'run', [parked(1)], { claim }), 'LEASE_LOST');
    await refuses(publish(store, 'never', [parked(1)], { claim: { ...claim, runId: 'never' } }), 'LEASE_LOST');
    assert.deepEqual(await placesOf(store), []);
  }),

  journalStore(
    'of two processes that publish at once only the owner reaches readers (web 7, 36)',
    async ({ store }) => {
      const claim = await begin(store);
      await store.release(claim);
      const next = await store.claim('run', 'another', LONG_MS);
      assert(next);
      const [zombie, owner] = await Promise.allSettled([
        publish(store, 'run', [parked(1)], { claim }),
        publish(store, 'run', [parked(1), piece(2)], { claim: next }),
      ]);
      assert.equal(zombie.status, 'rejected');
      assert.equal(owner.status, 'fulfilled');
      assert.deepEqual(await store.journal.read('run', { limit: 10 }), { entries: [parked(1), piece(2)], next: 2 });
    },
  ),

  journalStore('a publish whose signal is aborted changes nothing (web 2)', async ({ store }) => {
    const claim = await begin(store);
    const signal = AbortSignal.abort(new Error('no more'));
    await assert.rejects(publish(store, 'run', [parked(1)], { claim, signal }), /no more/);
    await publish(store, 'run', [parked(2)], { claim });
    assert.deepEqual(await placesOf(store), [2]);
  }),

  journalStore(
    'a claimed run without a record has no journal, and what it publishes is lost (web 8)',
    async ({ store }) => {
      const claim = await store.claim('run', 'me', LONG_MS);
      assert(claim);
      await publish(store, 'run', [parked(1)], { claim });
      assert.equal(await placesOf(store), null);
      await store.save(sampleRecord('run'), { claim });
      assert.deepEqual(await placesOf(store), []);
    },
  ),

  journalStore('each run has its own journal, however its id is spelled (web 1)', async ({ store }) => {
    const claims = await Promise.all(['run', ...hostileIds].map((runId) => begin(store, runId).catch(refusedId)));
    const taken = claims.filter((claim) => claim !== null);
    for (const [i, claim] of taken.entries()) {
      const { runId } = claim;
      const events = [parked(i + 1), piece(100)].map((each) => ({ ...each, event: { ...each.event, runId } }));
      await publish(store, runId, events, { claim });
    }
    for (const [i, { runId }] of taken.entries()) {
      const page = await store.journal.read(runId, { limit: 10 });
      assert.deepEqual(
        page?.entries.map(({ place, event }) => [place, event.runId]),
        [i + 1, 100].map((place) => [place, runId]),
      );
    }
    assert.equal(await placesOf(store, 0, 'Run'), null);
  }),

  journalStore('many runs publish and are read at the same time (web 7)', async ({ store }) => {
    const ids = Array.from({ length: 100 }, (_, i) => `run-${i}`);
    const claims = await Promise.all(ids.map((runId) => begin(store, runId)));
    await Promise.all(
      claims.map((claim, i) => publish(store, claim.runId, i % 2 === 0 ? [piece(i + 1)] : [parked(i + 1)], { claim })),
    );
    const found = await Promise.all([...ids, 'none'].map((runId) => placesOf(store, 0, runId)));
    assert.deepEqual(found, [...ids.map((_, i) => [i + 1]), null]);
  }),

  journalStore(
    'a reader never sees an entry before an earlier one: saves and publishes keep their order (web 1, 6)',
    async ({ store }) => {
      const claim = await begin(store);
      const first = await store.load('run');
      assert(first && isAppending(store));
      let record = first;
      const writes: Promise<unknown>[] = [];
      const seen: number[] = [];
      let isOver = false;
      const reading = (async () => {
        for (let after = 0; !isOver || after < 60; ) {
          const page = await (store as JournalingStore).journal.read('run', { after, limit: 100 });
          seen.push(...(page?.entries.map(({ place }) => place) ?? []));
          if (after === page?.next) await new Promise((resolve) => setTimeout(resolve, 1));
          after = page?.next ?? after;
        }
      })();
      for (let place = 1; place <= 60; place += 3) {
        const next = nextStep(record);
        record = next.record;
        writes.push(store.append(next.delta, { claim, events: { entries: [parked(place)] } }));
        writes.push(publish(store as JournalingStore, 'run', [piece(place + 1)], { claim }));
        if (place % 2 === 0) await Promise.all(writes);
        writes.push(publish(store as JournalingStore, 'run', [parked(place + 2)], { claim }));
      }
      await Promise.all(writes);
      isOver = true;
      await reading;
      assert.deepEqual(
        seen,
        Array.from({ length: 60 }, (_, i) => i + 1),
      );
    },
  ),

  journalStore('entries of any size and text are read whole, in pages (web 6)', async ({ store }) => {
    const claim = await begin(store);
    const texts = ['', '\ud800', '\u0000', 'x'.repeat(1_500_000), '\n'.repeat(2_000), '{"a":', '😀'.repeat(100_000)];
    const entries = texts.map((text, i) => piece(i + 1, text));
    for (const each of entries) await publish(store, 'run', [each], { claim });
    assert.deepEqual(await read(store, 4), entries);
    assert.deepEqual(await read(store, 1), entries);
  }),

  journalStore(
    'content is read from one state of a record, however often it changes meanwhile (web 1)',
    async ({ store }) => {
      const claim = await begin(store);
      const first = await store.load('run');
      assert(first);
      const said = (n: number) => ({
        role: 'assistant' as const,
        content: [{ type: 'text' as const, text: `${n} ${'x'.repeat(4_000)}` }],
      });
      let record = first;
      let isOver = false;
      const reader = async () => {
        while (!isOver) {
          const page = await store.journal.read('run', { limit: 100 });
          for (const { event } of page?.entries ?? [])
            assert.equal(event.type === 'step.snapshot' && event.content.length, 1);
          await new Promise((resolve) => setImmediate(resolve));
        }
      };
      const reading = Promise.all([reader(), reader(), reader()]);
      try {
        for (let n = 1; n <= 40; n++) {
          // Large parts of heads that differ: files are written again.
          const undelivered = [userMessage(`${n} ${'y'.repeat(6_000)}`)];
          const { record: next, delta } = nextStep(record, [said(n)], { undelivered });
          const content = { message: record.messages.length };
          const events = {
            entries: [entry(n, { type: 'step.snapshot', step: n, content: [] }, { content, attempt: 9 })],
          };
          if (isAppending(store)) await store.append(delta, { claim, events });
          else await (store as JournalingStore).save(next, { claim, events });
          record = next;
        }
      } finally {
        isOver = true;
      }
      await reading;
      const page = await store.journal.read('run', { limit: 100 });
      assert.deepEqual(
        page?.entries.map(({ event }) => event.type === 'step.snapshot' && event.content),
        Array.from({ length: 40 }, (_, n) => said(n + 1).content),
      );
    },
  ),
];
