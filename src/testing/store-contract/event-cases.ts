import assert from 'node:assert/strict';
import type { EventStore, Signal } from '../../store/port.ts';
import { type Draft, eventStore, orders, refuses } from './case.ts';
import { LONG_MS, sampleRecord } from './records.ts';

const topic = 'a0'.repeat(32);
const other = 'b1'.repeat(32);

/** When the kept signals of a case expire. */
const untilOf = async (store: EventStore) => (await store.due.list({ limit: 1 })).now + LONG_MS;

async function signal(store: EventStore, id: string, fields: Partial<Signal> = {}): Promise<string | undefined> {
  const sent = { topic, id, value: `value ${id}`, untilMs: await untilOf(store), ...fields };
  return (await store.waits.signal(sent)).to;
}

/** A run that expects a signal. */
async function expecting(store: EventStore, runId: string, { waitId = 'w', of = topic } = {}) {
  const claim = await store.claim(runId, 'me', LONG_MS);
  assert(claim);
  if ((await store.load(runId)) === null) await store.save(sampleRecord(runId), { claim });
  await store.waits.expect(claim, { waitId, topic: of });
  return claim;
}

/** The signals in the inbox of a run: for which waits, and which ones. */
async function got(store: EventStore, runId: string): Promise<string[]> {
  return (await store.commands.inbox({ runId })).map(({ command }) => {
    assert(command.kind === 'answer' && command.answer.how === 'signal');
    return `${command.waitId} ${command.answer.signal.id}`;
  });
}

