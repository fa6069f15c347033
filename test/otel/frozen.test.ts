import { createExecutor, defineAgent, memoryStore, type ToolEffect } from 'pawl';
import { callTool, reply, type ScriptedEntry, scriptedModel, testClock } from 'pawl/testing';
import { expect, test } from 'vitest';
import { gate, toolOf } from '../fixtures/host.ts';
import { collecting, faultsOf } from './spans.ts';

test.for<[ToolEffect, ScriptedEntry[], unknown[]]>([
  ['once', [reply('end')], [true]],
  ['idempotent', [reply('end')], [true, undefined]],
  // No record has the beginning of the call, so the model is asked for it again.
  ['read', [callTool('pay', {}, 'pay-1'), reply('end')], [undefined]],
])(
  'a process that freezes during a `%s` call, and thaws after its lease, ends no span that its successor told (otel 4, 33)',
  async ([effect, rest, lost]) => {
    const collected = collecting();
    const storeClock = testClock(1_000_000);
    const store = memoryStore({ clock: storeClock });
    const thaw = gate();
    const processOf = (script: readonly ScriptedEntry[], work: () => Promise<unknown>) => {
      // The clock of a frozen process stands still, and the store has another one.
      const clock = testClock(1_000_000);
      const look = toolOf('look', 'read');
      const pay = toolOf('pay', effect, work);
      const agent = defineAgent({
        id: 'payer',
        instructions: 'Pay.',
        tools: [look, pay],
        model: scriptedModel(script),
      });
      const tracing = collected.process();
      const logger = { warn: () => {} };
      return { agent, executor: createExecutor({ clock, store, agents: [agent], tracing, logger }), clock };
    };
    const first = processOf([callTool('look', {}, 'look-1'), callTool('pay', {}, 'pay-1'), reply('end')], async () => {
      await thaw.pass();
      return 'paid';
    });
    const frozen = await first.executor.start(first.agent, { runId: 'a', prompt: 'Go.' });
    await thaw.reached;
    await storeClock.advance(120_000);

    const second = processOf(rest, async () => 'paid');
    const result = await second.executor.run(second.agent, { runId: 'a', prompt: 'Go.' });
    expect(result.status).toBe('ok');
    thaw.open();
    expect((await frozen.result).status).not.toBe('ok');
    await first.executor.shutdown();
    await second.executor.shutdown();
    const paid = collected.spans().filter(({ name }) => name === 'execute_tool pay');
    expect(paid.map(({ attributes }) => attributes['pawl.tool.lost'])).toEqual(lost);
    // What a process began that lost its lease is not ended there. Requests have another clock than the test.
    expect(faultsOf({ ...collected, open: () => [], exporterOf: (span) => span })).toEqual([]);
  },
);
