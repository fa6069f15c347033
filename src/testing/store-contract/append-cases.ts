import assert from 'node:assert/strict';
import { appendingStore, type Draft, refuses } from './case.ts';
import { randomMessage, randomRecord, seededRandom } from './random.ts';
import { fullRecord, nextStep, openStepRecord, sampleRecord, userMessage } from './records.ts';

/** The cases of the store contract for stores that append only what is new. */
export const appendCases: readonly Draft[] = [
  appendingStore('append adds the messages and replaces the head (checkpoint 3)', async ({ store }) => {
    const first = openStepRecord('run');
    await store.save(first);
    const { openStep: _, ...closed } = first;
    const step = nextStep(closed, [userMessage('a'), userMessage('b')], {
      attempts: 0,
      undelivered: [userMessage('c')],
    });
    await store.append(step.delta);
    assert.deepEqual(await store.load('run'), step.record);
    const [listed] = await store.listInterrupted();
    assert(listed && listed.status !== 'quarantined');
    assert.equal(listed.updatedAt, step.record.updatedAt);
  }),

  appendingStore('append keeps the inputs and images of the first record (checkpoint 3)', async ({ store }) => {
    await store.save(fullRecord('run'));
    const step = nextStep(fullRecord('run'));
    await store.append(step.delta);
    assert.deepEqual(await store.load('run'), step.record);
  }),

  appendingStore('a delta without messages writes the head alone (checkpoint 3)', async ({ store }) => {
    await store.save(sampleRecord('run'));
    const step = nextStep(sampleRecord('run'), []);
    await store.append(step.delta);
    assert.deepEqual(await store.load('run'), step.record);
  }),

  appendingStore('many deltas, asked for at once, read back in order (checkpoint 3)', async ({ store }) => {
    let record = sampleRecord('run');
    const writes = [store.save(record)];
    for (let i = 0; i < 300; i++) {
      const step = nextStep(record);
      writes.push(store.append(step.delta));
      record = step.record;
    }
    await Promise.all(writes);
    assert.deepEqual(await store.load('run'), record);
  }),

  appendingStore('any record reads back deep-equal after any deltas (checkpoint 2)', async ({ store, seed }) => {
    const random = seededRandom(seed);
    for (let i = 0; i < 20; i++) {
      let record = { ...randomRecord(random, `run-${i}`), revision: random.below(5) };
      await store.save(record);
      for (let steps = random.below(8); steps > 0; steps--) {
        const messages = Array.from({ length: random.below(4) }, () => randomMessage(random));
        const step = nextStep(record, messages);
        await store.append(step.delta);
        record = step.record;
      }
      assert.deepEqual(await store.load(`run-${i}`), record, `record ${i} of seed ${seed}`);
    }
  }),

  appendingStore(
    'a revision that is there already is a success and changes nothing (checkpoint 14)',
    async ({ store }) => {
      await store.save(sampleRecord('run'));
      const one = nextStep(sampleRecord('run'));
      const two = nextStep(one.record);
      await store.append(one.delta);
      await store.append(two.delta);
      await store.append(two.delta);
      await store.append(one.delta);
      assert.deepEqual(await store.load('run'), two.record);
    },
  ),

  appendingStore('one delta asked for twice at once lands once (checkpoint 14)', async ({ store }) => {
    await store.save(sampleRecord('run'));
    const step = nextStep(sampleRecord('run'));
    await Promise.all([store.append(step.delta), store.append(step.delta)]);
    assert.deepEqual(await store.load('run'), step.record);
  }),

  appendingStore('a delta that leaves a gap is refused, and nothing is written (checkpoint 14)', async ({ store }) => {
    await store.save(sampleRecord('run'));
    const one = nextStep(sampleRecord('run'));
    const two = nextStep(one.record);
    await refuses(store.append(two.delta), 'REVISION_GAP');
    await refuses(store.append({ ...one.delta, revision: two.delta.revision }), 'REVISION_GAP');
    await refuses(store.append({ ...one.delta, from: 0 }), 'REVISION_GAP');
    await refuses(store.append({ ...one.delta, from: 2 }), 'REVISION_GAP');
    assert.deepEqual(await store.load('run'), sampleRecord('run'));
    await store.append(one.delta);
    assert.deepEqual(await store.load('run'), one.record);
  }),

  appendingStore('a delta of a run without a record is refused (checkpoint 14)', async ({ store }) => {
    const { delta } = nextStep(sampleRecord('run'));
    await refuses(store.append(delta), 'REVISION_GAP');
    await store.save(sampleRecord('run'));
    await store.delete('run');
    await refuses(store.append(delta), 'REVISION_GAP');
    assert.equal(await store.load('run'), null);
    assert.deepEqual(await store.listInterrupted(), []);
  }),

  appendingStore('a refused delta does not touch those asked for with it (checkpoint 14)', async ({ store }) => {
    for (const runId of ['a', 'b']) await store.save(sampleRecord(runId));
    const [good, other] = [nextStep(sampleRecord('a')), nextStep(sampleRecord('b'))];
    const bad = { ...nextStep(sampleRecord('a')).delta, revision: 9 };
    const asked = [good.delta, bad, { ...bad, runId: 'nobody' }, other.delta].map((delta) => store.append(delta));
    const settled = await Promise.allSettled(asked);
    assert.deepEqual(
      settled.map(({ status }) => status),
      ['fulfilled', 'rejected', 'rejected', 'fulfilled'],
    );
    assert.deepEqual(await store.load('a'), good.record);
    assert.deepEqual(await store.load('b'), other.record);
  }),

  appendingStore('save after deltas replaces all of them (checkpoint 7)', async ({ store }) => {
    await store.save(sampleRecord('run'));
    await store.append(nextStep(sampleRecord('run')).delta);
    const whole = sampleRecord('run', { messages: [userMessage('x'), userMessage('y')], revision: 7 });
    await store.save(whole);
    const step = nextStep(whole);
    await store.append(step.delta);
    assert.deepEqual(await store.load('run'), step.record);
  }),

  appendingStore(
    'what a delta held is isolated, and refused where it is no JSON (checkpoint 11)',
    async ({ store }) => {
      await store.save(sampleRecord('run'));
      const message = { role: 'user', content: [{ type: 'text', text: 'as given' }] };
      const step = nextStep(sampleRecord('run'), [structuredClone(message)] as never);
      const appending = store.append(step.delta);
      Object.assign(step.delta.messages[0] ?? {}, { content: 'spoiled' });
      (step.delta.messages as unknown[]).push('spoiled');
      await appending;
      assert.deepEqual((await store.load('run'))?.messages.at(-1), message);
      const { delta } = nextStep((await store.load('run')) ?? step.record);
      await refuses(store.append({ ...delta, messages: [{ ...message, at: new Date(0) }] as never }), 'NOT_JSON');
      await refuses(store.append({ ...delta, head: { ...delta.head, counters: new Map() } as never }), 'NOT_JSON');
      await refuses(store.append({ ...delta, runId: '' }), 'INVALID_RUN_ID');
    },
  ),

  appendingStore(
    'an aborted signal: the delta is refused, and nothing is written (checkpoint 10)',
    async ({ store }) => {
      await store.save(sampleRecord('run'));
      const signal = AbortSignal.abort(Object.assign(new Error('stop'), { code: 'STOP' }));
      await refuses(store.append(nextStep(sampleRecord('run')).delta, { signal }), 'STOP');
      assert.deepEqual(await store.load('run'), sampleRecord('run'));
    },
  ),
];
