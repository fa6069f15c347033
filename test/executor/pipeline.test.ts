import { callTool, callTools, fail, reply, type ScriptedEntry, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { hostOf, toolOf } from '../fixtures/host.ts';
import { look, outputsOf, systemsOf, tell, two } from '../fixtures/phases.ts';

const broken = toolOf('break', 'read', () => Promise.reject(new Error('broken')));

describe('the phases of an agent', () => {
  test('run one after the other, each a fresh loop of its own; the last output is the run’s (pipeline 1)', async () => {
    const { run, model } = hostOf({
      agent: { phases: two },
      tools: [toolOf('look')],
      script: [callTool('look'), reply('seen'), reply('told')],
    });
    const result = await run({ prompt: 'the sea' });
    expect(result).toMatchObject({ status: 'ok', output: 'told', iterations: 3 });
    expect(outputsOf(result)).toEqual(['a: seen', 'b: told']);
    expect(systemsOf(model)).toEqual(['Look at the sea', 'Look at the sea', 'B saw seen']);
    expect(model.calls[2]?.messages).toEqual(model.calls[0]?.messages);
    expect(result.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant', 'assistant']);
    expect(result.phases.map(({ from }) => from)).toEqual([0, 4]);
  });

  test('are none: a single loop with the agent’s instructions (pipeline 1)', async () => {
    const { run, model } = hostOf();
    expect(await run()).toMatchObject({ status: 'ok', output: 'done', phases: [] });
    expect(systemsOf(model)).toEqual(['Work.']);
  });

  test('add their usage up, also when one of them fails for good (pipeline 1)', async () => {
    const script = [
      callTool('look'),
      reply('seen'),
      callTool('look'),
      fail(Object.assign(new Error('down'), { statusCode: 400 })),
    ];
    const { run } = hostOf({ agent: { phases: two }, tools: [toolOf('look')], script });
    const result = await run();
    expect(result).toMatchObject({ status: 'error', error: { code: 'MODEL' }, iterations: 3 });
    expect(result.usage).toMatchObject({ inputTokens: 30, outputTokens: 15 });
  });

  test('each get the images of the invocation with the prompt (pipeline 1)', async () => {
    const { run, model } = hostOf({ agent: { phases: two }, script: [reply('seen'), reply('told')] });
    await run({ images: [{ mediaType: 'image/png', data: 'AQ==' }] });
    expect(model.calls[1]?.messages).toEqual(model.calls[0]?.messages);
    expect(model.calls[1]?.messages[0]?.content).toHaveLength(2);
  });

  test('have tools of their own: a subset by name, all when none are named, none when the list is empty (pipeline 1)', async () => {
    const tools = [toolOf('look'), toolOf('dig'), toolOf('send', 'once')];
    const phases = [{ ...look, tools: ['dig', 'look'] }, tell, { ...tell, tools: [] }];
    const { run, model } = hostOf({ agent: { phases }, tools, script: [reply('1'), reply('2'), reply('3')] });
    await run();
    const named = model.calls.map((call) => call.tools.map(({ name }) => name));
    expect(named).toEqual([['look', 'dig'], ['look', 'dig', 'send'], []]);
  });

  test('cannot call a tool that the agent has and they have not (pipeline 1)', async () => {
    let sent = 0;
    const send = toolOf('send', 'once', () => (sent += 1));
    const { run, model } = hostOf({
      agent: { phases: [{ ...look, tools: ['look'] }] },
      tools: [toolOf('look'), send],
      script: [callTool('send'), reply('well')],
    });
    expect(await run()).toMatchObject({ status: 'ok', output: 'well' });
    expect(sent).toBe(0);
    expect(JSON.stringify(model.calls[1]?.messages.at(-1))).toContain('there is no tool named');
  });

  test('call each their own tools, and those of no other (pipeline 1)', async () => {
    const called: string[] = [];
    const tools = ['look', 'dig'].map((name) => toolOf(name, 'read', () => called.push(name)));
    const both = callTools([
      { name: 'look', input: {} },
      { name: 'dig', input: {} },
    ]);
    const phases = [
      { ...look, tools: ['look'] },
      { ...tell, tools: ['dig'] },
    ];
    const { run } = hostOf({ agent: { phases }, tools, script: [both, reply('seen'), both, reply('told')] });
    expect(await run()).toMatchObject({ status: 'ok', output: 'told' });
    expect(called).toEqual(['look', 'dig']);
  });

  test('that name a tool which the agent does not have are refused before any model call', async () => {
    const { run, model } = hostOf({
      agent: { phases: [look, { ...tell, tools: ['gone'] }] },
      isForeign: true,
      tools: [toolOf('look')],
    });
    expect(await run()).toMatchObject({ status: 'error', error: { code: 'UNKNOWN_TOOL' } });
    expect(model.calls).toHaveLength(0);
  });

  test('have a step cap of their own, by default the agent’s (pipeline 1)', async () => {
    const steps = (n: number): ScriptedEntry[] => Array.from({ length: n }, (_, i) => callTool('look', { i }));
    const phases = [{ ...look, maxSteps: 2 }, tell];
    const { run, model } = hostOf({
      agent: { phases, maxSteps: 3 },
      tools: [toolOf('look')],
      script: steps(5),
    });
    expect(await run()).toMatchObject({ status: 'ok', iterations: 5 });
    expect(systemsOf(model)).toEqual(['Look at Go.', 'Look at Go.', 'B saw ', 'B saw ', 'B saw ']);
  });

  test('do not count the failing and repeated calls of the one before (pipeline 1)', async () => {
    const same: ScriptedEntry[] = [callTool('break'), callTool('break')];
    const script = [...same, reply('seen'), ...same, reply('told')];
    const { run } = hostOf({ agent: { phases: two }, tools: [broken], script });
    expect(await run()).toMatchObject({ status: 'ok', output: 'told' });
  });

  test('never give two calls one id, although their models count again (pipeline 1)', async () => {
    const keys: string[] = [];
    const send = toolOf('send', 'idempotent', (_, { idempotencyKey }) => keys.push(idempotencyKey));
    const calls = callTools([
      { name: 'send', input: {}, callId: 'call_0' },
      { name: 'send', input: {}, callId: 'call_1' },
    ]);
    const script = [calls, reply('x'), calls, reply('y'), calls, calls, reply('z')];
    const { run } = hostOf({ agent: { phases: [look, tell, tell] }, tools: [send], script });
    expect(await run()).toMatchObject({ status: 'ok' });
    expect(new Set(keys).size).toBe(8);
  });

  test('come behind the executor’s header', async () => {
    const script = [reply('seen'), reply('told')];
    const { run, model } = hostOf({ agent: { phases: two }, systemHeader: 'Be kind.', script });
    await run();
    expect(systemsOf(model)).toEqual(['Be kind.\n\nLook at Go.', 'Be kind.\n\nB saw seen']);
  });
});

describe('a bare phase (pipeline 3)', () => {
  const bare = [{ ...look, bare: true }, tell];

  test('is one plain model call without tools', async () => {
    const script = [reply('seen'), reply('told')];
    const { run, model } = hostOf({ agent: { phases: bare }, tools: [toolOf('look')], script });
    expect(outputsOf(await run())).toEqual(['a: seen', 'b: told']);
    expect(model.calls.map(({ tools }) => tools.length)).toEqual([0, 1]);
  });

  test('runs no tool that its model asks for all the same, and takes no step for it', async () => {
    const { start, model } = hostOf({
      agent: { phases: [{ ...look, bare: true }, tell] },
      tools: [toolOf('look', 'read', () => expect.unreachable())],
      script: [callTool('look'), reply('a look'), reply('told')],
      defaults: { modelRetryMs: 1 },
    });
    const run = await start();
    const types: string[] = [];
    for await (const { type } of run.events()) types.push(type);
    expect(outputsOf(await run.result)).toEqual(['a: a look', 'b: told']);
    expect(types.filter((type) => type.startsWith('tool.'))).toEqual([]);
    expect(model.calls).toHaveLength(3);
  });

  test('that is the last leaves messages in which each call has its result: none (executor 17)', async () => {
    const phases = [look, { ...tell, bare: true }];
    const { run } = hostOf({
      agent: { phases },
      tools: [toolOf('look')],
      script: [reply('seen'), callTool('look'), reply('told')],
      defaults: { modelRetryMs: 1 },
    });
    const { status, messages } = await run();
    expect(status).toBe('ok');
    expect(JSON.stringify(messages)).not.toContain('tool-call');
  });

  test('is seen by those who watch, like any other', async () => {
    const steps: number[] = [];
    const options = { onStep: ({ iteration }: { iteration: number }) => steps.push(iteration) };
    const { start } = hostOf({ agent: { phases: bare }, script: [reply('seen'), reply('told')], ...options });
    const types: string[] = [];
    for await (const { type } of (await start()).events()) types.push(type);
    const own = types.slice(types.indexOf('phase.started'), types.indexOf('phase.done'));
    expect(own).toEqual(['phase.started', 'step.started', 'model.delta', 'step.done']);
    expect(steps).toEqual([1, 2]);
  });
});

describe('the tier of a phase', () => {
  test('is served by its model (pipeline 1)', async () => {
    const deep = scriptedModel([reply('told')]);
    const fast = scriptedModel([reply('seen')]);
    const { run, warnings } = hostOf({
      agent: { phases: [look, { ...tell, model: 'deep' }] },
      models: { fast, deep },
    });
    expect(await run()).toMatchObject({ status: 'ok', output: 'told' });
    expect([systemsOf(fast), systemsOf(deep)]).toEqual([['Look at Go.'], ['B saw seen']]);
    expect(warnings).toEqual([]);
  });

  test.for([
    ['is not among the models', (model: never) => ({ fast: model })],
    ['is refused by the function', (model: never) => (tier: string) => (tier === 'fast' ? model : undefined)],
    [
      'makes the function throw',
      (model: never) => (tier: string) => {
        if (tier === 'fast') return model;
        throw new Error(`no ${tier}`);
      },
    ],
  ] as const)('that %s is replaced by the agent’s, with one warning (pipeline 6)', async ([, modelsOf]) => {
    const model = scriptedModel([reply('seen'), callTool('look'), callTool('look', { n: 2 }), reply('told')]);
    const host = hostOf({
      agent: { phases: [look, { ...tell, model: 'deep' }] },
      tools: [toolOf('look')],
      models: modelsOf(model as never) as never,
    });
    expect(await host.run()).toMatchObject({ status: 'ok', output: 'told' });
    expect(model.calls).toHaveLength(4);
    expect(host.warned).toEqual([
      { message: expect.stringContaining('tier of a phase'), fields: expect.objectContaining({ phase: 'b' }) },
    ]);
  });

  test('of the agent itself must be served, also when each phase has another (pipeline 6)', async () => {
    const model = scriptedModel([reply('seen')]);
    const phases = [{ ...look, model: 'deep' }];
    const { run } = hostOf({ agent: { phases, model: 'gone' }, models: { deep: model } });
    expect(await run()).toMatchObject({ status: 'error', error: { code: 'UNKNOWN_TIER' } });
    expect(model.calls).toHaveLength(0);
  });
});
