import { createBudget, memoryStore } from 'pawl';
import { callTool, hang, reply, type ScriptedModel, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { ModelRests } from '../../../src/model/lists/rests.ts';
import { toolOf } from '../../fixtures/host.ts';
import { type Method, watchedStore } from '../../fixtures/watched-store.ts';
import { modelOf, streamOf } from '../../model/fake-model.ts';
import { listHost, methodsOf, named, noon, overloaded, played, refusal } from './lists.ts';

const always = { when: () => true };
const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };

/** A model that calls a tool first, and then withholds its answer. */
function withholding(name: string) {
  const [provider, modelId] = name.split('/');
  let calls = 0;
  const model = modelOf(async () => {
    calls += 1;
    const finish = { type: 'finish', finishReason: { unified: 'content-filter', raw: 'safety' }, usage };
    return { stream: streamOf([finish]) };
  });
  return { model: Object.assign(model, { provider, modelId }) as never, calls: () => calls };
}

describe('a function that gives lists', () => {
  test('gives one with the same models each time: the next one is asked, and the rests of the first hold for the next run (failover 1, 6)', async () => {
    const opus = named('anthropic/opus', [overloaded, overloaded]);
    const gpt = named('openai/gpt', [reply('one'), reply('two')]);
    const asked: string[] = [];
    const host = listHost([], {
      models: (tier: string) => {
        asked.push(tier);
        return [{ model: opus }, gpt];
      },
    } as never);
    for (const output of ['one', 'two']) {
      const run = await host.start();
      await host.clock.advance(2_000);
      expect(await run.result).toMatchObject({ status: 'ok', output });
    }
    expect([opus.calls.length, gpt.calls.length]).toEqual([2, 2]);
    expect(new Set(asked)).toEqual(new Set(['fast']));
  });
});

describe('between two models of a step', () => {
  test('nothing is written to the store (failover 2)', async () => {
    const clock = testClock(noon);
    const store = watchedStore({}, memoryStore({ clock }));
    const written = (): Method[] => store.methods.filter((method) => /save|append|history|limits/.test(method));
    const seen: number[] = [];
    const noting = (name: string, steps: readonly unknown[]) =>
      named(
        name,
        steps.map((step) => () => {
          seen.push(written().length);
          return step as never;
        }),
      );
    const opus = noting('anthropic/opus', [callTool('look'), overloaded, overloaded]);
    const gpt = noting('openai/gpt', [overloaded, overloaded]);
    const pro = noting('google/pro', [reply('done')]);
    const { run } = await played([opus, gpt, pro], { store, clock });
    for (let second = 0; second < 20; second++) await clock.advance(500);
    expect(await run.result).toMatchObject({ status: 'ok', output: 'done' });
    const [first = 0, second = 0, ...others] = seen;
    expect(second).toBeGreaterThan(first);
    expect(others).toEqual(Array(4).fill(second));
  });
});

describe('what ends the step of a list, with any answer of its `when`', () => {
  test('is an abort (failover 3)', async () => {
    const next = named('openai/gpt', [reply('done')]);
    const told: unknown[] = [];
    const host = listHost([
      named('anthropic/opus', [hang()]),
      { model: next, when: (failure) => told.push(failure) > 0 },
    ]);
    const run = await host.start({ runId: 'r' });
    await host.clock.advance(1);
    run.cancel();
    expect(await run.result).toMatchObject({ status: 'cancelled' });
    await host.clock.advance(60_000);
    expect([told, next.calls.length]).toEqual([[], 0]);
  });

  test('is a budget: before the first model, and before the next one (failover 3)', async () => {
    for (const refused of ['anthropic/opus', 'openai/gpt']) {
      const budget = createBudget({ usd: 10 ** 9, prices: () => 1 });
      const reserve: typeof budget.reserve = (caller, wish) =>
        wish.model === refused
          ? Promise.reject(Object.assign(new Error('too much'), { code: 'BUDGET_EXCEEDED' }))
          : budget.reserve(caller, wish);
      const told: unknown[] = [];
      const opus = named('anthropic/opus', [refusal(401)]);
      const gpt = named('openai/gpt', [reply('gpt')]);
      const pro = named('google/pro', [reply('pro')]);
      const when = (failure: unknown) => told.push(failure) > 0;
      const { run } = await played([opus, { model: gpt, ...always }, { model: pro, when }], {
        ports: { budget: { ...methodsOf(budget), reserve } },
      });
      expect(await run.result).toMatchObject({ status: 'error', error: { code: 'BUDGET_EXCEEDED' } });
      const isFirst = refused === 'anthropic/opus';
      expect([opus.calls.length, gpt.calls.length, pro.calls.length]).toEqual([isFirst ? 0 : 1, 0, 0]);
      expect(told).toEqual([]);
    }
  });
});

