import fc from 'fast-check';
import { type Message, memoryStore, type RunCheckpoint } from 'pawl';
import { parseCheckpoint, toCheckpoint, toResumeState } from 'pawl/stores/kit';
import { describe, expect, test } from 'vitest';
import { RECORD_VERSION } from '../../src/record/checkpoint.ts';
import { headOf } from '../../src/record/delta.ts';
import { headFieldsOf, showMessages, sizeBound, stateOf, transcriptOf } from '../../src/record/state.ts';
import {
  beginProgress,
  closeStep,
  openStep,
  type Progress,
  recordAnswer,
  recordResult,
  startCalls,
} from '../../src/run/progress.ts';
import { resumeProgress } from '../../src/run/resume.ts';
import { enterMessage } from '../../src/values/message.ts';
import { torture } from '../crash/random.ts';
import { metaOf } from '../fixtures/states.ts';

const usage = { inputTokens: 3, outputTokens: 2, reasoningTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 };
const effects = { a: { effect: 'read' }, b: { effect: 'idempotent' }, c: { effect: 'once' } } as const;
const definition = { version: '1', hash: 'h' };
// JSON has no -0: it comes back as 0.
const json = fc.jsonValue({ maxDepth: 3 }).map((value) => JSON.parse(JSON.stringify(value)));
const anyText = fc.string({ unit: 'binary', maxLength: 12 });

/** One turn of a model, and how many of its calls have come how far. */
const turns = fc.array(
  fc.record({
    text: fc.oneof(anyText, fc.constant('lone \ud800')),
    options: fc.option(fc.dictionary(anyText, json, { maxKeys: 2 }), { nil: undefined }),
    calls: fc.array(fc.record({ name: fc.constantFrom('a', 'b', 'c', 'unknown', '__proto__'), input: json }), {
      maxLength: 3,
    }),
  }),
  { maxLength: 4 },
);

/** A progress that came about as runs make theirs: `open` leaves the last step with calls in all three states. */
const progresses = fc
  .record({
    turns,
    open: fc.boolean(),
    inputs: fc.dictionary(fc.string(), json, { maxKeys: 2 }),
    hasImage: fc.boolean(),
    attempts: fc.nat(3),
    outcome: fc.boolean(),
  })
  .map(({ turns: all, open, inputs, hasImage, attempts, outcome }): Progress => {
    const image = { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'AQ==' } } as const;
    let progress = beginProgress(metaOf(), definition, { inputs: inputs as never, images: hasImage ? [image] : [] });
    for (const [i, { text, options, calls }] of all.entries()) {
      const content = [
        { type: 'text' as const, text, ...(options ? { providerOptions: options as never } : {}) },
        ...calls.map(({ name, input }, n) => ({
          type: 'tool-call' as const,
          toolCallId: `c${n}`,
          toolName: name,
          input,
        })),
      ];
      const reply = { message: { role: 'assistant' as const, content }, finishReason: 'x', usage };
      if (calls.length === 0) progress = recordAnswer(progress, reply);
      else progress = progressed(openStep(progress, reply, effects), open && i === all.length - 1);
    }
    const ended = {
      runId: 'run-1',
      status: 'ok',
      output: 'x',
      usage,
      iterations: 1,
      phases: [],
      undelivered: [],
      durable: true,
      saveErrors: 0,
      outcomeId: 'x:1',
    } as const;
    return { ...progress, attempts, ...(outcome ? { outcome: ended } : {}) };
  });

function progressed(opened: Progress, staysOpen: boolean): Progress {
  const ids = opened.openStep?.calls.map(({ callId }) => callId) ?? [];
  const started = startCalls(opened, new Set(staysOpen ? ids.slice(0, 2) : ids));
  const answered = staysOpen ? ids.slice(0, 1) : ids;
  const all = answered.reduce((each, id) => recordResult(each, id, { type: 'text', value: id }), started);
  return closeStep(all);
}

const plain = (record: unknown): RunCheckpoint => JSON.parse(JSON.stringify(record)) as RunCheckpoint;

