import { context, type MeterProvider, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { AlwaysOffSampler, ParentBasedSampler, type SpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { memoryStore } from 'pawl';
import { openTelemetry } from 'pawl/otel';
import { callTool, fail, hang, reply } from 'pawl/testing';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { births } from '../../src/run/identity.ts';
import { hostOf, settle, toolOf, until } from '../fixtures/host.ts';
import { afterCrash } from '../fixtures/watched-store.ts';
import { collecting, faultsOf, statusOf, treeOf } from './spans.ts';

const tools = [toolOf('look')];
const script = () => [callTool('look', { n: 1 }), reply('end')];
const named = (spans: ReturnType<ReturnType<typeof collecting>['spans']>, name: string) =>
  spans.filter((span) => span.name === name);

describe('a trace', () => {
  test('has one span for the run, each request of its model and each call of a tool (otel 2, 3, 5)', async () => {
    const collected = collecting();
    const host = hostOf({ script: script(), tools, store: memoryStore(), tracing: collected.process() });
    await host.run({ runId: 'a' });
    const spans = collected.spans();
    expect(faultsOf(collected)).toEqual([]);
    expect(treeOf(spans)).toEqual(['invoke_agent Worker', '  chat scripted', '  execute_tool look', '  chat scripted']);
  });

  test('has the operation of each span from its start on, when samplers and processors look (otel 10, 13)', async () => {
    const begun: unknown[] = [];
    const onStart: SpanProcessor['onStart'] = ({ name, attributes }) =>
      void begun.push([name, attributes['gen_ai.operation.name']]);
    const watching = { onStart, onEnd: () => {}, forceFlush: async () => {}, shutdown: async () => {} };
    const tracing = openTelemetry({ tracerProvider: new TracerProvider({ spanProcessors: [watching] }) });
    await hostOf({ script: script(), tools, tracing, logger: { warn: () => {} } }).run({ runId: 'a' });
    expect(new Set(begun.map((each) => JSON.stringify(each)))).toEqual(
      new Set([
        '["invoke_agent Worker","invoke_agent"]',
        '["chat scripted","chat"]',
        '["execute_tool look","execute_tool"]',
      ]),
    );
  });

  test('has names and counts of the conventions, and no text of the run (otel 10, 11, 12)', async () => {
    const collected = collecting();
    const secret = toolOf('look', 'once', async () => 'SECRET result');
    const host = hostOf({
      script: [callTool('look', { of: 'SECRET input' }, 'call-1'), reply('SECRET answer')],
      ...{ tools: [secret], tracing: collected.process() },
    });
    await host.run({ runId: 'a', prompt: 'SECRET prompt', inputs: { key: 'SECRET' } });
    const [tool] = named(collected.spans(), 'execute_tool look');
    expect(tool?.attributes).toEqual({
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'look',
      'gen_ai.tool.type': 'function',
      'gen_ai.tool.call.id': 'call-1',
      'pawl.tool.attempt': 1,
      'pawl.tool.effect': 'once',
      'pawl.run.id': 'a',
      'pawl.step': 1,
    });
    const [run] = named(collected.spans(), 'invoke_agent Worker');
    expect(run?.attributes).toEqual({
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.agent.name': 'Worker',
      'pawl.agent.id': 'worker',
      'pawl.run.id': 'a',
      'pawl.root_id': 'a',
      'pawl.origin': 'started',
      'pawl.attempt': 1,
      'pawl.status': 'ok',
    });
    const [chat] = named(collected.spans(), 'chat scripted');
    expect(chat?.attributes).toMatchObject({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'scripted',
      'gen_ai.request.model': 'scripted',
      'gen_ai.usage.input_tokens': 10,
      'pawl.step': 1,
    });
    const all = collected.spans().map(({ name, attributes, events, status }) => ({ name, attributes, events, status }));
    expect(JSON.stringify(all)).not.toContain('SECRET');
  });

  test('shows each attempt at a provider as a span of its own, and a failed one with its code (otel 5)', async () => {
    const collected = collecting();
    const host = hostOf({
      script: [fail(new Error('overloaded')), reply('end')],
      tracing: collected.process(),
      random: () => 0,
    });
    await host.run({ runId: 'a' });
    expect(named(collected.spans(), 'chat scripted').map(statusOf)).toEqual(['error MODEL', 'unset']);
  });

  test('marks a run that failed with its code, and one that was left for another process with no error (otel 10)', async () => {
    const collected = collecting();
    const bad = hostOf({
      script: [callTool('look', {}), callTool('look', {})],
      agent: { maxSteps: 1 },
      tools,
      tracing: collected.process(),
    });
    const result = await bad.run({ runId: 'bad' });
    expect(result.status).toBe('error');
    expect(named(collected.spans(), 'invoke_agent Worker').map(statusOf)).toEqual([`error ${result.error?.code}`]);
  });

  test('is named in the result, in what `onOutcome` gets, and in the kept answer (otel 2)', async () => {
    const collected = collecting();
    const delivered: unknown[] = [];
    const onOutcome = ({ traceId }: { traceId?: string }) => void delivered.push(traceId);
    const host = hostOf({ store: memoryStore(), tracing: collected.process(), onOutcome });
    const { traceId } = await host.run({ runId: 'a' });
    expect(traceId).toBe(collected.spans()[0]?.spanContext().traceId);
    expect(await host.run({ runId: 'a' })).toMatchObject({ kept: true, traceId });
    expect(delivered).toEqual([traceId]);
    expect(await hostOf().run()).not.toHaveProperty('traceId');
  });

  test('of the same run id after `erase`, or in another store, is another trace (otel 2)', async () => {
    const collected = collecting();
    const { make } = births;
    for (const birth of ['one', 'two']) {
      births.make = () => birth;
      await hostOf({ store: memoryStore(), tracing: collected.process() }).run({ runId: 'a' });
    }
    births.make = make;
    expect(new Set(collected.spans().map((span) => span.spanContext().traceId)).size).toBe(2);
  });
});

describe('a run that waits', () => {
  test('continues its trace in the next process: each process is a span, linked to the one before (otel 3, 7)', async () => {
    const collected = collecting();
    const store = memoryStore();
    const ask = toolOf('ask', 'read', (_, { ask }) => ask({ question: 'SECRET?' }));
    const defaults = { waitLingerMs: 1 };
    const first = hostOf({
      script: [callTool('ask', {}, 'c1')],
      tools: [ask],
      store,
      defaults,
      tracing: collected.process(),
    });
    const waiting = await first.run({ runId: 'a' });
    expect(waiting.status).toBe('waiting');
    await first.executor.shutdown();
    const second = hostOf({ script: [reply('end')], tools: [ask], store, defaults, tracing: collected.process() });
    const [wait] = await second.executor.waiting();
    await second.executor.control('a').answer(wait?.id ?? '', 'SECRET answer');
    await second.run({ runId: 'a' });
    await second.executor.shutdown();
    const spans = collected.spans();
    expect(faultsOf(collected)).toEqual([]);
    const runs = named(spans, 'invoke_agent Worker');
    expect(runs.map(({ attributes }) => [attributes['pawl.attempt'], attributes['pawl.status']])).toEqual([
      [1, 'waiting'],
      [2, 'ok'],
    ]);
    expect(runs[1]?.links.map(({ context: at }) => at.spanId)).toEqual([runs[0]?.spanContext().spanId]);
    expect(runs[0]?.events.map(({ name }) => name)).toContain('pawl.wait.opened');
    expect(runs[1]?.events.map(({ name }) => name)).toContain('pawl.wait.answered');
    const asked = named(spans, 'execute_tool ask').map(({ attributes }) => attributes['pawl.tool.state']);
    expect(asked).toEqual(['waiting', undefined]);
    expect(JSON.stringify(spans.map(({ events, attributes }) => [events, attributes]))).not.toContain('SECRET');
  });
});

describe('contexts', () => {
  beforeEach(() => context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable()));
  afterEach(() => context.disable());

  test('put the spans of a tool’s own code below its call, and the span of the caller beside the run (otel 6, 8)', async () => {
    const collected = collecting();
    const tracing = collected.process();
    const own = collected.tracer();
    const look = toolOf('look', 'read', async () => {
      await Promise.resolve();
      own.startSpan('own').end();
      return 'seen';
    });
    const host = hostOf({ script: script(), tools: [look], tracing });
    const caller = own.startSpan('caller');
    await context.with(trace.setSpan(context.active(), caller), () => host.run({ runId: 'a' }));
    const spans = collected.spans();
    const [run] = named(spans, 'invoke_agent Worker');
    const [tool] = named(spans, 'execute_tool look');
    expect(named(spans, 'own')[0]?.parentSpanContext?.spanId).toBe(tool?.spanContext().spanId);
    expect(run?.parentSpanContext).toBeUndefined();
    expect(run?.links.map((link) => [link.context.spanId, link.attributes])).toEqual([
      [caller.spanContext().spanId, { 'pawl.link': 'caller' }],
    ]);
  });
});

describe('the links of attempts', () => {
  beforeEach(() => context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable()));
  afterEach(() => context.disable());

  test('lead from the root to the caller, and from each later attempt to the one before, in any process (otel 3, 8)', async () => {
    const collected = collecting();
    let store = memoryStore();
    const caller = collected.tracer().startSpan('caller');
    const web = hostOf({ store, tracing: collected.process() });
    const admit = () => web.start({ runId: 'a' }, { drive: 'later' });
    await context.with(trace.setSpan(context.active(), caller), admit);
    await web.executor.shutdown();
    // Two processes die, and the third tells the second; the second has told the first.
    for (const [turn, script] of [
      [1, [callTool('look', {}), hang()]],
      [2, [callTool('look', {}), hang()]],
      [3, [reply('end')]],
    ] as const) {
      const mortal = { isDead: false };
      const { executor, agent } = hostOf({ store, tools, script, tracing: collected.process({}, mortal) });
      const run = await executor.start(agent, { runId: 'a', prompt: 'Go.' });
      if (turn === 3) await run.result;
      else await until(async () => (await store.load('a'))?.iteration === turn);
      mortal.isDead = true;
      store = await afterCrash(store);
    }
    const attempts = named(collected.spans(), 'invoke_agent Worker').toSorted(
      (a, b) => Number(a.attributes['pawl.attempt']) - Number(b.attributes['pawl.attempt']),
    );
    const [first, second] = attempts.map((span) => span.spanContext().spanId);
    expect(attempts.map(({ attributes }) => attributes['pawl.attempt.lost'])).toEqual([true, true, undefined]);
    expect(
      attempts.map(({ links }) => links.map((link) => [link.attributes?.['pawl.link'], link.context.spanId])),
    ).toEqual([[['caller', caller.spanContext().spanId]], [['previous', first]], [['previous', second]]]);
  });
});

