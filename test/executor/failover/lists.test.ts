import { LoadAPIKeyError } from '@ai-sdk/provider';
import { createBudget } from 'pawl';
import { callTool, fail, reply, stallAfter } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { toolOf } from '../../fixtures/host.ts';
import { brokenAfter, listHost, methodsOf, named, noon, overloaded, played, refusal } from './lists.ts';

describe('a tier with a list of models', () => {
  test('asks the second model in the same step when the first one is overloaded (failover 2, 3)', async () => {
    const opus = named('anthropic/opus', [overloaded, overloaded]);
    const gpt = named('openai/gpt', [callTool('look'), reply('done')]);
    const { run, of, used } = await played([opus, gpt]);
    const result = await run.result;
    expect(result).toMatchObject({ status: 'ok', output: 'done', iterations: 2 });
    expect([opus.calls.length, gpt.calls.length]).toEqual([2, 2]);
    expect(of('model.fallback')).toMatchObject([
      { step: 1, attempt: 2, from: 'anthropic/opus', to: 'openai/gpt', error: { code: 'MODEL' } },
    ]);
    expect(of('model.retry')).toMatchObject([{ model: 'anthropic/opus', attempt: 2 }]);
    expect(used()).toMatchObject([{ model: 'openai/gpt', turns: 2 }]);
    expect(of('step.started')).toHaveLength(2);
  });

  test('asks the next model at once where the first is blocked, or asks for more than a second (failover 3)', async () => {
    for (const first of [refusal(401), refusal(429, { 'retry-after': '2' })]) {
      const opus = named('anthropic/opus', [first]);
      const gpt = named('openai/gpt', [reply('done')]);
      const { run } = await played([opus, gpt]);
      expect(await run.result).toMatchObject({ status: 'ok', output: 'done' });
      expect([opus.calls.length, gpt.calls.length]).toEqual([1, 1]);
    }
  });

  test('waits for a model that asks for less than a second (failover 3)', async () => {
    const opus = named('anthropic/opus', [refusal(429, { 'retry-after-ms': '900' }), reply('patient')]);
    const { run } = await played([opus, named('openai/gpt', [reply('done')])]);
    expect(await run.result).toMatchObject({ output: 'patient' });
  });

  test.for([
    ['at once with `maxAttempts: 1`', 1, 0],
    ['within 1.5 s by default', undefined, 1_500],
  ] as const)('asks the next model %s, in the time of the clock (failover 25)', async ([, maxAttempts, mostMs]) => {
    const askedAt: number[] = [];
    const answer = () => {
      askedAt.push(host.clock.now() - noon);
      return reply('done');
    };
    const first = { model: named('anthropic/opus', [overloaded, overloaded]), ...(maxAttempts ? { maxAttempts } : {}) };
    // The longest pause that is drawn.
    const host = listHost([first, named('openai/gpt', [answer])], { random: () => 1 - Number.EPSILON });
    await host.start();
    for (let tick = 0; tick < 100; tick++) await host.clock.advance(100);
    expect(askedAt).toHaveLength(1);
    expect(askedAt[0]).toBeLessThanOrEqual(mostMs);
  });

  test('ends where the model that is asked first refuses the request (failover 3)', async () => {
    const gpt = named('openai/gpt', [reply('done')]);
    const { run } = await played([named('anthropic/opus', [refusal(400)]), gpt]);
    expect(await run.result).toMatchObject({ status: 'error', error: { code: 'MODEL' } });
    expect(gpt.calls).toHaveLength(0);
  });

  test('never ends a run that its first model alone would have kept waiting (failover 3, 5)', async () => {
    const list = [named('anthropic/opus', [overloaded, overloaded]), named('openai/gpt', [refusal(400)])];
    const { record } = await played(list);
    expect(record?.waiting?.waits).toMatchObject([{ kind: 'retry', needsPerson: false }]);
  });

  test('asks a model by what its `when` says of the failure, for each kind (failover 3)', async () => {
    const told: unknown[] = [];
    const large = {
      model: named('google/pro', [reply('done')]),
      when: (f: { kind: string }) => told.push(f) > 0 && f.kind === 'final',
    };
    const never = { model: named('openai/gpt', []), when: () => false };
    const { run } = await played([named('anthropic/opus', [refusal(413)]), never, large]);
    expect(await run.result).toMatchObject({ status: 'ok', output: 'done' });
    expect(told).toEqual([{ kind: 'final', status: 413, code: 'MODEL', from: 'anthropic/opus' }]);
    expect(never.model.calls).toHaveLength(0);
  });

  test('falls back to its own rule where a `when` throws, and says so (failover 3)', async () => {
    const second = {
      model: named('openai/gpt', [reply('done')]),
      when: () => {
        throw new Error('oops');
      },
    };
    const { run, warned } = await played([named('anthropic/opus', [refusal(401)]), second]);
    expect(await run.result).toMatchObject({ status: 'ok' });
    expect(warned).toMatchObject([{ message: "run: a list's `when` threw", fields: { runId: 'r' } }]);
  });

  test('takes no promise of a `when` for a yes, and its rejection ends no process (failover 3)', async () => {
    const second = { model: named('openai/gpt', []), when: (() => Promise.reject(new Error('oops'))) as never };
    const { run } = await played([named('anthropic/opus', [refusal(401)]), second]);
    expect(await run.result).toMatchObject({ status: 'error', error: { code: 'MODEL' } });
    expect(second.model.calls).toHaveLength(0);
  });

  test('shows the half of an answer that broke off as void, and the next answer whole (failover 4)', async () => {
    const opus = { model: named('anthropic/opus', [stallAfter('half of')]), maxAttempts: 1 };
    const { run, events } = await played([opus, named('openai/gpt', [reply('whole')])], {
      defaults: { chunkGapMs: 1_000 },
    });
    expect((await run.result).output).toBe('whole');
    const shown = events.flatMap((event) => {
      if (event.type === 'model.delta') return [event.text];
      return event.type === 'step.reset' || event.type === 'model.fallback' ? [event.type] : [];
    });
    expect(shown).toEqual(['half of', 'model.fallback', 'step.reset', 'whole']);
  });

  test('waits with the most hopeful of all failures, and as long as its hopeful models ask (failover 5)', async () => {
    const list = [
      named('anthropic/opus', [refusal(401)]),
      named('openai/gpt', [refusal(429, { 'retry-after': '600' })]),
      named('google/pro', [refusal(503, { 'retry-after': '90' })]),
    ];
    const { record, clock } = await played(list);
    expect(record?.waiting?.waits).toMatchObject([{ kind: 'retry', needsPerson: false, failures: 1 }]);
    const [wait] = record?.waiting?.waits ?? [];
    expect((wait?.dueAt ?? 0) - (wait?.createdAt ?? 0)).toBe(90_000);
    expect(clock.now()).toBeGreaterThan(0);
    expect((wait as { error: { message: string } }).error.message).toMatch(/anthropic\/opus.*openai\/gpt.*google\/pro/);
  });

  test('needs a person only where all of its models are blocked (failover 5)', async () => {
    const opus = named('anthropic/opus', [callTool('look'), refusal(401)]);
    const { record } = await played([opus, named('openai/gpt', [refusal(403)])]);
    expect(record?.waiting?.waits).toMatchObject([{ kind: 'retry', needsPerson: true }]);
  });

  test('passes over a model whose key is missing, and gives the run back where all keys are (failover 5, edges 1)', async () => {
    const keyless = fail(new LoadAPIKeyError({ message: 'no key' }));
    const sound = await played([named('anthropic/opus', [keyless]), named('openai/gpt', [reply('done')])]);
    expect(await sound.run.result).toMatchObject({ status: 'ok', output: 'done' });
    const opus = named('anthropic/opus', [callTool('look'), keyless]);
    const { run } = await played([opus, named('openai/gpt', [keyless])]);
    expect(await run.result).toMatchObject({ status: 'interrupted', error: { code: 'SETUP' } });
    const other = named('anthropic/opus', [callTool('look'), keyless]);
    const { record } = await played([other, named('openai/gpt', [overloaded, overloaded])]);
    expect(record?.waiting?.waits).toMatchObject([{ kind: 'retry', needsPerson: false }]);
  });

  test('asks each model once at a wake, and continues with the one that answers (failover 5)', async () => {
    const opus = named('anthropic/opus', Array(9).fill(overloaded));
    const gpt = named('openai/gpt', [overloaded, overloaded, reply('done')]);
    const { outcomes, clock } = await played([opus, gpt]);
    const calls = [opus.calls.length, gpt.calls.length];
    await clock.advance(60_000);
    expect(outcomes).toMatchObject([{ status: 'ok', output: 'done' }]);
    expect(calls).toEqual([2, 2]);
    expect([opus.calls.length, gpt.calls.length]).toEqual([3, 3]);
  });

  test('stays with the model that answered last until the run ends; the next run begins with the first (failover 7)', async () => {
    const opus = named('anthropic/opus', [overloaded, overloaded, reply('opus')]);
    const gpt = named('openai/gpt', [callTool('look'), callTool('look'), reply('gpt')]);
    const slow = toolOf(
      'look',
      'read',
      () => new Promise((resolve) => host.clock.setTimeout(() => resolve('seen'), 1_000)),
    );
    const host = listHost([opus, gpt], { tools: [slow], failover: { cooldownMs: 1 } });
    const run = await host.start();
    await host.clock.advance(5_000);
    expect(await run.result).toMatchObject({ status: 'ok', output: 'gpt' });
    expect([opus.calls.length, gpt.calls.length]).toEqual([2, 3]);
    expect((await (await host.start()).result).output).toBe('opus');
  });

  test('stays with that model in another process too (failover 7)', async () => {
    const gpt = named('openai/gpt', [callTool('look')]);
    const hung = toolOf('look', 'read', () => new Promise(() => {}));
    const first = listHost([named('anthropic/opus', [refusal(401)]), gpt], { tools: [hung] });
    await first.start({ runId: 'r' });
    await first.clock.advance(1);
    await first.executor.shutdown({ drainMs: 0 });
    const [opus, next] = [named('anthropic/opus', []), named('openai/gpt', [reply('done')])];
    const second = listHost([opus, next], { store: first.store, clock: first.clock });
    expect(await second.run({ runId: 'r' })).toMatchObject({ status: 'ok', output: 'done' });
    expect(opus.calls).toHaveLength(0);
  });

  test('tells a middleware who answered, and records the model that it names (failover 13)', async () => {
    const seen: unknown[] = [];
    const rename = async (_: unknown, next: () => Promise<{ model?: string }>) => {
      const answer = await next();
      seen.push(answer.model);
      return { ...answer, model: 'house/router' };
    };
    const list = [named('anthropic/opus', [refusal(401)]), named('openai/gpt', [reply('done')])];
    const { run, used } = await played(list, { middleware: [{ model: rename as never }] });
    expect((await run.result).messages.at(-1)?.providerOptions?.pawl).toMatchObject({ model: 'house/router' });
    expect(seen).toEqual(['openai/gpt']);
    expect(used()).toMatchObject([{ model: 'house/router', turns: 1 }]);
  });

  test('counts what each model cost for that model, in the record and the budget (failover 4, 14)', async () => {
    const keys: unknown[] = [];
    const budget = createBudget({ usd: 10 ** 9, prices: ({ model }) => (model === 'anthropic/opus' ? 100 : 1) });
    const reserve: typeof budget.reserve = (caller, wish) => {
      keys.push([wish.key.split(':').at(-1), wish.model]);
      return budget.reserve(caller, wish);
    };
    const opus = { model: brokenAfter(named('anthropic/opus', []), 30), maxAttempts: 1 };
    const { run, used } = await played([opus, named('openai/gpt', [reply('whole')])], {
      ports: { budget: { ...methodsOf(budget), reserve } },
    });
    expect(await run.result).toMatchObject({ status: 'ok', usage: { inputTokens: 160 } });
    expect(keys).toEqual([
      ['1', 'anthropic/opus'],
      ['1~2', 'openai/gpt'],
    ]);
    expect(used()).toMatchObject([
      { model: 'anthropic/opus', turns: 0, usage: { inputTokens: 150 }, spend: { usd: 100 } },
      { model: 'openai/gpt', turns: 1, spend: { usd: 1 } },
    ]);
  });
});
