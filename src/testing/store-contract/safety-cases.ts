import assert from 'node:assert/strict';
import type { RunCheckpoint } from '../../record/checkpoint.ts';
import type { CheckpointStore } from '../../store/port.ts';
import { type Draft, everyStore, refusedId, refuses } from './case.ts';
import { keeps } from './record-cases.ts';
import { fullRecord, sampleMeta, sampleRecord } from './records.ts';

class Money {
  readonly amount = 1;
}

/** Values that JSON cannot hold, and the end of the path to them. */
const notJson: readonly (readonly [name: string, value: unknown, path: string])[] = [
  ['a Date', { when: new Date(0) }, 'when'],
  ['a Map', { all: new Map([[1, 2]]) }, 'all'],
  ['a class instance', { price: new Money() }, 'price'],
  ['a function', { run: () => 1 }, 'run'],
  ['NaN', { count: Number.NaN }, 'count'],
  ['Infinity', { count: Number.POSITIVE_INFINITY }, 'count'],
  ['undefined in an array', { list: [1, undefined] }, 'list[1]'],
  ['a bigint', { big: 1n }, 'big'],
  ['a symbol', { id: Symbol('x') }, 'id'],
];

/** Places in a record, and the path to each. */
const places: readonly (readonly [path: string, place: (value: unknown) => Partial<RunCheckpoint>])[] = [
  ['messages[1]', (input) => ({ messages: [...sampleRecord('run').messages, callMessage(input)] })],
  ['inputs', (value) => ({ inputs: value as never })],
  ['outcome', (value) => ({ outcome: value as never })],
  ['meta', (value) => ({ meta: { ...sampleMeta('run'), ...(value as object) } })],
];

const hostileIds = [
  '../../etc/passwd',
  '..',
  '.',
  '/',
  'a/b',
  'a',
  'A',
  'a\0b',
  'a\0c',
  ' ',
  'a b',
  '😀',
  'e\u0301',
  '\u00e9',
  '__proto__',
  'constructor',
  'toString',
  "'; DROP TABLE runs; --",
  '%',
  '_',
  'null',
  '-1',
  'CON',
  'a\nb',
  'x'.repeat(255),
  'x'.repeat(512),
];

/** The cases of the store contract about isolation and hostile input. */
export const safetyCases: readonly Draft[] = [
  everyStore('changing a record after it was saved changes nothing stored (checkpoint 9)', async ({ store }) => {
    const given = structuredClone(fullRecord('run'));
    const saving = store.save(given);
    spoil(given);
    await saving;
    assert.deepEqual(await store.load('run'), fullRecord('run'));
    spoil(given);
    assert.deepEqual(await store.load('run'), fullRecord('run'));
  }),

  everyStore('changing a record that was loaded or listed changes nothing stored (checkpoint 9)', async ({ store }) => {
    await store.save(fullRecord('run'));
    spoil(await store.load('run'));
    const before = structuredClone(await store.listInterrupted());
    spoil(await store.listInterrupted());
    assert.deepEqual(await store.load('run'), fullRecord('run'));
    assert.deepEqual(await store.listInterrupted(), before);
  }),

  ...notJson.map(([name, value, end]) =>
    everyStore(`${name} is refused with the path to it, and nothing is written (checkpoint 11)`, async ({ store }) => {
      await store.save(sampleRecord('run'));
      for (const [start, place] of places) {
        const error = await refuses(store.save(sampleRecord('run', { ...place(value), iteration: 9 })), 'NOT_JSON');
        for (const part of [start, end]) assert(error.message.includes(part), `${error.message} should name ${part}`);
        await refuses(store.save(sampleRecord('run', place(value))), 'NOT_JSON');
      }
      assert.deepEqual(await store.load('run'), sampleRecord('run'));
    }),
  ),

  everyStore('a property that is undefined counts as absent (checkpoint 11)', async ({ store }) => {
    await store.save({ ...sampleRecord('run'), counters: undefined, inputs: undefined } as never);
    assert.deepEqual(await store.load('run'), sampleRecord('run'));
  }),

  everyStore('hostile ids are kept apart, or refused with a typed error (checkpoint 12)', async ({ store }) => {
    const taken: string[] = [];
    for (const runId of hostileIds) if (await takes(store, runId)) taken.push(runId);
    for (const runId of taken)
      assert.deepEqual(await store.load(runId), sampleRecord(runId, { iteration: runId.length }));
    assert.deepEqual((await store.listInterrupted()).map((run) => run.runId).sort(), [...taken].sort());
    for (const runId of taken.splice(0, taken.length / 2)) await store.delete(runId);
    assert.deepEqual((await store.listInterrupted()).map((run) => run.runId).sort(), [...taken].sort());
    assert.equal(({} as { polluted?: unknown }).polluted, undefined);
  }),

  everyStore('ids that are empty, too long or broken are refused by every call (checkpoint 12)', async ({ store }) => {
    for (const runId of ['', 'x'.repeat(513), 'x'.repeat(10_000), '😀'.repeat(129), '\ud800', 7 as never]) {
      await refuses(store.save(sampleRecord('run', { meta: { ...sampleMeta('run'), runId } })), 'INVALID_RUN_ID');
      await refuses(store.load(runId), 'INVALID_RUN_ID');
      await refuses(store.delete(runId), 'INVALID_RUN_ID');
    }
    assert.deepEqual(await store.listInterrupted(), []);
  }),

  everyStore('names that JavaScript treats in a special way pollute nothing (checkpoint 12)', async ({ store }) => {
    const inputs = JSON.parse('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}');
    await keeps(store, sampleRecord('run', { inputs }));
    assert.equal(({} as { polluted?: unknown }).polluted, undefined);
  }),
];

function callMessage(input: unknown): RunCheckpoint['messages'][number] {
  return { role: 'assistant', content: [{ type: 'tool-call', toolCallId: 'a', toolName: 't', input }] };
}

/** Changes everything in a value that can change. */
function spoil(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  for (const item of Object.values(value)) spoil(item);
  if (Object.isFrozen(value)) return;
  if (Array.isArray(value)) value.push('spoiled');
  else (value as Record<string, unknown>).spoiled = true;
}

async function takes(store: CheckpointStore, runId: string): Promise<boolean> {
  try {
    await store.save(sampleRecord(runId, { iteration: runId.length }));
    return true;
  } catch (error) {
    return refusedId(error) !== null;
  }
}
