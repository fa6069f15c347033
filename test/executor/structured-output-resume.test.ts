import { memoryStore, type Phase, type RunOutcome, type RunResult } from 'pawl';
import { callTool, fail, hang, reply, type ScriptedEntry } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { hostOf, toolOf, until } from '../fixtures/host.ts';
import { diedWhen, look, tell } from '../fixtures/phases.ts';
import { afterCrash, onlyRecord } from '../fixtures/watched-store.ts';

const output = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] };
const tools = [toolOf('look')];
const good = '{"n":1}';
const told = ({ durable: _, ...rest }: RunResult) => rest;
const last = (rest: Partial<Phase> = {}): Phase[] => [look, { ...tell, ...rest }];

describe.for([
  ['a single loop', {}, []],
  ['a pipeline', { phases: last() }, [reply('one')]],
] as const)('the repair of an answer, in %s', ([, agent, before]) => {
  const given = { agent: { ...agent, output }, tools };
  const diedInRepair = (...rest: ScriptedEntry[]) =>
    diedWhen(({ counters }, { calls }) => counters?.repairs === 1 && calls.length === before.length + 2 + rest.length, {
      ...given,
      script: [...before, reply('no'), ...rest, hang()],
    });

  test('survives a crash: the next process asks for it, with the problem at the end', async () => {
    const left = await diedInRepair();
    const record = await onlyRecord(left);
    const { from = 0 } = record.openPhase ?? {};
    const conversation = [...record.messages.slice(0, 1), ...record.messages.slice(Math.max(1, from))];
    expect(conversation.map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
    const next = hostOf({ ...given, store: left, script: [reply(good)] });
    const result = await next.run({ runId: 'r' });
    expect(next.model.calls[0]?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
    expect(next.model.calls[0]?.messages.at(-1)).toEqual(conversation.at(-1));
    const whole = await hostOf({ ...given, script: [...before, reply('no'), reply(good)] }).run({ runId: 'r' });
    expect(told(result)).toEqual(told(whole));
  });

  test('is counted in the record: over a crash there is one, and not two', async () => {
    const next = hostOf({ ...given, store: await diedInRepair(), script: [reply('no'), reply(good)] });
    expect(await next.run({ runId: 'r' })).toMatchObject({ status: 'error', error: { code: 'OUTPUT_INVALID' } });
    expect(next.model.calls).toHaveLength(1);
  });

  test('is counted over the steps of its turn', async () => {
    const left = await diedInRepair(callTool('look'));
    expect((await onlyRecord(left)).counters).toMatchObject({ repairs: 1, failedSteps: 0 });
    const next = hostOf({ ...given, store: left, script: [reply('no'), reply(good)] });
    expect(await next.run({ runId: 'r' })).toMatchObject({ status: 'error', error: { code: 'OUTPUT_INVALID' } });
    expect(next.model.calls).toHaveLength(1);
  });

  test('continues after a shutdown as well', async () => {
    const store = memoryStore();
    const first = hostOf({ ...given, store, script: [...before, reply('no'), hang()] });
    await first.start({ runId: 'r' });
    await until(() => first.model.calls.length === before.length + 2);
    await first.executor.shutdown();
    const next = hostOf({ ...given, store, script: [reply(good)] });
    expect(await next.run({ runId: 'r' })).toMatchObject({
      status: 'ok',
      data: { n: 1 },
      iterations: before.length + 2,
    });
  });
});

test('a last phase that begins again after a crash has its repair again: nothing of its first try is recorded (pipeline 8)', async () => {
  const given = { agent: { phases: last({ recovery: 'boundary' }), output }, tools };
  const left = await diedWhen((_, { calls }) => calls.length === 3, {
    ...given,
    script: [reply('one'), reply('no'), hang()],
  });
  const record = await onlyRecord(left);
  expect(record).toMatchObject({ iteration: 1, completedPhases: [{ from: 0 }] });
  expect(record.messages).toHaveLength(2);
  expect(record.counters).not.toHaveProperty('repairs');
  const script = [reply('no'), reply(good)];
  const result = await hostOf({ ...given, store: left, script }).run({ runId: 'r' });
  expect(result).toMatchObject({ status: 'ok', data: { n: 1 }, iterations: 3 });
});

describe('the data of an answer', () => {
  const agents = [
    ['a single loop', { output }, [reply(good)]],
    ['a pipeline', { output, phases: last() }, [reply('one'), reply(good)]],
  ] as const;

  test.for(agents)(
    'of %s is in the outcome that is delivered and kept, and in the answer that is given again',
    async ([, agent, script]) => {
      const store = memoryStore();
      const delivered: RunOutcome[] = [];
      const host = hostOf({ agent, script, store, onOutcome: (outcome) => void delivered.push(outcome) });
      expect((await host.run({ runId: 'r' })).data).toEqual({ n: 1 });
      expect(delivered).toMatchObject([{ status: 'ok', data: { n: 1 } }]);
      expect(await store.outcomes.find('r')).toMatchObject({ data: { n: 1 } });
      const again = hostOf({ agent, script: [], store });
      expect(await again.run({ runId: 'r' })).toMatchObject({ status: 'ok', output: good, data: { n: 1 } });
    },
  );

  test.for(agents)('of %s is in the outcome that the next process delivers', async ([, agent, script]) => {
    const left = await diedWhen((record) => record.outcome, { agent, script, onOutcome: () => new Promise(() => {}) });
    const delivered: RunOutcome[] = [];
    const next = hostOf({ agent, script: [], store: left, onOutcome: (outcome) => void delivered.push(outcome) });
    expect(await next.run({ runId: 'r' })).toMatchObject({ status: 'ok', data: { n: 1 } });
    expect(delivered).toMatchObject([{ data: { n: 1 } }]);
  });

  test('of a pipeline that died between its last phase and its outcome is the same (pipeline 8)', async () => {
    const given = { agent: { phases: last(), output } };
    const { left } = await diedAtOutcome(given);
    expect((await onlyRecord(left)).completedPhases).toHaveLength(2);
    const next = hostOf({ ...given, store: left, script: [] });
    expect(await next.run({ runId: 'r' })).toMatchObject({ status: 'ok', output: good, data: { n: 1 } });
  });

  test('of a pipeline whose last phase left its fallback is the same with and without a crash (pipeline 4, 8)', async () => {
    const given = { agent: { phases: last({ optional: true, fallback: '{"n":0}' }), output } };
    const script = [reply('one'), fail(Object.assign(new Error('down'), { statusCode: 400 }))];
    const whole = await hostOf({ ...given, script }).run({ runId: 'r' });
    const { left } = await diedAtOutcome(given, script);
    expect(told(await hostOf({ ...given, store: left, script: [] }).run({ runId: 'r' }))).toEqual({
      ...told(whole),
      messages: expect.any(Array),
    });
  });

  test('of a host’s own list of complete phases is read from the last (pipeline 8)', async () => {
    const completedPhases = [
      { name: 'a', output: 'x' },
      { name: 'b', output: good },
    ];
    const host = hostOf({ agent: { phases: last(), output }, script: [] });
    expect(await host.run({}, { resume: { history: [], completedPhases } })).toMatchObject({
      status: 'ok',
      data: { n: 1 },
    });
  });
});

/** A pipeline whose process dies when its last phase is recorded, and its outcome is not. */
async function diedAtOutcome(given: object, script: readonly ScriptedEntry[] = [reply('one'), reply(good)]) {
  const inner = memoryStore();
  const blind = {
    ...inner,
    append: (...call: Parameters<typeof inner.append>) =>
      call[0].head.outcome ? new Promise<never>(() => {}) : inner.append(...call),
    save: (...call: Parameters<typeof inner.save>) =>
      call[0].outcome ? new Promise<never>(() => {}) : inner.save(...call),
  };
  const first = hostOf({ ...given, store: blind, script });
  await first.start({ runId: 'r' });
  await until(async () => (await inner.load('r'))?.completedPhases.length === 2);
  return { left: await afterCrash(inner) };
}
