import {
  hasToolCall,
  isLoopFinished,
  isStepCount,
  jsonSchema,
  Output,
  type StopCondition,
  stepCountIs,
  ToolLoopAgent,
  type ToolLoopAgentSettings,
  tool,
} from 'ai';
import { createExecutor, defineAgent, fromAiSdk, memoryStore } from 'pawl';
import { callTool, hang, reply, type ScriptedEntry, type ScriptedModel, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { until } from '../fixtures/host.ts';

const prompt = 'What is the weather in Paris?';
const weather = tool({
  description: 'Looks up the weather.',
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => `rain in ${city}`,
});
const script: readonly ScriptedEntry[] = [callTool('weather', { city: 'Paris' }, 'c1'), reply('It rains.')];

/** What a model was asked, as the provider gets it. */
function requestsOf(model: ScriptedModel) {
  const sent: object[] = [];
  const { doStream } = model;
  const noted = async (options: Parameters<typeof doStream>[0]) => {
    const { headers, temperature, maxOutputTokens, toolChoice, providerOptions, stopSequences, responseFormat } =
      options;
    sent.push({ headers, temperature, maxOutputTokens, toolChoice, providerOptions, stopSequences, responseFormat });
    return doStream(options);
  };
  return { sent, model: { ...model, doStream: noted } };
}

const executor = () => createExecutor({ logger: { warn: () => {} } });
const agentWith = (settings: object) =>
  fromAiSdk({ id: 'clerk', model: scriptedModel([...script]), ...settings } as never);

function refusal(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    expect(error).toBeInstanceOf(TypeError);
    return (error as TypeError).message;
  }
  throw new Error('the settings were taken');
}

describe('the settings of an agent of the AI SDK', () => {
  test('make the same agent in the AI SDK and in Pawl: prompt, tools, settings and headers of each request are equal', async () => {
    const settingsOf = (model: ScriptedModel): ToolLoopAgentSettings<never, { weather: typeof weather }> => ({
      id: 'clerk',
      model,
      instructions: 'Answer in one sentence.',
      tools: { weather },
      stopWhen: isStepCount(5),
      temperature: 0.3,
      maxOutputTokens: 500,
      stopSequences: ['END'],
      providerOptions: { openai: { store: false } },
      headers: { 'x-tenant': 'acme', 'x-none': undefined },
    });
    const [own, theirs] = [scriptedModel([...script]), scriptedModel([...script])];
    const [ownRequests, theirRequests] = [requestsOf(own), requestsOf(theirs)];
    const result = await executor().run(fromAiSdk(settingsOf(ownRequests.model as ScriptedModel)), { prompt });
    const stream = await new ToolLoopAgent(settingsOf(theirRequests.model as ScriptedModel)).stream({ prompt });
    expect([result.output, await stream.text]).toEqual(['It rains.', 'It rains.']);
    const asked = ({ calls }: ScriptedModel) =>
      calls.map(({ system, messages, tools }) => ({
        system,
        roles: messages.map(({ role }) => role),
        tools: tools.map(({ name, description }) => ({ name, description })),
      }));
    expect(asked(own)).toEqual(asked(theirs));
    const { headers: _, ...first } = theirRequests.sent[0] as { headers: object };
    expect(ownRequests.sent).toHaveLength(theirRequests.sent.length);
    expect(ownRequests.sent[0]).toMatchObject(JSON.parse(JSON.stringify({ ...first, toolChoice: undefined })));
    expect(ownRequests.sent[0]).toMatchObject({ headers: { 'x-tenant': 'acme' } });
    expect((ownRequests.sent[0] as { headers: object }).headers).not.toHaveProperty('x-none');
  });

  test('need an id, by which records name the agent', () => {
    expect(refusal(() => fromAiSdk({ model: scriptedModel([]) }))).toBe(
      "fromAiSdk needs an id, by which records name the agent: fromAiSdk({ id: 'clerk', ...settings })",
    );
  });

  test('may be refined with what Pawl has besides', async () => {
    const agent = defineAgent({
      ...agentWith({ output: Output.object({ schema: z.object({ a: z.string() }) }) }),
      maxRuntimeMs: 9,
    });
    expect([agent.id, agent.maxRuntimeMs, agent.outputSchema !== undefined]).toEqual(['clerk', 9, true]);
  });

  test('may hold undefined: it is the same as a setting that is absent', () => {
    const { model, ...agent } = agentWith({ prepareStep: undefined, stopWhen: undefined, temperature: undefined });
    expect(agent).toEqual({ id: 'clerk', name: 'clerk', version: '1', instructions: '' });
  });

  test('may take the instructions as a message', () => {
    expect(agentWith({ instructions: { role: 'system', content: 'Work.' } }).instructions).toBe('Work.');
  });

  test('may name the tools that are active, and how many calls run at once', async () => {
    const agent = agentWith({ tools: { weather, other: weather }, activeTools: ['weather'], toolCallConcurrency: 2 });
    expect([Object.keys(agent.tools ?? {}), agent.toolConcurrency]).toEqual([['weather'], 2]);
  });

  test('keep the effect of a tool that is given with one; a call of another is made once', async () => {
    const agent = agentWith({ tools: { weather: { tool: weather, effect: 'read' } } });
    expect(agent.tools).toMatchObject({ weather: { effect: 'read' } });
  });
});

