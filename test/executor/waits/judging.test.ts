import { createExecutor, defineAgent, defineTool, type ExecutorOptions, type Tool, type Verdict } from 'pawl';
import { fanOut } from 'pawl/fan-out';
import { createCheckpointerFactory } from 'pawl/stores/kit';
import { callTool, callTools, reply, scriptedModel, testClock } from 'pawl/testing';
import { expect, test } from 'vitest';
import { deskOf, notedStore, refundTool, waitsIn, waitsOf } from '../../fixtures/approval-desk.ts';
import { settle, toolOf } from '../../fixtures/host.ts';

type Policy = NonNullable<ExecutorOptions['approvals']>;
const hang = () => new Promise<never>(() => {});
const thrown = () => {
  throw new Error('the rule is broken');
};

/** How a call that was judged continues. */
async function judged(needsApproval: unknown, approvals?: unknown): Promise<string> {
  const desk = deskOf({
    rules: { needsApproval } as never,
    ...(approvals === undefined ? {} : { approvals: approvals as Policy }),
  });
  const { run } = await desk.begin();
  await desk.clock.advance(60_000);
  await settle();
  const [wait] = waitsIn(await run.result);
  const results = desk.model.calls.at(-1)?.messages.at(-1);
  const denied = JSON.stringify(results).match(/"execution-denied","reason":"([^"]*)"/)?.[1];
  return wait ? 'asked' : denied !== undefined ? `denied: ${denied}` : desk.paid.length > 0 ? 'ran' : 'nothing';
}

test.for<[string, unknown, string]>([
  ['true', true, 'asked'],
  ['false', false, 'ran'],
  ['absent', undefined, 'ran'],
  ['a function that returns true', () => true, 'asked'],
  ['a function that returns false', () => false, 'ran'],
  ['a promise of false', async () => false, 'ran'],
  ['run', () => 'run', 'ran'],
  ['ask', () => 'ask', 'asked'],
  ['run with a reason', () => ({ run: 'small' }), 'ran'],
  ['deny with a reason', () => ({ deny: 'too much' }), 'denied: too much'],
  ['a throw', thrown, 'asked'],
  ['a rejection', async () => thrown(), 'asked'],
  ['no answer within portMs', hang, 'asked'],
  ['undefined', () => undefined, 'asked'],
  ['an unknown word', () => 'yes', 'asked'],
  ['two words that contradict each other', () => ({ run: 'a', deny: 'b' }), 'asked'],
  ['a getter that throws', () => Object.defineProperty({}, 'run', { get: thrown, enumerable: true }), 'asked'],
])("a tool's needsApproval that is %s: the call is judged by it (waiting 1)", async ([, needsApproval, how]) => {
  expect(await judged(needsApproval)).toBe(how);
});

test.for<[string, unknown, unknown, string]>([
  ['run', true, () => 'run', 'ran'],
  ['ask', false, () => 'ask', 'asked'],
  ['deny', false, () => ({ deny: 'not today' }), 'denied: not today'],
  ['deny, of a call that its tool would ask about', true, () => ({ deny: 'no' }), 'denied: no'],
  ['undefined, which keeps the verdict ask', true, () => undefined, 'asked'],
  ['undefined, which keeps the verdict run', false, () => undefined, 'ran'],
  ['a promise of undefined', true, async () => undefined, 'asked'],
  ['null', false, () => null, 'asked'],
  ['false, which is no verdict', false, () => false, 'asked'],
  ['true, which is no verdict', false, () => true, 'asked'],
  ['a throw', false, thrown, 'asked'],
  ['no answer within portMs', false, hang, 'asked'],
])("the executor's policy says %s: it wins over the tool (waiting 1)", async ([, needsApproval, policy, how]) => {
  expect(await judged(needsApproval, policy)).toBe(how);
});

