import { context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import type { ReadableSpan } from '@opentelemetry/sdk-trace';
import fc from 'fast-check';
import { memoryStore } from 'pawl';
import { openTelemetry } from 'pawl/otel';
import { callTool, fail, hang, reply } from 'pawl/testing';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { seed, torture } from '../crash/random.ts';
import { hostOf, toolOf, until } from '../fixtures/host.ts';
import { afterCrash } from '../fixtures/watched-store.ts';
import { measuring } from './measuring.ts';
import { collecting, faultsOf } from './spans.ts';

/** All that an exporter gets of a span. */
function fieldsOf(span: ReadableSpan): readonly unknown[] {
  const { name, kind, attributes, events, links, status, resource, instrumentationScope, parentSpanContext } = span;
  const { startTime, endTime, duration, ended, droppedAttributesCount, droppedEventsCount, droppedLinksCount } = span;
  return [
    ...[name, kind, attributes, events, links, status, resource.attributes, instrumentationScope, parentSpanContext],
    ...[span.spanContext(), startTime, endTime, duration, ended],
    ...[droppedAttributesCount, droppedEventsCount, droppedLinksCount],
  ];
}

describe('content: true', () => {
  const play = async (secret: string, options: Parameters<ReturnType<typeof collecting>['process']>[0]) => {
    const collected = collecting();
    const tools = [toolOf('look', 'read', async () => `found ${secret}`)];
    const host = hostOf({
      ...{ tools, script: [callTool('look', { of: secret }), reply(`it is ${secret}`)] },
      ...{ tracing: collected.process(options), redact: (text: string) => text.replaceAll('SECRET', '[hidden]') },
    });
    await host.run({ runId: 'a', prompt: `Find ${secret}` });
    return collected.spans();
  };

  test('gives spans the prompt, what each request answers, the answer, and arguments and results of tools, after redact (otel 12)', async () => {
    const spans = await play('it, SECRET', { content: true });
    const of = (name: string) => spans.find((span) => span.name === name)?.attributes ?? {};
    expect(of('execute_tool look')).toMatchObject({
      'gen_ai.tool.call.arguments': '{"of":"it, [hidden]"}',
      'gen_ai.tool.call.result': 'found it, [hidden]',
    });
    expect(of('invoke_agent Worker')).toMatchObject({
      'gen_ai.input.messages': '[{"role":"user","parts":[{"type":"text","content":"Find it, [hidden]"}]}]',
      'gen_ai.output.messages': '[{"role":"assistant","parts":[{"type":"text","content":"it is it, [hidden]"}]}]',
    });
    const chats = spans.filter(({ name }) => name === 'chat scripted').map(({ attributes }) => attributes);
    expect(chats.map((chat) => chat['gen_ai.output.messages'])).toEqual([
      undefined,
      '[{"role":"assistant","parts":[{"type":"text","content":"it is it, [hidden]"}]}]',
    ]);
    for (const chat of chats) expect(chat).not.toHaveProperty(['gen_ai.input.messages']);
  });

  test('cuts a content at maxContentChars, and says so (otel 12)', async () => {
    const spans = await play('x'.repeat(500), { content: true, maxContentChars: 100 });
    const attributes = spans.find(({ name }) => name === 'execute_tool look')?.attributes ?? {};
    expect(String(attributes['gen_ai.tool.call.result'])).toHaveLength(100);
    expect(attributes['pawl.cut']).toBe(true);
  });

  test('or none: no planted secret is in any field of any span, or in a metric, with any failure and text around it (otel 12, 35)', {
    timeout: 180_000 * torture,
  }, async () => {
    const entry = fc.constantFrom<'look' | 'broken' | 'fails' | 'texts'>('look', 'broken', 'fails', 'texts');
    const transcript = fc.array(entry, { maxLength: 5 });
    const around = fc.string({ unit: 'binary', maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(around, fc.boolean(), transcript, async (around, content, entries) => {
        const secret = `${around}SECRET${around}`;
        const [collected, measured] = [collecting(), measuring()];
        const tools = [
          toolOf('look', 'read', async () => `found ${secret}`),
          toolOf('broken', 'read', () => Promise.reject(Object.assign(new Error(secret), { name: secret }))),
        ];
        const script = entries.map((each) => {
          if (each === 'fails') return fail(Object.assign(new Error(secret), { statusCode: 400 }));
          return each === 'texts' ? reply(secret) : callTool(each, { of: secret });
        });
        const redact = (text: string) => text.replaceAll('SECRET', '[hidden]');
        for (const tracing of [collected.process({ content }), measured.tracing]) {
          const host = hostOf({
            ...{ tools, script: [...script, reply(`it is ${secret}`)], tracing, redact },
            defaults: { modelAttempts: 1 },
          });
          await host.run({ runId: 'a', prompt: `Find ${secret}`, callerId: secret, labels: { of: 'label' } });
        }
        expect(JSON.stringify(collected.spans().map(fieldsOf))).not.toContain('SECRET');
        expect(JSON.stringify((await measured.read()).points)).not.toContain('SECRET');
      }),
      { numRuns: torture > 1 ? 1_000 : 60, seed },
    );
  });

  test('and the other options are refused where they are wrong (otel 27)', () => {
    expect(() => openTelemetry({ content: 'yes' as never })).toThrow('content must be true or false');
    expect(() => openTelemetry({ maxContentChars: 0 })).toThrow('maxContentChars must be a whole number above 0');
    expect(() => openTelemetry({ trace: 'joined' as never })).toThrow("trace must be 'link' or 'join'");
  });
});

describe("trace: 'join'", () => {
  const manager = new AsyncLocalStorageContextManager();
  beforeEach(() => void context.setGlobalContextManager(manager.enable()));
  afterEach(() => context.disable());

  test('makes the span of the code that starts a run its parent, in the trace of that code, also for the next process (otel 8)', async () => {
    const collected = collecting();
    const store = memoryStore();
    const tools = [toolOf('look')];
    const dead = { isDead: false };
    const tracing = collected.process({ trace: 'join' }, dead);
    const host = hostOf({ script: [callTool('look'), hang()], tools, store, tracing });
    const span = collected.tracer().startSpan('the request');
    await context.with(trace.setSpan(context.active(), span), () => host.start({ runId: 'a' }));
    await until(async () => (await store.load('a'))?.iteration === 1);
    const { traceId } = span.spanContext();
    expect(await host.executor.list()).toMatchObject([{ runId: 'a', traceId }]);
    span.end();
    dead.isDead = true;
    const next = hostOf({
      script: [reply('end')],
      tools,
      store: await afterCrash(store),
      tracing: collected.process({ trace: 'join' }),
    });
    await next.run({ runId: 'a' });
    const spans = collected.spans();
    expect(faultsOf(collected)).toEqual([]);
    const runs = spans.filter(({ name }) => name === 'invoke_agent Worker');
    const first = runs.find(({ attributes }) => attributes['pawl.attempt'] === 1);
    expect(runs).toHaveLength(2);
    expect(first?.parentSpanContext?.spanId).toBe(span.spanContext().spanId);
    expect(new Set(spans.map((each) => each.spanContext().traceId))).toEqual(new Set([span.spanContext().traceId]));
  });

  test('without a span around it a run is a trace of its own (otel 8)', async () => {
    const collected = collecting();
    await hostOf({ tracing: collected.process({ trace: 'join' }) }).run({ runId: 'a' });
    expect(collected.spans().find(({ name }) => name === 'invoke_agent Worker')?.parentSpanContext).toBeUndefined();
  });
});