describe('a stop condition of the AI SDK', () => {
  const limitOf = (stopWhen: unknown) => agentWith({ stopWhen }).maxSteps;
  test.for<[string, unknown, number]>([
    ['isStepCount', isStepCount(7), 7],
    ['stepCountIs', stepCountIs(1), 1],
    ['a function of its own that counts', ({ steps }: { steps: unknown[] }) => steps.length >= 4, 4],
    ['the first of a list', [isStepCount(9), isStepCount(3)], 3],
  ])('that counts the steps is the most steps of a run: %s', ([, condition, count]) => {
    expect(limitOf(condition)).toBe(count);
  });

  test.for<[string, unknown]>([
    ['hasToolCall', hasToolCall('done')],
    ['isLoopFinished', isLoopFinished()],
    ['a list with one that looks at the steps', [isStepCount(3), hasToolCall('done')]],
    ['one that looks at the last step', ({ steps }: Parameters<StopCondition<never>>[0]) => steps.at(-1)?.text === ''],
    [
      'one that counts, and then looks at a step',
      ({ steps }: Parameters<StopCondition<never>>[0]) => steps.length > 2 && !steps[0]?.text,
    ],
    ['one that looks at nothing', () => true],
    ['one that answers later', async ({ steps }: { steps: unknown[] }) => steps.length === 3],
    [
      'one that throws',
      () => {
        throw new Error('no');
      },
    ],
    ['a count that is out of bounds', isStepCount(5_000)],
    ['an empty list', []],
    ['a number', 5],
  ])('that is no count of steps is refused: %s', ([, condition]) => {
    expect(refusal(() => limitOf(condition))).toBe(
      'fromAiSdk: agent clerk: stopWhen must be isStepCount(n), with n from 1 to 1000, or a list of them; Pawl ends a loop by its steps alone',
    );
  });
});

describe('a setting that Pawl cannot honour', () => {
  const none = () => ({});
  test.for<[string, unknown, string]>([
    ['prepareStep', none, 'phases and middleware of an executor change what a model call gets'],
    ['prepareCall', none, 'a run has inputs, which its tools get as context.invocation.inputs'],
    ['onStepFinish', none, 'an executor has onStep and observers, and each run has its events'],
    ['experimental_onStart', none, 'an executor has onStep and observers, and each run has its events'],
    ['toolApproval', {}, 'a tool has needsApproval, and an executor has approvals'],
    ['maxRetries', 2, 'an executor has defaults: { modelAttempts }'],
    ['timeout', 1_000, 'an agent has maxRuntimeMs, and a tool timeoutMs'],
  ])('is refused with the word of Pawl: %s', ([key, value, word]) => {
    expect(refusal(() => agentWith({ [key]: value }))).toBe(
      `fromAiSdk: agent clerk: Pawl cannot honour ${key}; ${word}`,
    );
  });

  test.for(['include', 'toolOrder', '_internal', 'allowSystemInMessages', 'experimental_download'])(
    'is refused although Pawl has nothing like it: %s',
    (key) => {
      expect(refusal(() => agentWith({ [key]: {} }))).toMatch(`fromAiSdk: agent clerk: unknown option ${key}`);
    },
  );

  test.for<[string, object, string]>([
    ['a list of messages', { instructions: [{ role: 'system', content: 'Work.' }] }, 'instructions must be one text'],
    [
      'a message with options',
      { instructions: { role: 'system', content: 'Work.', providerOptions: { a: {} } } },
      'instructions must be one text',
    ],
    ['a name for the gateway', { model: 'openai/gpt-5' }, "a name for the AI SDK's gateway"],
    ['headers of a tier', { model: 'fast', headers: { a: 'b' } }, 'headers need a language model'],
    ['a tool that the provider runs', { tools: { search: { type: 'provider', id: 'a.b' } } }, 'has no execute'],
  ])('is a value of one that it can: %s', ([, settings, message]) => {
    expect(() => agentWith(settings)).toThrow(message);
  });
});

