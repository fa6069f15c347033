import fc from 'fast-check';
import { memoryStore, type RunCheckpoint } from 'pawl';
import { parseCheckpoint, toCheckpoint, toResumeState } from 'pawl/stores/kit';
import { describe, expect, test } from 'vitest';
import { RECORD_VERSION } from '../../src/record/checkpoint.ts';
import { showMessages, stateOf } from '../../src/record/state.ts';
import { beginPhase, keepPhase, recordable } from '../../src/run/pipeline.ts';
import { beginProgress, type Progress } from '../../src/run/progress.ts';
import { resumeProgress } from '../../src/run/resume.ts';
import { answered, completed, facts, stepped } from '../fixtures/pipelines.ts';
import { recordOf } from '../fixtures/records.ts';
import { metaOf } from '../fixtures/states.ts';

const plain = (record: unknown): RunCheckpoint => JSON.parse(JSON.stringify(record)) as RunCheckpoint;
const text = fc.string({ unit: 'binary', maxLength: 12 });

/** A pipeline as far as it has come, made by the functions that pipelines are made by. */
const pipelines = fc
  .record({
    names: fc.array(text, { maxLength: 4 }),
    outputs: text,
    open: fc.constantFrom('none', 'step', 'boundary', 'kept'),
    steps: fc.nat(3),
  })
  .map(({ names, outputs, open, steps }): Progress => {
    const between = completed(names.map((name) => facts(name)));
    const told = {
      ...between,
      completedPhases: between.completedPhases.map((phase) => ({ ...phase, output: `${phase.output}${outputs}` })),
    };
    if (open === 'none') return told;
    let progress = beginPhase(told, facts('last', { recovery: open === 'step' ? 'step' : 'boundary' }));
    for (let step = 0; step < steps; step++) progress = stepped(progress);
    return open === 'kept' ? keepPhase(progress) : progress;
  });

describe('any pipeline, as a record', () => {
  test('is plain JSON, is read as it was written, and comes out of a store deep-equal (checkpoint 2, 3)', async () => {
    await fc.assert(
      fc.asyncProperty(pipelines, async (progress) => {
        const record = toCheckpoint(progress, 7, 1);
        expect(plain(record)).toEqual(record);
        expect(parseCheckpoint(plain(record))).toEqual(record);
        const store = memoryStore();
        await store.save(record);
        expect(await store.load('run-1')).toEqual(record);
      }),
    );
  });

  test('has the messages of its phases, and outputs only of those that are complete (checkpoint 3)', () => {
    fc.assert(
      fc.property(pipelines, (progress) => {
        const { messages, openPhase, completedPhases } = toCheckpoint(progress, 7);
        const isRecorded = progress.openPhase !== undefined && !progress.openPhase.start;
        expect(openPhase !== undefined).toBe(isRecorded);
        const { from = 1, iteration = 0 } = openPhase ?? {};
        if (openPhase) expect(messages).toHaveLength(Math.max(1, from) + 2 * iteration);
        else expect(messages.length).toBeGreaterThan(completedPhases.at(-1)?.from ?? 0);
        expect(completedPhases).toEqual(progress.completedPhases);
        expect(openPhase?.start).toBeUndefined();
      }),
    );
  });

  test('continues as the same progress: to a record, to a resume state, and to the same record again (executor 13)', () => {
    fc.assert(
      fc.property(pipelines, (progress) => {
        const record = plain(toCheckpoint(progress, 7, 3));
        const resumed = resumeProgress(beginProgress(metaOf(), { version: '1', hash: 'h' }), toResumeState(record));
        expect(plain(toCheckpoint(recordable(resumed), 7, 3))).toEqual({ ...record, messages: expect.any(Array) });
        const { openPhase } = record;
        expect(resumed.transcript.length).toBe(1 + 2 * (openPhase?.iteration ?? 0));
        expect(plain(resumed.transcript.slice(1))).toEqual(
          record.messages.slice(Math.max(1, openPhase?.from ?? record.messages.length)),
        );
      }),
    );
  });

  test('as a state for a checkpointer says the same as its record', () => {
    fc.assert(
      fc.property(pipelines, (progress) => {
        const { seq: _, ...state } = showMessages(stateOf(progress, { elapsedMs: 0, seq: 0 }));
        const { version, meta, updatedAt, revision, ...record } = toCheckpoint(progress, 7);
        expect(state).toEqual(record);
        expect([version, meta, updatedAt, revision]).toEqual([RECORD_VERSION, metaOf(), 7, 0]);
      }),
    );
  });

  test('of a finished run holds its outputs, and the messages of all phases', () => {
    const done = completed([facts('a'), facts('b')]);
    const { messages, completedPhases } = toCheckpoint(done, 7);
    expect([messages.length, completedPhases.map(({ from }) => from)]).toEqual([3, [0, 2]]);
    expect(toCheckpoint(answered(beginPhase(done, facts('c')), 'x'), 7).messages).toHaveLength(4);
  });
});

describe('a damaged record of a pipeline is refused, with the name of the field (checkpoint 7)', () => {
  const open = { index: 0, hash: 'h', iteration: 1 };
  const wrong: [field: string, value: unknown][] = [
    ['openPhase', 'x'],
    ['openPhase', []],
    ['openPhase', {}],
    ['openPhase', { ...open, index: -1 }],
    ['openPhase', { ...open, index: 'first' }],
    ['openPhase', { ...open, hash: 7 }],
    ['openPhase', { ...open, iteration: 1.5 }],
    // Where a phase that begins anew began is never stored.
    ['openPhase', { ...open, start: { usage: 'x' } }],
    ['openPhase', { ...open, start: 7 }],
    ['counters', { failedSteps: 0, repeats: {}, repairs: 'x' }],
    ['counters', { failedSteps: 0, repeats: {}, repairs: -9 }],
    ['completedPhases', {}],
    ['completedPhases', [null]],
    ['completedPhases', [{ name: 'a' }]],
    ['completedPhases', [{ name: 7, output: '' }]],
    ['completedPhases', ['a']],
    ['outcome', { ...recordOf('outcome').outcome, phases: [{ name: 'a' }] }],
    ['outcome', { ...recordOf('outcome').outcome, phases: {} }],
  ];
  test.for(wrong)('%s: %j', ([field, value]) => {
    expect(() => parseCheckpoint({ ...recordOf('first'), [field]: value })).toThrow(
      expect.objectContaining({ code: 'CHECKPOINT_CORRUPT', message: expect.stringContaining(field) }),
    );
  });

  test('and one of a host’s own, whose phases have no places and hashes, is not', () => {
    const record = { ...recordOf('first'), completedPhases: [{ name: 'a', output: 'x' }], openPhase: open };
    expect(parseCheckpoint(record)).toEqual({ ...record, version: RECORD_VERSION });
  });
});
