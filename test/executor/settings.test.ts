import type { LanguageModelV4, LanguageModelV4CallOptions } from '@ai-sdk/provider';
import { type AgentDefinition, createPalette, defineAgent, defineSkill, type ModelSettings, type Phase } from 'pawl';
import { callTool, fail, reply, type ScriptedEntry, scriptedModel, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { hostOf, settle, toolOf } from '../fixtures/host.ts';

const all = {
  temperature: 0.2,
  topP: 0.9,
  topK: 40,
  presencePenalty: 0.1,
  frequencyPenalty: -0.1,
  maxOutputTokens: 500,
  stopSequences: ['END'],
  seed: 7,
  reasoning: 'low',
  providerOptions: { openai: { store: false } },
} satisfies ModelSettings;

/** What each model call of a run was sent beside its prompt, tools and signal. */
async function sent(
  agent: Partial<AgentDefinition>,
  script: readonly ScriptedEntry[],
  { spec = 'v4', ...options }: { spec?: string } & Parameters<typeof hostOf>[0] = {},
): Promise<Record<string, unknown>[]> {
  const calls: Record<string, unknown>[] = [];
  const model = scriptedModel(script);
  const watched = {
    ...model,
    specificationVersion: spec,
    doStream: (call: LanguageModelV4CallOptions) => {
      const { prompt: _, abortSignal: __, tools, ...rest } = call;
      calls.push({ ...rest, ...(tools ? { tools: tools.map(({ name }) => name) } : {}) });
      return model.doStream(call);
    },
  } as LanguageModelV4;
  const host = hostOf({ models: { fast: watched }, agent, ...options });
  await host.run();
  return calls;
}

const look = toolOf('look');

describe('settings of an agent reach its model calls', () => {
  test('each call of a loop has all of them', async () => {
    const agent = { settings: all, tools: [look] };
    expect(await sent(agent, [callTool('look'), reply('done')])).toEqual([
      { ...all, tools: ['look'] },
      { ...all, tools: ['look'] },
    ]);
  });

  test('a call of an agent without settings has none', async () => {
    expect(await sent({}, [reply('done')])).toEqual([{}]);
  });

  test('a model call that is tried again has them again', async () => {
    const clock = testClock();
    const busy = fail(Object.assign(new Error('busy'), { statusCode: 503, isRetryable: true }));
    let isRetried = false;
    const again = () => {
      isRetried = true;
      return reply('done');
    };
    const sending = sent({ settings: { temperature: 0 } }, [busy, again], { clock });
    for (let turn = 0; turn < 100 && !isRetried; turn++) {
      await settle();
      await clock.advance(1_000);
    }
    const calls = await sending;
    expect(calls).toEqual([{ temperature: 0 }, { temperature: 0 }]);
  });

  test.for(['v3', 'v2'])('a model of spec %s gets them without reasoning, which it does not know', async (spec) => {
    const { reasoning: _, ...known } = all;
    const agent = { settings: { ...all, toolChoice: 'required' as const }, tools: [look] };
    const script = [{ stream: [] } as never];
    const [first] = await sent(agent, script, { spec, defaults: { modelAttempts: 1 } });
    expect(first).toEqual({ ...known, toolChoice: { type: 'required' }, tools: ['look'] });
  });

  test('settings of a phase go before those of its agent, key by key, and provider options key by key within a provider', async () => {
    const phases: Phase[] = [
      { name: 'a', instructions: '' },
      {
        name: 'b',
        instructions: '',
        settings: { temperature: 1, providerOptions: { openai: { user: 'u' }, anthropic: { effort: 'low' } } },
      },
    ];
    expect(await sent({ phases, settings: all }, [reply('1'), reply('2')])).toEqual([
      all,
      {
        ...all,
        temperature: 1,
        providerOptions: { openai: { store: false, user: 'u' }, anthropic: { effort: 'low' } },
      },
    ]);
  });

  test('a bare phase has them all but the tool choice, because it has no tools', async () => {
    const phases: Phase[] = [{ name: 'a', instructions: '', bare: true, settings: { maxOutputTokens: 9 } }];
    const agent = { phases, tools: [look], settings: { temperature: 0.5, toolChoice: 'required' as const } };
    expect(await sent(agent, [reply('1')])).toEqual([{ temperature: 0.5, maxOutputTokens: 9 }]);
  });

  test('a skill has its own, and those of the agent that uses it do not count', async () => {
    const skill = defineSkill({
      name: 'sum',
      description: '',
      input: z.object({}),
      instructions: 'Sum.',
      settings: { temperature: 1 },
    });
    const palette = createPalette({ skills: [skill] });
    const agent = { skills: ['sum'], settings: { seed: 3 } };
    const calls = await sent(agent, [callTool('skill__sum'), reply('sum'), reply('done')], { ports: { palette } });
    expect(calls.map(({ tools: _, ...rest }) => rest)).toEqual([{ seed: 3 }, { temperature: 1 }, { seed: 3 }]);
  });

  test('a repair turn has the same settings and the same response format', async () => {
    const agent = {
      output: z.object({ n: z.number() }),
      settings: { temperature: 0, toolChoice: 'required' as const },
      tools: [look],
    };
    const [first, second, third] = await sent(agent, [callTool('look'), reply('no JSON'), reply('{"n":1}')]);
    expect(first).toMatchObject({ temperature: 0, toolChoice: { type: 'required' }, responseFormat: { type: 'json' } });
    expect(second).toMatchObject({ temperature: 0, responseFormat: { type: 'json' }, tools: ['look'] });
    expect(third).toEqual(second);
    expect(third).not.toHaveProperty('toolChoice');
  });
});

describe('the tool choice of an agent lets its loop end', () => {
  const choices = async (toolChoice: ModelSettings['toolChoice'] & {}, rest: Partial<AgentDefinition> = {}) => {
    const calls = await sent({ tools: [look], settings: { toolChoice }, ...rest }, [callTool('look'), reply('done')]);
    return calls.map((call) => call.toolChoice);
  };

  test.for([
    ['auto and none go with each turn: auto', 'auto', [{ type: 'auto' }, { type: 'auto' }]],
    ['auto and none go with each turn: none', 'none', [{ type: 'none' }, { type: 'none' }]],
    ['required goes with the first turn only', 'required', [{ type: 'required' }, undefined]],
    [
      'a named tool goes with the first turn only',
      { type: 'tool', toolName: 'look' },
      [{ type: 'tool', toolName: 'look' }, undefined],
    ],
  ] as const)('%s', async ([, choice, expected]) => {
    expect(await choices(choice)).toEqual(expected);
  });

  test('it goes with the first turn of each phase that has the tool', async () => {
    const phases: Phase[] = [
      { name: 'a', instructions: '' },
      { name: 'b', instructions: '', tools: [] },
      { name: 'c', instructions: '', tools: ['other'] },
      { name: 'd', instructions: '', settings: { toolChoice: 'auto' } },
    ];
    const agent = {
      phases,
      tools: [look, toolOf('other')],
      settings: { toolChoice: { type: 'tool', toolName: 'look' } } as const,
    };
    const script = [callTool('look'), reply('a'), reply('b'), reply('c'), reply('d')];
    expect((await sent(agent, script)).map((call) => call.toolChoice)).toEqual([
      { type: 'tool', toolName: 'look' },
      undefined,
      undefined,
      undefined,
      { type: 'auto' },
    ]);
  });

  test('a run without tools sends none', async () => {
    expect(await sent({ settings: { toolChoice: 'required' } }, [reply('done')])).toEqual([{}]);
  });

  test('a run that continues after its first turn does not force another call', async () => {
    const history = [
      { role: 'user', content: [{ type: 'text', text: 'Go.' }] },
      { role: 'assistant', content: [{ type: 'tool-call', toolCallId: '1', toolName: 'look', input: {} }] },
      {
        role: 'tool',
        content: [{ type: 'tool-result', toolCallId: '1', toolName: 'look', output: { type: 'text', value: 'x' } }],
      },
    ] as const;
    const model = scriptedModel([reply('done')]);
    const choices: unknown[] = [];
    const doStream = (call: LanguageModelV4CallOptions) => {
      choices.push(call.toolChoice);
      return model.doStream(call);
    };
    const models = { fast: { ...model, doStream } as LanguageModelV4 };
    const host = hostOf({ models, agent: { tools: [look], settings: { toolChoice: 'required' } } });
    await host.run({}, { resume: { history: history as never, iteration: 1 } });
    expect(choices).toEqual([undefined]);
  });
});

describe('settings that cannot be used are refused when they are defined', () => {
  const define = (settings: unknown) => () =>
    defineAgent({ id: 'a', instructions: '', tools: [look], settings: settings as ModelSettings });

  test.for<[string, unknown, string]>([
    [
      'an unknown key',
      { temprature: 1 },
      'agent a: unknown option settings.temprature; did you mean settings.temperature?',
    ],
    ['headers, which hold keys', { headers: { authorization: 'x' } }, 'unknown option settings.headers'],
    ['a temperature below 0', { temperature: -1 }, 'settings.temperature must be a number of 0 or more'],
    [
      'a temperature that is a text',
      { temperature: '1' },
      'settings.temperature must be a number of 0 or more, not a string',
    ],
    ['a topP above 1', { topP: 2 }, 'settings.topP must be a number from 0 to 1'],
    ['a topK that is not whole', { topK: 1.5 }, 'settings.topK must be a whole number above 0'],
    ['no output tokens', { maxOutputTokens: 0 }, 'settings.maxOutputTokens must be a whole number above 0'],
    ['an endless seed', { seed: Number.POSITIVE_INFINITY }, 'settings.seed must be a whole number'],
    [
      'a penalty that is no number',
      { presencePenalty: Number.NaN },
      'settings.presencePenalty must be a finite number',
    ],
    ['a stop sequence that is one text', { stopSequences: 'END' }, 'settings.stopSequences must be a list of texts'],
    ['an unknown effort', { reasoning: 'hgh' }, "settings.reasoning must be 'provider-default'"],
    ['an unknown choice', { toolChoice: 'always' }, "settings.toolChoice must be 'auto' or 'none' or 'required'"],
    ['a choice of a tool without its name', { toolChoice: { type: 'tool' } }, 'settings.toolChoice must be'],
    [
      'a choice of a tool that is not there',
      { toolChoice: { type: 'tool', toolName: 'lok' } },
      'agent a: settings.toolChoice names "lok", which the agent does not have; did you mean look?',
    ],
    [
      'provider options that are a list',
      { providerOptions: [] },
      'settings.providerOptions must be an object of objects',
    ],
    [
      'provider options of no provider',
      { providerOptions: { store: false } },
      'settings.providerOptions must be an object of objects',
    ],
  ])('%s', ([, settings, message]) => {
    expect(define(settings)).toThrow(message);
  });

  test('those of a phase and of a skill are checked too', () => {
    const phases = [
      { name: 'p', instructions: '', tools: [], settings: { toolChoice: { type: 'tool', toolName: 'look' } } as const },
    ];
    expect(() => defineAgent({ id: 'a', tools: [look], phases })).toThrow(
      'agent a: phases[0] (p): settings.toolChoice names "look", which the phase does not have; it has none',
    );
    const wrong = [{ name: 'p', instructions: '', settings: { topP: 7 } }];
    expect(() => defineAgent({ id: 'a', phases: wrong })).toThrow('agent a: phases[0].settings.topP must be');
    const skill = { name: 's', description: '', input: z.object({}), instructions: '', settings: { topP: 7 } };
    expect(() => defineSkill(skill)).toThrow('skill "s": settings.topP must be');
  });

  test('they are copied: what their object becomes afterwards changes nothing', () => {
    const settings = { temperature: 1, providerOptions: { openai: { store: false } } };
    const agent = define(settings)();
    settings.temperature = 2;
    settings.providerOptions.openai.store = true;
    expect(agent.settings).toEqual({ temperature: 1, providerOptions: { openai: { store: false } } });
  });
});
