import { type Message, memoryStore, type ResumeState } from 'pawl';
import { hang, reply, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { hostOf, toolOf, until } from '../fixtures/host.ts';
import { onlyRecord } from '../fixtures/watched-store.ts';

const user = { role: 'user', content: [{ type: 'text', text: 'Go.' }] };
const call = (toolCallId = 'c1', rest = {}) => ({
  type: 'tool-call',
  toolCallId,
  toolName: 'look',
  input: {},
  ...rest,
});
const result = (output: unknown, toolCallId = 'c1') => ({ type: 'tool-result', toolCallId, toolName: 'look', output });
const asks = (...content: object[]) => ({ role: 'assistant', content });
const answers = (output: unknown) => [asks(call()), { role: 'tool', content: [result(output)] }];
const says = (part: object) => [{ role: 'user', content: [part] }];

/** What no provider takes, and what the error says of it after `history[n]`. */
const malformed: readonly (readonly [what: string, history: readonly object[], message: string])[] = [
  ['a role that is none', [{ ...user, role: 'robot' }], '[0]: the role is "robot"; use system, user, assistant, tool'],
  ['a role that is a name of JavaScript', [{ ...user, role: '__proto__' }], '[0]: the role is "__proto__"; use'],
  ['no role', [{ content: [] }], '[0]: the role is undefined; use'],
  [
    'a text that is a number',
    says({ type: 'text', text: 5 }),
    '[0].content[0]: a text part needs a text that is a string',
  ],
  ['a text part without text', [user, ...says({ type: 'text' })], '[1].content[0]: a text part needs a text'],
  [
    'a part without a type',
    says({ text: 'x' }),
    '[0].content[0]: a user message has no part of type undefined; use text, file',
  ],
  ['a part of no type', says({ type: 'banana' }), 'has no part of type "banana"; use text, file'],
  ['a part of a type that is a name of JavaScript', says({ type: 'constructor' }), 'has no part of type "constructor"'],
  ['a call in a user message', says(call()), 'a user message has no part of type "tool-call"'],
  [
    'reasoning that is an object',
    [asks({ type: 'reasoning', text: {} })],
    'a reasoning part needs a text that is a string',
  ],
  ['a file without data', says({ type: 'file', mediaType: 'image/png' }), 'a file part needs a data that is an object'],
  [
    'a file with bare base64',
    says({ type: 'file', mediaType: 'image/png', data: 'AAAA' }),
    'needs a data that is an object',
  ],
  [
    'a file of no kind',
    says({ type: 'file', mediaType: 'x', data: { type: 'toString' } }),
    'which is data, url, text, reference',
  ],
  [
    'a file whose URL is a number',
    says({ type: 'file', mediaType: 'x', data: { type: 'url', url: 5 } }),
    'data needs a url',
  ],
  ['a file without a media type', says({ type: 'file', data: { type: 'text', text: 'x' } }), 'needs a mediaType'],
  ['a part of the provider without a kind', [asks({ type: 'custom' })], 'a custom part needs a kind that is a string'],
  ['a call without a name', [asks(call('c1', { toolName: 7 }))], 'a tool-call part needs a toolName'],
  ['a call without an id', [asks({ type: 'tool-call', toolName: 'look', input: {} })], 'needs a toolCallId'],
  [
    'a call of no known side',
    [asks(call('c1', { providerExecuted: 'yes' }))],
    'needs a providerExecuted that is true or false',
  ],
  [
    'two calls of one id',
    [asks(call(), call()), { role: 'tool', content: [result({ type: 'text', value: 'x' })] }],
    '[0]: two tool calls have the id "c1"',
  ],
  [
    'a result without output',
    answers(undefined),
    '[1].content[0]: a tool-result part needs an output that is an object',
  ],
  ['a result whose output is a text', answers('seen'), 'needs an output that is an object with a type'],
  [
    'a result of no type',
    answers({ type: 'hasOwnProperty', value: 'x' }),
    'needs an output that is an object with a type',
  ],
  ['a result whose text is a number', answers({ type: 'text', value: 5 }), 'output needs a value that is a string'],
  ['a result without its JSON', answers({ type: 'json' }), 'output needs a value'],
  [
    'a result whose content is no list',
    answers({ type: 'content', value: 'x' }),
    'output needs a value that is a list',
  ],
  [
    'a result with content of no type',
    answers({ type: 'content', value: [{ type: '__proto__' }, 5] }),
    'value[1] must be an object',
  ],
  [
    'a result with a text that is none',
    answers({ type: 'content', value: [{ type: 'text' }] }),
    'output value[0] needs a text',
  ],
  [
    'provider options that are a text',
    [{ ...user, providerOptions: 'x' }],
    '[0]: a user message needs providerOptions',
  ],
  [
    'provider options of a part that are a list',
    says({ type: 'text', text: 'x', providerOptions: [] }),
    'a text part needs providerOptions',
  ],
  [
    'a result without its call',
    [user, { role: 'tool', content: [result({ type: 'text', value: 'x' })] }],
    '[1]: the result of "c1" answers no call',
  ],
];

describe('a history with', () => {
  test.for(malformed)(
    '%s is refused with TRANSCRIPT_INVALID by its place: nothing is stored or sent',
    async ([, history, message]) => {
      const store = memoryStore();
      const host = hostOf({ script: [], store });
      const run = await host.start({ runId: 'r', history: history as unknown as Message[] });
      expect([run.accepted, run.error?.code]).toEqual(['refused', 'TRANSCRIPT_INVALID']);
      expect(run.error?.message).toContain(message);
      expect(run.error?.message).toMatch(/^history\[/);
      expect([await store.listInterrupted(), host.model.calls]).toEqual([[], []]);
    },
  );
});

describe('a resume state with', () => {
  test.for(malformed)('%s in its history is the same error', async ([, history, message]) => {
    const host = hostOf({ script: [] });
    const { error } = await host.run({}, { resume: { history: history as unknown as Message[] } });
    expect(error).toMatchObject({ code: 'TRANSCRIPT_INVALID', message: expect.stringContaining(message) });
    expect(host.model.calls).toEqual([]);
  });

  test.for(['earlier', 'undelivered', 'nudges'] as const)(
    'malformed messages in %s is refused as well',
    async (name) => {
      const host = hostOf({ script: [] });
      const { error } = await host.run(
        {},
        { resume: { [name]: [user, ...says({ type: 'text', text: 5 })] } as ResumeState },
      );
      expect(error).toMatchObject({
        code: 'TRANSCRIPT_INVALID',
        message: `${name}[1].content[0]: a text part needs a text that is a string`,
      });
    },
  );

  test('a malformed message in its open step is refused as well', async () => {
    const openStep = { message: asks({ type: 'text', text: 5 }), calls: [] };
    const { error } = await hostOf({ script: [] }).run({}, { resume: { openStep } as never });
    expect(error?.message).toBe('openStep.message.content[0]: a text part needs a text that is a string');
  });

  const line = { callId: 'c1', name: 'look', input: {}, effect: 'read', attempt: 0, state: 'planned' };
  const another = 'openStep: its calls must be those of its message, in their order';
  test.for([
    ['of another id', asks(call('c2')), [line], another],
    ['of another name', asks(call('c1', { toolName: 'send' })), [line], another],
    ['too few', asks(call()), [], another],
    ['one twice', asks(call()), [line, line], another],
    ['of a user', user, [line], another],
    [
      'with a result of no type',
      asks(call()),
      [{ ...line, state: 'done', result: { type: 'banana' } }],
      'openStep.calls[0].result: must be an object with a type, which is text, error-text,',
    ],
  ] as const)(
    'calls of an open step that are not those of its message (%s) is refused',
    async ([, message, calls, error]) => {
      const host = hostOf({ script: [], tools: [toolOf('look')] });
      const result = await host.run({}, { resume: { history: [user], openStep: { message, calls } } as never });
      expect(result.error).toMatchObject({ code: 'TRANSCRIPT_INVALID', message: expect.stringContaining(error) });
      expect(host.model.calls).toEqual([]);
    },
  );

  test.for([
    [5, 'run options: resume must be an object, not the number 5'],
    [{ history: 'x' }, 'run options: resume.history must be an array of messages, not a string'],
    [{ nudges: {} }, 'run options: resume.nudges must be an array of messages, not an object'],
    [{ iteration: '3' }, 'run options: resume.iteration is not valid in a record'],
    [{ completedPhases: ['a'] }, 'run options: resume.completedPhases is not valid in a record'],
    [{ openStep: {} }, 'run options: resume.openStep is not valid in a record'],
    [{ usage: 7 }, 'run options: resume.usage is not valid in a record'],
  ])('a field of another kind is a wrong call: %j', async ([resume, message]) => {
    await expect(hostOf({ script: [] }).run({}, { resume: resume as never })).rejects.toThrow(
      new TypeError(message as string),
    );
  });
});

test('every part that the AI SDK allows reaches the model byte for byte, with fields that nothing knows', async () => {
  const providerOptions = { anthropic: { cacheControl: { type: 'ephemeral' } } };
  const more = { providerOptions, later: { a: [1, null, 'x'] } };
  const file = {
    type: 'file',
    mediaType: 'image/png',
    filename: 'a.png',
    data: { type: 'data', data: 'AAAA' },
    ...more,
  };
  const outputs = [
    { type: 'text', value: 'x', ...more },
    { type: 'json', value: null, ...more },
    { type: 'error-text', value: 'x' },
    { type: 'error-json', value: { a: 1 } },
    { type: 'execution-denied', reason: 'no' },
    {
      type: 'content',
      value: [{ type: 'text', text: 'x', ...more }, file, { type: 'custom', ...more }, { type: 'image-url', url: 'x' }],
    },
  ];
  const ids = outputs.map((_, i) => `c${i}`);
  const history = [
    { role: 'system', content: 'Be brief.', ...more },
    { role: 'user', content: [{ type: 'text', text: 'x', ...more }, file], ...more },
    { role: 'user', content: [{ ...file, data: { type: 'reference', reference: { openai: 'f-1' } } }] },
    { role: 'user', content: [{ ...file, data: { type: 'text', text: 'inline' } }] },
    {
      role: 'assistant',
      content: [
        { type: 'reasoning', text: 'hm', ...more },
        { type: 'reasoning-file', mediaType: 'image/png', data: { type: 'url', url: 'https://a.example/b' }, ...more },
        { type: 'custom', kind: 'acme.thing', ...more },
        { type: 'tool-call', toolCallId: 'p', toolName: 'search', input: {}, providerExecuted: true, ...more },
        result({ type: 'json', value: [] }, 'p'),
        ...ids.map((id) => call(id, more)),
      ],
    },
    { role: 'tool', content: outputs.map((output, i) => ({ ...result(output, ids[i]), ...more })), ...more },
    { role: 'tool', content: [{ type: 'tool-approval-response', approvalId: 'a', approved: true, ...more }] },
  ] as unknown as Message[];
  const store = memoryStore();
  // The provider options are of the model's own vendor: those of another one are left out.
  const model = { ...scriptedModel([hang(), reply('x')]), provider: 'anthropic.messages' };
  const host = hostOf({ models: { fast: model }, tools: [toolOf('look')], store });
  const text = JSON.stringify(history);
  await host.start({ runId: 'r', history });
  await until(() => model.calls.length === 1);
  expect(JSON.stringify((await onlyRecord(store)).earlier) === text).toBe(true);
  expect(JSON.stringify(model.calls[0]?.messages) === JSON.stringify([...history, user])).toBe(true);
  await host.run({}, { resume: { history } });
  expect(JSON.stringify(model.calls[1]?.messages) === text).toBe(true);
});
