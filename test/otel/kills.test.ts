import { createExecutor, createPalette, defineAgent, type ToolContext } from 'pawl';
import { callTool, callTools, reply, type ScriptedRequest, type ScriptedStep } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { answeringModel, turnsOf } from '../fixtures/answering-model.ts';
import { toolOf } from '../fixtures/host.ts';
import { type Left, type MortalProcess, mortalProcess } from '../fixtures/mortal-process.ts';
import { type Collected, collecting, faultsOf } from './spans.ts';

/** A run that pays, and asks another one that looks something up. */
function answer(request: ScriptedRequest): ScriptedStep {
  const turn = turnsOf(request);
  const look = callTool('look', { turn }, `look-${turn}`);
  if (request.system === 'helper') return [look][turn] ?? reply('helped');
  const ask = { name: 'agent__helper', input: { prompt: 'help' }, callId: 'ask' };
  const pay = { name: 'pay', input: {}, callId: 'pay' };
  return [look, callTools([pay, ask])][turn] ?? reply('end');
}

/** One process, which begins the run or takes up what was left; it ends with the run, or dies. */
async function live(process: MortalProcess, collected: Collected): Promise<boolean> {
  const look = toolOf(
    'look',
    'read',
    process.reaching(async () => 'seen'),
  );
  const pay = toolOf(
    'pay',
    'once',
    process.reaching(async (_: unknown, { attempt }: ToolContext) => `paid ${attempt}`),
  );
  const helper = defineAgent({ id: 'helper', instructions: 'helper', tools: [look] });
  const root = defineAgent({ id: 'root', instructions: 'root', tools: [look, pay], subAgents: ['helper'] });
  const executor = createExecutor({
    models: { fast: process.model(answeringModel(answer)) },
    agents: [root, helper],
    store: process.store,
    ports: { palette: createPalette({ agents: [helper] }) },
    logger: { warn: () => {} },
    tracing: collected.process({}, process),
  });
  const whole = async () => {
    await executor.run(root, { runId: 'a', prompt: 'Go.' });
    await executor.shutdown();
    return true;
  };
  return (await Promise.race([whole(), process.died])) ?? false;
}

describe('the trace of a run whose processes die', () => {
  test('is one trace in which each parent is exported, whatever the write after which the process died (otel 4, 33)', async () => {
    let deaths = 0;
    for (let write = 1; ; write++) {
      const collected = collecting();
      let left: Left | undefined;
      let isOver = false;
      const ended = new Set<unknown>();
      // The first two processes die; the third ends the run.
      for (const diesAfter of [write, write, Number.POSITIVE_INFINITY]) {
        const process = mortalProcess(left, diesAfter);
        isOver = await live(process, collected);
        if (isOver) break;
        deaths += 1;
        left = await process.left();
        for (const { runId } of left.outcomes) ended.add(runId);
      }
      expect(isOver).toBe(true);
      expect(faultsOf(collected.spans(), ended), `killed after write ${write}`).toEqual([]);
      if (left === undefined) break;
    }
    expect(deaths).toBeGreaterThan(20);
  });
});
