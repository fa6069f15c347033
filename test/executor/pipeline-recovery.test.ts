import { memoryStore, type Phase, type RunCheckpoint, type RunResult } from 'pawl';
import { callTool, callTools, hang, reply, type ScriptedEntry } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { hostOf, settledUnless, toolOf, until } from '../fixtures/host.ts';
import { diedWhen, look, outputsOf, systemsOf, tell } from '../fixtures/phases.ts';
import { afterCrash, headOfWrite, isWrite, onlyRecord, watchedStore } from '../fixtures/watched-store.ts';

const anew: Phase = { ...tell, recovery: 'boundary' };
const phases = [look, anew, { name: 'c', instructions: 'C saw {{.b}}' }];
const tools = [toolOf('look'), toolOf('send', 'idempotent'), toolOf('pay', 'once')];
const begun = callTool('look', {}, 'c1');
/** Phase b makes two steps with `read` tools before it answers. */
const steps = [callTool('look', { n: 1 }, 'c2'), callTool('look', { n: 2 }, 'c3')];
const script: ScriptedEntry[] = [begun, reply('one'), ...steps, reply('two'), reply('three')];

/** Of a run: everything but whether somebody recorded it. */
const told = ({ durable: _, ...rest }: RunResult) => rest;
const whole = () => hostOf({ agent: { phases }, tools, script }).run({ runId: 'r' });
/** The counters that stood in the last write of a run. */
const countersOf = (store: ReturnType<typeof watchedStore>) =>
  headOfWrite(store.log.findLast(isWrite) as never)?.counters;

describe('a phase that begins again after a crash (pipeline 8)', () => {
  test.for([0, 1, 2])(
    'after %i of its steps leaves usage, iterations and counters as the uninterrupted run’s',
    async (done) => {
      const at = 2 + done;
      const left = await diedWhen((_, { calls }) => calls.length === at + 1, {
        agent: { phases },
        tools,
        script: [...script.slice(0, at), hang()],
      });
      const record = await onlyRecord(left);
      expect(record).toMatchObject({ iteration: 2, completedPhases: [{ name: 'a', from: 0 }] });
      expect(record.messages).toHaveLength(4);
      expect(record).not.toHaveProperty('openPhase');
      const store = watchedStore({}, left as never);
      const next = hostOf({ agent: { phases }, tools, store, script: script.slice(2) });
      expect(told(await next.run({ runId: 'r' }))).toEqual(told(await whole()));
      expect(systemsOf(next.model)).toEqual(['B saw one', 'B saw one', 'B saw one', 'C saw two']);
      expect(next.warnings).toEqual([]);
      const undisturbed = watchedStore();
      await hostOf({ agent: { phases }, tools, script, store: undisturbed }).run({ runId: 'r' });
      expect(countersOf(store)).toEqual(countersOf(undisturbed));
    },
  );

  test('that is the first begins with the first record', async () => {
    const first = [{ ...look, recovery: 'boundary' as const }, tell];
    const left = await diedWhen((_, { calls }) => calls.length === 3, {
      agent: { phases: first },
      tools,
      script: [...steps, hang()],
    });
    expect(await onlyRecord(left)).toMatchObject({ iteration: 0, completedPhases: [], messages: [{ role: 'user' }] });
    const next = hostOf({ agent: { phases: first }, tools, store: left, script: [reply('one'), reply('two')] });
    expect(await next.run({ runId: 'r' })).toMatchObject({ status: 'ok', output: 'two', iterations: 2 });
  });

  test('writes nothing between its boundaries', async () => {
    const store = watchedStore();
    await hostOf({ agent: { phases }, tools, script, store }).run({ runId: 'r' });
    const iterations = store.log.filter(isWrite).map((call) => headOfWrite(call)?.iteration);
    // The first record, a's step, each boundary, the outcome.
    expect(iterations).toEqual([0, 1, 2, 5, 6, 6]);
  });

  test('that was shut down leaves the run at its beginning', async () => {
    const store = memoryStore();
    const first = hostOf({ agent: { phases }, tools, store, script: [...script.slice(0, 4), hang()] });
    const run = await first.start({ runId: 'r' });
    await until(() => first.model.calls.length === 5);
    await first.executor.shutdown();
    // What this process did is in its result; what the next one has to redo is not in the record.
    expect(await run.result).toMatchObject({ status: 'interrupted', iterations: 4 });
    expect(await onlyRecord(store)).toMatchObject({ iteration: 2, attempts: 0, completedPhases: [{ name: 'a' }] });
    const next = hostOf({ agent: { phases }, tools, store, script: script.slice(2) });
    expect(told(await next.run({ runId: 'r' }))).toEqual(told(await whole()));
  });

  test('that was shut down amid a step of read calls leaves no open step', async () => {
    const store = memoryStore();
    let isAtWork = false;
    const slow = toolOf('look', 'read', (_, { signal }) => {
      isAtWork = true;
      return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    });
    const first = hostOf({
      agent: { phases: [anew] },
      isForeign: true,
      tools: [slow],
      store,
      script: [begun],
    });
    await first.start({ runId: 'r' });
    await until(() => isAtWork);
    await first.executor.shutdown();
    expect(await onlyRecord(store)).not.toHaveProperty('openStep');
    const next = hostOf({
      agent: { phases: [anew] },
      isForeign: true,
      tools,
      store,
      script: [begun, reply('one')],
    });
    expect(await next.run({ runId: 'r' })).toMatchObject({ status: 'ok', output: 'one', iterations: 2 });
  });

  test('that keeps dying is parked: it records nothing, and so makes no progress (recovery 2)', async () => {
    const asked: string[] = [];
    let left = await diedWhen((_, { calls }) => calls.length === 4, {
      agent: { phases },
      tools,
      script: [...script.slice(0, 3), hang()],
    });
    for (let life = 0; life < 4; life++) {
      const store = left;
      const host = hostOf({ agent: { phases }, tools, store, script: [steps[0] as never, hang()] });
      const run = await host.start({ runId: 'r' });
      const result = await settledUnless(run.result, () => host.model.calls.length === 2);
      asked.push(result ? String(result.error?.code) : 'asked');
      left = await afterCrash(store);
    }
    expect(asked).toEqual(['asked', 'asked', 'asked', 'RUN_PARKED']);
  });
});

