import { loadCheckpoint, type ResponseSnapshot, saveCheckpoint } from 'pawl/fan-out';
import { callTool, fail, hang, reply, type ScriptedEntry } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { toolOf } from '../fixtures/host.ts';
import { type Asked, asked, freshPath, prompt, until } from './asking.ts';

const failure = Object.assign(new Error('no'), { isRetryable: false });
const prices = { 'scripted/scripted': { inputPerMillion: 1_000, outputPerMillion: 10_000 } };
/** Fails after one turn of 10 and 5 tokens, which cost 0.06. */
const failing: readonly ScriptedEntry[] = [callTool('look'), fail(failure)];

/** A fan-out whose model b never answers, so that each call leaves something for the next one. */
function askedAgain(a: readonly ScriptedEntry[], more: Partial<Asked> = {}) {
  const path = freshPath();
  const models = { a, b: Array.from({ length: 9 }, hang) };
  const call = asked({ models, tools: [toolOf('look')], path, prices, ...more });
  /** Calls until a has been asked so many times in all, and what is to come of that is in the file; then cancels. */
  const callUntil = async (asks: number, holds: (a: ResponseSnapshot) => boolean) => {
    const caller = new AbortController();
    const running = call.start({ signal: caller.signal });
    await until(async () => {
      const found = (await loadCheckpoint(path))?.responses.find(({ modelId }) => modelId === 'a');
      return call.calls()[0] === asks && call.calls()[1] && found && holds(found);
    });
    caller.abort();
    return (await running).responses[0];
  };
  return { ...call, path, callUntil };
}

const hasFailed = ({ error }: ResponseSnapshot) => error !== undefined;
const isAtWork = ({ error, steps }: ResponseSnapshot) => error === undefined && steps === 1;

describe('a model that failed and is asked again', () => {
  test('its tokens and its cost are those of all attempts; its steps and tools are those of the last one (fan-out 2)', async () => {
    const call = askedAgain([...failing, ...failing, callTool('look'), callTool('look'), reply('all of a')]);
    const first = await call.callUntil(2, hasFailed);
    expect(first).toMatchObject({ inputTokens: 10, outputTokens: 5, costUsd: 0.06, steps: 1, toolCalls: { look: 1 } });
    const second = await call.callUntil(4, (a) => hasFailed(a) && a.inputTokens > 10);
    expect(second).toMatchObject({ inputTokens: 20, outputTokens: 10, costUsd: 0.12, steps: 1 });
    const third = await call.callUntil(7, ({ steps }) => steps === 3);
    expect(third).toMatchObject({ text: 'all of a', inputTokens: 50, outputTokens: 25, costUsd: 0.3, steps: 3 });
    expect(third?.toolCalls).toEqual({ look: 2 });
  });

  test('what the failed attempt took stays counted while the next one is at work, and after a call that continued (fan-out 5)', async () => {
    const call = askedAgain([...failing, callTool('look'), hang(), reply('all of a')]);
    await call.callUntil(2, hasFailed);
    // At work, in the file; and when it leaves off.
    const left = await call.callUntil(4, isAtWork);
    expect((await loadCheckpoint(call.path))?.responses[0]).toMatchObject({ inputTokens: 20, costUsd: 0.12, steps: 1 });
    expect(left).toMatchObject({ inputTokens: 20, outputTokens: 10, costUsd: 0.12, interrupted: true });
    const answered = await call.callUntil(5, ({ steps }) => steps === 2);
    expect(answered).toMatchObject({ text: 'all of a', inputTokens: 30, outputTokens: 15, steps: 2 });
    expect(answered?.costUsd).toBeCloseTo(0.18);
  });

  test('what it took is not forgotten by calls that were cancelled before it was asked (fan-out 5)', async () => {
    const call = askedAgain([...failing, reply('all of a')]);
    await call.callUntil(2, hasFailed);
    for (let times = 0; times < 2; times++) {
      const { responses } = await call.start({ signal: AbortSignal.abort() });
      expect(responses[0]).toMatchObject({ inputTokens: 10, costUsd: 0.06 });
    }
    expect(await call.callUntil(3, ({ steps }) => steps === 1)).toMatchObject({ inputTokens: 20, text: 'all of a' });
  });

  const figures = { latencyMs: 5_000, inputTokens: 100, outputTokens: 50, reasoningTokens: 30, costUsd: 2 };
  const was = { modelId: 'a', ...figures, completed: false, toolCalls: { look: 7 } };
  test.for<readonly [what: string, before: ResponseSnapshot]>([
    ['failed', { ...was, error: 'no', interrupted: false, stopReason: 'MODEL_ERROR', steps: 7 }],
    ['failed, and left off before its first turn', { ...was, interrupted: true, stopReason: 'cancelled', steps: 0 }],
  ])('of one that %s, working time and reasoning tokens are counted as well (fan-out 2)', async ([, before]) => {
    const path = freshPath();
    const found = { version: 1, prompt, timestamp: 0, adapterIds: ['a'], responses: [before], verbose: false } as const;
    await saveCheckpoint(path, found);
    const call = asked({ models: { a: [reply('of a')] }, path });
    expect((await call.start()).responses[0]).toEqual({
      ...{ modelId: 'a', text: 'of a', latencyMs: 5_000, inputTokens: 110, outputTokens: 55, reasoningTokens: 30 },
      ...{ costUsd: 2, proposedWrites: [], toolCalls: {}, interrupted: false, stopReason: 'answered', steps: 1 },
    });
  });
});
