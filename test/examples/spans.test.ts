import { createPalette, defineAgent, memoryStore } from 'pawl';
import { callTool, hang, reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { type Span, spanExporter } from '../../docs/examples/spans/span-exporter.ts';
import { hostOf, toolOf, until } from '../fixtures/host.ts';

const named = (spans: readonly Span[], name: string) => spans.filter((span) => span.name === name);

describe('the span exporter of the examples, which is one observer', () => {
  test('sends a span for each tool call, each step and the run, with their times, each inside the other', async () => {
    const clock = testClock(1_000);
    const spans: Span[] = [];
    const look = toolOf('look', 'idempotent', async () => {
      await clock.advance(70);
      return 'found';
    });
    const script = [callTool('look'), reply('end')];
    const observers = [spanExporter((span) => spans.push(span))];
    await hostOf({ script, tools: [look], clock, observers }).run({ runId: 'r' });
    expect(spans.map(({ name, status }) => `${name} ${status}`)).toEqual([
      'look ok',
      'step 1 ok',
      'step 2 ok',
      'Worker ok',
    ]);
    const [call, first, second, run] = spans;
    expect(call).toMatchObject({ startedAt: 1_000, endedAt: 1_070, parentId: first?.spanId, traceId: 'r' });
    expect(call?.attributes).toEqual({ effect: 'idempotent', attempt: 1, ms: 70 });
    expect(first).toMatchObject({ parentId: run?.spanId, attributes: { inputTokens: 10, outputTokens: 5 } });
    expect(second).toMatchObject({ parentId: run?.spanId, attributes: { inputTokens: 10, outputTokens: 5 } });
    expect(run).toMatchObject({ startedAt: 1_000, endedAt: 1_070, attributes: { agent: 'worker', origin: 'started' } });
    expect(run).not.toHaveProperty('parentId');
  });

  test('puts the runs that a run begins into its trace', async () => {
    const spans: Span[] = [];
    const helper = defineAgent({ id: 'helper', name: 'Helper', instructions: 'Help.' });
    await hostOf({
      script: [callTool('agent__helper', { prompt: 'Help.' }), reply('helped'), reply('end')],
      agent: { subAgents: ['helper'] },
      ports: { palette: createPalette({ agents: [helper] }) },
      observers: [spanExporter((span) => spans.push(span))],
    }).run({ runId: 'top' });
    const [parent] = named(spans, 'Worker');
    expect(named(spans, 'Helper')).toMatchObject([
      { traceId: 'top', parentId: parent?.spanId, attributes: { origin: 'child' } },
    ]);
    expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set(['top']));
    expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(spans.length);
  });

  test('ends what is open with the run, and begins other spans where another process continues it', async () => {
    const spans: Span[] = [];
    const observers = [spanExporter((span) => spans.push(span))];
    const store = memoryStore();
    const first = hostOf({ script: [hang()], store, observers });
    await first.start({ runId: 'r' });
    await until(() => first.model.calls.length === 1);
    await first.executor.shutdown();
    const second = hostOf({ store, observers });
    await second.executor.recover();
    await second.executor.get('r')?.result;
    expect(spans.map(({ name, status }) => `${name} ${status}`)).toEqual([
      'step 1 interrupted',
      'Worker interrupted',
      'step 1 ok',
      'Worker ok',
    ]);
    expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(4);
  });

  test('gives each step its own tokens; the first step after a restart has none, because its run had a total before', async () => {
    const spans: Span[] = [];
    const observers = [spanExporter((span) => spans.push(span))];
    const store = memoryStore();
    const tools = [toolOf('look', 'read', async () => 'found')];
    const first = hostOf({ script: [callTool('look'), hang()], tools, store, observers });
    await first.start({ runId: 'r' });
    await until(() => first.model.calls.length === 2);
    await first.executor.shutdown();
    const second = hostOf({ script: [callTool('look'), reply('end')], tools, store, observers });
    await second.executor.recover();
    await second.executor.get('r')?.result;
    const own = { inputTokens: 10, outputTokens: 5 };
    const steps = spans.filter(({ name, status }) => name.startsWith('step') && status === 'ok');
    expect(steps.map(({ attributes }) => attributes)).toEqual([own, {}, own]);
  });

  test('sends nothing of a start that is refused', async () => {
    const spans: Span[] = [];
    await hostOf({ observers: [spanExporter((span) => spans.push(span))] }).run({ runId: '~not-yours' });
    expect(spans).toEqual([]);
  });
});
