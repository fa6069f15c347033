import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import {
  type Checkpoint,
  type FanOutOptions,
  type JudgeFunction,
  loadCheckpoint,
  type ModelResponse,
  saveCheckpoint,
} from 'pawl/fan-out';
import { callTool, fail, hang, reply, scriptedModel } from 'pawl/testing';
import { describe, expect, test, vi } from 'vitest';
import { gate } from '../fixtures/host.ts';
import { asked, freshPath, inItsTime, prompt, until } from './asking.ts';

const models = { a: [reply('of a')], b: [reply('of b')], c: [reply('of c')] };
const failure = Object.assign(new Error('no'), { isRetryable: false });
const reversed: JudgeFunction = ({ responses }) => responses.map(({ modelId }) => modelId).reverse();

describe('a function as a judge', () => {
  test('sees the prompt and the answers in adapter order; its ranking is in the result and in the file of answers (fan-out 1)', async () => {
    const path = freshPath();
    const seen: unknown[] = [];
    const judge: JudgeFunction = (asked) => {
      seen.push(asked.prompt, ...asked.responses.map(({ text }) => text));
      return { order: ['b', 'c', 'a'], reason: 'b is right' };
    };
    const result = await asked({ models, path, judge }).start();
    expect(seen).toEqual([prompt, 'of a', 'of b', 'of c']);
    expect(result).toMatchObject({ ranking: { order: ['b', 'c', 'a'], reason: 'b is right' } });
    expect(result).not.toHaveProperty('judgeError');
    expect(await loadCheckpoint(String(result.path))).toMatchObject({ ranking: result.ranking });
    expect(result.responses.map(({ modelId }) => modelId)).toEqual(['a', 'b', 'c']);
  });

  test('a list of ids is a ranking, each of them counts once, and whom it forgot comes last (fan-out 1)', async () => {
    const ranked = async (order: readonly string[]) => (await asked({ models, judge: () => order }).start()).ranking;
    expect(await ranked(['c', 'a'])).toEqual({ order: ['c', 'a', 'b'], reason: '' });
    expect(await ranked(['c', 'c', 'b', 'c'])).toEqual({ order: ['c', 'b', 'a'], reason: '' });
    expect(await ranked([])).toEqual({ order: ['a', 'b', 'c'], reason: '' });
  });

  const strange = (answer: unknown) => () => answer as never;
  test.for<readonly [what: string, judge: JudgeFunction]>([
    [
      'throws',
      () => {
        throw new Error('no taste');
      },
    ],
    ['rejects', () => Promise.reject(new Error('no taste'))],
    ['rejects with nothing', () => Promise.reject(undefined)],
    ['names a stranger', () => ['a', 'x']],
    ['names nobody', strange([undefined, 'a'])],
    ['gives a text', strange('a')],
    ['gives nothing', strange(undefined)],
    ['gives a ranking without an order', strange({ reason: 'x' })],
    ['gives a reason that is none', strange({ order: ['a'], reason: 5 })],
    [
      'gives what throws when it is read',
      strange(
        new Proxy(
          {},
          {
            get: () => {
              throw new Error('trap');
            },
          },
        ),
      ),
    ],
    ['gives figures that JSON has no words for', strange([1n])],
  ])('one that %s costs no answer: there is no ranking, and the result says why (fan-out 1)', async ([, judge]) => {
    const path = freshPath();
    const call = asked({ models, path, judge });
    const result = await call.start();
    expect(result.judgeError?.message).toBeTruthy();
    expect(result).not.toHaveProperty('ranking');
    expect(result.responses.map(({ text }) => text)).toEqual(['of a', 'of b', 'of c']);
    expect(await loadCheckpoint(String(result.path))).not.toHaveProperty('ranking');
    expect(call.warned.map(({ message }) => message)).toEqual(['fan-out: the judge gave no ranking']);
  });

  test('one that hangs is aborted after deadlineMs, and not waited for (fan-out 1)', async () => {
    const held = gate<string[]>();
    let signal: AbortSignal | undefined;
    const judge: JudgeFunction = (asked) => {
      signal = asked.signal;
      return held.pass();
    };
    const call = asked({ models, judge, deadlineMs: 9_000 });
    const running = call.start();
    await held.reached;
    await call.clock.advance(8_999);
    expect(signal?.aborted).toBe(false);
    await call.clock.advance(1);
    expect((await running).judgeError).toMatchObject({ code: 'PORT_TIMEOUT' });
    expect([signal?.aborted, call.clock.pending]).toEqual([true, 0]);
  });

  test('a cancel while the judge ponders leaves all answers, and no ranking; the judge is aborted (fan-out 6)', async () => {
    const path = freshPath();
    const held = gate<string[]>();
    let signal: AbortSignal | undefined;
    const judge: JudgeFunction = (asked) => {
      signal = asked.signal;
      return held.pass();
    };
    const call = asked({ models, path, judge });
    const running = call.start();
    await held.reached;
    call.caller.abort();
    const result = await running;
    expect([result.interrupted, signal?.aborted, result.ranking]).toEqual([false, true, undefined]);
    expect(result.judgeError).toMatchObject({ code: 'CANCELLED' });
    const bytes = readFileSync(String(result.path));
    held.open(['c', 'b', 'a']);
    await Promise.resolve();
    expect([readFileSync(String(result.path)).equals(bytes), call.clock.pending]).toEqual([true, 0]);
  });

  test.for<readonly [what: string, scripts: object]>([
    ['only one has answered', { a: [reply('of a')], b: [fail(failure)] }],
    ['none has', { a: [fail(failure)], b: [fail(failure)] }],
  ])('no judge is asked when %s (fan-out 1)', async ([, scripts]) => {
    let calls = 0;
    const judge = () => {
      calls += 1;
      return [];
    };
    const result = await asked({ models: scripts as typeof models, judge }).start();
    expect([calls, 'ranking' in result, 'judgeError' in result]).toEqual([0, false, false]);
  });

  test('nor is anybody asked when it was the store that made a model leave off; it is asked by the next call (fan-out 6)', async () => {
    const path = freshPath();
    const told: string[] = [];
    const call = asked({ models: { ...models, c: [hang(), reply('of c')] }, path });
    const onResponse = ({ modelId }: ModelResponse) => {
      if (told.push(modelId) === 2) call.caller.abort();
    };
    await call.start({ onResponse });
    const asks: number[] = [];
    const judge: JudgeFunction = (asked) => {
      asks.push(asked.responses.length);
      return reversed(asked);
    };
    const records = `${path}.runs`;
    // The answers of a and b are there, and c is about to go on from its record.
    const hide = () => {
      renameSync(records, `${records}.hidden`);
      writeFileSync(records, '');
      // The store looks at most every 100 ms whether its file is still there.
      const now = performance.now.bind(performance);
      vi.spyOn(performance, 'now').mockImplementation(() => now() + 1_000);
    };
    const more = { judge, signal: undefined } as never as Partial<FanOutOptions>;
    const left = await call.start({ ...more, onResponse: ({ modelId }) => modelId === 'a' && hide() });
    expect(left.responses[2]).toMatchObject({ modelId: 'c', interrupted: true, text: '' });
    expect(left.responses[2]).not.toHaveProperty('error');
    expect((await loadCheckpoint(path))?.responses[2]).toMatchObject({ interrupted: true, completed: false });
    expect([left.interrupted, left.ranking, left.judgeError, asks]).toEqual([true, undefined, undefined, []]);
    vi.restoreAllMocks();
    rmSync(records);
    renameSync(`${records}.hidden`, records);
    expect((await call.start(more)).ranking?.order).toEqual(['c', 'b', 'a']);
    expect([asks, call.calls()]).toEqual([[3], [1, 1, 2]]);
  });

  test('no judge is asked about a race that is not over; the next call asks, answers of before included (fan-out 6)', async () => {
    const path = freshPath();
    const seen: string[] = [];
    const judge: JudgeFunction = (asked) => {
      seen.push(...asked.responses.map(({ modelId }) => modelId));
      return reversed(asked);
    };
    const call = asked({ models: { ...models, c: [hang(), reply('of c')] }, path, judge, deadlineMs: 100 });
    const running = call.start();
    await until(() => call.calls()[2] === 1);
    const first = await inItsTime(call, running, 100);
    expect([first.interrupted, seen]).toEqual([true, []]);
    expect((await call.start()).ranking?.order).toEqual(['c', 'b', 'a']);
    expect(seen).toEqual(['a', 'b', 'c']);
  });
});

