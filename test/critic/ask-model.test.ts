import { createEscalator, type EscalatorOptions, type EscalatorState } from 'pawl';
import { fail, hang, reply, type ScriptedEntry, scriptedModel, stallAfter, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { usage } from './supervised-run.ts';

const secret = 'hunter2-hunter2';
const state: EscalatorState = {
  runId: 'r',
  reason: 'idle',
  iterations: 4,
  maxIterations: 20,
  lastActivityAt: 0,
  idleMs: 61_000,
  elapsedMs: 900_000,
  lastTool: 'log_in',
  usage,
  tail: [
    { role: 'user', content: [{ type: 'text', text: 'Find it.' }] },
    {
      role: 'assistant',
      content: [
        { type: 'text', text: 'I log in.' },
        { type: 'tool-call', toolCallId: 'c', toolName: 'log_in', input: { password: secret } },
      ],
    },
    {
      role: 'tool',
      content: [
        { type: 'tool-result', toolCallId: 'c', toolName: 'log_in', output: { type: 'error-text', value: secret } },
      ],
    },
  ],
  alarms: 1,
  alarmsInStep: 1,
  nudges: 0,
  raisedSteps: 0,
  failures: 0,
};

async function asked(
  entry: ScriptedEntry | string,
  over: Partial<EscalatorState> = {},
  options: EscalatorOptions = {},
) {
  const clock = testClock();
  const model = scriptedModel([typeof entry === 'string' ? reply(entry) : entry]);
  const escalator = createEscalator({ model, clock, modelTimeoutMs: 1_000, ...options });
  const answer = Promise.resolve(escalator({ ...state, ...over }, new AbortController().signal));
  await clock.advance(5_000);
  return { decision: await answer, model, clock };
}

const byRule = { nudge: expect.stringContaining('answer with what you have'), extendByMs: 60_000 };

describe('the model of the ready escalator', () => {
  test('is asked with a short prompt and answers with JSON (supervision 1)', async () => {
    const { decision, model } = await asked('{"nudge":"Try the other door.","extendByMs":120000}');
    expect(decision).toEqual({ nudge: 'Try the other door.', extendByMs: 120_000 });
    const [request] = model.calls;
    const prompt = JSON.stringify(request?.messages);
    expect(request?.tools).toEqual([]);
    expect(prompt).toContain('I log in.');
    expect(prompt).toContain('log_in failed');
    expect(prompt.length + (request?.system.length ?? 0)).toBeLessThan(3_000);
  });

  test('is asked again when its failure may pass (waiting 28, 31)', async () => {
    const clock = testClock();
    const busy = fail(Object.assign(new Error('busy'), { statusCode: 503 }));
    const model = scriptedModel([busy, busy, busy, busy, reply('{"kill":true,"reason":"lost"}')]);
    const escalator = createEscalator({ model, clock, random: () => 0, modelTimeoutMs: 1_000 });
    const answer = Promise.resolve(escalator(state, new AbortController().signal));
    await clock.advance(10);
    expect(await answer).toEqual({ kill: true, reason: 'lost' });
    expect([model.calls.length, clock.pending]).toEqual([5, 0]);
  });

  test('is not asked again past its time limit, nor when a person must look at it (waiting 28, 31)', async () => {
    for (const [statusCode, calls] of [
      [503, 2],
      [401, 1],
    ] as const) {
      const clock = testClock();
      const down = fail(Object.assign(new Error('down'), { statusCode }));
      const model = scriptedModel(Array(9).fill(down));
      const escalator = createEscalator({ model, clock, random: () => 0.5, modelTimeoutMs: 1_000 });
      const answer = Promise.resolve(escalator(state, new AbortController().signal));
      await clock.advance(1_000);
      expect(await answer).toEqual(byRule);
      expect([model.calls.length, clock.pending]).toEqual([calls, 0]);
    }
  });

  test('is shown no input and no output of a tool', async () => {
    const { model } = await asked('{}');
    expect(JSON.stringify(model.calls)).not.toContain(secret);
  });

  test('is asked with a prompt that does not grow with what the run says', async () => {
    const text = 'long '.repeat(20_000);
    const tail = Array.from({ length: 32 }, () => ({
      role: 'user' as const,
      content: [{ type: 'text' as const, text }],
    }));
    const { model } = await asked('{}', { tail });
    expect(JSON.stringify(model.calls[0]?.messages).length).toBeLessThan(8_000);
  });

  test('may let the run be: then it is only looked at again (supervision 1)', async () => {
    expect((await asked('{}')).decision).toEqual({ extendByMs: 60_000 });
  });

  test('may put its JSON into a code block, as models do (supervision 1)', async () => {
    const { decision } = await asked('```json\n{"kill": true, "reason": "it is lost"}\n```');
    expect(decision).toEqual({ kill: true, reason: 'it is lost' });
  });

  test('answers with 1,500 or 400,000 spaces in a code block that never closes without blocking the process', async () => {
    for (const spaces of [1_500, 400_000]) {
      const begun = performance.now();
      expect((await asked(`\`\`\`json${' '.repeat(spaces)}x`)).decision).toEqual(byRule);
      // It takes 20 ms; an expression with two runs of spaces takes 10 s for the 1,500.
      expect(performance.now() - begun).toBeLessThan(2_000);
    }
  });

  test.for<[string, ScriptedEntry | string]>([
    ['is down', fail(Object.assign(new Error('no'), { statusCode: 400 }))],
    ['never answers', hang()],
    ['falls silent', stallAfter('{"kill":')],
    ['chats', 'I would say: kill it!'],
    ['says more than was asked for', '{"kill":true} because it is stuck'],
    ['answers with a list', '[{"kill":true}]'],
    ['answers with a text', '"kill"'],
    ['invents a field', '{"kill":true,"callThePolice":true}'],
    ['extends by a text', '{"extendByMs":"an hour"}'],
    ['raises by half a step', '{"raiseStepsBy":0.5}'],
    ['kills with a number', '{"kill":1}'],
  ])('one that %s leaves it to the rules (supervision 3)', async ([, entry]) => {
    const { decision, clock } = await asked(entry);
    expect(decision).toEqual(byRule);
    expect(clock.pending).toBe(0);
  });

  test('one that continues and on is not heard either (supervision 3)', async () => {
    const clock = testClock();
    const dripping = scriptedModel([]);
    dripping.doStream = async () => ({
      stream: new ReadableStream({
        start: (stream) => stream.enqueue({ type: 'text-start', id: '0' }),
        async pull(stream) {
          const drop = Promise.withResolvers<void>();
          clock.setTimeout(drop.resolve, 300);
          await drop.promise;
          stream.enqueue({ type: 'text-delta', id: '0', delta: ' ' });
        },
      }),
    });
    const escalator = createEscalator({ model: dripping, clock, modelTimeoutMs: 1_000 });
    let answer: unknown;
    void Promise.resolve(escalator(state, new AbortController().signal)).then((decision) => {
      answer = decision;
    });
    await clock.advance(999);
    expect(answer).toBeUndefined();
    await clock.advance(1);
    expect(answer).toEqual(byRule);
  });

  test('cannot grant more than the host allows (supervision 1)', async () => {
    const greedy = '{"extendByMs":1e15,"raiseStepsBy":1000}';
    expect((await asked(greedy)).decision).toEqual({ extendByMs: 3_600_000 });
    const steps = { reason: 'steps', raisedSteps: 95 } as const;
    expect((await asked(greedy, steps)).decision).toEqual({ extendByMs: 3_600_000 });
    expect((await asked(greedy, steps, { raiseStepsBy: 10 })).decision).toMatchObject({ raiseStepsBy: 5 });
  });

  test('is not asked where the rules end the run (supervision 1)', async () => {
    const { decision, model } = await asked('{"extendByMs":60000}', { alarmsInStep: 3 });
    expect(decision).toHaveProperty('kill', true);
    expect(model.calls).toEqual([]);
  });

  test('stops when its answer is not needed any more (supervision 3)', async () => {
    const clock = testClock();
    const model = scriptedModel([hang()]);
    const over = new AbortController();
    const answer = Promise.resolve(createEscalator({ model, clock })(state, over.signal));
    await clock.advance(1);
    over.abort(new Error('the run is over'));
    expect(await answer).toEqual(byRule);
    expect(model.calls[0]?.signal?.aborted).toBe(true);
    expect(clock.pending).toBe(0);
  });
});
