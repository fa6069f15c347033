import { memoryStore, type ObservedRun, type RunEvent } from 'pawl';
import { openTelemetry } from 'pawl/otel';
import { callTool, fail, reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { durationBounds, metricTable } from '../../src/otel/metric-table.ts';
import { hostOf, toolOf } from '../fixtures/host.ts';
import { measuring } from './measuring.ts';

describe('metrics', () => {
  test('count runs, tokens, retries and calls of tools, by agent, model and tool (otel 14, 16)', async () => {
    const { tracing, read } = measuring();
    const script = [fail(new Error('overloaded')), callTool('look', {}), callTool('look', {}), reply('end')];
    const host = hostOf({ script, tools: [toolOf('look')], store: memoryStore(), tracing, random: () => 0 });
    await host.run({ runId: 'secret-id', callerId: 'secret-caller' });
    const measured = await read();
    expect(measured.of('pawl.runs.started', { 'pawl.agent.id': 'worker' })).toBe(1);
    expect(measured.of('pawl.runs.ended', { 'pawl.status': 'ok' })).toBe(1);
    expect(measured.of('gen_ai.client.inference.duration', { 'gen_ai.request.model': 'scripted' })).toBe(4);
    expect(measured.of('gen_ai.client.inference.duration', { 'error.type': 'MODEL' })).toBe(1);
    expect(measured.of('gen_ai.client.inference.usage.input_tokens')).toBe(30);
    expect(measured.of('pawl.model.retries', { 'pawl.code': 'MODEL' })).toBe(1);
    expect(measured.of('gen_ai.execute_tool.duration', { 'gen_ai.tool.name': 'look' })).toBe(2);
    expect(measured.of('gen_ai.invoke_agent.duration', { 'pawl.status': 'ok' })).toBe(1);
    expect(measured.of('pawl.checkpoint.duration')).toBeGreaterThan(1);
    expect(JSON.stringify(measured.points)).not.toContain('secret');
  });

  test('of an agent are exported as 0 before anything was counted (otel 14)', async () => {
    const { tracing, read } = measuring();
    await hostOf({ tracing }).run();
    const measured = await read();
    for (const status of ['error', 'timeout', 'cancelled', 'killed'])
      expect(measured.of('pawl.runs.ended', { 'pawl.status': status })).toBe(0);
    for (const how of ['lost', 'left', 'waited', 'slice'])
      expect(measured.of('pawl.runs.resumed', { 'pawl.how': how })).toBe(0);
    expect(measured.of('pawl.leases.lost')).toBe(0);
  });

  test('have the names, units and attributes of their table, and no others (otel 36)', async () => {
    const { tracing, read } = measuring();
    const host = hostOf({
      script: [callTool('look', {}), reply('end')],
      tools: [toolOf('look')],
      store: memoryStore(),
      tracing,
    });
    await host.run();
    const { points } = await read();
    const table: Readonly<Record<string, { unit: string; attributes: readonly string[] }>> = metricTable;
    for (const { name, unit, attributes } of points) {
      expect(table[name]?.unit, name).toBe(unit);
      expect(table[name]?.attributes).toEqual(expect.arrayContaining(Object.keys(attributes)));
    }
    expect(points.length).toBeGreaterThan(15);
  });

  test('count log lines by event, and among them setups that failed and ends that were not accepted (operations 9)', async () => {
    const { tracing, read } = measuring();
    const host = hostOf({ tracing, store: memoryStore(), onOutcome: () => Promise.reject(new Error('not now')) });
    expect((await read()).of('pawl.outcomes.undelivered')).toBe(0);
    await host.run({ runId: 'a' });
    await host.run({ runId: 'b' });
    const measured = await read();
    expect(measured.of('pawl.outcomes.undelivered')).toBe(2);
    // The second line was not written, because it repeats the first.
    expect(measured.of('pawl.warnings', { 'pawl.event': 'outcome.delivery.failed' })).toBe(2);
    expect(host.warnings).toHaveLength(1);
    await host.executor.shutdown();
  });

  test('count the ticks of schedules at which no process was there (operations 9, schedules 4)', async () => {
    const { tracing, read } = measuring();
    const clock = testClock(Date.UTC(2026, 10, 28, 6));
    const store = memoryStore({ clock });
    const schedule = { id: 'nightly', every: '1h', missed: 'skip', start: () => undefined as never } as const;
    const first = hostOf({ clock, store, schedules: [schedule] });
    await first.executor.recover();
    await clock.advance(0);
    await first.executor.shutdown();
    await clock.advance(270 * 60_000);
    const host = hostOf({ clock, store, tracing, schedules: [schedule] });
    expect((await read()).of('pawl.schedules.missed')).toBe(0);
    await host.executor.recover();
    await clock.advance(0);
    expect((await read()).of('pawl.schedules.missed')).toBe(4);
    await host.executor.shutdown();
  });

  test('tell at most 200 values of an attribute apart (otel 16)', async () => {
    const { tracing, read } = measuring();
    const script = Array.from({ length: 210 }, (_, i) => callTool(`tool-${i}`, {}));
    const host = hostOf({
      script: [...script, reply('end')],
      tracing,
      agent: { maxSteps: 300 },
      defaults: { maxConsecutiveToolErrors: 1_000 },
    });
    await host.run();
    const measured = await read();
    const names = measured.points.filter(({ name }) => name === 'gen_ai.execute_tool.duration');
    expect(names.length).toBe(201);
    expect(measured.of('gen_ai.execute_tool.duration', { 'gen_ai.tool.name': 'other' })).toBe(10);
  });

  test('count the cost of the steps of this process, and not what earlier ones counted (otel 14)', async () => {
    const { tracing, read } = measuring();
    const run = { info: { subjectId: 'worker' } } as ObservedRun;
    const events = [
      { type: 'run.resumed', spend: { tokens: 0, usd: 2, seconds: 0 } },
      { type: 'step.done', spend: { tokens: 0, usd: 2.25, seconds: 0 } },
      { type: 'step.done', spend: { tokens: 0, usd: 3, seconds: 0 } },
    ];
    for (const event of events) tracing.event({ ...event, runId: 'a', at: 0, seq: 0 } as RunEvent, run);
    expect((await read()).of('pawl.spend.usd')).toBe(1);
  });

  test('measure durations in seconds, from 10 ms to 82 s (otel 14)', () => {
    expect([durationBounds[0], durationBounds[1], durationBounds.at(-1)]).toEqual([0.01, 0.02, 81.92]);
  });
});

test.for([
  [{ tracerProvider: 7 }, 'tracerProvider'],
  [{ meterProvider: {} }, 'meterProvider'],
  [{ traces: 'no' }, 'traces'],
  [{ tracers: true }, 'tracers'],
] as const)('openTelemetry refuses %o with the name of the option (otel 27)', ([options, name]) => {
  expect(() => openTelemetry(options as never)).toThrow(name);
});
