import { memoryStore, type RunCheckpoint, type ToolContext, type ToolEffect } from 'pawl';
import type { OpenCall } from 'pawl/stores/kit';
import { callTools, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { keyOf } from '../fixtures/child-id.ts';
import { hostOf, toolOf, until } from '../fixtures/host.ts';
import { afterCrash, onlyRecord } from '../fixtures/watched-store.ts';

const calls = (...names: string[]) => callTools(names.map((name, i) => ({ name, input: { i }, callId: `c${i}` })));
const unknown = expect.stringMatching(/outcome unknown/i);

/** Runs one step up to the moment at which so many of its results are stored, and gives what a crash would leave. */
async function crashIn(
  script: ReturnType<typeof calls>,
  tools: ReturnType<typeof toolOf>[],
  isReached: (record: RunCheckpoint) => boolean,
) {
  const store = memoryStore();
  const host = hostOf({ script: [script], tools, store });
  await host.start({ runId: 'run-1' });
  await until(async () => {
    const record = await store.load('run-1');
    return record && isReached(record);
  });
  return afterCrash(store);
}

/** The second process: what its tools were called with, and how it ended. */
async function goOn(left: ReturnType<typeof memoryStore>, effects: Record<string, ToolEffect>, options: object = {}) {
  const seen: ToolContext[] = [];
  const tools = Object.entries(effects).map(([name, effect]) =>
    toolOf(name, effect, (_, context) => {
      seen.push(context);
      return `${name} again`;
    }),
  );
  const host = hostOf({ script: [reply('end')], tools, store: left, ...options });
  const result = await host.run({ runId: 'run-1' });
  return {
    result,
    seen,
    host,
    results: result.messages[2]?.content as unknown as { toolCallId: string; output: { value: unknown } }[],
  };
}

const key = keyOf('run-1', 'c0');
const hangs = () => new Promise(() => {});
const states = (record: RunCheckpoint) => record.openStep?.calls.map(({ state }) => state).join();

describe('after a crash in the middle of a step', () => {
  test.for(['read', 'idempotent'] as const)(
    'a %s call that was under way runs again, with the same key and the next attempt (executor 14, faults 27)',
    async (effect) => {
      const keys: ToolContext[] = [];
      const tool = toolOf('work', effect, (_, context) => {
        keys.push(context);
        return hangs();
      });
      const left =
        effect === 'read'
          ? await crashIn(
              calls('work', 'other'),
              [tool, toolOf('other', 'idempotent', hangs)],
              (record) => states(record) === 'started,started',
            )
          : await crashIn(calls('work'), [tool], (record) => states(record) === 'started');
      const { seen, result } = await goOn(left, { work: effect, other: 'idempotent' });
      expect(keys[0]).toMatchObject({ attempt: 1, idempotencyKey: key, callId: 'c0', runId: 'run-1' });
      expect(seen[0]).toMatchObject({ attempt: 2, idempotencyKey: key, callId: 'c0', runId: 'run-1' });
      expect(result.status).toBe('ok');
    },
  );

  test('each crash under way counts one attempt more, under the same key (executor 14)', async () => {
    const seen: [number, string][] = [];
    const tool = toolOf('work', 'idempotent', (_, { attempt, idempotencyKey }) => {
      seen.push([attempt, idempotencyKey]);
      return hangs();
    });
    let store = await crashIn(calls('work'), [tool], (record) => states(record) === 'started');
    for (let crash = 2; crash <= 3; crash++) {
      await hostOf({ tools: [tool], store }).start({ runId: 'run-1' });
      await until(() => seen.length === crash);
      store = await afterCrash(store);
      expect((await onlyRecord(store)).openStep?.calls).toMatchObject([{ attempt: crash }]);
    }
    expect(seen).toEqual([1, 2, 3].map((attempt) => [attempt, key]));
  });

  test('a once call under way is never run again, and the model reads that its outcome is unknown (executor 14, faults 27)', async () => {
    const left = await crashIn(
      calls('send'),
      [toolOf('send', 'once', hangs)],
      (record) => states(record) === 'started',
    );
    const { seen, results, host } = await goOn(left, { send: 'once' });
    expect(seen).toEqual([]);
    expect(results).toMatchObject([{ toolCallId: 'c0', output: { type: 'error-text', value: unknown } }]);
    expect(host.model.calls[0]?.messages[2]).toMatchObject({ content: [{ output: { value: unknown } }] });
  });

  test("under onUnknownOutcome 'park' the run is set aside instead, and stays so (executor 14)", async () => {
    const left = await crashIn(
      calls('send'),
      [toolOf('send', 'once', hangs)],
      (record) => states(record) === 'started',
    );
    const { seen, result, host } = await goOn(left, { send: 'once' }, { onUnknownOutcome: 'park' });
    expect(result).toMatchObject({ status: 'error', error: { code: 'RUN_PARKED' } });
    expect([seen, host.model.calls]).toEqual([[], []]);
    expect(await left.listInterrupted()).toMatchObject([
      { status: 'parked', runId: 'run-1', reason: expect.any(String) },
    ]);
    expect((await onlyRecord(left)).openStep?.calls).toMatchObject([{ state: 'started', attempt: 1 }]);
  });

  test('an idempotent call under way does not park a run', async () => {
    const left = await crashIn(
      calls('send'),
      [toolOf('send', 'idempotent', hangs)],
      (record) => states(record) === 'started',
    );
    const { result } = await goOn(left, { send: 'idempotent' }, { onUnknownOutcome: 'park' });
    expect(result.status).toBe('ok');
  });

  test('only the second of three was recorded: it does not run again, and results are in call order (executor 14, faults 28)', async () => {
    const second = toolOf('b', 'idempotent', () => 'b first');
    const left = await crashIn(
      calls('a', 'b', 'c'),
      [toolOf('a', 'idempotent', hangs), second, toolOf('c', 'idempotent', hangs)],
      (record) => states(record) === 'started,done,started',
    );
    const { seen, results } = await goOn(left, { a: 'idempotent', b: 'idempotent', c: 'idempotent' });
    expect(seen.map(({ callId }) => callId)).toEqual(['c0', 'c2']);
    expect(results).toMatchObject([
      { toolCallId: 'c0', output: { value: 'a again' } },
      { toolCallId: 'c1', output: { value: 'b first' } },
      { toolCallId: 'c2', output: { value: 'c again' } },
    ]);
  });

  test('a planned call that never started runs for the first time: attempt 1 (executor 14)', async () => {
    const left = await crashIn(
      calls('a', 'b'),
      [toolOf('a', 'once', hangs), toolOf('b', 'once', hangs)],
      (record) => states(record) === 'started,started',
    );
    const record = await onlyRecord(left);
    const openStep = record.openStep as NonNullable<RunCheckpoint['openStep']>;
    const planned = openStep.calls.map(
      (call, i): OpenCall => (i === 1 ? { ...call, state: 'planned', attempt: 0 } : call),
    );
    await left.save({ ...record, openStep: { ...openStep, calls: planned } });
    const { seen } = await goOn(left, { a: 'once', b: 'once' });
    expect(seen).toMatchObject([{ callId: 'c1', attempt: 1 }]);
  });

  test('a call limited by concurrency is planned, not started, when the process dies (executor 14)', async () => {
    const store = memoryStore();
    const host = hostOf({
      script: [calls('a', 'a')],
      tools: [toolOf('a', 'once', hangs)],
      agent: { toolConcurrency: 1 },
      store,
    });
    await host.start({ runId: 'run-1' });
    await until(async () => (await store.load('run-1'))?.openStep);
    const { seen, results } = await goOn(await afterCrash(store), { a: 'once' });
    expect(seen.map(({ callId, attempt }) => [callId, attempt])).toEqual([['c1', 1]]);
    expect(results).toMatchObject([{ output: { value: unknown } }, { output: { value: 'a again' } }]);
  });

  test('the effect that counts is the one in the ledger, not that of today’s tool (executor 14)', async () => {
    const left = await crashIn(
      calls('send'),
      [toolOf('send', 'once', hangs)],
      (record) => states(record) === 'started',
    );
    const { seen } = await goOn(left, { send: 'read' });
    expect(seen).toEqual([]);
  });

  test('a tool that a deploy took away answers its open call as an unknown tool', async () => {
    const left = await crashIn(
      calls('send'),
      [toolOf('send', 'idempotent', hangs)],
      (record) => states(record) === 'started',
    );
    const { results } = await goOn(left, { other: 'read' });
    expect(results).toMatchObject([{ output: { type: 'error-text', value: expect.stringContaining('send') } }]);
  });
});