describe('an Output of the AI SDK is the form of the answer', () => {
  const shape = z.object({ city: z.string(), degrees: z.number() });
  const answer = { city: 'Paris', degrees: 11 };
  const runWith = async (output: object, ...texts: readonly unknown[]) => {
    const { model, sent } = requestsOf(scriptedModel(texts.map((text) => reply(JSON.stringify(text)))));
    const agent = defineAgent({ id: 'clerk', instructions: 'Work.', model: model as ScriptedModel, output });
    return { result: await executor().run(agent, { prompt }), sent };
  };

  test('Output.object: the model gets its JSON Schema, and data has what its schema returns', async () => {
    const { result, sent } = await runWith(Output.object({ schema: shape }), answer);
    expect(result).toMatchObject({ status: 'ok', data: answer });
    expect(sent[0]).toMatchObject({ responseFormat: { type: 'json', schema: { required: ['city', 'degrees'] } } });
  });

  test('an answer that does not fit is asked for again', async () => {
    const { result } = await runWith(Output.object({ schema: shape }), { city: 'Paris' }, answer);
    expect(result).toMatchObject({ status: 'ok', data: answer, iterations: 2 });
  });

  test.for<[string, object, unknown, unknown]>([
    ['array', Output.array({ element: shape }), { elements: [answer] }, [answer]],
    ['choice', Output.choice({ options: ['sun', 'rain'] }), { result: 'rain' }, 'rain'],
    ['json', Output.json(), { any: 1 }, { any: 1 }],
  ])('Output.%s', async ([, output, said, data]) => {
    expect((await runWith(output, said)).result).toMatchObject({ status: 'ok', data });
  });

  test('Output.text() is an answer without a form', async () => {
    const { result, sent } = await runWith(Output.text(), 'It rains.');
    expect([result.status, 'data' in result && result.data]).toEqual(['ok', false]);
    expect(sent[0]).toMatchObject({ responseFormat: undefined });
  });

  test('one whose JSON Schema cannot be read gives a stored run back, and ends a first start', async () => {
    const store = memoryStore();
    const agent = (output: object) =>
      defineAgent({
        id: 'a',
        instructions: 'Work.',
        tools: { weather },
        model: scriptedModel([...script.slice(0, 1), hang()]),
        output,
      });
    const bad = Output.object({ schema: jsonSchema(() => Promise.reject(new Error('no schema'))) });
    const first = createExecutor({ store, logger: { warn: () => {} } });
    expect(await first.run(agent(bad), { prompt })).toMatchObject({ status: 'error', error: { message: /no schema/ } });
    await first.start(agent(Output.json()), { prompt, runId: 'r' });
    await until(async () => (await store.load('r'))?.iteration === 1);
    await first.shutdown();
    const next = createExecutor({ store, logger: { warn: () => {} } });
    expect(await next.run(agent(bad), { prompt, runId: 'r' })).toMatchObject({
      status: 'interrupted',
      error: { code: 'SETUP' },
    });
  });

  test('its type is that of data', async () => {
    const agent = fromAiSdk({
      id: 'a',
      model: scriptedModel([reply(JSON.stringify(answer))]),
      output: Output.object({ schema: shape }),
    });
    const result = await executor().run(agent, { prompt });
    const degrees: number | undefined = result.data?.degrees;
    expect(degrees).toBe(11);
  });
});
