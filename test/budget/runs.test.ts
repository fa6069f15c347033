import { createBudget, createExecutor, defineAgent, defineTool } from 'pawl';
import { callTool, reply, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { use } from './stores.ts';

const lookup = defineTool({
  name: 'lookup',
  description: 'Looks something up.',
  input: { type: 'object' },
  effect: 'read',
  execute: () => 'found',
});
const agent = defineAgent({ id: 'researcher', instructions: 'Look.', tools: [lookup] });
// Each of its turns uses 10 tokens of input and 5 of output.
const script = () => scriptedModel([callTool('lookup', { n: 1 }), callTool('lookup', { n: 2 }), reply('done')]);

describe('an executor with a budget', () => {
  test('makes no model call for a caller whose window is used up (supervision 4)', async () => {
    const budget = createBudget({ tokens: 100 });
    await budget.commit({ key: 'before:1', callerId: 'ada', modelTier: 'fast', model: 'any' }, use(100));
    const model = script();
    const executor = createExecutor({ models: { fast: model }, ports: { budget } });
    const refused = await executor.run(agent, { prompt: 'go', callerId: 'ada' });
    expect(refused).toMatchObject({ status: 'error', error: { code: 'BUDGET_EXCEEDED' }, iterations: 0 });
    expect(refused.error?.message).toContain('the budget of caller "ada" is used up');
    expect(model.calls).toHaveLength(0);
    expect(await executor.run(agent, { prompt: 'go', callerId: 'grace' })).toMatchObject({ status: 'ok' });
    await executor.shutdown();
  });

  test('ends a run before the call that would go over the limit, and has counted those before (supervision 4)', async () => {
    const budget = createBudget({ tokens: 30 });
    const model = script();
    const executor = createExecutor({ models: { fast: model }, ports: { budget } });
    const result = await executor.run(agent, { prompt: 'go', callerId: 'ada' });
    expect(result).toMatchObject({ status: 'error', error: { code: 'BUDGET_EXCEEDED' }, spend: { tokens: 30 } });
    expect(model.calls).toHaveLength(2);
    expect(await budget.standing('ada')).toMatchObject({ spent: { tokens: 30 }, reserved: { tokens: 0 } });
    await executor.shutdown();
  });

  test('tells in the result what the run was counted as, with its dollars (supervision 4)', async () => {
    const model = script();
    const prices = { [`${model.provider}/${model.modelId}`]: { inputPerMillion: 1_000, outputPerMillion: 10_000 } };
    const budget = createBudget({ usd: 10, prices });
    const executor = createExecutor({ models: { fast: model }, ports: { budget } });
    const { spend, status } = await executor.run(agent, { prompt: 'go' });
    expect({ status, tokens: spend?.tokens }).toEqual({ status: 'ok', tokens: 45 });
    expect(spend?.usd).toBeCloseTo(0.18, 9);
    const { spent } = await budget.standing('');
    expect(spent.tokens).toBe(45);
    expect(spent.usd).toBeCloseTo(0.18, 9);
    await executor.shutdown();
  });
});