describe('a tracing', () => {
  test('keeps the decision of the sampler in the record: a run that was not sampled is traced by no process (otel 9)', async () => {
    const collected = collecting();
    const off = new TracerProvider({ sampler: new ParentBasedSampler({ root: new AlwaysOffSampler() }) });
    const store = memoryStore();
    const ask = toolOf('ask', 'read', (_, { ask }) => ask({ question: '?' }));
    const defaults = { waitLingerMs: 1 };
    const tracing = openTelemetry({ tracerProvider: off });
    const first = hostOf({ script: [callTool('ask', {}, 'c1')], tools: [ask], store, defaults, tracing });
    await first.run({ runId: 'a' });
    await first.executor.shutdown();
    const second = hostOf({ script: [reply('end')], tools: [ask], store, defaults, tracing: collected.process() });
    const [wait] = await second.executor.waiting();
    await second.executor.control('a').answer(wait?.id ?? '', 'yes');
    await second.run({ runId: 'a' });
    await second.executor.shutdown();
    expect(collected.spans()).toEqual([]);
  });

  test('without a registered provider changes nothing, and stores nothing (otel 1)', async () => {
    const store = memoryStore();
    const host = hostOf({ script: script(), tools, store, tracing: openTelemetry(), retention: { records: '1h' } });
    expect((await host.run({ runId: 'a' })).status).toBe('ok');
    expect(host.warnings).toEqual([]);
    const kept = await host.executor.history({});
    expect(JSON.stringify(kept)).toContain('"runId":"a"');
    expect(JSON.stringify(kept)).not.toContain('"trace"');
  });

  test('without runIds() keeps a run in one trace, whose id is the stored one, and warns once (otel 23)', async () => {
    const collected = collecting(false);
    const host = hostOf({ script: [...script(), ...script()], tools, tracing: collected.process() });
    const results = [await host.run({ runId: 'a' }), await host.run({ runId: 'b' })];
    const traces = new Set(collected.spans().map((span) => span.spanContext().traceId));
    expect([...traces]).toEqual(results.map(({ traceId }) => traceId));
    // Once for each process, at the logger of the host.
    expect(host.warned.map(({ fields }) => fields.event)).toEqual(['tracing.ids.missing']);
  });

  const broken: () => never = () => {
    throw new Error('broken');
  };
  test.for([
    ['that throws', { begin: broken, enter: broken, event: broken }],
    ['that returns nonsense', { begin: () => 17, enter: () => 'x', event: () => Promise.reject(new Error('broken')) }],
    ['that never calls', { begin: () => 'x'.repeat(2_000), enter: () => {}, event: () => new Promise(() => {}) }],
    ['that rejects', { begin: async () => broken(), enter: async () => broken(), event: async () => broken() }],
    [
      'that calls later',
      {
        begin: () => '',
        enter: (_: unknown, next: () => unknown) => queueMicrotask(next as () => void),
        event: () => {},
      },
    ],
    [
      'that calls twice',
      { begin: () => '', enter: (_: unknown, next: () => unknown) => [next(), next()], event: () => {} },
    ],
  ] as readonly (readonly [string, object])[])('%s changes no run (otel 17, 25)', async ([, tracing]) => {
    let made = 0;
    const once = toolOf('look', 'once', async () => `seen ${++made}`);
    const host = hostOf({ script: script(), tools: [once], store: memoryStore(), tracing: tracing as never });
    expect(await host.run({ runId: 'a' })).toMatchObject({ status: 'ok', output: 'end', iterations: 2 });
    // What it calls later must not call a tool again.
    await settle();
    expect([made, host.model.calls.length]).toEqual([1, 2]);
  });

  test('whose processor or meter throws changes no run, and ends no process (otel 25)', async () => {
    const bad = { onStart: broken, onEnd: broken, forceFlush: broken, shutdown: broken } as unknown as SpanProcessor;
    const instrument = { add: broken, record: broken };
    const meter = { createCounter: () => instrument, createHistogram: () => instrument };
    const rejected: unknown[] = [];
    const note = (error: unknown) => void rejected.push(error);
    process.on('unhandledRejection', note);
    for (const options of [
      { tracerProvider: new TracerProvider({ spanProcessors: [bad] }) },
      { tracerProvider: new TracerProvider({ spanProcessors: [{ ...bad, onStart: () => {} }] }) },
      { meterProvider: { getMeter: () => meter } as unknown as MeterProvider },
    ]) {
      const host = hostOf({ script: script(), tools, store: memoryStore(), tracing: openTelemetry(options) });
      expect(await host.run({ runId: 'a' })).toMatchObject({ status: 'ok', output: 'end' });
      await settle();
    }
    process.off('unhandledRejection', note);
    expect(rejected).toEqual([]);
  });

  test.for([
    [['a list'], []],
    ['a value without its functions', {}],
    ['a function', () => {}],
  ] as const)('is refused when the executor is made if it is %s (otel 27)', ([, tracing]) => {
    expect(() => hostOf({ tracing: tracing as never })).toThrow(TypeError);
  });

  test('cuts names from outside, and takes control characters out of them (otel 26)', async () => {
    const collected = collecting();
    const name = `look\n${'x'.repeat(400)}`;
    const host = hostOf({ script: [callTool(name, {}), reply('end')], tools, tracing: collected.process() });
    await host.run({ runId: 'a' });
    const [tool] = collected.spans().filter((span) => span.name.startsWith('execute_tool'));
    expect(tool?.name).not.toContain('\n');
    expect(tool?.name.length).toBeLessThan(300);
  });
});
