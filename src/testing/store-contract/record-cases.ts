import assert from 'node:assert/strict';
import type { RunCheckpoint } from '../../record/checkpoint.ts';
import type { CheckpointStore } from '../../store/port.ts';
import { loadPart } from '../../store/reading/record-part.ts';
import { type Draft, everyStore, refuses } from './case.ts';
import { randomRecord, seededRandom } from './random.ts';
import { fullRecord, openStepRecord, pipelineRecord, sampleMeta, sampleRecord } from './records.ts';

/** Checks that a store returns exactly the record that was saved. */
export async function keeps(store: CheckpointStore, record: RunCheckpoint): Promise<void> {
  await store.save(record);
  assert.deepEqual(await store.load(record.meta.runId), record);
}

/** The cases of the store contract about what is stored, and how it is read back. */
export const recordCases: readonly Draft[] = [
  everyStore('a load without messages has the rest of what a list shows (checkpoint 7, web 39)', async ({ store }) => {
    const record = fullRecord('run');
    await store.save(record);
    const bare = await store.load('run', { messages: false });
    assert(bare);
    assert.deepEqual([bare.meta, bare.iteration, bare.updatedAt], [record.meta, record.iteration, record.updatedAt]);
    assert(bare.messages.length === 0 || bare.messages.length === record.messages.length);
    assert.equal(await store.load('unknown', { messages: false }), null);
    assert.deepEqual(await store.load('run'), record);
  }),

  everyStore(
    'a part of a record has the messages that were asked for, and the rest of its head (studio 33)',
    async ({ store }) => {
      const record = fullRecord('run');
      await store.save(record);
      const { length } = record.messages;
      for (const [from, to] of [
        [0, 0],
        [0, 1],
        [1, length],
        [length, length + 9],
        [0, length + 9],
      ] as const) {
        const part = await loadPart(store, 'run', { from, to });
        assert(part);
        assert.equal(part.messageCount, length);
        assert.deepEqual(part.record.messages, record.messages.slice(from, to));
        const { meta, iteration, updatedAt, openStep, waiting } = part.record;
        assert.deepEqual([meta, iteration, updatedAt], [record.meta, record.iteration, record.updatedAt]);
        assert.deepEqual([openStep, waiting], [record.openStep, record.waiting]);
      }
      assert.equal(await loadPart(store, 'unknown', { from: 0, to: 1 }), null);
    },
  ),

  everyStore('a run with all nine attributes reads back deep-equal (checkpoint 1)', async ({ store }) => {
    const record = sampleRecord('run');
    await keeps(store, record);
    assert.deepEqual((await store.load('run'))?.meta, sampleMeta('run'));
  }),

  everyStore('attributes that were absent read back as empty strings (checkpoint 1)', async ({ store }) => {
    const meta = { ...sampleMeta('run'), callerId: '', channelId: '', guildId: '', prompt: '', parentRunId: '' };
    await keeps(store, sampleRecord('run', { meta }));
  }),

  everyStore('a record with everything that a resume needs reads back deep-equal (checkpoint 2)', async ({ store }) => {
    await keeps(store, fullRecord('run'));
  }),

  everyStore(
    'a record reads back with its fingerprint and the call that began it (checkpoint 2)',
    async ({ store }) => {
      const parent = { runId: 'parent-1', callId: 'call-1', rootRunId: 'root-1' };
      await keeps(store, { ...fullRecord('~child'), fingerprint: '0123456789abcdef'.repeat(4), parent });
    },
  ),

  everyStore('a record with the least there can be gets nothing added (checkpoint 2)', async ({ store }) => {
    const { version, meta, iteration, completedPhases, updatedAt } = sampleRecord('run');
    await keeps(store, {
      version,
      meta,
      iteration,
      completedPhases,
      updatedAt,
      messages: [],
    } as unknown as RunCheckpoint);
  }),

  everyStore('unknown fields, and lone surrogates, are kept (checkpoint 2)', async ({ store }) => {
    const part = { type: 'text', text: 'a\ud800b\udc00', providerOptions: { vendor: { signature: 'x=' } }, later: [1] };
    const messages = [{ role: 'assistant', content: [part], vendorField: { deep: [{}] } }];
    await keeps(store, sampleRecord('run', { messages, addedLater: { yes: true } } as never));
  }),

  everyStore('any record reads back deep-equal (checkpoint 2)', async ({ store, seed }) => {
    const random = seededRandom(seed);
    for (let i = 0; i < 100; i++) {
      const record = randomRecord(random, `run-${i % 7}`);
      await keeps(store, record).catch((cause) => {
        throw new Error(`record ${i} of seed ${seed} did not read back: ${JSON.stringify(record)}`, { cause });
      });
    }
  }),

  everyStore('a single-loop run reads back with its open step and ledger (checkpoint 3)', async ({ store }) => {
    await keeps(store, openStepRecord('run'));
  }),

  everyStore('a pipeline reads back with its phases, the open one included (checkpoint 3)', async ({ store }) => {
    await keeps(store, pipelineRecord('run'));
  }),

  everyStore('an open step, once closed, is gone from the record (checkpoint 3)', async ({ store }) => {
    await store.save(openStepRecord('run'));
    await keeps(store, sampleRecord('run', { iteration: 3, revision: 2 }));
  }),

  everyStore('updatedAt is what the record says, not when it was written (checkpoint 5)', async ({ store }) => {
    for (const updatedAt of [0, 1.5, 1_700_000_000_000, 8.64e15])
      await keeps(store, sampleRecord('run', { updatedAt }));
  }),

  everyStore('a field that a version dropped does no harm (checkpoint 6)', async ({ store }) => {
    await keeps(store, sampleRecord('run', { activePhase: 'draft' } as never));
  }),

  everyStore(
    'a record of a newer version is refused, listed as quarantined, and never written over (checkpoint 6)',
    async ({ store, damage }) => {
      for (const runId of ['a', 'b', 'c']) await store.save(sampleRecord(runId));
      await damage('b', 'newer');
      await refuses(store.load('b'), 'CHECKPOINT_TOO_NEW');
      await refuses(store.save(sampleRecord('b', { iteration: 9 })), 'CHECKPOINT_TOO_NEW');
      await refuses(store.load('b'), 'CHECKPOINT_TOO_NEW');
      await lists(store, { a: 'interrupted', b: 'quarantined CHECKPOINT_TOO_NEW', c: 'interrupted' });
      await keeps(store, sampleRecord('c', { revision: 2 }));
    },
    'damage',
  ),

  everyStore(
    'a damaged record is refused and listed as quarantined; it hides no other (checkpoint 7)',
    async ({ store, damage }) => {
      for (const runId of ['a', 'b', 'c']) await store.save(sampleRecord(runId));
      await damage('b', 'corrupt');
      await refuses(store.load('b'), 'CHECKPOINT_CORRUPT');
      await refuses(store.load('b'), 'CHECKPOINT_CORRUPT');
      await lists(store, { a: 'interrupted', b: 'quarantined CHECKPOINT_CORRUPT', c: 'interrupted' });
      for (const runId of ['a', 'c']) assert.deepEqual(await store.load(runId), sampleRecord(runId));
      await store.delete('b');
      assert.equal(await store.load('b'), null);
    },
    'damage',
  ),

  everyStore(
    'what was saved is there when the storage is opened again (checkpoint 7)',
    async ({ store, reopen }) => {
      await store.save(fullRecord('kept'));
      await store.save(sampleRecord('deleted'));
      await store.delete('deleted');
      const reopened = await reopen();
      assert.deepEqual(await reopened.load('kept'), fullRecord('kept'));
      assert.equal(await reopened.load('deleted'), null);
      await keeps(reopened, sampleRecord('kept', { revision: 2 }));
    },
    'reopen',
  ),
];

/** Checks that a list shows these runs: for a quarantined one, with the code of the reason. */
async function lists(store: CheckpointStore, expected: Readonly<Record<string, string>>): Promise<void> {
  const listed = (await store.listInterrupted()).map((run) => {
    const code = run.status === 'quarantined' ? ` ${/[A-Z_]+/.exec(run.reason)?.[0]}` : '';
    return [run.runId, `${run.status ?? 'interrupted'}${code}`] as const;
  });
  assert.deepEqual(Object.fromEntries(listed), expected);
}
