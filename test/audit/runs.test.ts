import { createAudit, createBudget, createExecutor, defineAgent, defineTool, memoryStore } from 'pawl';
import { callTool, fail, hang, reply, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { freshPath } from './scene.ts';

const lookup = defineTool({
  name: 'lookup',
  description: 'Looks something up.',
  input: { type: 'object', properties: { id: { type: 'string' } } },
  effect: 'read',
  execute: (input) => `found ${JSON.stringify(input)}`,
});
const agent = defineAgent({ id: 'researcher', name: 'Researcher', instructions: 'Look things up.', tools: [lookup] });

describe('an executor with an audit', () => {
  test('has its runs in it, after their records are gone (supervision 5)', async () => {
    await using audit = createAudit({ path: freshPath() });
    const models = { fast: scriptedModel([callTool('lookup', { id: '1' }), reply('seven')]) };
    const budget = createBudget({ tokens: 1_000_000 });
    const executor = createExecutor({ models, checkpoints: memoryStore(), ports: { audit, budget } });
    const result = await executor.run(agent, {
      prompt: 'What is it?',
      runId: 'run',
      callerId: 'ada',
      inputs: { a: 1 },
    });
    expect(result.status).toBe('ok');
    // Nothing is asked for yet: the end of a run is in the file when its result is there.
    const found = await audit.run('run');
    expect(found).toMatchObject({
      agentId: 'researcher',
      callerId: 'ada',
      prompt: 'What is it?',
      inputs: { a: 1 },
      status: 'ok',
      output: 'seven',
      iterations: result.iterations,
      usage: result.usage,
      spend: result.spend,
      saveErrors: 0,
      dropped: 0,
    });
    expect(found?.steps.map(({ step, tools }) => [step, tools])).toEqual([
      [1, ['lookup']],
      [2, []],
    ]);
    expect(found?.tools).toMatchObject([
      { step: 1, name: 'lookup', effect: 'read', attempt: 1, input: { id: '1' }, output: { type: 'text' } },
    ]);
    expect(found?.events.map(({ type }) => type)).toContain('checkpoint.saved');
    await executor.shutdown();
  });

  test('that is shut down leaves a run interrupted there, and its heir ends it (supervision 5)', async () => {
    const path = freshPath();
    const store = memoryStore();
    const first = createAudit({ path });
    const one = createExecutor({
      models: { fast: scriptedModel([callTool('lookup', { id: '1' }), hang()]) },
      checkpoints: store,
      ports: { audit: first },
    });
    const run = await one.start(agent, { prompt: 'What is it?', runId: 'run' });
    for await (const event of run.events()) if (event.type === 'step.started' && event.step === 2) break;
    await one.shutdown();
    expect(await first.run('run')).toMatchObject({ status: 'interrupted', iterations: 1, resumes: 0 });
    await first.close();
    await using audit = createAudit({ path });
    const two = createExecutor({
      models: { fast: scriptedModel([reply('seven')]) },
      agents: [agent],
      checkpoints: store,
      ports: { audit },
    });
    await two.recover();
    await two.get('run')?.result;
    const found = await audit.run('run');
    expect(found).toMatchObject({ status: 'ok', output: 'seven', iterations: 2, resumes: 1 });
    expect(found?.steps.map(({ step }) => step)).toEqual([1, 2]);
    expect(await audit.runs()).toHaveLength(1);
    await two.shutdown();
  });

  test('has there what a run failed with (supervision 5)', async () => {
    await using audit = createAudit({ path: freshPath() });
    const models = { fast: scriptedModel([fail(Object.assign(new Error('the model is down'), { statusCode: 400 }))]) };
    const executor = createExecutor({ models, ports: { audit }, defaults: { modelAttempts: 1 } });
    const result = await executor.run(agent, { prompt: 'What is it?', runId: 'run' });
    expect(await audit.run('run')).toMatchObject({ status: 'error', error: result.error });
    await executor.shutdown();
  });
});
