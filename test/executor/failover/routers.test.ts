import { createFallback } from 'ai-fallback';
import { createRetryableModel, httpStatus } from 'ai-retry/language-model';
import type { Model } from 'pawl';
import { callTool, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { named, overloaded, played, refusal } from './lists.ts';

/** A router of another package: the first model is away, the second one answers. */
const routers: readonly (readonly [name: string, make: (first: Model, second: Model) => Model])[] = [
  ['ai-fallback', (first, second) => createFallback({ models: [first, second] }) as Model],
  [
    'ai-retry',
    (first, second) =>
      createRetryableModel({ model: first, retries: [httpStatus(529).switch({ model: second })] }) as Model,
  ],
];

describe.each(routers)('a model of %s', (_, make) => {
  const away = () => named('anthropic/opus', Array(20).fill(overloaded));

  test('is a tier of its own, as before (failover 1, 33)', async () => {
    const gpt = named('openai/gpt', [callTool('look'), reply('done')]);
    const { run } = await played([], { models: { fast: make(away(), gpt) } });
    expect(await run.result).toMatchObject({ status: 'ok', output: 'done', iterations: 2 });
  });

  test('is an entry of a list, and the next entry is asked when it fails (failover 1, 2, 33)', async () => {
    const gpt = named('openai/gpt', [reply('done')]);
    const { run } = await played([make(away(), gpt) as never, named('google/pro', [])]);
    expect(await run.result).toMatchObject({ status: 'ok', output: 'done' });
    const both = make(away(), named('openai/gpt', [refusal(401), refusal(401), refusal(401), refusal(401)]));
    const host = await played([both as never, named('google/pro', [reply('pro')])]);
    expect(await host.run.result).toMatchObject({ status: 'ok', output: 'pro' });
  });
});