/** Phase b reads, then starts a tool with an effect, then reads again. */
const effects = (name: string) =>
  [steps[0], callTool(name, {}, 'e1'), callTool('look', { n: 3 }, 'c4')] as ScriptedEntry[];

describe.for(['send', 'pay'] as const)('a phase that would begin again, and has started %s (pipeline 8)', (name) => {
  const entries = [...script.slice(0, 2), ...effects(name), reply('two'), reply('three')];
  const dieAt = (calls: number, holds: (record: RunCheckpoint) => unknown = () => true, given = tools) =>
    diedWhen((record, model) => model.calls.length === calls && holds(record), {
      agent: { phases },
      tools: given,
      script: [...entries.slice(0, calls - 1), calls <= entries.length ? hang() : reply('')],
    });

  test.for([
    ['right after that step', 5],
    ['a step later', 6],
  ] as const)('continues at its step all the same, with one warning: %s', async ([, calls]) => {
    const left = await dieAt(calls, ({ iteration }) => iteration === calls - 1);
    expect((await onlyRecord(left)).openPhase).toEqual({
      index: 1,
      hash: expect.any(String),
      iteration: calls - 3,
      from: 4,
    });
    const next = hostOf({ agent: { phases }, tools, store: left, script: entries.slice(calls - 1) });
    const expected = await hostOf({ agent: { phases }, tools, script: entries }).run({ runId: 'r' });
    expect(told(await next.run({ runId: 'r' }))).toEqual(told(expected));
    expect(next.warned).toMatchObject([
      { message: expect.stringContaining('continues at its step'), fields: { runId: 'r', phase: 'b' } },
    ]);
  });

  test('continues in the open step when the process died during the call', async () => {
    let starts = 0;
    const slow = toolOf(name, name === 'send' ? 'idempotent' : 'once', () => {
      starts += 1;
      return starts === 1 ? new Promise(() => {}) : 'done';
    });
    const given = [toolOf('look'), slow];
    const left = await diedWhen((record) => record.openStep && starts === 1, {
      agent: { phases },
      tools: given,
      script: entries.slice(0, 4),
    });
    const next = hostOf({ agent: { phases }, tools: given, store: left, script: entries.slice(4) });
    expect(await next.run({ runId: 'r' })).toMatchObject({ status: 'ok', iterations: 7 });
    expect(starts).toBe(name === 'send' ? 2 : 1);
    // That a call with effect once may have taken effect has a line of its own.
    expect(next.warnings).toHaveLength(name === 'send' ? 1 : 2);
  });

  test('begins again when the call never began: its intent did not reach the store', async () => {
    let starts = 0;
    const counting = toolOf(name, name === 'send' ? 'idempotent' : 'once', () => (starts += 1));
    const given = [toolOf('look'), counting];
    const inner = memoryStore();
    // The process dies with this write under way.
    const dying = watchedStore(
      { before: (call) => (isWrite(call) && headOfWrite(call)?.openStep ? new Promise(() => {}) : undefined) },
      inner,
    );
    const first = hostOf({ agent: { phases }, tools: given, store: dying, script: entries.slice(0, 4) });
    await first.start({ runId: 'r' });
    await until(() => dying.log.some((call) => isWrite(call) && headOfWrite(call)?.openStep));
    const left = await afterCrash(inner);
    expect(await onlyRecord(left)).toMatchObject({ iteration: 2, completedPhases: [{ name: 'a' }] });
    const next = hostOf({ agent: { phases }, tools: given, store: left, script: entries.slice(2) });
    const result = await next.run({ runId: 'r' });
    expect(result).toMatchObject({ status: 'ok', iterations: 7 });
    expect(outputsOf(result)).toEqual(['a: one', 'b: two', 'c: three']);
    expect([starts, next.warnings]).toEqual([1, []]);
  });
});

test('a phase that begins again waits for no store between its steps; one that continues at its step does (pipeline 8)', async () => {
  const calls = (recovery: 'step' | 'boundary') => {
    const inner = memoryStore();
    let isSlow = false;
    const store = watchedStore(
      { before: (call) => (isWrite(call) && isSlow ? new Promise(() => {}) : undefined) },
      inner,
    );
    const slow = toolOf('look', 'read', () => {
      isSlow = true;
      return 'seen';
    });
    const both = callTools([
      { name: 'look', input: { n: 1 } },
      { name: 'look', input: { n: 2 } },
    ]);
    const host = hostOf({
      agent: { phases: [{ ...look, recovery }] },
      tools: [slow],
      store,
      script: [both, callTool('look', { n: 3 }), hang()],
    });
    return host.start({ runId: 'r' }).then(async () => {
      await until(() => host.model.calls.length >= 2);
      for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
      return host.model.calls.length;
    });
  };
  expect([await calls('boundary'), await calls('step')]).toEqual([3, 2]);
});