describe('an answer that its provider withholds', () => {
  test('ends the run, if it is that of the model that is asked first (failover 3)', async () => {
    const next = named('openai/gpt', [reply('done')]);
    const { run } = await played([withholding('anthropic/opus').model, next]);
    expect(await run.result).toMatchObject({ status: 'error', error: { code: 'CONTENT_REFUSED' } });
    expect(next.calls).toHaveLength(0);
  });

  test('only passes over a later model: the next one answers, and without one the run waits (failover 3, 5)', async () => {
    const away = () => ({ model: named('anthropic/opus', [overloaded]), maxAttempts: 1 });
    const later = withholding('openai/gpt');
    const { run } = await played([away(), later.model, named('google/pro', [reply('done')])]);
    expect(await run.result).toMatchObject({ status: 'ok', output: 'done' });
    expect(later.calls()).toBe(1);
    const { record } = await played([away(), withholding('openai/gpt').model]);
    expect(record?.waiting?.waits).toMatchObject([{ kind: 'retry', needsPerson: false }]);
  });

  test('is asked of another model, if its `when` says so (failover 3)', async () => {
    const told: unknown[] = [];
    const when = (failure: { kind: string }) => told.push(failure) > 0 && failure.kind === 'final';
    const { run } = await played([
      withholding('anthropic/opus').model,
      { model: named('openai/gpt', [reply('done')]), when },
    ]);
    expect(await run.result).toMatchObject({ status: 'ok', output: 'done' });
    expect(told).toEqual([{ kind: 'final', code: 'CONTENT_REFUSED', from: 'anthropic/opus' }]);
  });
});

describe('an answer over a limit', () => {
  test('ends the run, if it is that of the first model, and only passes over a later one (failover 3)', async () => {
    const defaults = { maxReplyChars: 1_000 };
    const large = () => reply('x'.repeat(5_000));
    const next = named('openai/gpt', [reply('done')]);
    const { run } = await played([named('anthropic/opus', [large()]), next], { defaults });
    expect(await run.result).toMatchObject({ status: 'error', error: { code: 'REPLY_TOO_LARGE' } });
    expect(next.calls).toHaveLength(0);
    const away = { model: named('anthropic/opus', [overloaded]), maxAttempts: 1 };
    const { record } = await played([away, named('openai/gpt', [large()])], { defaults });
    expect(record?.waiting?.waits).toMatchObject([{ kind: 'retry', needsPerson: false }]);
  });
});

test('`when` gets what may pass after the attempts of its model, with the time that it asked for, and of what is blocked (failover 3)', async () => {
  const told: unknown[] = [];
  const note = (answer: boolean) => (failure: object) => {
    told.push(failure);
    return answer;
  };
  const from = 'anthropic/opus';
  const opus = named(from, [refusal(429, { 'retry-after-ms': '700' }), refusal(429, { 'retry-after-ms': '800' })]);
  const gpt = named('openai/gpt', [refusal(401)]);
  const pro = named('google/pro', [reply('done')]);
  const refusing = { model: named('x/y', []), when: () => false };
  const { run } = await played([opus, { model: gpt, when: note(true) }, refusing, { model: pro, when: note(true) }]);
  expect(await run.result).toMatchObject({ status: 'ok', output: 'done' });
  expect(opus.calls).toHaveLength(2);
  expect(told).toEqual([
    { kind: 'passing', status: 429, code: 'MODEL', retryAfterMs: 800, from },
    { kind: 'blocked', status: 401, code: 'MODEL', from: 'openai/gpt' },
  ]);
});

