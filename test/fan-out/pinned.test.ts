import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Checkpoint, fanOut, loadCheckpoint, saveCheckpoint } from 'pawl/fan-out';
import { reply, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { canonicalJson, type JsonValue } from '../../src/values/json.ts';
import { freshFolder } from './fresh-folder.ts';
import { answer } from './sample-answers.ts';

/** What a released version wrote is never edited: these are the files as they were. */
const hashes = {
  'checkpoint.json': '0b90799c389d06ea11f5fa483307bf56e60bd8b901176bbb745bef5c33f97a48',
  'answers.json': '5fe2ef4401047b4351c5f4f1aa1d3a58c37708454b987d92fcca65a70ef540db',
};
type Pin = keyof typeof hashes;

const pathOf = (pin: Pin) => fileURLToPath(new URL(`../fixtures/fan-out/v1/${pin}`, import.meta.url));
const toolCalls = JSON.parse('{ "read_file": 2, "write_file": 2, "__proto__": 1 }');
const { modelId: _, ...fast } = answer;
const write = { path: 'dir/é \u{1f600}.txt', content: 'line\n\ud800\u2028', base: null };
const proposedWrites = [...answer.proposedWrites, write, { path: 'c.txt', content: 'x' }];
const ended = { ...fast, proposedWrites, toolCalls, completed: true };

const first: Omit<Checkpoint, 'responses'> = {
  ...{ version: 1, prompt: 'Which of the two is "faster"?\nSay why: é \u{1f600} \ud800', verbose: true },
  ...{ timestamp: '2026-11-21T23:00:00.000Z', adapterIds: ['fast', 'deep', '__proto__', 'late'] },
};

/** What each of the files holds: every field is in use in one response or the other. */
const held: Readonly<Record<Pin, Checkpoint>> = {
  'checkpoint.json': {
    ...first,
    responses: [
      { ...ended, modelId: 'fast' },
      { ...ended, modelId: 'deep', completed: false, interrupted: true, stopReason: 'deadline', latencyMs: 600_000 },
      { ...ended, modelId: '__proto__', completed: false, error: 'the key was refused', stopReason: 'MODEL_FAILED' },
    ],
  },
  'answers.json': {
    ...first,
    ...{ adapterIds: ['fast', 'deep'], timestamp: '2026-11-22T08:00:00Z', verbose: false },
    responses: [
      { ...ended, modelId: 'fast' },
      { ...ended, modelId: 'deep', text: 'No.', costUsd: 1e-7, inputTokens: Number.MAX_SAFE_INTEGER },
    ],
    ranking: { order: ['deep', 'fast'], reason: 'It is right.' },
  },
};

/** Its keys in order, `__proto__` as one of them. */
const textOf = (checkpoint: Checkpoint | null) => canonicalJson(checkpoint as unknown as JsonValue);

describe.for(Object.keys(held) as Pin[])('the pinned %s of version 1', (pin) => {
  test('is what it was, byte for byte (fan-out 2)', () => {
    expect(
      createHash('sha256')
        .update(readFileSync(pathOf(pin)))
        .digest('hex'),
    ).toBe(hashes[pin]);
  });

  test('is read with all it holds (fan-out 3)', async () => {
    const found = await loadCheckpoint(pathOf(pin));
    expect(textOf(found)).toBe(textOf(held[pin]));
  });

  test('is what today’s code writes, byte for byte, but for a timestamp that was a number (fan-out 2)', async () => {
    const path = join(freshFolder(), pin);
    await saveCheckpoint(path, held[pin]);
    const inMs = `"timestamp":${Date.parse('2026-11-21T23:00:00.000Z')}`;
    const pinned = readFileSync(pathOf(pin), 'utf8').replace(inMs, '"timestamp":"2026-11-21T23:00:00.000Z"');
    expect(readFileSync(path, 'utf8')).toBe(pinned);
  });
});

test('a fan-out continues from the pinned checkpoint: models that have answered are not asked, the others are (fan-out 5)', async () => {
  const folder = freshFolder();
  const path = join(folder, 'ask.json');
  copyFileSync(pathOf('checkpoint.json'), path);
  const fast = scriptedModel([]);
  const others = ['deep', '__proto__', 'late'].map((id) => [id, scriptedModel([reply(`of ${id}`)])] as const);
  const models = Object.fromEntries([['fast', fast] as const, ...others]);
  const result = await fanOut({ prompt: first.prompt, models, path, logger: { warn: () => {} } });
  expect(result.responses.map(({ text }) => text)).toEqual(['Yes.', 'of deep', 'of __proto__', 'of late']);
  expect([fast.calls.length, ...others.map(([, { calls }]) => calls.length)]).toEqual([0, 1, 1, 1]);
  expect([result.interrupted, existsSync(path), result.path]).toEqual([
    false,
    false,
    join(folder, '.pawl', 'answers.json'),
  ]);
});
