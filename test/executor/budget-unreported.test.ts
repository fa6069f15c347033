import { createBudget, type Message } from 'pawl';
import { describe, expect, test } from 'vitest';
import { hostOf, toolOf } from '../fixtures/host.ts';
import { notingBudget } from '../fixtures/noting-ports.ts';
import { modelOf, streamOf, text } from '../model/fake-model.ts';

/** A model that calls a tool so many times, then answers; each reply reports this usage. */
function modelReporting(usage: unknown, calls = 0) {
  let turn = 0;
  return modelOf(async () => {
    turn += 1;
    const content =
      turn > calls
        ? text('x'.repeat(400))
        : [{ type: 'tool-call', toolCallId: `c${turn}`, toolName: 'look', input: JSON.stringify({ turn }) }];
    const finish = { type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage };
    return { stream: streamOf([...content, finish]) };
  });
}

const unreported: readonly unknown[] = [
  undefined,
  {},
  { inputTokens: { total: undefined }, outputTokens: { total: undefined } },
  { inputTokens: { total: 0 }, outputTokens: { total: 0 } },
  { inputTokens: { total: Number.NaN }, outputTokens: { total: -7 } },
  { inputTokens: { total: Number.POSITIVE_INFINITY }, outputTokens: { total: '9' } },
];
const tools = [toolOf('look', 'read', async () => 'y'.repeat(4_000))];

describe('a model whose provider reports no usage', () => {
  test.for(unreported)('uses up a budget all the same: %j', async (usage) => {
    const budget = createBudget({ tokens: 5_000 });
    const models = { fast: modelReporting(usage, 50) } as never;
    const host = hostOf({ models, tools, ports: { budget }, agent: { maxSteps: 50 } });
    const result = await host.run({ callerId: 'ann' });
    expect(result.error?.code).toBe('BUDGET_EXCEEDED');
    // Turn by turn 1,000 tokens more are sent: 0 + 1 + 2 + 3 thousand are more than five.
    expect(result.iterations).toBe(4);
    expect(result.spend?.tokens).toBeGreaterThan(5_000);
    expect(result.usage).toMatchObject({ inputTokens: 0, outputTokens: 0 });
  });

  test('is counted by the size of its request and of its reply, with the system prompt and the tools', async () => {
    const budget = notingBudget();
    const models = { fast: modelReporting(undefined) } as never;
    const result = await hostOf({
      models,
      tools,
      ports: { budget },
      agent: { instructions: 'i'.repeat(8_000) },
    }).run({ prompt: 'p'.repeat(4_000) });
    // 2,000 of the instructions, 1,000 of the prompt, 100 of the reply, and something for the tool and the messages.
    expect(result.spend?.tokens).toBeGreaterThan(3_100);
    expect(result.spend?.tokens).toBeLessThan(3_200);
  });

  test('is warned of once per executor, and not when the usage is reported', async () => {
    const ports = { budget: createBudget({ tokens: 10 ** 9 }) };
    const silent = hostOf({ models: { fast: modelReporting(undefined, 2) } as never, tools, ports });
    await silent.run({ runId: 'a', callerId: 'ann' });
    await silent.run({ runId: 'b', callerId: 'ann' });
    expect(silent.warned).toMatchObject([{ fields: { event: 'budget.estimated', runId: 'a', model: 'fake/fake' } }]);
    const usage = { inputTokens: { total: 7 }, outputTokens: { total: 3 } };
    const reporting = hostOf({ models: { fast: modelReporting(usage) } as never, ports });
    expect((await reporting.run({ callerId: 'ann' })).spend?.tokens).toBe(10);
    expect(reporting.warnings).toEqual([]);
    const without = hostOf({ models: { fast: modelReporting(undefined) } as never });
    await without.run();
    expect(without.warnings).toEqual([]);
  });

  test('what is reported of a call stays, and only the rest is estimated', async () => {
    const ports = { budget: createBudget({ tokens: 10 ** 9 }) };
    const onlyOutput = { inputTokens: {}, outputTokens: { total: 1_000_000 } };
    const first = await hostOf({ models: { fast: modelReporting(onlyOutput) } as never, ports }).run({
      prompt: 'p'.repeat(4_000),
    });
    expect(first.spend?.tokens).toBeGreaterThan(1_001_000);
    expect(first.spend?.tokens).toBeLessThan(1_001_100);
    const cached = { inputTokens: { cacheRead: 50_000, cacheWrite: 1 }, outputTokens: { total: 5 } };
    const second = await hostOf({ models: { fast: modelReporting(cached) } as never, ports }).run();
    expect(second.spend?.tokens).toBe(50_006);
  });

  test('an image counts as an image and not as its bytes', async () => {
    const ports = { budget: createBudget({ tokens: 10 ** 9 }) };
    const image = { mediaType: 'image/png', data: new Uint8Array(4_000_000) };
    const result = await hostOf({ models: { fast: modelReporting(undefined) } as never, ports }).run({
      images: [image],
    });
    expect(result.spend?.tokens).toBeLessThan(2_000);
  });

  test('a reply that is cut off for its size is paid for', async () => {
    const budget = createBudget({ tokens: 10 ** 9 });
    const models = { fast: modelReporting(undefined) } as never;
    const host = hostOf({ models, ports: { budget }, defaults: { maxReplyChars: 100 } });
    const result = await host.run({ callerId: 'ann' });
    expect(result.error?.code).toBe('REPLY_TOO_LARGE');
    expect((await budget.standing('ann')).spent.tokens).toBeGreaterThan(25);
  });

  test('messages that a compactor made shorter are what is counted', async () => {
    const ports = { budget: createBudget({ tokens: 10 ** 9 }) };
    const short: readonly Message[] = [{ role: 'user', content: [{ type: 'text', text: 'short' }] }];
    const host = hostOf({
      models: { fast: modelReporting(undefined) } as never,
      ports,
      compactor: async () => short as never,
      contextTokens: { fast: 1_000 },
    });
    const result = await host.run({ prompt: 'p'.repeat(400_000) });
    expect(result.status).toBe('ok');
    expect(result.spend?.tokens).toBeLessThan(500);
  });
});