test('no model is asked where each `when` says no, and the run waits for its model as long as that asks (failover 3, 5)', async () => {
  const gpt = named('openai/gpt', [reply('done')]);
  const opus = named('anthropic/opus', [refusal(429, { 'retry-after': '90' })]);
  const { record } = await played([
    { model: opus, maxAttempts: 1 },
    { model: gpt, when: () => false },
  ]);
  const [wait] = record?.waiting?.waits ?? [];
  expect(wait).toMatchObject({ kind: 'retry', needsPerson: false, dueAt: (wait?.createdAt ?? 0) + 90_000 });
  expect(gpt.calls).toHaveLength(0);
});

test("a person's wake asks each model once while all of them rest, in the order of the list (failover 5, 6)", async () => {
  const order: string[] = [];
  const away = (name: string) =>
    named(
      name,
      Array(9).fill(() => {
        order.push(name);
        return overloaded;
      }),
    );
  const [opus, gpt, pro] = [away('anthropic/opus'), away('openai/gpt'), away('google/pro')];
  const host = await played([opus, gpt, pro]);
  expect(order.splice(0)).toHaveLength(6);
  for (let wake = 0; wake < 2; wake++) {
    const [wait] = await host.executor.waiting({ kind: 'retry' });
    await host.executor.control('r').wake(wait?.id ?? '');
    await host.clock.advance(600);
    expect(order.splice(0)).toEqual(['anthropic/opus', 'openai/gpt', 'google/pro']);
  }
});

test('an answer makes a model whole: after it, its next failure is a first one again (failover 6)', async () => {
  const clock = testClock(noon);
  const rests = new ModelRests(clock, 30_000);
  const model = named('anthropic/opus', []);
  const error = (overloaded as { readonly error: unknown }).error;
  for (let failure = 0; failure < 3; failure++) {
    rests.begin(model)(error);
    await clock.advance(600_000);
  }
  rests.begin(model)(undefined);
  expect(rests.hasFailed(model)).toBe(false);
  rests.begin(model)(error);
  await clock.advance(29_999);
  expect(rests.isResting(model)).toBe(true);
  await clock.advance(1);
  expect(rests.isResting(model)).toBe(false);
});

describe('in another process', () => {
  test('a wake asks each model once too, though this one has not seen them fail (failover 5)', async () => {
    const away = (name: string) => named(name, Array(9).fill(overloaded));
    const first = await played([away('anthropic/opus'), away('openai/gpt')]);
    expect(first.record?.waiting?.waits).toMatchObject([{ kind: 'retry' }]);
    await first.executor.shutdown();
    const [opus, gpt] = [away('anthropic/opus'), away('openai/gpt')];
    const next = listHost([opus, gpt], { store: first.store, clock: first.clock });
    void next.executor.recover({ follow: true });
    await first.clock.advance(45_000);
    expect([opus.calls.length, gpt.calls.length]).toEqual([1, 1]);
    await next.executor.shutdown();
  });

  test('a run stays with the account that answered, where two entries have one model (failover 7)', async () => {
    const hung = toolOf('look', 'read', () => new Promise(() => {}));
    const listOf = (a: ScriptedModel, b: ScriptedModel) => [
      { model: a, key: 'a', maxAttempts: 1 },
      { model: b, key: 'b' },
    ];
    const first = listHost(listOf(named('openai/gpt', [overloaded]), named('openai/gpt', [callTool('look')])), {
      tools: [hung],
    });
    await first.start({ runId: 'r' });
    await first.clock.advance(1);
    await first.executor.shutdown({ drainMs: 0 });
    const [a, b] = [named('openai/gpt', [reply('a')]), named('openai/gpt', [reply('b')])];
    const second = listHost(listOf(a, b), { store: first.store, clock: first.clock });
    expect(await second.run({ runId: 'r' })).toMatchObject({ status: 'ok', output: 'b' });
    expect(a.calls).toHaveLength(0);
  });
});
