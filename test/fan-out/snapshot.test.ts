import { join } from 'node:path';
import fc from 'fast-check';
import {
  buildCheckpoint,
  fromModelResponse,
  IncrementalSaver,
  loadCheckpoint,
  type ResponseSnapshot,
  saveCheckpoint,
  snapshotFromPartial,
  toModelResponse,
} from 'pawl/fan-out';
import { describe, expect, test } from 'vitest';
import { decodeFanOut, encodeFanOut } from '../../src/fan-out/checkpoint.ts';
import { torture } from '../crash/random.ts';
import { answers, checkpointsOf, snapshots } from './arbitrary-answers.ts';
import { freshFolder } from './fresh-folder.ts';
import { answer, checkpointOf, nothing } from './sample-answers.ts';

const isValid = ({ completed, interrupted, error }: ResponseSnapshot) =>
  !completed || (!interrupted && error === undefined);

/** What JSON can say of a value: the key `__proto__` is one like any other. */
const asJson = (value: unknown): unknown => JSON.parse(JSON.stringify(value));
const keysOf = (value: unknown): string[] =>
  typeof value !== 'object' || value === null
    ? []
    : Object.entries(value).flatMap(([key, each]) => (Array.isArray(value) ? keysOf(each) : [key, ...keysOf(each)]));

describe('an answer and its snapshot', () => {
  test('an answer comes back from its snapshot with every field, stop reason and steps included (fan-out 4)', () => {
    fc.assert(
      fc.property(answers, (response) => {
        const snapshot = fromModelResponse(response);
        expect(isValid(snapshot)).toBe(true);
        expect(snapshot.completed).toBe(!response.interrupted && response.error === undefined);
        expect(toModelResponse(snapshot)).toEqual(response);
      }),
      { numRuns: 120 * torture },
    );
  });

  test('a snapshot of a model at work is never completed, and comes back as an interrupted answer (fan-out 4)', () => {
    fc.assert(
      fc.property(fc.string(), answers, (modelId, { modelId: _, error: __, ...partial }) => {
        const snapshot = snapshotFromPartial(modelId, partial);
        expect(snapshot).toMatchObject({ modelId, completed: false, interrupted: partial.interrupted });
        expect(toModelResponse(snapshot)).toEqual({ ...partial, modelId, interrupted: true });
      }),
    );
    expect(toModelResponse(snapshotFromPartial('deep', {}))).toEqual({ ...nothing, stopReason: '' });
  });

  test('what is empty is in no snapshot (fan-out 2)', () => {
    expect(fromModelResponse(nothing)).toEqual({
      ...{ modelId: 'deep', latencyMs: 0, inputTokens: 0, outputTokens: 0, costUsd: 0 },
      ...{ interrupted: true, completed: false, stopReason: 'cancelled', steps: 0 },
    });
  });

  test('a checkpoint is built exactly when a response was interrupted, in adapter order (fan-out 3)', () => {
    fc.assert(
      fc.property(fc.uniqueArray(answers, { maxLength: 5, selector: ({ modelId }) => modelId }), (responses) => {
        const ids = responses.map(({ modelId }) => modelId);
        const checkpoint = buildCheckpoint('Which?', ids, [...responses].reverse(), true);
        expect(checkpoint === null).toBe(!responses.some(({ interrupted }) => interrupted));
        if (!checkpoint) return;
        expect(checkpoint).toMatchObject({ version: 1, prompt: 'Which?', adapterIds: ids, verbose: true });
        expect(checkpoint.responses.map(toModelResponse)).toEqual(responses);
      }),
    );
    expect(buildCheckpoint('Which?', [], [], false)).toBeNull();
  });
});