describe('a ranking from an earlier call', () => {
  /** All have answered, and were ranked; then the answer of c is asked for once more. */
  async function ranked(order: readonly string[]) {
    const path = freshPath();
    const call = asked({ models, path });
    const { responses } = await call.start();
    const found = await loadCheckpoint(join(dirname(path), '.pawl', 'answers.json'));
    const kept = found?.responses.filter(({ modelId }) => order.includes(modelId)) ?? [];
    await saveCheckpoint(path, { ...(found as Checkpoint), responses: kept, ranking: { order, reason: 'before' } });
    return { path, responses };
  }

  test('it stays when all have answered by then, and the judge is not asked again (fan-out 1)', async () => {
    const { path } = await ranked(['b', 'a', 'c']);
    const result = await asked({ models, path, judge: reversed }).start();
    expect(result.ranking).toEqual({ order: ['b', 'a', 'c'], reason: 'before' });
  });

  test('when another model has answered since, the judge is asked again (fan-out 1)', async () => {
    const { path } = await ranked(['b', 'a']);
    const result = await asked({ models, path, judge: reversed }).start();
    expect(result.ranking).toEqual({ order: ['c', 'b', 'a'], reason: '' });
    expect((await loadCheckpoint(String(result.path)))?.ranking).toEqual(result.ranking);
  });

  test('when another model has answered since and there is no judge any more, there is no ranking (fan-out 1)', async () => {
    const { path } = await ranked(['b', 'a']);
    const result = await asked({ models, path }).start();
    expect(result.ranking).toBeUndefined();
    expect(await loadCheckpoint(String(result.path))).not.toHaveProperty('ranking');
  });
});

