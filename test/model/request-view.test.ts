import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { describe, expect, test } from 'vitest';
import { callModel } from '../../src/model/call.ts';
import type { Model } from '../../src/model/port.ts';
import { RequestView, viewOf } from '../../src/model/request-view.ts';
import { isForeign, vendorOf } from '../../src/model/vendor.ts';
import { Transcript } from '../../src/run/transcript.ts';
import { systemClock } from '../../src/values/clock.ts';
import { enterMessage, type Message } from '../../src/values/message.ts';

const text = (value: string, providerOptions?: object) => ({
  type: 'text',
  text: value,
  ...(providerOptions ? { providerOptions } : {}),
});
const thought = (value: string, providerOptions?: object) => ({ ...text(value, providerOptions), type: 'reasoning' });
const call = (toolCallId: string, toolName = 'look', rest: object = {}) => ({
  ...{ type: 'tool-call', toolCallId, toolName, input: { q: 1 } },
  ...rest,
});
const result = (toolCallId: string, output: object = { type: 'text', value: 'seen' }, toolName = 'look') => ({
  ...{ type: 'tool-result', toolCallId, toolName, output },
});
const message = (role: string, content: unknown, providerOptions?: object) =>
  enterMessage({ role, content, ...(providerOptions ? { providerOptions } : {}) });
const made = (model: string, ...content: object[]) => message('assistant', content, { pawl: { model } });
const user = (value: string) => message('user', [text(value)]);
const shown = (model: string, given: Message) => viewOf(given, vendorOf(model));

const claude = 'anthropic.messages/claude-sonnet';
const gpt = 'openai.responses/gpt-5';
const signed = { anthropic: { signature: 'abc' } };

describe('an answer in a request', () => {
  const answer = made(
    claude,
    thought('Hm.', signed),
    { type: 'custom', kind: 'anthropic.compaction', providerOptions: signed },
    text('It is Ann.', { anthropic: { citations: [] } }),
  );

  test('keeps its reasoning, its own parts and all its options for the vendor that made it (edges 9)', () => {
    expect(shown('anthropic.messages/claude-opus', answer)).toStrictEqual({
      role: 'assistant',
      content: answer.content,
    });
  });

  test.for([gpt, 'google.generative-ai/gemini', 'mistral.chat/large', 'local.chat/llama', 'scripted/scripted'])(
    'for %s is its text alone: no thought, no part and no option of another vendor (edges 9)',
    (model) => {
      expect(shown(model, answer)).toStrictEqual({ role: 'assistant', content: [text('It is Ann.')] });
    },
  );

  test.for([
    ['gateway/anthropic/claude', 'gateway/openai/gpt-5'],
    ['google.vertex.chat/gemini', 'google.generative-ai/gemini'],
    ['googleVertex.anthropic.messages/claude', 'google.vertex.chat/gemini'],
    ['amazon-bedrock/us.anthropic.claude', 'amazon-bedrock/amazon.nova'],
    ['azure.responses/gpt-5', 'openai.responses/gpt-5'],
    ['local.chat/llama', 'other.chat/llama'],
  ] as const)('of %s has no thought for %s: they are two vendors (edges 9)', ([maker, asked]) => {
    const given = made(maker, thought('Hm.'), text('It is Ann.'));
    expect(shown(asked, given)?.content).toStrictEqual([text('It is Ann.')]);
    expect(shown(maker, given)?.content).toStrictEqual(given.content);
  });

  test('whose maker is not known has the vendor that its options name, and no thought without one (failover 11, edges 9)', () => {
    const named = message('assistant', [thought('Hm.', signed), text('Ann.', { openai: { itemId: 'x' } })]);
    expect(shown(claude, named)?.content).toStrictEqual([thought('Hm.', signed), text('Ann.')]);
    expect(shown(gpt, message('assistant', [thought('Hm.', signed), text('Ann.')]))?.content).toStrictEqual([
      text('Ann.'),
    ]);
    const unknown = message('assistant', [thought('Hm.'), text('Ann.')]);
    for (const model of [claude, gpt, 'local.chat/llama'])
      expect(shown(model, unknown)?.content).toStrictEqual([text('Ann.')]);
  });

  test.for([
    ['of reasoning alone', [thought('Hm.', signed)]],
    ['of white space', [text('\n\n')]],
    ['of nothing', []],
    ['of reasoning and white space', [thought('Hm.', signed), text(' ')]],
  ] as const)('%s is left out, for its maker too (edges 9)', ([, content]) => {
    expect(shown(claude, made(claude, ...content))).toBeUndefined();
    expect(shown(gpt, made(claude, ...content))).toBeUndefined();
    expect(shown(gpt, message('assistant', [...content]))).toBeUndefined();
  });

  test('has no blank text, not beside a call either, and does not end with reasoning (edges 9)', () => {
    const given = made(claude, text(''), call('toolu_1'), text('  '), thought('Hm.', signed));
    expect(shown(claude, given)?.content).toStrictEqual([call('toolu_1')]);
  });

  test('keeps an empty text that carries the signature of a thought (edges 9)', () => {
    const empty = text('', { google: { thoughtSignature: 's' } });
    const given = made('google.generative-ai/gemini', empty, call('1'));
    expect(shown('google.generative-ai/gemini', given)?.content).toStrictEqual([empty, call('1')]);
    expect(shown(claude, given)?.content).toStrictEqual([call('1')]);
  });

  test('shows what another vendor ran itself as a text with its name and result (edges 9)', () => {
    const given = made(
      claude,
      call('srvtoolu_1', 'web_search', { providerExecuted: true }),
      result('srvtoolu_1', { type: 'json', value: [{ title: 'Ann' }] }, 'web_search'),
      call('srvtoolu_2', 'code', { providerExecuted: true }),
      result('srvtoolu_3', { type: 'error-text', value: 'x'.repeat(20_000) }, 'code'),
    );
    const content = shown(gpt, given)?.content as { type: string; text: string }[];
    expect(content.map(({ type }) => type)).toEqual(['text', 'text', 'text']);
    expect(content[0]?.text).toBe('web_search: [{"title":"Ann"}]');
    expect(content[1]?.text).toBe('code was called with {"q":1}');
    expect(content[2]?.text.length).toBeLessThan(9_000);
    expect(shown(claude, given)?.content).toStrictEqual(given.content);
  });
});

