import type { Phase } from 'pawl';
import { toResumeState } from 'pawl/stores/kit';
import { callTool, hang, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { hostOf, toolOf, until } from '../fixtures/host.ts';
import { diedWhen, look, outputsOf, systemsOf, tell, two } from '../fixtures/phases.ts';
import { afterCrash, headOfWrite, isWrite, onlyRecord, watchedStore } from '../fixtures/watched-store.ts';

const tools = [toolOf('look')];
const twin = (n: number): Phase => ({ name: 'x', instructions: `${n} {{.x}}` });
const isComplete = (count: number) => (record: { completedPhases: readonly unknown[] }) =>
  record.completedPhases.length === count;

describe('a pipeline that continues', () => {
  test('skips the complete phase and threads its output: B saw saved-a, in one model call (pipeline 8)', async () => {
    const { run, model } = hostOf({ agent: { phases: two }, script: [reply('b is done')] });
    const completedPhases = [{ name: 'a', output: 'saved-a' }];
    const result = await run({}, { resume: { history: [], completedPhases } });
    expect(systemsOf(model)).toEqual(['B saw saved-a']);
    expect(result).toMatchObject({ status: 'ok', output: 'b is done' });
    expect(outputsOf(result)).toEqual(['a: saved-a', 'b: b is done']);
  });

  test('gives the saved output without a model call when all phases are complete (pipeline 8)', async () => {
    const { run, model } = hostOf({ agent: { phases: two }, script: [] });
    const completedPhases = two.map(({ name }) => ({ name, output: `saved-${name}` }));
    const result = await run({}, { resume: { history: [], completedPhases } });
    expect(result).toMatchObject({ status: 'ok', output: 'saved-b', iterations: 0 });
    expect(outputsOf(result)).toEqual(['a: saved-a', 'b: saved-b']);
    expect(model.calls).toHaveLength(0);
  });

  test('looks at what is complete before it looks at a cancel (pipeline 8)', async () => {
    const completedPhases = two.map(({ name }) => ({ name, output: `saved-${name}` }));
    for (const [phases, expected] of [
      [two, { status: 'ok', output: 'saved-b' }],
      [[...two, look], { status: 'cancelled', output: 'saved-b' }],
    ] as const) {
      const { run, model } = hostOf({ agent: { phases }, script: [] });
      const signal = AbortSignal.abort(new Error('enough'));
      const result = await run({}, { resume: { history: [], completedPhases }, signal });
      expect(result).toMatchObject(expected);
      expect(outputsOf(result)).toEqual(['a: saved-a', 'b: saved-b']);
      expect(model.calls).toHaveLength(0);
    }
  });

  test.for([0, 1, 2])(
    'after a crash behind boundary %i executes what the uninterrupted run would, and leaves the same (pipeline 7, 8, faults 31)',
    async (boundary) => {
      const phases = [look, tell, { name: 'c', instructions: 'C saw {{.a}} and {{.b}}' }];
      const script = ['one', 'two', 'three'].map((text) => reply(text));
      const whole = hostOf({ agent: { phases }, script });
      const expected = await whole.run({ runId: 'r' });
      const left = await diedWhen(isComplete(boundary), {
        agent: { phases },
        script: [...script.slice(0, boundary), hang()],
      });
      const next = hostOf({ agent: { phases }, store: left, script: script.slice(boundary) });
      const { durable: _, ...result } = await next.run({ runId: 'r' });
      const { durable: __, ...rest } = expected;
      expect(result).toEqual(rest);
      expect(systemsOf(next.model)).toEqual(systemsOf(whole.model).slice(boundary));
    },
  );

  test('lists the old and the new phases in its next save (pipeline 8)', async () => {
    const left = await diedWhen(isComplete(1), { agent: { phases: two }, script: [reply('one'), hang()] });
    const store = watchedStore({}, left as never);
    await hostOf({ agent: { phases: two }, store, script: [reply('two')] }).run({ runId: 'r' });
    const saved = store.log.filter(isWrite).map((call) => headOfWrite(call)?.completedPhases.map(({ name }) => name));
    expect(saved[0]).toEqual(['a', 'b']);
  });

  test('in the middle of a phase continues at its last step, with its own conversation (pipeline 8)', async () => {
    const script = [callTool('look'), reply('one'), callTool('look', { n: 1 }), callTool('look', { n: 2 }), hang()];
    const left = await diedWhen(({ iteration }) => iteration === 4, { agent: { phases: two }, tools, script });
    const record = await onlyRecord(left);
    expect(record).toMatchObject({ openPhase: { index: 1, iteration: 2 }, completedPhases: [{ name: 'a' }] });
    const next = hostOf({ agent: { phases: two }, tools, store: left, script: [reply('two')] });
    expect(await next.run({ runId: 'r' })).toMatchObject({ status: 'ok', output: 'two', iterations: 5 });
    const [opening, , , , ...own] = record.messages;
    expect(next.model.calls[0]?.messages.map(({ role }) => role)).toEqual([opening, ...own].map((each) => each?.role));
    expect(record.openPhase?.from).toBe(4);
    expect(systemsOf(next.model)).toEqual(['B saw one']);
    expect(next.warnings).toEqual([]);
  });

  test('whose resumed phase ends with its next turn leaves its messages in the record, and survives a crash then (pipeline 8)', async () => {
    const agent = { phases: two };
    const left = await diedWhen(({ iteration }) => iteration === 1, {
      agent,
      tools,
      script: [callTool('look'), hang()],
    });
    const second = hostOf({ agent, tools, store: left, script: [reply('one'), hang()] });
    await second.start({ runId: 'r' });
    await until(async () => (await left.load('r'))?.completedPhases.length === 1);
    const between = await onlyRecord(left);
    expect(between).toMatchObject({ completedPhases: [{ name: 'a', output: 'one', from: 0 }] });
    expect(between.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant']);
    const third = hostOf({ agent, tools, store: await afterCrash(left), script: [reply('two')] });
    expect(await third.run({ runId: 'r' })).toMatchObject({ status: 'ok', output: 'two', iterations: 3 });
  });

  test('counts the steps of the interrupted phase on: its cap holds over the crash (pipeline 8)', async () => {
    const phases = [look, { ...tell, maxSteps: 3 }];
    const steps = [1, 2, 3].map((n) => callTool('look', { n }));
    const script = [reply('one'), ...steps.slice(0, 2), hang()];
    const left = await diedWhen(({ iteration }) => iteration === 3, { agent: { phases }, tools, script });
    const next = hostOf({ agent: { phases }, tools, store: left, script: steps.slice(2) });
    expect(await next.run({ runId: 'r' })).toMatchObject({ status: 'ok', iterations: 4 });
    expect(next.model.calls).toHaveLength(1);
  });

  test('in an open step runs what has not answered, under the same call ids (pipeline 8, executor 12)', async () => {
    const seen: string[] = [];
    const send = (answer: unknown) =>
      toolOf('send', 'idempotent', (_, { idempotencyKey }) => {
        seen.push(idempotencyKey);
        return answer;
      });
    const left = await diedWhen((record) => record.openStep && seen.length === 1, {
      agent: { phases: two },
      tools: [send(new Promise(() => {}))],
      script: [reply('one'), callTool('send', {}, 'call_0')],
    });
    const next = hostOf({ agent: { phases: two }, tools: [send('sent')], store: left, script: [reply('two')] });
    expect(await next.run({ runId: 'r' })).toMatchObject({ status: 'ok', output: 'two' });
    expect(seen).toEqual([seen[0], seen[0]]);
  });

  test('continues from the resume state that its record makes (pipeline 8)', async () => {
    const script = [reply('one'), callTool('look'), hang()];
    const left = await diedWhen(({ iteration }) => iteration === 2, { agent: { phases: two }, tools, script });
    const record = await onlyRecord(left);
    const next = hostOf({ agent: { phases: two }, tools, script: [reply('two')] });
    const result = await next.run({}, { resume: toResumeState(record) });
    expect(result).toMatchObject({ status: 'ok', output: 'two', iterations: 3 });
    const [opening, , ...own] = record.messages;
    expect(record.openPhase?.from).toBe(2);
    expect(next.model.calls[0]?.messages.map(({ role }) => role)).toEqual([opening, ...own].map((each) => each?.role));
  });

  test('may be shut down at each boundary and in each phase, and ends as if nothing had happened (pipeline 8)', async () => {
    const script = [callTool('look', {}, 'c'), reply('one'), callTool('look', {}, 'c'), reply('two')];
    const expected = await hostOf({ agent: { phases: two }, tools, script }).run({ runId: 'r' });
    const store = watchedStore();
    for (let call = 0; call < script.length; call++) {
      const host = hostOf({
        agent: { phases: two },
        tools,
        store,
        script: [...script.slice(call, call + 1), hang()],
      });
      const run = await host.start({ runId: 'r' });
      await until(() => host.model.calls.length === 2 || host.executor.runs.get().length === 0);
      await host.executor.shutdown();
      if (call < script.length - 1) expect(await run.result).toMatchObject({ status: 'interrupted' });
      else expect(await run.result).toEqual({ ...expected, durable: true });
    }
  });
});

describe('two phases of one name (pipeline 9)', () => {
  test('both run on a fresh run', async () => {
    const { run, model } = hostOf({ agent: { phases: [twin(1), twin(2)] }, script: [reply('one'), reply('two')] });
    expect(outputsOf(await run())).toEqual(['x: one', 'x: two']);
    expect(systemsOf(model)).toEqual(['1 ', '2 one']);
  });

  test('on resume only the finished one is skipped', async () => {
    const phases = [twin(1), twin(2), twin(3)];
    const left = await diedWhen(isComplete(1), { agent: { phases }, script: [reply('one'), hang()] });
    const next = hostOf({ agent: { phases }, store: left, script: [reply('two'), reply('three')] });
    expect(outputsOf(await next.run({ runId: 'r' }))).toEqual(['x: one', 'x: two', 'x: three']);
    expect(systemsOf(next.model)).toEqual(['2 one', '3 two']);
  });

  test('are distinguished even when they say the same', async () => {
    const phases = [twin(1), twin(1)];
    const left = await diedWhen(isComplete(1), { agent: { phases }, script: [reply('one'), hang()] });
    const next = hostOf({ agent: { phases }, store: await afterCrash(left), script: [reply('two')] });
    expect(outputsOf(await next.run({ runId: 'r' }))).toEqual(['x: one', 'x: two']);
    expect(systemsOf(next.model)).toEqual(['1 one']);
  });
});
