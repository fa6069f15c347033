import { createBudget } from 'pawl';
import { genaiPrices } from 'pawl/prices';
import { expect, test } from 'vitest';
import { pricesOf } from '../../src/budget/price-package.ts';
import { noUsage } from '../../src/values/usage.ts';
import { call, use } from './stores.ts';

const prices = await genaiPrices();
const usd = (model: string, usage: Partial<typeof noUsage>) =>
  prices({ model, modelTier: 'fast', usage: { ...noUsage, ...usage } });

test('the kept prices know models under the names that AI SDK providers have (supervision 4)', () => {
  for (const model of ['openai/gpt-4o', 'openai.responses/gpt-4o', 'azure.chat/gpt-4o']) {
    expect(usd(model, { inputTokens: 1_000_000, outputTokens: 100_000 })).toBeCloseTo(3.5, 6);
  }
  for (const model of [
    'anthropic.messages/claude-sonnet-4-5',
    'google.generative-ai/gemini-2.5-pro',
    'groq.chat/llama-3.3-70b-versatile',
  ]) {
    expect(usd(model, { inputTokens: 1_000 })).toBeGreaterThan(0);
  }
});

test('the kept prices take cached input for less (supervision 4)', () => {
  const plain = usd('openai/gpt-4o', { inputTokens: 1_000 }) ?? 0;
  const cached = usd('openai/gpt-4o', { inputTokens: 1_000, cacheReadTokens: 1_000 }) ?? 0;
  expect(cached).toBeLessThan(plain);
  expect(cached).toBeGreaterThan(0);
  // Reported without its cache.
  expect(usd('openai/gpt-4o', { inputTokens: 0, cacheReadTokens: 1_000 })).toBe(cached);
});

test('a model that the kept prices do not know has no price, and a limit in dollars refuses it (supervision 4)', async () => {
  expect(usd('openai/no-such-model', { inputTokens: 1_000 })).toBe(undefined);
  expect(usd('nobody/gpt-4o', { inputTokens: 1_000 })).toBe(undefined);
  expect(usd('gpt-4o', { inputTokens: 1_000 })).toBe(undefined);
  const budget = createBudget({ usd: 1, prices });
  await expect(budget.reserve('ada', call('run', 1, { model: 'nobody/gpt-4o' }))).rejects.toMatchObject({
    code: 'BUDGET_EXCEEDED',
  });
  const reservation = await budget.reserve('ada', call('run', 1, { model: 'openai.chat/gpt-4o' }));
  expect((await budget.commit(reservation, use(1_000, 100))).usd).toBeCloseTo(0.0035, 9);
});

test('without the package the message says what to install (supervision 4)', async () => {
  const missing = Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' });
  await expect(pricesOf(() => Promise.reject(missing))).rejects.toMatchObject({
    code: 'UNSUPPORTED',
    message: expect.stringContaining('npm install @pydantic/genai-prices'),
  });
  const broken = new Error('it is broken');
  await expect(pricesOf(() => Promise.reject(broken))).rejects.toBe(broken);
});
