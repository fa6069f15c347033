import { createHash } from 'node:crypto';
import { copyFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import {
  type Checkpoint,
  fanOut,
  IncrementalSaver,
  loadCheckpoint,
  type ResponseSnapshot,
  saveCheckpoint,
  toModelResponse,
} from 'pawl/fan-out';
import { reply, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { encodeFanOut } from '../../src/fan-out/checkpoint.ts';
import { torture } from '../crash/random.ts';
import { answers } from './arbitrary-answers.ts';
import { freshFolder } from './fresh-folder.ts';
import { answer, checkpointOf } from './sample-answers.ts';

/** A file as another program writes it that knows only the reference format. It is never edited. */
const fixture = fileURLToPath(new URL('../fixtures/fan-out/reference/checkpoint.json', import.meta.url));
const HASH = '9219c9e24a7508fbe8d45f695e6538aeb1211214334aee551cc1b4859e3a6e63';

const isText = (value: unknown) => typeof value === 'string';
const isFigure = (value: unknown) => typeof value === 'number';
const isFlag = (value: unknown) => typeof value === 'boolean';
const isAbsent = (value: unknown) => value === undefined;
const isTime = (value: unknown) =>
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(String(value)) &&
  !Number.isNaN(Date.parse(String(value)));
const isMap = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value);

type Check = (value: unknown) => boolean;
const orAbsent =
  (is: Check): Check =>
  (value) =>
    isAbsent(value) || is(value);

const referenceHead: Readonly<Record<string, Check>> = {
  prompt: isText,
  timestamp: isTime,
  adapter_ids: Array.isArray,
  responses: Array.isArray,
  verbose: isFlag,
};

/** The twelve fields of a response in the reference format. */
const referenceResponse: Readonly<Record<string, Check>> = {
  model_id: isText,
  text: orAbsent(isText),
  latency_ms: isFigure,
  input_tokens: isFigure,
  output_tokens: isFigure,
  reasoning_tokens: orAbsent(isFigure),
  cost_usd: isFigure,
  proposed_writes: orAbsent(Array.isArray),
  tool_calls: orAbsent(isMap),
  error: orAbsent(isText),
  interrupted: isFlag,
  completed: isFlag,
};

/** A reader that knows only the reference format: it passes over what it does not know, and refuses a wrong type. */
function readAsReference(text: string) {
  const take = (value: Record<string, unknown>, fields: Readonly<Record<string, Check>>) =>
    Object.fromEntries(
      Object.entries(fields).flatMap(([key, is]) => {
        const field = Object.hasOwn(value, key) ? value[key] : undefined;
        if (!is(field)) throw new TypeError(`${key} is ${JSON.stringify(field)}`);
        return field === undefined ? [] : [[key, field]];
      }),
    );
  const head = take(JSON.parse(text), referenceHead);
  const responses = (head.responses as Record<string, unknown>[]).map((each) => take(each, referenceResponse));
  return { ...head, responses };
}

/** A snapshot with the twelve fields of the reference, and no others. */
const twelve: ResponseSnapshot = {
  modelId: 'fast',
  text: 'Yes.',
  latencyMs: 1_200,
  inputTokens: 30,
  outputTokens: 12,
  reasoningTokens: 4,
  costUsd: 0.25,
  proposedWrites: [{ path: 'a.txt', content: 'new' }],
  toolCalls: { read_file: 2 },
  interrupted: false,
  completed: false,
};

describe('a fan-out file of the reference format (fan-out 2, 3)', () => {
  test('is the pinned fixture, byte for byte, without version, stop reasons and steps', () => {
    const text = readFileSync(fixture, 'utf8');
    expect(createHash('sha256').update(text).digest('hex')).toBe(HASH);
    expect(text).not.toMatch(/version|stop_reason|steps/);
    expect(Object.keys(referenceResponse)).toHaveLength(12);
  });

  test('is read with all it holds', async () => {
    const found = await loadCheckpoint(fixture);
    expect(found).toMatchObject({
      version: 1,
      prompt: 'Which of the two is "faster"?',
      timestamp: '2026-11-22T09:00:00.123456789+01:00',
      adapterIds: ['fast', 'deep', 'lost'],
      verbose: true,
    });
    expect(found?.responses[0]).toEqual({
      ...twelve,
      proposedWrites: [
        { path: 'a.txt', content: 'new' },
        { path: 'b.txt', content: '', delete: true },
      ],
      toolCalls: { read_file: 2, write_file: 1 },
      completed: true,
    });
    const ends = found?.responses.map(toModelResponse).map(({ interrupted, stopReason, steps, error }) => {
      return { interrupted, stopReason, steps, error };
    });
    expect(ends).toEqual([
      { interrupted: false, stopReason: 'answered', steps: 0, error: undefined },
      { interrupted: true, stopReason: 'interrupted', steps: 0, error: undefined },
      { interrupted: false, stopReason: '', steps: 0, error: 'the key was refused' },
    ]);
  });

  test('is for a reader of the reference the same after Pawl has read and written it', async () => {
    const path = join(freshFolder(), 'ask.json');
    await saveCheckpoint(path, (await loadCheckpoint(fixture)) as Checkpoint);
    expect(readAsReference(readFileSync(path, 'utf8'))).toEqual(readAsReference(readFileSync(fixture, 'utf8')));
  });

  test('is continued by a fan-out: the model that has answered is not asked again', async () => {
    const path = join(freshFolder(), 'ask.json');
    copyFileSync(fixture, path);
    const [fast, deep, lost] = [scriptedModel([]), scriptedModel([reply('No.')]), scriptedModel([reply('Found.')])];
    const prompt = 'Which of the two is "faster"?';
    const result = await fanOut({ prompt, models: { fast, deep, lost }, path, logger: { warn: () => {} } });
    expect(result.responses.map(({ text }) => text)).toEqual(['Yes.', 'No.', 'Found.']);
    expect([fast, deep, lost].map(({ calls }) => calls.length)).toEqual([0, 1, 1]);
    const kept = readAsReference(readFileSync(String(result.path), 'utf8'));
    expect(kept).toMatchObject({ adapter_ids: ['fast', 'deep', 'lost'] });
    expect(kept.responses[0]).toEqual(readAsReference(readFileSync(fixture, 'utf8')).responses[0]);
  });
});

describe('a file that Pawl writes (fan-out 2, 3)', () => {
  test('is readable by a reader that knows only the reference format, for any answers', () => {
    const property = fc.property(answers, fc.boolean(), (response, completed) => {
      const isCompleted = completed && !response.interrupted && response.error === undefined;
      const text = encodeFanOut(checkpointOf({ ...response, completed: isCompleted }));
      const found = readAsReference(text).responses[0];
      expect(found).toMatchObject({ model_id: response.modelId, completed: isCompleted });
      expect(found).not.toHaveProperty('stop_reason');
    });
    fc.assert(property, { numRuns: 80 * torture });
  });

  test('takes a snapshot of twelve fields from update, markCompleted and saveCheckpoint, and gives it back', async () => {
    const path = join(freshFolder(), 'ask.json');
    await using saver = new IncrementalSaver(path, 'Which?', ['fast', 'deep'], false);
    await Promise.all([saver.update('fast', twelve), saver.markCompleted('deep', { ...twelve, modelId: 'deep' })]);
    const found = await loadCheckpoint(path);
    expect(found?.responses).toEqual([twelve, { ...twelve, modelId: 'deep', completed: true }]);
    const other = join(freshFolder(), 'ask.json');
    await saveCheckpoint(other, found as Checkpoint);
    expect(await loadCheckpoint(other)).toEqual(found);
  });

  test('has its timestamp in RFC 3339, also where the host gives milliseconds', async () => {
    const path = join(freshFolder(), 'ask.json');
    await saveCheckpoint(path, { ...checkpointOf({ ...answer, completed: true }), timestamp: 1_795_302_000_000 });
    expect(JSON.parse(readFileSync(path, 'utf8')).timestamp).toBe('2026-11-21T23:00:00.000Z');
  });

  test.for([Number.NaN, 'today', '2026-11-23', '2026-13-40T08:00:00Z', ''])(
    'is not written with the timestamp %s, which is no time',
    async (timestamp) => {
      const path = join(freshFolder(), 'ask.json');
      const saving = saveCheckpoint(path, { ...checkpointOf({ ...answer, completed: true }), timestamp });
      await expect(saving).rejects.toMatchObject({ code: 'NOT_JSON', message: expect.stringContaining('timestamp') });
      expect(await loadCheckpoint(path)).toBeNull();
    },
  );
});
