import { copyFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Budget, createBudget } from 'pawl';
import type { FanOutOptions } from 'pawl/fan-out';
import { callTool, hang, reply, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { toolOf } from '../fixtures/host.ts';
import { asked, freshPath, inItsTime, until } from './asking.ts';

const look = toolOf('look');
const prices = { 'scripted/scripted': { inputPerMillion: 1_000, outputPerMillion: 10_000 } };
const verdict = reply(JSON.stringify({ order: [2, 1], reason: '' }));
/** No estimate: each call of these models takes 10 and 5 tokens. */
const expected = { outputTokens: 0, seconds: 0 };

/** A budget, and what it was asked: the key of each call without its run. */
function heard(budget: Budget) {
  const reserved: { readonly callerId: string; readonly key: string; readonly modelTier: string }[] = [];
  const committed: string[] = [];
  const ports = {
    budget: {
      ...Object.fromEntries(['check', 'refund', 'restore'].map((name) => [name, budget[name as 'check'].bind(budget)])),
      reserve: (callerId, estimate) => {
        reserved.push({ callerId, ...estimate });
        return budget.reserve(callerId, estimate);
      },
      commit: (reservation, use) => {
        committed.push(reservation.key);
        return budget.commit(reservation, use);
      },
    } as Budget,
  };
  return { ports, reserved, committed };
}

const rich = () => createBudget({ tokens: 1e9, usd: 1e6, prices });

/** Uses up all of a budget of 1,000 tokens. */
function usedUp() {
  const budget = createBudget({ tokens: 1_000, expected, windowMs: 1e12 });
  const usage = { inputTokens: 1_000, outputTokens: 0, reasoningTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };
  return {
    budget,
    use: () => budget.commit({ key: 'x:1', callerId: '', modelTier: '', model: '' }, { usage, seconds: 0 }),
  };
}

describe('the budget of a fan-out', () => {
  test('is asked about each call of each model, for the caller of the fan-out, and says what it cost (edges 25)', async () => {
    const budget = rich();
    const { ports, reserved, committed } = heard(budget);
    const models = { a: [callTool('look'), reply('of a')], b: [reply('of b')] };
    const call = asked({ models, tools: [look], ports, callerId: 'ada', path: freshPath() });
    const { responses } = await call.start();
    expect(reserved.map(({ callerId, modelTier }) => `${callerId} ${modelTier}`).sort()).toEqual([
      'ada a',
      'ada a',
      'ada b',
    ]);
    expect([new Set(committed).size, responses.map(({ costUsd }) => costUsd)]).toEqual([3, [0.12, 0.06]]);
    expect((await budget.standing?.('ada'))?.spent).toMatchObject({ tokens: 45, usd: 0.18 });
    await call.start();
    expect((await budget.standing?.('ada'))?.spent.tokens).toBe(45);
  });

  test('is one for all models, and without a callerId that of runs without one (edges 25)', async () => {
    const budget = createBudget({ tokens: 1_000 });
    await asked({ models: { a: [reply('x')], b: [reply('y')] }, ports: { budget } }).start();
    expect((await budget.standing?.(''))?.spent.tokens).toBe(30);
  });

  test('with prices of the fan-out those are the cost, also when the budget cannot count a call (edges 25)', async () => {
    const budget = { ...heard(rich()).ports.budget, commit: () => Promise.reject(new Error('away')) };
    const call = asked({ models: { a: [reply('x')] }, ports: { budget }, prices });
    expect((await call.start()).responses[0]).toMatchObject({ text: 'x', costUsd: 0.06 });
    expect(call.warned.map(({ message }) => message)).toEqual(['run: a model call could not be charged to the budget']);
  });

  test('one that answers nonsense costs nothing (edges 25)', async () => {
    const budget = { ...heard(rich()).ports.budget, commit: async () => ({ usd: Number.NaN }) as never };
    const { responses } = await asked({ models: { a: [reply('x')] }, ports: { budget } }).start();
    expect(responses[0]).toMatchObject({ text: 'x', costUsd: 0 });
  });

  test.for<readonly [what: string, options: object, message: string]>([
    ['a port with another name', { ports: { budgets: rich() } }, 'fanOut: unknown option ports.budgets'],
    ['a budget without functions', { ports: { budget: {} } }, 'fanOut: ports.budget'],
    ['a callerId that is a number', { callerId: 5 }, 'fanOut: callerId must be a string'],
  ])('%s is refused by a TypeError (edges 25)', async ([, options, message]) => {
    const refused = asked({ models: { a: [] }, ...options }).start();
    await expect(refused).rejects.toBeInstanceOf(TypeError);
    await expect(refused).rejects.toThrow(message);
  });
});

describe('a budget that is used up', () => {
  test('before anything was asked: all models are interrupted, and the next call asks them once there is more (edges 25)', async () => {
    const { budget, use } = usedUp();
    await use();
    const { ports, reserved } = heard(budget);
    const call = asked({ models: { a: [reply('of a')], b: [reply('of b')] }, path: freshPath(), ports });
    const { responses, interrupted, kept } = await call.start();
    expect(reserved).toEqual([]);
    expect(responses.map(({ stopReason, interrupted }) => [stopReason, interrupted])).toEqual([
      ['BUDGET_EXCEEDED', true],
      ['BUDGET_EXCEEDED', true],
    ]);
    expect([interrupted, kept, call.calls()]).toEqual([true, undefined, [0, 0]]);
    const again = await call.start({ ports: { budget: rich() } });
    expect([again.responses.map(({ text }) => text), call.calls()]).toEqual([
      ['of a', 'of b'],
      [1, 1],
    ]);
  });

  test('in the middle: the answers stay, and a model that has begun continues after its last step (edges 25)', async () => {
    const { budget, use } = usedUp();
    const { ports, reserved } = heard(budget);
    const spend = toolOf('spend', 'once', () => use().then(() => 'spent'));
    const call = asked({
      models: { a: [callTool('spend'), reply('of a')], b: [reply('of b')] },
      ...{ path: freshPath(), tools: [spend], ports },
    });
    const { responses } = await call.start();
    expect(responses).toMatchObject([
      { interrupted: true, stopReason: 'BUDGET_EXCEEDED', steps: 1, inputTokens: 10, toolCalls: { spend: 1 } },
      { text: 'of b', stopReason: 'answered' },
    ]);
    const more = heard(createBudget({ tokens: 1e9 }));
    const again = await call.start({ ports: more.ports });
    expect([again.interrupted, call.calls()]).toEqual([false, [2, 1]]);
    expect(again.responses[0]).toMatchObject({ text: 'of a', steps: 2, inputTokens: 20, toolCalls: { spend: 1 } });
    // The call that was refused has the same key.
    expect(more.reserved.map(({ key }) => key)).toEqual([reserved.at(-1)?.key]);
  });

  test('without a path the answers of the others are there (edges 25)', async () => {
    const { budget, use } = usedUp();
    const spend = toolOf('spend', 'read', () => use().then(() => 'spent'));
    const models = { a: [callTool('spend'), reply('of a')], b: [reply('of b')] };
    const { responses } = await asked({ models, tools: [spend], ports: { budget } }).start();
    expect(responses).toMatchObject([{ interrupted: true, stopReason: 'BUDGET_EXCEEDED' }, { text: 'of b' }]);
  });
});

describe('a turn that is made again', () => {
  test('has the same key in the budget, so that it counts once (edges 25)', async () => {
    const budget = rich();
    const { ports, reserved } = heard(budget);
    const models = { a: [callTool('look'), hang(), reply('of a')] };
    const call = asked({ models, path: freshPath(), tools: [look], ports, deadlineMs: 5_000 });
    const running = call.start();
    await until(() => call.calls()[0] === 2);
    expect((await inItsTime(call, running)).interrupted).toBe(true);
    expect((await call.start()).responses[0]).toMatchObject({ text: 'of a', costUsd: 0.12 });
    const [first, second, again] = reserved.map(({ key }) => key);
    expect([again, reserved.length]).toEqual([second, 3]);
    expect(first).not.toBe(second);
  });

  test('that of a judge has the same key after a crash, and another in another fan-out (edges 25)', async () => {
    const path = freshPath();
    const { ports, reserved } = heard(rich());
    // As a kill in the middle of the ranking leaves it.
    const copy = () => {
      copyFileSync(path, `${path}.copy`);
      return verdict;
    };
    const judge = scriptedModel([copy, verdict, verdict]);
    const models = { a: [reply('of a'), reply('of a')], b: [reply('of b'), reply('of b')] };
    const call = asked({ models, path, ports, judge });
    const judged = () => reserved.filter(({ modelTier }) => modelTier === 'judge').map(({ key }) => key);
    const result = await call.start();
    rmSync(join(dirname(path), '.pawl'), { recursive: true });
    copyFileSync(`${path}.copy`, path);
    expect(await call.start()).toEqual(result);
    expect(new Set(judged()).size).toBe(1);
    await call.start({ fresh: true });
    expect([judged().length, new Set(judged()).size, call.calls()]).toEqual([3, 2, [2, 2]]);
  });

  test('a judge that the budget refuses costs no answer (edges 25)', async () => {
    const { budget, use } = usedUp();
    const models = { a: [reply('of a')], b: [reply('of b')] };
    let answers = 0;
    const onResponse: FanOutOptions['onResponse'] = async () => {
      answers += 1;
      if (answers === 2) await use();
    };
    const judge = scriptedModel([verdict]);
    const result = await asked({ models, ports: { budget }, judge, onResponse }).start();
    expect(result).toMatchObject({ interrupted: false, responses: [{ text: 'of a' }, { text: 'of b' }] });
    expect([result.ranking, judge.calls.length]).toEqual([undefined, 0]);
    expect(result.judgeError?.message).toContain('1,000 tokens');
  });
});
