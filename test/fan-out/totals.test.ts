import { rmSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import type { RunEvent } from 'pawl';
import { type FanOutResult, fanOut, loadCheckpoint, toModelResponse } from 'pawl/fan-out';
import { callTools, reply, type ScriptedRequest, type ScriptedStep } from 'pawl/testing';
import { expect, test } from 'vitest';
import { answeringModel, turnsOf } from '../fixtures/answering-model.ts';
import { toolOf } from '../fixtures/host.ts';
import { prompt } from './asking.ts';
import { freshFolder } from './fresh-folder.ts';

/** What a model does in each turn is a function of how many it has had: calls of every effect, changes of files, an answer. */
const turns: readonly (readonly [id: string, turns: readonly ScriptedStep[]])[] = [
  [
    'a',
    [
      callTools([
        { name: 'look', input: { at: 1 } },
        { name: 'send', input: { to: 'x' } },
      ]),
      callTools([{ name: 'write_file', input: { path: 'new.txt', content: 'one' } }]),
      callTools([{ name: 'read_file', input: { path: 'new.txt' } }]),
      reply('all of a'),
    ],
  ],
  [
    'b',
    [
      callTools([
        { name: 'write_file', input: { path: 'b.txt', content: '1' } },
        { name: 'write_file', input: { path: 'b.txt', content: '2' } },
        { name: 'look', input: {} },
      ]),
      callTools([{ name: 'delete_file', input: { path: 'b.txt' } }]),
      callTools([{ name: 'send', input: {} }]),
      reply('all of b'),
    ],
  ],
  ['c', [reply('all of c')]],
];

const answerOf = (script: readonly ScriptedStep[]) => (request: ScriptedRequest) =>
  script[turnsOf(request)] ?? reply('too many turns');

/** One call of `fanOut` with models that can be asked again; `abortAt` = the number of the event at which it is interrupted. */
async function ask(
  folder: string,
  asks: Map<string, number>,
  abortAt = Number.POSITIVE_INFINITY,
): Promise<FanOutResult> {
  const caller = new AbortController();
  let events = 0;
  const onEvent = (_: string, __: RunEvent) => {
    events += 1;
    if (events === abortAt) caller.abort();
  };
  const models = turns.map(([id, script]) => {
    const answer = answerOf(script);
    const counted = (request: ScriptedRequest) => {
      asks.set(id, (asks.get(id) ?? 0) + 1);
      return answer(request);
    };
    return [id, answeringModel(counted)] as const;
  });
  return fanOut({
    prompt,
    models: Object.fromEntries(models),
    tools: [toolOf('look', 'read', () => 'seen'), toolOf('send', 'once', () => 'sent')],
    path: join(folder, 'ask.json'),
    root: folder,
    prices: { 'scripted/scripted': { inputPerMillion: 2, outputPerMillion: 10 } },
    signal: caller.signal,
    onEvent,
  });
}

const totalsOf = ({ responses }: FanOutResult) => responses.map(({ latencyMs: _, ...rest }) => rest);

test('whenever a fan-out is interrupted, and however often, its totals are those of one that was not (fan-out 5)', {
  timeout: 240_000,
}, async () => {
  const whole = await ask(freshFolder(), new Map());
  expect(whole.responses.map(({ text }) => text)).toEqual(['all of a', 'all of b', 'all of c']);
  expect(whole.responses[0]?.costUsd).toBeGreaterThan(0);
  const seen = { interruptions: 0, resumedInTheMiddle: 0 };
  const moments = fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 3 });
  const property = fc.asyncProperty(moments, async (moments) => {
    const folder = freshFolder();
    const asks = new Map<string, number>();
    for (const abortAt of moments) {
      const before = new Map(asks);
      const found = await loadCheckpoint(join(folder, 'ask.json'));
      const { interrupted, responses } = await ask(folder, asks, abortAt);
      for (const { modelId, completed } of found?.responses ?? []) {
        if (completed) expect(asks.get(modelId), `${modelId} has answered`).toBe(before.get(modelId));
      }
      if (!interrupted) break;
      seen.interruptions += 1;
      if (responses.some(({ interrupted, steps }) => interrupted && steps > 0)) seen.resumedInTheMiddle += 1;
    }
    expect(totalsOf(await askOrRead(folder, asks))).toEqual(totalsOf(whole));
    rmSync(folder, { recursive: true });
  });
  await fc.assert(property, { numRuns: process.env.PAWL_TORTURE === '1' ? 300 : 6 });
  for (const [what, count] of Object.entries(seen)) expect(count, what).toBeGreaterThan(0);
});

/** The rest of it. What was done to its end by then is asked anew, which would show nothing: then its answers are read. */
async function askOrRead(folder: string, asks: Map<string, number>): Promise<FanOutResult> {
  const kept = await loadCheckpoint(join(folder, '.pawl', 'answers.json'));
  if (!kept) return ask(folder, asks);
  return { responses: kept.responses.map(toModelResponse), interrupted: false };
}