describe('ids and names of calls in a request', () => {
  const ids = ['toolu_01Ab', 'call_abc|fc_1', 'functions.look:0', 'x'.repeat(65), '', 'é', 'a1B2c3D4e', 'abc def'];
  const rules = [
    ['mistral.chat/large', /^[A-Za-z0-9]{9}$/],
    [claude, /^[A-Za-z0-9_-]{1,64}$/],
    ['googleVertex.anthropic.messages/claude', /^[A-Za-z0-9_-]{1,64}$/],
    ['amazon-bedrock/amazon.nova', /^[A-Za-z0-9_-]{1,64}$/],
    ['openrouter/mistralai/large', /^[A-Za-z0-9]{9}$/],
    [gpt, /^.{1,64}$/],
    ['local.chat/llama', /^.{1,64}$/],
  ] as const;

  test.for(rules)(
    '%s gets ids by its rule, the same in a call and its result, each time (edges 9)',
    ([model, rule]) => {
      const vendor = vendorOf(model);
      for (const id of ids) {
        const sent = viewOf(made(gpt, call(id)), vendor)?.content as { toolCallId: string }[];
        const answered = viewOf(message('tool', [result(id)]), vendor)?.content as { toolCallId: string }[];
        expect(sent[0]?.toolCallId).toMatch(rule);
        expect(answered[0]?.toolCallId).toBe(sent[0]?.toolCallId);
        expect(vendorOf(model).callId(id)).toBe(sent[0]?.toolCallId);
        if (rule.test(id)) expect(sent[0]?.toolCallId).toBe(id);
      }
      expect(new Set(ids.map((id) => vendor.callId(id))).size).toBe(ids.length);
    },
  );

  test.for([
    ['multi_tool_use.parallel', 'multi_tool_use_parallel'],
    ['default_api:look', 'default_api_look'],
    ['look<|channel|>commentary', 'look__channel__commentary'],
    ['look ', 'look_'],
    ['', '_'],
    ['x'.repeat(200), 'x'.repeat(64)],
  ] as const)('the name %j, which a model made up, is sent as %j in call and result (edges 9)', ([name, sent]) => {
    for (const model of [claude, gpt, 'mistral.chat/large', 'local.chat/llama']) {
      expect(shown(model, made(model, call('call_0001', name)))?.content).toMatchObject([{ toolName: sent }]);
      expect(shown(model, message('tool', [result('call_0001', undefined, name)]))?.content).toMatchObject([
        { toolName: sent },
      ]);
    }
  });
});