test('the policy gets the call with the tool’s verdict, and a reason to run is in the record (waiting 1)', async () => {
  const calls: unknown[] = [];
  const policy: Policy = (call) => {
    calls.push(call);
    return { run: 'below the limit' };
  };
  const desk = deskOf({ approvals: policy });
  desk.noted.rule('delete', async () => {});
  await desk.begin();
  const saved = JSON.stringify(desk.noted.of('save', 'append').map(({ args }) => args));
  expect(saved).toContain('"note":"below the limit"');
  expect(desk.paid).toEqual([700]);
  expect(calls).toMatchObject([
    { runId: 'r', callId: 'c1', name: 'refund', input: { cents: 700 }, effect: 'once', attempt: 1, step: 1 },
  ]);
  expect(calls).toMatchObject([{ verdict: 'ask', agentId: 'worker', tier: 'fast', labels: {} }]);
  expect(Object.isFrozen(calls[0])).toBe(true);
});

test('an AI SDK tool is judged by its own rule, which gets the call and the messages before it (waiting 1)', async () => {
  const seen: unknown[] = [];
  const ran: unknown[] = [];
  const tool = (needsApproval: unknown) => ({
    inputSchema: { type: 'object', properties: {} },
    needsApproval,
    execute: async (input: unknown) => ran.push(input),
  });
  const answers = {
    flag: tool(true),
    free: tool(false),
    asks: tool((input: unknown, options: object) => {
      seen.push(input, options);
      return true;
    }),
    runs: tool(async () => false),
    strange: tool(() => undefined),
    broken: tool(thrown),
  };
  const names = Object.keys(answers);
  const script = [callTools(names.map((name) => ({ name, input: { name } }))), reply('done')];
  const desk = deskOf({ script, tools: [], agent: { tools: answers as never } });
  await desk.begin();
  expect(waitsOf(desk.executor, 'r').map(({ tool: name }) => name)).toEqual(['flag', 'asks', 'strange', 'broken']);
  expect(ran).toEqual([{ name: 'free' }, { name: 'runs' }]);
  expect(seen).toEqual([
    { name: 'asks' },
    {
      toolCallId: expect.any(String),
      messages: [{ role: 'user', content: [{ type: 'text', text: 'Go.' }] }],
      experimental_context: undefined,
    },
  ]);
  expect(Object.keys(seen[1] as object)).toContain('experimental_context');
});

test('a call that cannot run asks no person: its input does not fit, or its tool does not exist (waiting 1)', async () => {
  const asked: string[] = [];
  const policy: Policy = ({ name }) => {
    asked.push(name);
    return 'ask';
  };
  const calls = [
    { name: 'refund', input: { cents: 'many' } },
    { name: 'refund', input: JSON.parse('{ "cents": 1, "__proto__": { "a": 1 } }') },
    { name: 'gone', input: {} },
  ];
  const desk = deskOf({ approvals: policy, script: [callTools(calls), reply('done')] });
  const { run } = await desk.begin();
  expect((await run.result).status).toBe('ok');
  expect(asked).toEqual([]);
  expect(desk.paid).toEqual([]);
});

test('a call is judged once, also over a crash after the save of its verdict, and by the next process not again (waiting 1)', async () => {
  let verdicts = 0;
  const needsApproval = (): Verdict => {
    verdicts += 1;
    return 'ask';
  };
  const clock = testClock(1_000_000);
  const noted = notedStore(clock);
  await deskOf({ rules: { needsApproval }, clock: testClock(1_000_000), noted }).begin();
  expect(verdicts).toBe(1);
  // The process dies here: its own clock stands still, and its lease ends.
  await clock.advance(60_000);
  const next = deskOf({ rules: { needsApproval }, clock, noted, script: [reply('done')] });
  const { run } = await next.begin();
  expect(waitsIn(await run.result)).toMatchObject([{ tool: 'refund' }]);
  expect(verdicts).toBe(1);
});

test('a crash before the save of a verdict asks the model again, and its new call is judged (waiting 1)', async () => {
  let verdicts = 0;
  const needsApproval = (): Verdict => {
    verdicts += 1;
    return 'ask';
  };
  const clock = testClock(1_000_000);
  const noted = notedStore(clock);
  const hold = (call: () => Promise<unknown>, ...args: unknown[]) =>
    JSON.stringify(args).includes('"kind":"approval"') ? new Promise(() => {}) : call();
  noted.rule('save', hold);
  noted.rule('append', hold);
  const first = deskOf({ rules: { needsApproval }, clock: testClock(1_000_000), noted });
  const { seen } = await first.begin();
  expect(seen.map(({ type }) => type)).not.toContain('wait.opened');
  noted.clear('save');
  noted.clear('append');
  // The process dies here: its own clock stands still, and its lease ends.
  await clock.advance(60_000);
  const next = deskOf({ rules: { needsApproval }, clock, noted });
  await next.begin();
  expect(next.model.calls).toHaveLength(1);
  expect(verdicts).toBe(2);
  expect(next.paid).toEqual([]);
});

