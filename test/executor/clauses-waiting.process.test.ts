import { spawn } from 'node:child_process';
import { type Model, memoryStore, type RunResult } from 'pawl';
import { callTool, callTools, hang, reply, stallAfter, type TestClock, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { listen, ofType } from '../events/listening.ts';
import { hostOf, settle, toolOf, until } from '../fixtures/host.ts';
import { watchedStore } from '../fixtures/watched-store.ts';
import { packageFlags } from '../toolchain/programs.ts';

/** What has come by now, and when: nothing is waited for. */
function watch<T>(promise: Promise<T>, clock: TestClock): { value?: T; at?: number } {
  const seen: { value?: T; at?: number } = {};
  void promise.then((value) => Object.assign(seen, { value, at: clock.monotonic() }));
  return seen;
}

const pieces = {
  'before its first byte': [],
  'in the middle of its text': [
    { type: 'text-start', id: 't' },
    { type: 'text-delta', id: 't', delta: 'I th' },
  ],
  'in the middle of the arguments of a call': [
    { type: 'tool-input-start', id: 'c', toolName: 'pay' },
    { type: 'tool-input-delta', id: 'c', delta: '{"cents": 1' },
  ],
} as const;

/** A model that streams these parts; then it falls silent, or says one letter each so many ms, for ever. */
function stallingModel(parts: readonly object[], clock: TestClock, everyMs?: number): Model & { calls: number } {
  const model = {
    specificationVersion: 'v4',
    provider: 'test',
    modelId: 'test',
    supportedUrls: {},
    calls: 0,
    async doStream() {
      model.calls += 1;
      let timer: unknown;
      const stream = new ReadableStream({
        start(controller) {
          for (const part of parts) controller.enqueue(part);
          const drip = () => {
            controller.enqueue({ type: 'text-delta', id: 't', delta: 'x' });
            timer = clock.setTimeout(drip, everyMs as number);
          };
          if (everyMs !== undefined) timer = clock.setTimeout(drip, everyMs);
        },
        cancel: () => clock.clearTimeout(timer),
      });
      return { stream };
    },
  };
  return model as never;
}

describe('a model that falls silent', () => {
  test.for(Object.entries(pieces))(
    '%s ends a run without a store in time, after two attempts; no tool has run (waiting 28, executor 7)',
    async ([, parts]) => {
      const clock = testClock();
      const model = stallingModel(parts, clock);
      let paid = 0;
      const pay = toolOf('pay', 'once', () => (paid += 1));
      const { executor, agent } = hostOf({ tools: [pay], clock, models: { fast: model }, random: () => 0 });
      const run = await executor.start(agent, { prompt: 'Pay.' });
      const events = watch(listen(run), clock);
      const ended = watch(run.result, clock);
      await clock.advance(2 * 120_000);
      expect(ended.value).toMatchObject({ status: 'error', error: { code: 'MODEL_STALLED' } });
      expect(ended.at).toBe(2 * (parts.length === 0 ? 120_000 : 60_000));
      expect([model.calls, paid, clock.pending]).toEqual([2, 0, 0]);
      await settle();
      expect(ofType(events.value ?? [], 'model.retry')).toMatchObject([
        { attempt: 2, error: { code: 'MODEL_STALLED' } },
      ]);
    },
  );

  test.for([
    ['before its answer', hang(), 120_000],
    ['in the middle of it', stallAfter('I th'), 60_000],
  ] as const)('%s is asked again: one attempt that stalled is no end (executor 7, 8)', async ([, first, ms]) => {
    const clock = testClock();
    const host = hostOf({ script: [first, reply('done')], clock, random: () => 0 });
    const ended = watch(host.run(), clock);
    await clock.advance(ms);
    expect(ended).toMatchObject({ at: ms, value: { status: 'ok', output: 'done', iterations: 1 } });
  });

  test('and says a letter a minute is silent too; one that says a little more is waited for (executor 7)', async () => {
    for (const [everyMs, status] of [
      [60_000, 'error'],
      [59_000, undefined],
    ] as const) {
      const clock = testClock();
      const model = stallingModel(pieces['in the middle of its text'], clock, everyMs);
      const { executor, agent } = hostOf({ clock, models: { fast: model }, random: () => 0 });
      const ended = watch(executor.run(agent, { prompt: 'Go.' }), clock);
      await clock.advance(5 * 60_000);
      expect(ended.value?.status).toBe(status);
      await executor.shutdown();
    }
  });
});

describe('where no limit is set', () => {
  const ends = async (host: ReturnType<typeof hostOf>, clock: TestClock, ms: number): Promise<RunResult> => {
    const ended = watch(host.run(), clock);
    await clock.advance(ms - 1);
    expect(ended.value).toBeUndefined();
    await clock.advance(1);
    await settle();
    return ended.value as RunResult;
  };

  test('a tool has two minutes, and the model reads that it did not answer (executor 9)', async () => {
    const clock = testClock();
    const host = hostOf({
      script: [callTool('look'), reply('done')],
      tools: [toolOf('look', 'read', () => new Promise(() => {}))],
      clock,
    });
    expect(await ends(host, clock, 120_000)).toMatchObject({ status: 'ok' });
    expect(JSON.stringify(host.model.calls[1]?.messages.at(-1))).toContain('did not answer within 120000 ms');
  });

  test('eight calls of a message run side by side (executor 9)', async () => {
    let [running, most] = [0, 0];
    const look = toolOf('look', 'read', async () => {
      most = Math.max(most, ++running);
      await settle(1);
      running -= 1;
    });
    const calls = Array.from({ length: 30 }, (_, n) => ({ name: 'look', input: { n } }));
    await hostOf({ script: [callTools(calls), reply('done')], tools: [look] }).run();
    expect(most).toBe(8);
  });

  test('a store has half a minute for an answer (executor 9)', async () => {
    const clock = testClock();
    const store = watchedStore(
      { before: ({ method }) => method === 'load' && new Promise(() => {}) },
      memoryStore({ clock }),
    );
    const host = hostOf({ store, clock });
    const started = watch(host.start({ runId: 'r' }), clock);
    await clock.advance(29_999);
    expect(started.value).toBeUndefined();
    await clock.advance(1);
    await settle();
    expect(await started.value?.result).toMatchObject({ status: 'error', error: { code: 'PORT_TIMEOUT' } });
  });

  test('a claim holds for half a minute (executor 9)', async () => {
    const store = watchedStore();
    await hostOf({ store }).run({ runId: 'r' });
    expect(store.log.find(({ method }) => method === 'claim')?.args[2]).toBe(30_000);
  });

  test('the handles of the last 1,000 ended runs are kept, and no more (executor 9)', async () => {
    const host = hostOf({ script: Array(1_001).fill(reply('done')) });
    for (let i = 0; i <= 1_000; i++) await host.run({ runId: `r${i}` });
    expect(host.executor.get('r0')).toBeUndefined();
    expect(host.executor.get('r1')).toBeDefined();
    expect(host.executor.get('r1000')).toBeDefined();
  });
});

describe('the signal of a tool', () => {
  test.for([
    ['its deadline', 'DEADLINE_EXCEEDED', 'timeout'],
    ['a cancel', 'CANCELLED', 'cancelled'],
    ['a shutdown of the executor', 'ERR_SHUTDOWN', 'interrupted'],
  ] as const)('tells of %s as its reason, as the signal of the model does (executor 5)', async ([, code, status]) => {
    for (const script of [[callTool('wait')], [hang()]]) {
      const clock = testClock();
      let signal: AbortSignal | undefined;
      const wait = toolOf('wait', 'read', (_, context) => {
        signal = context.signal;
        return new Promise(() => {});
      });
      const host = hostOf({ script, tools: [wait], clock, agent: { maxRuntimeMs: 1_000 } });
      const run = await host.start();
      await until(() => signal ?? (script[0]?.type === 'hang' && host.model.calls[0]));
      if (code === 'CANCELLED') void run.cancel();
      else if (code === 'ERR_SHUTDOWN') void host.executor.shutdown();
      else await clock.advance(1_000);
      expect(await run.result).toMatchObject({ status });
      expect((signal ?? host.model.calls[0]?.signal)?.reason).toMatchObject({ code });
    }
  });
});

test('a process whose tool ignores its abort and never answers can exit, and the run ended on time (executor 7, faults 15)', async () => {
  const program = `
    import { createExecutor, defineAgent, defineTool } from 'pawl';
    import { callTool, scriptedModel } from 'pawl/testing';
    const tool = (name, execute) => defineTool({ name, description: '', effect: 'read', input: { type: 'object' }, execute });
    const deaf = tool('deaf', () => new Promise(() => {}));
    const late = tool('late', async () => { await new Promise((done) => setTimeout(done, 5_000)); console.log('late'); });
    const agent = defineAgent({ id: 'a', instructions: '', tools: [deaf, late], maxRuntimeMs: 100 });
    for (const name of ['deaf', 'late']) {
      const executor = createExecutor({ models: { fast: scriptedModel([callTool(name)]) } });
      const begun = performance.now();
      const { status } = await executor.run(agent, { prompt: 'Go.' });
      console.log(name, status, performance.now() - begun < 4_000);
    }`;
  const child = spawn(process.execPath, [...packageFlags, '--input-type=module', '--eval', program]);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (output += data));
  const code = await new Promise((resolve) => child.on('close', resolve));
  expect({ code, output }).toEqual({ code: 0, output: 'deaf timeout true\nlate timeout true\nlate\n' });
});