describe('what a person or a tool said, in a request', () => {
  const png = { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'AA==' } };

  test('an image without a text goes alone, and a message of nothing says so (edges 9)', () => {
    expect(shown(claude, message('user', [text(''), png]))?.content).toStrictEqual([png]);
    expect(shown(claude, message('user', [text(' \n')]))?.content).toStrictEqual([text('(no text)')]);
    expect(shown(claude, message('user', []))?.content).toStrictEqual([text('(no text)')]);
  });

  test('options of other vendors and marks are left out, those that no vendor reads stay (edges 9)', () => {
    const options = { anthropic: { cacheControl: 1 }, openai: { x: 1 }, pawl: { by: { id: 'ada' } }, mine: { y: 1 } };
    const given = message('user', [text('Hi.', options)], options);
    const [forClaude, forGpt] = [
      { anthropic: options.anthropic, mine: options.mine },
      { openai: options.openai, mine: options.mine },
    ];
    expect(shown(claude, given)).toStrictEqual({
      role: 'user',
      content: [text('Hi.', forClaude)],
      providerOptions: forClaude,
    });
    expect(shown(gpt, given)).toStrictEqual({ role: 'user', content: [text('Hi.', forGpt)], providerOptions: forGpt });
    const plain = user('Hi.');
    expect(shown(claude, plain)).toBe(plain);
  });

  test('a result has no blank text and no option of another vendor, at any depth (edges 9)', () => {
    const value = [text(''), text('seen', { openai: { imageDetail: 'low' } })];
    const given = message('tool', [
      result('a', { type: 'content', value }),
      result('b', { type: 'content', value: [text(' ')] }),
    ]);
    expect(shown(claude, given)?.content).toStrictEqual([
      result('a', { type: 'content', value: [text('seen')] }),
      result('b', { type: 'text', value: '' }),
    ]);
  });
});

test.for([
  ['amazon-bedrock/amazon.nova', ['bedrock', 'amazonBedrock'], ['anthropic', 'openai', 'google']],
  ['amazon-bedrock/eu.anthropic.claude', ['bedrock', 'amazonBedrock', 'anthropic'], ['openai']],
  ['bedrock.anthropic.messages/claude', ['bedrock', 'amazonBedrock', 'anthropic'], ['openai']],
  ['google.vertex.chat/gemini', ['vertex', 'googleVertex', 'google'], ['anthropic']],
  ['googleVertex.anthropic.messages/claude', ['anthropic', 'vertex', 'googleVertex'], ['openai']],
  ['google.generative-ai/gemini', ['google'], ['vertex', 'googleVertex', 'anthropic']],
  ['azure.responses/gpt-5', ['azure', 'openai'], ['anthropic']],
  ['openai.chat/gpt-5', ['openai'], ['azure', 'mistral']],
  ['anthropic.messages/claude', ['anthropic'], ['bedrock', 'vertex', 'xai']],
  ['mistral.chat/large', ['mistral'], ['openai']],
  ['gateway/anthropic/claude', ['gateway', 'anthropic'], ['openai']],
  ['my-server.chat/llama', ['my-server', 'myServer', 'openaiCompatible', 'openai-compatible'], ['openai', 'anthropic']],
] as const)(
  'the options that %s reads are known by their names, which its package gives them (edges 9)',
  ([model, own, foreign]) => {
    const vendor = vendorOf(model);
    expect([...vendor.namespaces].sort()).toEqual([...own].sort());
    expect(own.filter((name) => isForeign(name, vendor))).toEqual([]);
    expect(foreign.filter((name) => !isForeign(name, vendor))).toEqual([]);
  },
);

