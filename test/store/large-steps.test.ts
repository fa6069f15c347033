import { join } from 'node:path';
import fc from 'fast-check';
import { type Codec, createExecutor, defineAgent, memoryStore } from 'pawl';
import type { AppendingStore } from 'pawl/stores/kit';
import { sqliteStore } from 'pawl/stores/sqlite';
import { callTools, reply, scriptedModel, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import type { RunHead } from '../../src/record/checkpoint.ts';
import { markStarted, type OpenStep, recordCallResult, stepOf } from '../../src/run/open-step.ts';
import { sampleRecord } from '../../src/testing/store-contract/records.ts';
import { enterMessage } from '../../src/values/message.ts';
import { codecOf } from '../codec/keys.ts';
import { torture } from '../crash/random.ts';
import { toolOf } from '../fixtures/host.ts';
import { freshDir } from './folder.ts';
import { sql } from './sqlite/files.ts';

/** A step of so many calls, which have the same text in their inputs. */
function openStep(count: number, text = 'x'): OpenStep {
  const calls = Array.from({ length: count }, (_, i) => ({ callId: `call-${i}`, name: 'put', input: { text, i } }));
  const content = calls.map((call) => ({
    type: 'tool-call' as const,
    toolCallId: call.callId,
    toolName: call.name,
    input: call.input,
  }));
  const message = enterMessage({ role: 'assistant', content }) as OpenStep['message'];
  return stepOf(
    message,
    calls.map((call) => ({ ...call, effect: 'once', state: 'planned', attempt: 0 })),
  );
}

const { messages: sampleMessages, ...sampleHead } = sampleRecord('run');
const from = sampleMessages.length;

function headOf(revision: number, step: OpenStep | undefined): RunHead {
  const { openStep: _, ...head } = sampleHead as RunHead;
  return { ...head, revision, updatedAt: revision, ...(step ? { openStep: step } : {}) };
}

const plain = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;

interface Opened {
  readonly store: AppendingStore;
  /** Another process opens the same store. */
  reopen(): Promise<Opened>;
}

function sqliteAt(path: string, codec?: Codec): Opened {
  const store = sqliteStore({ path, codec });
  return {
    store,
    reopen: async () => {
      await store.close();
      return sqliteAt(path, codec);
    },
  };
}

function inMemory(): Opened {
  const opened = { store: memoryStore(), reopen: async (): Promise<Opened> => opened };
  return opened;
}

const kinds = [
  { name: 'memory', open: inMemory },
  { name: 'SQLite', open: () => sqliteAt(join(freshDir(), 'runs.db')) },
  {
    name: 'SQLite, encrypted',
    open: () => sqliteAt(join(freshDir(), 'runs.db'), codecOf()),
  },
] as const;

const action = fc.oneof(
  fc.record({ kind: fc.constant('open' as const), count: fc.constantFrom(1, 3, 32, 33, 40, 70) }),
  fc.record({ kind: fc.constant('start' as const), calls: fc.array(fc.nat(70), { maxLength: 4 }) }),
  fc.record({ kind: fc.constant('result' as const), call: fc.nat(70), text: fc.string() }),
  fc.record({
    kind: fc.constantFrom('close' as const, 'reopen' as const, 'fail' as const, 'whole' as const, 'repeat' as const),
  }),
);

function changed(step: OpenStep | undefined, act: typeof action extends fc.Arbitrary<infer A> ? A : never) {
  if (act.kind === 'open') return openStep(act.count);
  if (act.kind === 'close' || !step) return undefined;
  if (act.kind === 'start') return markStarted(step, new Set(act.calls.map((i) => `call-${i}`)));
  if (act.kind === 'result') return recordCallResult(step, `call-${act.call}`, { type: 'text', value: act.text });
  return step;
}

describe.for(kinds)('an open step of many calls in the $name store', ({ name, open }) => {
  test('is read as it was saved last, after any changes, failed and repeated writes and restarts', async () => {
    const runs = fc.asyncProperty(fc.array(action, { minLength: 1, maxLength: 12 }), async (actions) => {
      let { store, reopen } = open();
      await store.save({ ...headOf(1, undefined), messages: sampleMessages });
      let revision = 1;
      let step: OpenStep | undefined;
      for (const act of actions) {
        if (act.kind === 'reopen') ({ store, reopen } = await reopen());
        step = changed(step, act);
        const head = headOf(revision + 1, step);
        const delta = { runId: 'run', revision: revision + 1, from, messages: [], head };
        if (act.kind === 'fail') await store.append(delta, { signal: AbortSignal.abort() }).catch(() => {});
        if (act.kind === 'whole') await store.save({ ...head, messages: sampleMessages });
        else await store.append(delta);
        if (act.kind === 'repeat') await store.append(delta);
        revision += 1;
        const expected = plain({ ...headOf(revision, step), messages: sampleMessages });
        expect(await store.load('run')).toEqual(expected);
        expect(await store.listInterrupted()).toMatchObject([{ runId: 'run', status: 'interrupted' }]);
      }
      await store.delete('run');
      expect(await store.load('run')).toBeNull();
      await reopen();
    });
    await fc.assert(runs, { numRuns: torture > 1 ? 250 : name === 'memory' ? 30 : 10 });
  });

  test('of which a write may have failed is written whole by the next one', async () => {
    const { store } = open();
    await store.save({ ...headOf(1, openStep(1)), messages: sampleMessages });
    const first = openStep(50);
    await store.append({ runId: 'run', revision: 2, from, messages: [], head: headOf(2, first) });
    const started = markStarted(first, new Set(['call-7']));
    const gap = { runId: 'run', revision: 3, from: from + 5, messages: [], head: headOf(3, started) };
    await expect(store.append(gap)).rejects.toMatchObject({ code: 'REVISION_GAP' });
    const next = markStarted(started, new Set(['call-9']));
    await store.append({ runId: 'run', revision: 3, from, messages: [], head: headOf(3, next) });
    expect(await store.load('run')).toMatchObject(plain({ openStep: next }));
  });

  test('is whole after a save whose revision was there already, with other calls', async () => {
    const { store } = open();
    await store.save({ ...headOf(1, undefined), messages: sampleMessages });
    await store.append({ runId: 'run', revision: 2, from, messages: [], head: headOf(2, undefined) });
    const other = openStep(50);
    await store.append({ runId: 'run', revision: 2, from, messages: [], head: headOf(2, other) });
    expect(await store.load('run')).toEqual(plain({ ...headOf(2, undefined), messages: sampleMessages }));
    const next = markStarted(other, new Set(['call-9']));
    await store.append({ runId: 'run', revision: 3, from, messages: [], head: headOf(3, next) });
    expect(await store.load('run')).toMatchObject(plain({ openStep: next }));
  });

  test('is read as one save left it, also when the next save is asked for while it is read', async () => {
    const { store } = open();
    await store.save({ ...headOf(1, undefined), messages: sampleMessages });
    const steps = [openStep(50)];
    for (const call of ['call-3', 'call-7', 'call-9']) {
      steps.push(markStarted(steps.at(-1) as OpenStep, new Set([call])));
    }
    for (const [i, step] of steps.entries()) {
      const loading = store.load('run');
      await store.append({ runId: 'run', revision: i + 2, from, messages: [], head: headOf(i + 2, step) });
      expect(await loading).toMatchObject(plain(headOf(i + 1, steps[i - 1])));
    }
  });
});

test('what SQLite keeps beside a head goes when its step is over, and when one of fewer calls follows', async () => {
  const path = join(freshDir(), 'runs.db');
  await using store = sqliteStore({ path });
  await store.save({ ...headOf(1, undefined), messages: sampleMessages });
  const rows = () => Number(sql(path, 'SELECT count(*) AS count FROM messages')[0]?.count);
  const before = rows();
  const counts: number[] = [];
  for (const [i, count] of [60, 40, 3, 50, 0].entries()) {
    const head = headOf(i + 2, count === 0 ? undefined : openStep(count));
    await store.append({ runId: 'run', revision: i + 2, from, messages: [], head });
    counts.push(rows() - before);
  }
  expect(counts).toEqual([61, 41, 0, 51, 0]);
});

test.for([
  ['a text that is missing', 'DELETE FROM messages WHERE id = (SELECT max(id) - 3 FROM messages)'],
  [
    'a text that was changed',
    "UPDATE messages SET messages = replace(messages, 'put', 'cut') WHERE id = (SELECT max(id) - 3 FROM messages)",
  ],
  ['a text in the place of another', 'UPDATE messages SET id = id + 7 WHERE id = (SELECT max(id) FROM messages)'],
] as const)('an open step of many calls with %s is damage', async ([, statement]) => {
  const path = join(freshDir(), 'runs.db');
  await using store = sqliteStore({ path });
  await store.save({ ...headOf(1, openStep(50)), messages: sampleMessages });
  expect(await store.load('run')).toMatchObject({ revision: 1 });
  sql(path, statement);
  await expect(store.load('run')).rejects.toMatchObject({ code: 'CHECKPOINT_CORRUPT' });
});

/** Characters of all JSON that the process makes while a run calls a tool with effects so often in one message. */
async function charactersPerCall(store: AppendingStore, count: number): Promise<number> {
  const calls = Array.from({ length: count }, (_, i) => ({ name: 'put', input: { text: `number ${100_000 + i}` } }));
  const agent = defineAgent({ id: 'worker', instructions: 'Work.', tools: [toolOf('put', 'once')] });
  const models = { fast: scriptedModel([callTools(calls), reply('done')]) };
  // Time does not pass: on a busy machine the renewals of its lease would count, too.
  const executor = createExecutor({ models, store, clock: testClock() });
  const stringify = JSON.stringify;
  let characters = 0;
  JSON.stringify = ((...args: Parameters<typeof stringify>) => {
    const text = stringify(...args);
    characters += text?.length ?? 0;
    return text;
  }) as typeof stringify;
  try {
    expect(await executor.run(agent, { prompt: 'Put them.' })).toMatchObject({ status: 'ok', durable: true });
  } finally {
    JSON.stringify = stringify;
  }
  return characters / count;
}

/** Counts what a store is given to write. */
function counting(): { readonly codec: Codec; characters: number } {
  const count = {
    characters: 0,
    codec: {
      seal: (text: string) => {
        count.characters += text.length;
        return Buffer.from(text).toString('base64');
      },
      open: (text: string) => Buffer.from(text, 'base64').toString(),
    },
  };
  return count;
}

describe('what a call with effects costs does not grow with the calls of its message', () => {
  test('in JSON that is made for the memory store: 250 and 1,000 calls', async () => {
    // What is left of other tests in this worker makes JSON too, which only adds: the least counts.
    const least = async (count: number) =>
      Math.min(await charactersPerCall(memoryStore(), count), await charactersPerCall(memoryStore(), count));
    const [few, many] = [await least(250), await least(1_000)];
    expect(many / few).toBeLessThan(1.1);
  });

  test('in JSON that is made for SQLite, and in what SQLite is given: 250 and 1,000 calls', async () => {
    const written: number[] = [];
    const made: number[] = [];
    for (const count of [250, 1_000]) {
      const counted = counting();
      await using store = sqliteStore({
        path: join(freshDir(), 'runs.db'),
        durability: 'process',
        codec: counted.codec,
      });
      made.push(await charactersPerCall(store, count));
      written.push(counted.characters / count);
    }
    expect((made[1] ?? 0) / (made[0] ?? 1)).toBeLessThan(1.1);
    expect((written[1] ?? 0) / (written[0] ?? 1)).toBeLessThan(1.1);
  });
});