test("unanswered calls at the end of a host's own history are judged before they start (waiting 1)", async () => {
  const desk = deskOf({ script: [reply('done')], rules: { needsApproval: true, effect: 'idempotent' } });
  const history = [
    { role: 'user', content: [{ type: 'text', text: 'Refund.' }] },
    { role: 'assistant', content: [{ type: 'tool-call', toolCallId: 'old', toolName: 'refund', input: { cents: 5 } }] },
  ];
  await desk.start({ runId: 'r' }, { resume: { history: history as never } });
  await settle();
  expect(desk.paid).toEqual([]);
  expect(waitsOf(desk.executor, 'r')).toMatchObject([{ callId: 'old', kind: 'approval' }]);
});

test('one forced save has the message, its judged calls and their waits, and wait.opened follows it (waiting 2)', async () => {
  const script = [
    callTools([
      { name: 'refund', input: { cents: 1 } },
      { name: 'refund', input: { cents: 2 } },
    ]),
    reply('done'),
  ];
  const clock = testClock(1_000_000);
  const noted = notedStore(clock);
  // A save that is not forced is put off by a minute.
  const checkpointer = createCheckpointerFactory(noted.store, { clock, throttleMs: 60_000 });
  const desk = deskOf({ script, clock, noted, ports: { checkpointer } });
  const release = Promise.withResolvers<void>();
  const isOfStep = (args: readonly unknown[]) => JSON.stringify(args).includes('"openStep"');
  for (const method of ['save', 'append'] as const)
    desk.noted.rule(method, async (call, ...args) => {
      if (isOfStep(args)) await release.promise;
      return call();
    });
  const { seen } = await desk.begin();
  const types = () => seen.map(({ type }) => type);
  expect(types()).not.toContain('wait.opened');
  release.resolve();
  await settle();
  expect(types().filter((type) => type === 'wait.opened')).toHaveLength(2);
  const saves = desk.noted.of('save', 'append').filter(({ args }) => isOfStep(args));
  expect(saves).toHaveLength(1);
  const saved = JSON.stringify(saves[0]?.args);
  expect(saved.match(/"state":"waiting"/g)).toHaveLength(2);
  expect(saved.match(/"kind":"approval"/g)).toHaveLength(2);
});

test('the other calls of the message run meanwhile, and a waiting call takes no place (waiting 3)', async () => {
  const order: string[] = [];
  const look = toolOf('look', 'once', async ({ n }) => order.push(`look ${String(n)}`));
  const calls = [
    { name: 'refund', input: { cents: 1 } },
    { name: 'refund', input: { cents: 2 } },
    { name: 'look', input: { n: 1 } },
    { name: 'look', input: { n: 2 } },
  ];
  const desk = deskOf({
    script: [callTools(calls), reply('done')],
    tools: [refundTool(), look],
    defaults: { toolConcurrency: 1 },
  });
  const { run } = await desk.begin();
  expect(order).toEqual(['look 1', 'look 2']);
  expect(run.actor.getSnapshot().hasTag('waiting')).toBe(true);
});

test('fanOut refuses a tool that needs an approval, by its name (waiting 25)', async () => {
  const model = scriptedModel([reply('done')]);
  const given = fanOut({ prompt: 'Go.', models: { a: model }, tools: [refundTool()], path: '/tmp/never' } as never);
  await expect(given).rejects.toThrow(/tools\[0\]: refund needs an approval/);
});