describe('a model as a judge', () => {
  const said = (order: readonly number[], reason = 'it is right') => reply(JSON.stringify({ order, reason }));

  test('sees the answers without their names, and its numbers are the ranking (fan-out 1)', async () => {
    const judge = scriptedModel([said([2, 3, 1])]);
    const result = await asked({ models, judge }).start();
    expect(result.judgeError).toBeUndefined();
    expect(result.ranking).toEqual({ order: ['b', 'c', 'a'], reason: 'it is right' });
    const shown = JSON.stringify(judge.calls[0]?.messages);
    for (const word of [prompt, 'of a', 'of b', 'of c', 'Answer 3']) expect(shown).toContain(word);
  });

  const prices = { 'scripted/scripted': { inputPerMillion: 1_000, outputPerMillion: 10_000 } };

  test('what it takes is in judgeUsage, over all of its turns, and in no answer (fan-out 2)', async () => {
    const judge = scriptedModel([callTool('x', {}), said([2, 3, 1])]);
    const { judgeUsage, responses } = await asked({ models, judge, prices }).start();
    expect(judgeUsage).toEqual({ inputTokens: 20, outputTokens: 10, costUsd: 0.12 });
    expect(responses.map(({ inputTokens, costUsd }) => [inputTokens, costUsd])).toEqual(Array(3).fill([10, 0.06]));
    const unpriced = await asked({ models, judge: scriptedModel([said([1, 2, 3])]) }).start();
    expect(unpriced.judgeUsage).toEqual({ inputTokens: 10, outputTokens: 5, costUsd: 0 });
  });

  test('one that gives no ranking is paid for all the same; a function costs nothing (fan-out 2)', async () => {
    const judge = scriptedModel([callTool('x', {}), fail(failure)]);
    const failed = await asked({ models, judge, prices }).start();
    expect(failed).toMatchObject({ judgeError: {}, judgeUsage: { inputTokens: 10, outputTokens: 5, costUsd: 0.06 } });
    expect(await asked({ models, judge: reversed, prices }).start()).not.toHaveProperty('judgeUsage');
  });

  test.for([
    ['fails', [fail(failure)]],
    ['names a number that no answer has', [said([1, 2, 3, 4])]],
    ['calls a tool that it does not have', [callTool('write_file', {}), callTool('x', {}), callTool('x', {})]],
  ] as const)('one that %s costs no answer (fan-out 1)', async ([, script]) => {
    const call = asked({ models, judge: scriptedModel(script) });
    const result = await call.start();
    expect(result.judgeError?.message).toBeTruthy();
    expect([result.ranking, result.responses.length]).toEqual([undefined, 3]);
  });
});