/** Cases of a store that carries signals. */
export const eventCases: readonly Draft[] = [
  eventStore('a signal goes to the run that expects it, and makes it due (waiting 12, 18)', async ({ store }) => {
    const claim = await expecting(store, 'run');
    assert.equal(await store.due.leave(claim, { readUpTo: 0 }), true);
    const untilMs = await untilOf(store);
    const value = { list: [1, null, '\ud800'] };
    assert.deepEqual(await store.waits.signal({ topic, id: 'one', value, untilMs }), { to: 'run' });
    assert.deepEqual(
      (await store.due.list({ limit: 5 })).runs.map(({ runId }) => runId),
      ['run'],
    );
    const [sent] = await store.commands.inbox({ runId: 'run' });
    const { id: _, ...command } = sent?.command ?? {};
    const answer = { how: 'signal', value, signal: { id: 'one', topic, untilMs } };
    assert.deepEqual(command, { kind: 'answer', waitId: 'w', answer });
  }),

  eventStore(
    'a signal before the wait is kept, and delivered when a run expects it (waiting 12)',
    async ({ store }) => {
      assert.equal(await signal(store, 'one'), undefined);
      assert.equal(await signal(store, 'two'), undefined);
      const claim = await expecting(store, 'run');
      assert.deepEqual(await got(store, 'run'), ['w one']);
      assert.equal(await store.due.leave(claim, { readUpTo: 0 }), false);
      await expecting(store, 'run', { waitId: 'second' });
      assert.deepEqual(await got(store, 'run'), ['w one', 'second two']);
      await expecting(store, 'next');
      assert.deepEqual(await got(store, 'next'), []);
    },
  ),

  eventStore('a kept signal says when it was sent, also one that a run gave back (waiting 11)', async ({ store }) => {
    const before = Date.now();
    await signal(store, 'one');
    await signal(store, 'two', { from: 'gone', sentAt: 1_000 });
    await expecting(store, 'run');
    await expecting(store, 'run', { waitId: 'second' });
    const [one, two] = (await store.commands.inbox({ runId: 'run' })).map(({ command }) => {
      assert(command.kind === 'answer' && command.answer.how === 'signal');
      return command.answer.signal.sentAt;
    });
    assert(one !== undefined && Math.abs(one - before) < LONG_MS, `sent at ${one}`);
    assert.equal(two, 1_000);
  }),

  eventStore('the oldest wait of a topic gets the signal, and each wait gets one (waiting 12)', async ({ store }) => {
    for (const runId of ['c', 'a', 'b']) await expecting(store, runId);
    await expecting(store, 'else', { of: other });
    const to = [await signal(store, '1'), await signal(store, '2'), await signal(store, '3'), await signal(store, '4')];
    assert.deepEqual(to, ['c', 'a', 'b', undefined]);
    assert.deepEqual(await got(store, 'else'), []);
  }),

  eventStore('a signal counts once: while it is kept, and when it was delivered (waiting 12)', async ({ store }) => {
    await signal(store, 'one');
    await signal(store, 'one', { value: 'another' });
    await expecting(store, 'first');
    await expecting(store, 'second');
    assert.equal(await signal(store, 'one'), 'first');
    assert.deepEqual([await got(store, 'first'), await got(store, 'second')], [['w one'], []]);
    assert.equal(await signal(store, 'one', { topic: other }), undefined);
    assert.equal(await signal(store, 'two'), 'second');
    assert.equal(await signal(store, 'two'), 'second');
  }),

  eventStore('a kept signal is gone after its time, and its id is free again (waiting 12)', async ({ store }) => {
    await signal(store, 'old', { untilMs: 1 });
    await expecting(store, 'run');
    assert.deepEqual(await got(store, 'run'), []);
    assert.equal(await signal(store, 'old'), 'run');
  }),

  eventStore('a withdrawn wait gets nothing (waiting 12)', async ({ store }) => {
    const claim = await expecting(store, 'run');
    await store.waits.expect(claim, { waitId: 'w', topic: null });
    await store.waits.expect(claim, { waitId: 'never there', topic: null });
    assert.equal(await signal(store, 'one'), undefined);
    assert.deepEqual(await got(store, 'run'), []);
  }),

  eventStore(
    'the waits of a deleted run are gone with it, also for the next run of its id (waiting 12)',
    async ({ store }) => {
      const claim = await expecting(store, 'run');
      await expecting(store, 'next');
      await store.delete('run', { claim });
      await store.save(sampleRecord('run'));
      assert.equal(await signal(store, 'one'), 'next');
      assert.deepEqual(await got(store, 'run'), []);
    },
  ),

  eventStore(
    'a wait that is added again has one place, and its unread signal is its only one (waiting 12)',
    async ({ store }) => {
      const claim = await expecting(store, 'run');
      await store.waits.expect(claim, { waitId: 'w', topic });
      assert.equal(await signal(store, 'one'), 'run');
      await signal(store, 'two');
      await store.waits.expect(claim, { waitId: 'w', topic });
      assert.deepEqual(await got(store, 'run'), ['w one']);
      await expecting(store, 'next');
      assert.deepEqual(await got(store, 'next'), ['w two']);
    },
  ),

  eventStore(
    'a signal whose wait had closed is given back once, and goes to the next wait (waiting 12)',
    async ({ store }) => {
      await expecting(store, 'run');
      assert.equal(await signal(store, 'one'), 'run');
      assert.equal(await signal(store, 'one', { from: 'another' }), 'run');
      assert.equal(await signal(store, 'one', { from: 'run' }), undefined);
      assert.equal(await signal(store, 'one', { from: 'run' }), undefined);
      await expecting(store, 'next');
      assert.deepEqual(await got(store, 'next'), ['w one']);
      assert.equal(await signal(store, 'one', { from: 'run' }), 'next');
      await expecting(store, 'third');
      assert.equal(await signal(store, 'one', { from: 'next' }), 'third');
    },
  ),

  eventStore('an owner that lost its claim expects nothing any more (waiting 12)', async ({ store }) => {
    const lost = await expecting(store, 'run', { waitId: 'first' });
    assert(await store.claim('run', 'me', LONG_MS));
    await refuses(store.waits.expect(lost, { waitId: 'w', topic }), 'LEASE_LOST');
    await refuses(store.waits.expect(lost, { waitId: 'first', topic: null }), 'LEASE_LOST');
    assert.equal(await signal(store, 'one'), 'run');
    assert.deepEqual(await got(store, 'run'), ['first one']);
  }),

  eventStore('so many signals are kept for one topic, and no more (waiting 12)', async ({ store }) => {
    const untilMs = await untilOf(store);
    const ids = Array.from({ length: 1_000 }, (_, i) => `s${i}`);
    await Promise.all(ids.map((id) => store.waits.signal({ topic, id, value: id, untilMs })));
    await refuses(signal(store, 'one more'), 'UNDELIVERED');
    assert.equal(await signal(store, 's7'), undefined);
    assert.equal(await signal(store, 'one more', { topic: other }), undefined);
    await expecting(store, 'run');
    assert.equal(await signal(store, 'one more'), undefined);
  }),

  eventStore('a signal that cannot be is refused', async ({ store }) => {
    await assert.rejects(signal(store, 'one', { topic: 'orders' }), TypeError);
    await assert.rejects(signal(store, '', {}), TypeError);
    await assert.rejects(signal(store, 'one', { untilMs: Number.NaN }), TypeError);
    await refuses(signal(store, 'one', { value: new Date() as never }), 'NOT_JSON');
    await refuses(signal(store, 'one', { value: 'x'.repeat(2 ** 20) }), 'UNDELIVERED');
    assert.equal(await signal(store, 'one'), undefined);
  }),

  eventStore('in each order of expect and signal the run gets it (waiting 33)', async ({ store }) => {
    const untilMs = await untilOf(store);
    for (const [i, { isTurned, gap }] of [...orders, ...orders].entries()) {
      const runId = `run-${i}`;
      const claim = await store.claim(runId, 'me', LONG_MS);
      assert(claim);
      await store.save(sampleRecord(runId), { claim });
      const asked: Promise<unknown>[] = [];
      for (const step of isTurned ? [1, 0] : [0, 1]) {
        if (step === 0) asked[0] = store.waits.expect(claim, { waitId: 'w', topic });
        else asked[1] = store.waits.signal({ topic, id: runId, value: i, untilMs });
        for (let turns = gap; turns > 0; turns--) await null;
      }
      await Promise.all(asked);
      assert.deepEqual(await got(store, runId), [`w ${runId}`], `order ${i}`);
      await store.delete(runId, { claim });
    }
  }),

  eventStore(
    'waits and kept signals are there for another process (waiting 12)',
    async ({ store, reopen }) => {
      await signal(store, 'early');
      await expecting(store, 'late', { of: other });
      const second = await reopen();
      assert.equal(await signal(second, 'one', { topic: other }), 'late');
      await expecting(second, 'run');
      assert.deepEqual(await got(store, 'run'), ['w early']);
    },
    'reopen',
  ),
];