test('a step of denied calls alone is neither a failed step nor a good one (waiting 4)', async () => {
  const deny = () => ({ deny: 'no' });
  const script = [1, 2, 3, 4].map((cents) => callTool('refund', { cents }));
  const desk = deskOf({
    rules: { needsApproval: deny } as never,
    script: [...script, reply('done')],
    defaults: { maxConsecutiveToolErrors: 2 },
  });
  const { run } = await desk.begin();
  expect(await run.result).toMatchObject({ status: 'ok', output: 'done' });
  const fails = toolOf('fails', 'read', () => thrown());
  const mixed = deskOf({
    rules: { needsApproval: deny } as never,
    tools: [refundTool({ needsApproval: deny } as never), fails],
    script: [1, 2, 3].map((cents) =>
      callTools([
        { name: 'refund', input: { cents } },
        { name: 'fails', input: { cents } },
      ]),
    ),
    defaults: { maxConsecutiveToolErrors: 3 },
  });
  const failed = await mixed.begin();
  expect((await failed.run.result).error?.code).toBe('TOOL_LOOP');
});

test('an executor refuses an approvals option that is no function', () => {
  const agents = [defineAgent({ id: 'a', instructions: '' })];
  expect(() => createExecutor({ models: {}, agents, approvals: 'ask' as never })).toThrow(TypeError);
});

test.for<[string, object, string]>([
  ['its tool needs an approval', { rules: { needsApproval: true } }, 'waiting'],
  ['the executor has a rule', { approvals: () => 'ask' }, 'waiting'],
])('a call whose input schema throws or hangs waits for a person where %s (waiting 1)', async ([, options, status]) => {
  for (const fails of [thrown, hang]) {
    const paid: unknown[] = [];
    const desk = deskOf({ tools: [unsteadyTool(fails, paid, options)], ...options });
    const { run } = await desk.begin();
    await desk.clock.advance(60_000);
    await settle();
    expect((await run.result).status).toBe(status);
    expect(paid).toEqual([]);
    expect(waitsIn(await run.result)).toMatchObject([{ kind: 'approval', callId: 'c1', tool: 'refund' }]);
  }
});

test('a call whose input does not fit when it is judged never runs, although it would fit at its start (waiting 1)', async () => {
  const paid: unknown[] = [];
  const refused = () => ({ issues: [{ message: 'there is no such order' }] });
  const desk = deskOf({ tools: [unsteadyTool(refused, paid, { rules: { needsApproval: true } })] });
  const { run } = await desk.begin();
  const { status, messages } = await run.result;
  expect(status).toBe('ok');
  expect(paid).toEqual([]);
  expect(JSON.stringify(messages)).toContain('there is no such order');
});

/** A tool whose input schema fails at its first check, as one that asks a database. */
function unsteadyTool(fails: () => unknown, paid: unknown[], { rules = {} }: { rules?: object }): Tool {
  let checks = 0;
  const validate = (value: unknown) => (checks++ === 0 ? fails() : { value });
  const jsonSchema = { input: () => ({ type: 'object' }), output: () => ({ type: 'object' }) };
  return defineTool({
    name: 'refund',
    description: 'Pays money back.',
    input: { '~standard': { version: 1, vendor: 'test', validate, jsonSchema } } as never,
    ...rules,
    execute: async (input: unknown) => {
      paid.push(input);
      return 'paid';
    },
  }) as unknown as Tool;
}

test('a question or a fact that is a promise gives no words, and its failure does not reach the process (waiting 1)', async () => {
  const unhandled: unknown[] = [];
  const note = (error: unknown) => unhandled.push(error);
  process.on('unhandledRejection', note);
  const late = async () => thrown();
  for (const words of [{ prompt: late }, { detail: late }]) {
    const warned: unknown[] = [];
    const logger = { warn: (...said: unknown[]) => void warned.push(said) };
    const desk = deskOf({ rules: { needsApproval: true, approval: words as never }, logger: logger as never });
    const { wait } = await desk.begin();
    await new Promise((resolve) => setImmediate(resolve));
    expect(wait()).not.toHaveProperty('prompt');
    expect(wait()).not.toHaveProperty('detail');
    expect(JSON.stringify(warned)).toContain('the question of tool refund cannot be made');
  }
  process.off('unhandledRejection', note);
  expect(unhandled).toEqual([]);
});