describe('a checkpoint as text', () => {
  test('the keys on the disk are snake_case, and nothing that is empty is there (fan-out 2)', () => {
    const text = encodeFanOut(checkpointOf(fromModelResponse(answer), fromModelResponse(nothing)));
    const [full, empty] = JSON.parse(text).responses;
    const mustBe = ['model_id', 'latency_ms', 'input_tokens', 'output_tokens', 'cost_usd'];
    const ends = ['interrupted', 'completed', 'stop_reason', 'steps'];
    expect(Object.keys(empty)).toEqual([...mustBe, ...ends]);
    expect(new Set(Object.keys(full))).toEqual(
      new Set([...mustBe, ...ends, 'text', 'reasoning_tokens', 'proposed_writes', 'tool_calls']),
    );
    expect(full.proposed_writes).toEqual(answer.proposedWrites);
    const keys = ['version', 'prompt', 'timestamp', 'adapter_ids', 'verbose', 'responses'];
    expect(Object.keys(JSON.parse(text))).toEqual(keys);
    for (const key of keysOf({ ...JSON.parse(text), tool_calls: 0 })) expect(key).toMatch(/^[a-z]+(_[a-z]+)*$/);
  });

  test('empty fields that a host hands over are left out on the disk, too (fan-out 2)', () => {
    const empty = { text: '', proposedWrites: [], toolCalls: {} };
    const [written] = JSON.parse(encodeFanOut(checkpointOf({ ...fromModelResponse(nothing), ...empty }))).responses;
    for (const key of ['text', 'proposed_writes', 'tool_calls', 'error', 'reasoning_tokens']) {
      expect(written).not.toHaveProperty(key);
    }
  });

  test('any checkpoint comes back as it was: hostile names, lone surrogates and huge figures included (fan-out 3)', () => {
    fc.assert(
      fc.property(checkpointsOf(answers.map(fromModelResponse)), (checkpoint) => {
        const text = Buffer.from(encodeFanOut(checkpoint)).toString();
        const found = decodeFanOut(text, 'ask.json');
        expect(asJson(found)).toEqual(asJson(checkpoint));
        expect(encodeFanOut(found)).toBe(text);
        expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
      }),
      { numRuns: 120 * torture },
    );
  });

  test('a tool named __proto__ and a base of null are there after a round trip (fan-out 3)', () => {
    const toolCalls = JSON.parse('{ "__proto__": 7 }') as Record<string, number>;
    const proposedWrites = [{ path: 'a', content: '\ud800', base: null }];
    const snapshot = fromModelResponse({ ...answer, toolCalls, proposedWrites });
    const [found] = decodeFanOut(encodeFanOut(checkpointOf(snapshot)), 'ask.json').responses;
    expect(Object.entries(found?.toolCalls ?? {})).toEqual([['__proto__', 7]]);
    expect(found?.proposedWrites).toStrictEqual(proposedWrites);
  });

  test('fields that today’s code does not know are left out, and do no harm (fan-out 2)', () => {
    const value = JSON.parse(encodeFanOut(checkpointOf(fromModelResponse(answer))));
    const strange = { ...value, later: { a: 1 }, responses: [{ ...value.responses[0], mood: 'good' }] };
    expect(decodeFanOut(JSON.stringify(strange), 'ask.json')).toEqual(checkpointOf(fromModelResponse(answer)));
  });

  test.for([Number.NaN, Number.POSITIVE_INFINITY, '5', null])(
    'a figure that JSON cannot hold is refused, and not written as something else: %s (fan-out 3)',
    (steps) => {
      const snapshot = { ...fromModelResponse(answer), steps: steps as number };
      expect(() => encodeFanOut(checkpointOf(snapshot))).toThrow(expect.objectContaining({ code: 'NOT_JSON' }));
    },
  );
});

describe('on the disk', () => {
  test('what was saved is loaded, and a path where nothing is gives null (fan-out 3)', async () => {
    const path = join(freshFolder(), 'some', 'folder', 'ask.json');
    expect(await loadCheckpoint(path)).toBeNull();
    const checkpoint = checkpointOf(fromModelResponse(answer), fromModelResponse(nothing));
    await saveCheckpoint(path, checkpoint);
    expect(await loadCheckpoint(path)).toEqual(checkpoint);
  });

  test('for any value of update or markCompleted, completed implies neither interrupted nor error (fan-out 4)', async () => {
    const folder = freshFolder();
    let files = 0;
    const property = fc.asyncProperty(snapshots, snapshots, async (turn, last) => {
      const path = join(folder, `${files++}.json`);
      await using saver = new IncrementalSaver(path, 'Which?', ['a', 'b'], false);
      await Promise.all([saver.update('a', turn), saver.markCompleted('b', last)]);
      const [a, b] = (await loadCheckpoint(path))?.responses ?? [];
      expect(a).toMatchObject({ modelId: 'a', completed: false, stopReason: turn.stopReason, steps: turn.steps });
      expect(b).toMatchObject({ modelId: 'b', completed: !last.interrupted && last.error === undefined });
    });
    await fc.assert(property, { numRuns: 30 });
  });
});
