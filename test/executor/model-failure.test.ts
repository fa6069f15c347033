import { APICallError } from '@ai-sdk/provider';
import { memoryStore } from 'pawl';
import { callTool, fail, reply, type ScriptedEntry, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import type { ModelAnswer } from '../../machines/context.ts';
import { type HostOptions, hostOf, toolOf } from '../fixtures/host.ts';

const noon = Date.UTC(2026, 0, 1, 12);
const answer = (statusCode: number, responseHeaders: Record<string, string> = {}) =>
  fail(new APICallError({ message: 'no', url: 'http://x', requestBodyValues: {}, statusCode, responseHeaders }));

/** A run, and what its model calls gave its machine. */
function watched(script: readonly ScriptedEntry[], options: HostOptions = {}) {
  const answers: ModelAnswer[] = [];
  const clock = testClock(noon);
  const inspect = (event: { type: string; event?: object }) => {
    const { type, output } = (event.event ?? {}) as { type?: string; output?: ModelAnswer };
    if (event.type === '@xstate.event' && type?.startsWith('xstate.done.actor.model') && output) answers.push(output);
  };
  const store = memoryStore({ clock });
  const tools = [toolOf('look')];
  const host = hostOf({ script, clock, store, tools, random: () => 0.5, inspect: inspect as never, ...options });
  return { ...host, answers, clock };
}

async function failed(script: readonly ScriptedEntry[], options: HostOptions = {}) {
  const { start, clock, answers, model } = watched(script, options);
  const run = await start();
  await clock.advance(30_000);
  await run.result;
  return { answers, calls: model.calls.length };
}

describe('the answer of a model turn that failed', () => {
  test('says that it may pass, after five attempts, with the clock and the random number (waiting 28, 29)', async () => {
    const { answers, calls } = await failed(Array(9).fill(answer(503)));
    expect(calls).toBe(5);
    expect(answers).toMatchObject([
      {
        error: { code: 'MODEL' },
        wait: { kind: 'retry', createdAt: noon + 7_500, dueAt: noon + 37_500, since: noon + 7_500 },
      },
    ]);
  });

  test('carries the time that the provider asks for, when it is too long for the process (waiting 28, 29)', async () => {
    const { answers, calls } = await failed([answer(429, { 'retry-after': '600' })]);
    expect(calls).toBe(1);
    expect(answers).toMatchObject([{ wait: { createdAt: noon, dueAt: noon + 600_000 } }]);
  });

  test('asks for a person, or says that it is final, after one attempt (waiting 27, 28)', async () => {
    const [, blocked] = (await failed([callTool('look'), answer(404)])).answers;
    expect(blocked).toMatchObject({ wait: { needsPerson: true } });
    const { answers, calls } = await failed([callTool('look'), answer(400)]);
    expect([calls, answers[1]]).toMatchObject([2, { error: { code: 'MODEL' } }]);
    expect(answers[1]).not.toHaveProperty('wait');
  });

  test('says the same through a middleware that wraps the error (waiting 27)', async () => {
    const wrap = async (_: unknown, next: () => Promise<never>) => {
      try {
        return await next();
      } catch (cause) {
        throw new Error('the gateway failed', { cause });
      }
    };
    const { answers } = await failed([callTool('look'), answer(401)], { middleware: [{ model: wrap }] });
    expect(answers[1]).toMatchObject({ error: { message: 'the gateway failed' }, wait: { needsPerson: true } });
  });

  test('says nothing where no model was asked: a budget that refuses (waiting 27)', async () => {
    const { log, ...budget } = refusing();
    const { answers, calls } = await failed([reply('done')], { ports: { budget } });
    expect([calls, log]).toEqual([0, ['reserve']]);
    expect(answers).toMatchObject([{ error: { code: 'BUDGET_EXCEEDED' } }]);
    expect(answers[0]).not.toHaveProperty('wait');
  });

  test('times and attempts are those of the executor (waiting 28)', async () => {
    const defaults = { modelAttempts: 99, modelRetryMs: 3_000 };
    const { answers, calls } = await failed(Array(99).fill(answer(500)), { defaults });
    expect(calls).toBe(4);
    expect(answers).toMatchObject([{ wait: { createdAt: noon + 3_000 } }]);
  });
});

/** A budget that lets runs begin, and whose service is away. */
function refusing() {
  const log: string[] = [];
  const away = async () => {
    log.push('reserve');
    throw Object.assign(new Error('connect ECONNREFUSED'), { statusCode: 503 });
  };
  const nothing = async () => undefined as never;
  return { log, check: nothing, reserve: away, commit: nothing, refund: nothing };
}
