import { createExecutor, defineAgent, memoryStore } from 'pawl';
import { reply, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { named, overloaded, played } from './lists.ts';

const model = () => scriptedModel([]);
const one = model();
const wrong: readonly (readonly [what: string, list: unknown, message: RegExp])[] = [
  ['an empty list', [], /models\.fast is an empty list/],
  ['more than eight models', Array.from({ length: 9 }, model), /has 9 models; a list has at most 8/],
  ['a model twice', [one, { model: one }], /models\.fast\[1\] is the same model as one before it/],
  [
    'an unknown field',
    [{ model: one, maxAttemps: 3 }],
    /models\.fast\[0\]\.maxAttemps; did you mean models\.fast\[0\]\.maxAttempts\?/,
  ],
  ['an entry without a model', [{ when: () => true }], /models\.fast\[0\] is not a language model/],
  ['a name in the place of a model', ['openai/gpt-5'], /models\.fast\[0\] is not a language model.*gateway/],
  ['a `when` that is no function', [{ model: one, when: true }], /models\.fast\[0\]\.when must be a function/],
  [
    'a key without characters',
    [{ model: one, key: '' }],
    /models\.fast\[0\]\.key must be a text of 1 to 40 characters/,
  ],
  [
    'attempts that are no number',
    [{ model: one, maxAttempts: 0 }],
    /models\.fast\[0\]\.maxAttempts must be a whole number above 0/,
  ],
  ['a wrong setting', [{ model: one, settings: { temperature: 'hot' } }], /models\.fast\[0\]\.settings\.temperature/],
];

describe('a list of models', () => {
  test.for(wrong)('with %s is refused when the executor is made (failover 1)', ([, list, message]) => {
    expect(() => createExecutor({ models: { fast: list } as never })).toThrow(message);
  });

  test.for(wrong)('with %s that a function gives is the error of the start (failover 1)', async ([, list, message]) => {
    const executor = createExecutor({ models: () => list as never, store: memoryStore(), logger: { warn: () => {} } });
    const result = await executor.run(defineAgent({ id: 'worker', instructions: 'Work.' }), { prompt: 'Go.' });
    expect(result.status).toBe('error');
    expect(result.error?.message).toMatch(message);
  });

  test('has a rest that is a number above 0 (failover 6)', () => {
    for (const cooldownMs of [0, -1, '30s', Number.NaN])
      expect(() => createExecutor({ failover: { cooldownMs } as never })).toThrow(
        /failover\.cooldownMs must be a number/,
      );
    expect(() => createExecutor({ failover: { cooldown: 1 } as never })).toThrow(/did you mean failover\.cooldownMs\?/);
  });

  test('of one model is that model, with as many attempts as without a list (failover 1, 26)', async () => {
    const opus = named('anthropic/opus', [overloaded, overloaded, overloaded, overloaded, reply('done')]);
    const { run } = await played([opus]);
    expect(await run.result).toMatchObject({ status: 'ok', output: 'done' });
  });

  test('asks each entry with its own settings before those of the agent (failover 8)', async () => {
    const sent: unknown[] = [];
    const noting = (name: string, script: Parameters<typeof named>[1]) => {
      const scripted = named(name, script);
      return Object.assign(
        { ...scripted },
        {
          doStream: (options: Parameters<typeof scripted.doStream>[0]) => {
            sent.push([options.temperature, options.topP, options.providerOptions]);
            return scripted.doStream(options);
          },
        },
      );
    };
    const settings = { temperature: 1, providerOptions: { openai: { store: false } } };
    const list = [
      { model: noting('anthropic/opus', [overloaded]), maxAttempts: 1 },
      { model: noting('openai/gpt', [reply('done')]), settings },
    ];
    const agent = { settings: { temperature: 0, topP: 0.5, providerOptions: { openai: { user: 'u' } } } };
    await (await played(list, { agent })).run.result;
    expect(sent).toEqual([
      [0, 0.5, { openai: { user: 'u' } }],
      [1, 0.5, { openai: { user: 'u', store: false } }],
    ]);
  });

  test('sends the thoughts of one account to no other account of the same provider (failover 9, 14)', async () => {
    const parts = [
      { type: 'reasoning-start', id: 'r' },
      { type: 'reasoning-delta', id: 'r', delta: 'a secret thought' },
      { type: 'reasoning-end', id: 'r', providerMetadata: { openai: { itemId: 'rs_1' } } },
      { type: 'tool-call', toolCallId: 'c', toolName: 'look', input: '{}' },
      {
        type: 'finish',
        finishReason: { unified: 'tool-calls', raw: 'x' },
        usage: { inputTokens: { total: 1 }, outputTokens: { total: 1 } },
      },
    ];
    for (const [key, isSent] of [
      ['b', false],
      ['a', true],
    ] as const) {
      let asked = 0;
      const first = Object.assign(named('openai/gpt', []), {
        doStream: async () => {
          if (asked++ > 0) throw new Error('away');
          return { stream: ReadableStream.from(parts) };
        },
      });
      const second = named('openai/gpt-mini', [reply('done')]);
      const { run } = await played([
        { model: first, key: 'a' },
        { model: second, key },
      ]);
      const result = await run.result;
      expect(result).toMatchObject({ status: 'ok', output: 'done' });
      expect(JSON.stringify(second.calls).includes('a secret thought')).toBe(isSent);
      expect(result.messages.flatMap(({ providerOptions }) => providerOptions?.pawl ?? [])).toMatchObject([
        { model: 'openai/gpt', key: 'a' },
        { model: 'openai/gpt-mini', key },
      ]);
    }
  });
});