describe('any run, as a record', () => {
  test('is plain JSON, is read as it was written, and comes out of a store deep-equal (checkpoint 2)', async () => {
    await fc.assert(
      fc.asyncProperty(progresses, fc.nat(), async (progress, now) => {
        const record = toCheckpoint(progress, now, 1);
        expect(plain(record)).toEqual(record);
        expect(parseCheckpoint(plain(record))).toEqual(record);
        expect(record).toMatchObject({ version: RECORD_VERSION, updatedAt: now, revision: 1 });
        const store = memoryStore();
        await store.save(record);
        expect(await store.load('run-1')).toEqual(record);
      }),
      { numRuns: 120 * torture },
    );
  });

  test('continues as the same progress: to a record, to a resume state, and to the same record again (checkpoint 2, executor 13)', () => {
    fc.assert(
      fc.property(progresses, (progress) => {
        const record = plain(toCheckpoint(progress, 7, 3));
        const fresh = beginProgress(metaOf(), definition);
        const resumed = resumeProgress(fresh, toResumeState(record), effects);
        expect(toCheckpoint(resumed, 7, 3)).toEqual(record);
      }),
      { numRuns: 120 * torture },
    );
  });

  test('has a head without messages, inputs and images (checkpoint 3)', () => {
    fc.assert(
      fc.property(progresses, (progress) => {
        const record = toCheckpoint(progress, 7);
        const { messages, inputs, images, ...rest } = record;
        expect(headOf(record)).toEqual(rest);
        expect(messages.length).toBe(progress.transcript.length);
        expect(inputs ?? {}).toEqual(progress.inputs.value);
        expect(images ?? []).toEqual(progress.images.value);
      }),
      { numRuns: 100 },
    );
  });

  test.for(['\u0001', '\ud800', 'é', '"', 'x'])(
    'has a head whose JSON is no larger than the bound of its state, however long its texts of %j are (checkpoint 25)',
    (letter) => {
      const text = letter.repeat(400_000);
      const head = {
        parked: { code: 'RUN_PARKED', reason: text },
        completedPhases: [{ name: text, output: text, index: 0, hash: 'h', data: { text } }],
        waiting: { waits: [], settled: [{ id: text, kind: 'timer' as const, how: 'wake', at: 1 }] },
        commands: [text, 'c'],
        definition: { version: text, hash: 'h' },
        critic: { text },
        nudges: [enterMessage({ role: 'user', content: [{ type: 'text', text }] })],
      };
      const wait = { id: 'w', createdAt: 1, step: 1, kind: 'question', question: text };
      for (const [key, value] of [...Object.entries(head), ['waiting', { waits: [wait], settled: [] }] as const]) {
        const progress = { ...beginProgress(metaOf(), definition), [key]: value };
        const state = stateOf(progress, { elapsedMs: 1, seq: 1 });
        const bytes = Buffer.byteLength(JSON.stringify(headFieldsOf(state, 0)));
        expect([key, 3 * sizeBound(state) >= bytes]).toEqual([key, true]);
      }
    },
  );

  test('as a state for a checkpointer says the same as its record, with messages only when they are asked for', () => {
    fc.assert(
      fc.property(progresses, (progress) => {
        const state = showMessages(stateOf(progress, { elapsedMs: progress.elapsedMs, seq: 0 }));
        const { version: _, meta: __, updatedAt: ___, revision: ____, ...record } = toCheckpoint(progress, 7);
        expect({ ...state, seq: undefined }).toEqual({ ...record, seq: undefined });
        expect(transcriptOf(state).transcript).toBe(progress.transcript);
        expect(Array.isArray(state.messages)).toBe(true);
      }),
      { numRuns: 100 },
    );
  });
});

test("a host's own state with a plain array of messages is taken in message by message (checkpoint 11)", () => {
  const messages: Message[] = [{ role: 'user', content: [{ type: 'text', text: 'x' }] }];
  expect(transcriptOf({ iteration: 1, messages }).transcript.slice()).toEqual(messages);
  const bad = [...messages, { role: 'user', content: [{ type: 'text', text: new Date() }] }] as never;
  expect(() => transcriptOf({ iteration: 1, messages: bad })).toThrow(/messages\[1\]\.content\[0\]\.text/);
});

test('a resume state has neither version, meta, time nor revision, and the messages are its history', () => {
  const record = {
    ...toCheckpoint(beginProgress(metaOf(), definition), 7, 3),
    openPhase: { index: 0, hash: 'h', iteration: 1 },
  };
  const state = toResumeState(record);
  for (const key of ['version', 'meta', 'updatedAt', 'revision', 'messages']) expect(state).not.toHaveProperty(key);
  expect(state.history).toEqual(record.messages);
  expect(state.openPhase).toEqual(record.openPhase);
});
