import { createExecutor, defineAgent, memoryStore, type Tracing } from 'pawl';
import { runIds } from 'pawl/otel';
import { callTool, hang, reply, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { attemptSpanId, callSpanId, placeInTrace, placeText, traceIdOf, withIds } from '../../src/otel/ids.ts';
import { hostOf } from '../fixtures/host.ts';
import { watchedStore } from '../fixtures/watched-store.ts';

const traceId = traceIdOf('a', 'birth');
const call = { runId: 'a', attempt: 1, callId: 'c', callAttempt: 1 };

describe('the ids of spans', () => {
  test('are the same in each process, and differ in each part that they are made of (otel 24)', () => {
    const ids = [
      callSpanId(traceId, call),
      callSpanId(traceId, { ...call, callId: 'd' }),
      callSpanId(traceId, { ...call, attempt: 2 }),
      callSpanId(traceId, { ...call, callAttempt: 2 }),
      callSpanId(traceId, { ...call, runId: 'b' }),
      attemptSpanId(traceId, 'a', 1),
      attemptSpanId(traceId, 'a', 2),
      attemptSpanId(traceId, 'a1', 1),
      attemptSpanId(traceIdOf('a', 'another'), 'a', 1),
    ];
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.every((id) => /^[0-9a-f]{16}$/.test(id))).toBe(true);
    expect(callSpanId(traceId, { ...call })).toBe(ids[0]);
    // Parts that run into one another make other ids.
    expect(attemptSpanId(traceId, 'a', 11)).not.toBe(attemptSpanId(traceId, 'a1', 1));
  });

  test('are wished for one span; all others get random ones, or those of the fallback (otel 22)', () => {
    const counting = { generateTraceId: () => 't'.repeat(32), generateSpanId: () => 's'.repeat(16) };
    for (const fallback of [undefined, counting]) {
      const ids = runIds(fallback);
      const wished = withIds({ traceId, spanId: '1'.repeat(16) }, () => [ids.generateTraceId(), ids.generateSpanId()]);
      expect(wished).toEqual([traceId, '1'.repeat(16)]);
      const after = [ids.generateTraceId(), ids.generateSpanId()];
      if (fallback) expect(after).toEqual(['t'.repeat(32), 's'.repeat(16)]);
      else expect(after.map((id) => id.length)).toEqual([32, 16]);
      expect(after).not.toContain(traceId);
    }
  });
});

describe('the place that a record keeps', () => {
  test('is read as it was written (otel 18)', () => {
    for (const parentId of [undefined, 'b'.repeat(16)])
      for (const isSampled of [true, false])
        for (const caller of [undefined, { traceId: 'c'.repeat(32), spanId: 'd'.repeat(16), isSampled: !isSampled }]) {
          const place = { traceId, parentId, isSampled, ...(caller ? { caller } : {}) };
          expect(placeInTrace(placeText(place))).toEqual(place);
        }
  });

  test.for([
    undefined,
    '',
    'x',
    `00-${'0'.repeat(32)}-${'1'.repeat(16)}-01`,
    `01-${traceId}-${'1'.repeat(16)}-01`,
    `00-${traceId.toUpperCase()}-${'A'.repeat(16)}-01`,
    `00-${traceId}-${'g'.repeat(16)}-01`,
    `00-${traceId}-${'1'.repeat(16)}-01-more`,
    '-'.repeat(55),
    `00-${traceId}-${'1'.repeat(16)}-01 `,
    `00-${traceId}-${'1'.repeat(16)}-01_00-${traceId}-${'1'.repeat(16)}-01`,
    `00-${traceId}-${'1'.repeat(16)}-01 00-${traceId}-${'0'.repeat(16)}-01`,
    `00-${traceId}-${'1'.repeat(16)}-01 00-${traceId}-${'1'.repeat(16)}-01 more`,
  ])('that cannot be read is none: %s (otel 27)', (text) => expect(placeInTrace(text)).toBeUndefined());

  test('of a child is in the trace of its parent, below the call that began it (otel 18)', async () => {
    const begun: Parameters<Tracing['begin']>[0][] = [];
    const seen: (string | undefined)[] = [];
    const tracing: Tracing = {
      begin: (run) => {
        begun.push(run);
        return `trace of ${run.agentId}`;
      },
      enter: (_, next) => void next(),
      event: ({ type }, { trace }) => void (type === 'run.started' && seen.push(trace)),
    };
    const helper = defineAgent({ id: 'helper', instructions: 'Help.' });
    const agent = defineAgent({ id: 'worker', instructions: 'Work.', subAgents: ['helper'] });
    const script = [callTool('agent__helper', { prompt: 'Help.' }, 'c1'), reply('helped'), reply('end')];
    const executor = createExecutor({ models: { fast: scriptedModel(script) }, agents: [agent, helper], tracing });
    await executor.run(agent, { runId: 'a', prompt: 'Go.' });
    expect(begun.map(({ parent }) => parent)).toEqual([
      undefined,
      { trace: 'trace of worker', runId: 'a', attempt: 1, callId: 'c1', callAttempt: 1 },
    ]);
    expect(seen).toEqual(['trace of worker', 'trace of helper']);
  });

  test('is at most 200 bytes of the record, with its caller too, and costs no write (otel 18, 31)', async () => {
    const place = { traceId, parentId: undefined, isSampled: true };
    const text = placeText({ ...place, caller: { traceId, spanId: '1'.repeat(16), isSampled: true } });
    const keep = async (tracing?: Tracing) => {
      const store = watchedStore();
      const { start, executor } = hostOf({ store, ids: () => 'a', script: [hang()], ...(tracing ? { tracing } : {}) });
      await start({}, { drive: 'later' });
      await executor.shutdown();
      const { trace, ...record } = (await store.load('a')) ?? {};
      return { writes: store.methods.filter((method) => method !== 'load'), trace, record };
    };
    const traced = await keep({ begin: () => text, enter: (_, next) => void next(), event: () => {} });
    const plain = await keep();
    expect(traced.trace).toBe(text);
    expect(JSON.stringify({ trace: text }).length).toBeLessThanOrEqual(200);
    expect(Object.keys(traced.record)).toEqual(Object.keys(plain.record));
    expect(traced.writes).toEqual(plain.writes);
  });

  test('is no part of the request: the same start with another trace meets its run (otel 18)', async () => {
    const tracing = (text: string): Tracing => ({
      begin: () => text,
      enter: (_, next) => void next(),
      event: () => {},
    });
    const store = memoryStore();
    for (const text of ['one', 'two']) {
      const host = hostOf({ store, tracing: tracing(text) });
      expect(await host.run({ runId: 'a' })).toMatchObject({ status: 'ok', output: 'done' });
    }
  });
});