describe('the view of a loop', () => {
  test('makes each message once, however often the transcript grows (failover 26, edges 9)', () => {
    const view = new RequestView(claude);
    let transcript = Transcript.of([user('Go.')]);
    const first = view.of(transcript).slice();
    for (let i = 0; i < 3; i++) {
      transcript = transcript.append(made(gpt, thought('Hm.'), call(`c${i}`)), message('tool', [result(`c${i}`)]));
      view.of(transcript);
    }
    const before = view.of(transcript).slice();
    const after = view.of(transcript.append(user('And?'))).slice();
    expect(first).toEqual([user('Go.')]);
    expect(after.slice(0, -1).every((each, i) => each === before[i])).toBe(true);
    expect(after).toHaveLength(8);
  });

  test('follows a list that was shortened, and one whose middle changed (edges 9)', () => {
    const view = new RequestView(claude);
    const messages = [user('a'), made(claude, text(' ')), user('b'), made(claude, text('c')), user('d')];
    const sent = (list: readonly Message[]) =>
      view.of(list).map(({ content }) => (content as { text: string }[])[0]?.text);
    expect(sent(messages)).toEqual(['a', 'b', 'c', 'd']);
    expect(sent(messages.slice(0, 3))).toEqual(['a', 'b']);
    expect(sent([messages[0] as Message, user('x'), ...messages.slice(2)])).toEqual(['a', 'x', 'b', 'c', 'd']);
    expect(sent(messages)).toEqual(['a', 'b', 'c', 'd']);
  });
});

describe('over the wire', () => {
  /** The body that a real provider package writes for this transcript. */
  async function bodyOf(make: (fetch: typeof globalThis.fetch) => Model, name: string, messages: readonly Message[]) {
    const bodies: string[] = [];
    const model = make(async (_, init) => {
      bodies.push(String(init?.body));
      return new Response('{}', { status: 400 });
    });
    const request = {
      tools: [],
      signal: new AbortController().signal,
      clock: systemClock,
      firstChunkMs: 9e5,
      chunkGapMs: 9e5,
    };
    await callModel(model, { system: '', ...request, messages: new RequestView(name).of(messages) }).catch(() => {});
    return bodies.join();
  }
  const anthropic = (fetch: typeof globalThis.fetch) => createAnthropic({ apiKey: 'k', fetch })('claude-sonnet-4-5');
  const local = (fetch: typeof globalThis.fetch) =>
    createOpenAICompatible({ name: 'local', baseURL: 'http://127.0.0.1/v1', apiKey: 'k', fetch })('some-model');
  const transcript = (maker: string, options: object) => [
    user('Go.'),
    made(
      maker,
      thought('a secret thought', options),
      text(' '),
      call('call_abc|fc_1', 'default_api:look', { providerOptions: options }),
    ),
    message('tool', [result('call_abc|fc_1', undefined, 'default_api:look')]),
    made(maker, thought('another thought', options)),
    user('And?'),
  ];
  const makers = [
    ['openai.responses/gpt-5', { openai: { itemId: 'rs_foreign', reasoningEncryptedContent: 'foreign' } }],
    ['google.generative-ai/gemini', { google: { thoughtSignature: 'foreign' } }],
    ['mistral.chat/large', { mistral: { x: 'foreign' } }],
    ['anthropic.messages/claude', { anthropic: { signature: 'foreign' } }],
    ['local.chat/llama', { openaiCompatible: { x: 'foreign' } }],
  ] as const;

  test.for(makers)(
    'Anthropic gets no thought, mark, id or name of %s that it would refuse (edges 9)',
    async ([maker, options]) => {
      const body = await bodyOf(anthropic, 'anthropic.messages/claude-sonnet-4-5', transcript(maker, options));
      const isOwn = maker.startsWith('anthropic');
      expect(body.includes('foreign')).toBe(isOwn);
      expect(body.includes('a secret thought')).toBe(isOwn);
      expect(body).not.toContain('another thought');
      expect(body).not.toMatch(/pawl|call_abc\||default_api:/);
      expect(body).toContain('"tool_use"');
    },
  );

  test.for(makers)('a compatible server gets no thought, mark or name of %s (edges 9)', async ([maker, options]) => {
    const body = await bodyOf(local, 'local.chat/some-model', transcript(maker, options));
    const isOwn = maker.startsWith('local');
    expect(body.includes('a secret thought')).toBe(isOwn);
    expect(body.includes('foreign')).toBe(isOwn);
    expect(body).not.toContain('another thought');
    expect(body).not.toMatch(/pawl|default_api:/);
    expect(body).toContain('"tool_calls"');
  });
});
