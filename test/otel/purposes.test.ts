import { createCompactor, createCritic, createEscalator } from 'pawl';
import { callTool, fail, reply, type ScriptedEntry, scriptedModel, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { type HostOptions, hostOf, toolOf } from '../fixtures/host.ts';
import { measuring } from './measuring.ts';
import { collecting, faultsOf, statusOf } from './spans.ts';

const page = 'A page with many words on it. '.repeat(20);
const look = toolOf('look', 'read', async () => page);
const down = fail(Object.assign(new Error('down'), { isRetryable: false }));

/** The run outgrows its window, or its steps: the compactor, or the critic, asks the model `other` once. */
const cases: Record<string, (other: ScriptedEntry) => HostOptions> = {
  compactor: (other) => ({
    script: [...Array.from({ length: 6 }, (_, n) => callTool('look', { n })), reply('end')],
    compactor: createCompactor({ model: scriptedModel([other, other, other]), keepLast: 2, clock: testClock() }),
    contextTokens: { fast: 1_000 },
  }),
  critic: (other) => ({
    script: [callTool('look', {}), reply('end')],
    agent: { maxSteps: 1 },
    ports: {
      critic: createCritic({
        escalator: createEscalator({ model: scriptedModel([other]), raiseStepsBy: 1, clock: testClock() }),
      }),
    },
  }),
};

describe.for(Object.entries(cases))('the request of the %s', ([purpose, optionsFor]) => {
  const play = async (answer: ScriptedEntry) => {
    const collected = collecting();
    const { provider: meterProvider, read } = measuring();
    const tracing = collected.process({ metrics: true, meterProvider });
    const host = hostOf({ ...optionsFor(answer), tools: [look], tracing });
    await host.run({ runId: 'a' });
    expect(faultsOf(collected)).toEqual([]);
    const asked = collected.spans().filter(({ attributes }) => attributes['pawl.purpose'] === purpose);
    return { asked, all: collected.spans(), measured: await read() };
  };

  test('is a span below the attempt, and counted with its tokens (otel 5, 14)', async () => {
    const { asked, all, measured } = await play(reply('{"raiseStepsBy": 1}'));
    const [attempt] = all.filter(({ name }) => name.startsWith('invoke_agent'));
    expect(asked.map(({ name, parentSpanContext }) => [name, parentSpanContext?.spanId])).toEqual([
      ['chat scripted', attempt?.spanContext().spanId],
    ]);
    expect(asked[0]?.attributes).toMatchObject({ 'gen_ai.usage.input_tokens': 10 });
    const about = { 'pawl.purpose': purpose };
    expect(measured.of('gen_ai.client.inference.duration', about)).toBe(1);
    expect(measured.of('gen_ai.client.inference.usage.input_tokens', about)).toBe(10);
    expect(measured.of('gen_ai.client.inference.duration')).toBe(all.filter(({ name }) => /^chat/.test(name)).length);
  });

  test('that fails is a span with its code, and counted as a failure (otel 5, 14)', async () => {
    const { asked, measured } = await play(down);
    expect([...new Set(asked.map(statusOf))]).toEqual(['error MODEL']);
    const failed = { 'pawl.purpose': purpose, 'error.type': 'MODEL' };
    expect(measured.of('gen_ai.client.inference.duration', failed)).toBe(asked.length);
  });
});
