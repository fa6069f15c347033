import { memoryStore } from 'pawl';
import { callTool, reply, scriptedModel } from 'pawl/testing';
import { expect, test } from 'vitest';
import { hostOf, toolOf, until } from '../fixtures/host.ts';

const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };

/** A model that thinks, calls `look` under an id with a bar, and is then asked no more. */
function thinking(provider: string) {
  const parts = [
    { type: 'reasoning-start', id: 'r' },
    { type: 'reasoning-delta', id: 'r', delta: 'a secret thought' },
    { type: 'reasoning-end', id: 'r', providerMetadata: { openai: { itemId: 'rs_1' } } },
    {
      type: 'tool-call',
      toolCallId: 'call_1|fc_1',
      toolName: 'look',
      input: '{}',
      providerMetadata: { openai: { itemId: 'fc_1' } },
    },
    { type: 'finish', finishReason: { unified: 'tool-calls', raw: 'x' }, usage },
  ];
  let calls = 0;
  const doStream = async () => ({ stream: calls++ === 0 ? ReadableStream.from(parts) : new ReadableStream() });
  return { specificationVersion: 'v4', provider, modelId: 'm', supportedUrls: {}, doStream } as never;
}

const kinds = [
  ['a run', {}],
  ['a phase', { phases: [{ name: 'a', instructions: 'A.' }] }],
] as const;

test.for(kinds)(
  '%s that a deploy continues with another provider sends it nothing that it would refuse (failover 10, edges 9)',
  async ([, agent]) => {
    const store = memoryStore();
    const setting = { tools: [toolOf('look')], agent, store };
    const first = hostOf({ ...setting, models: { fast: thinking('openai.responses') } });
    await first.start({ runId: 'r' });
    await until(async () => (await store.load('r'))?.iteration === 1);
    await first.executor.shutdown({ drainMs: 0 });
    const model = { ...scriptedModel([reply('done')]), provider: 'anthropic.messages' };
    const second = hostOf({ ...setting, models: { fast: model } });
    const result = await second.run({ runId: 'r' });
    expect(result).toMatchObject({ status: 'ok', output: 'done' });
    const sent = JSON.stringify(model.calls[0]?.messages);
    expect(sent).not.toMatch(/secret thought|rs_1|fc_1|pawl/);
    const ids = [...sent.matchAll(/"toolCallId":"([^"]*)"/g)].map(([, id]) => id);
    expect(ids).toHaveLength(2);
    expect(new Set(ids).size).toBe(1);
    expect(ids[0]).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
    expect(JSON.stringify(result.messages)).toMatch(/secret thought.*call_1\|fc_1/);
  },
);

test('an earlier conversation of another provider reaches the next model as that model takes it (failover 10, edges 9)', async () => {
  const store = memoryStore();
  const first = hostOf({
    script: [callTool('look', {}, 'x'.repeat(80)), reply('Ann.')],
    tools: [toolOf('look')],
    store,
  });
  const { messages } = await first.run();
  const next = hostOf({ script: [reply('again')], tools: [toolOf('look')], store });
  await next.run({ history: messages });
  const sent = JSON.stringify(next.model.calls[0]?.messages);
  expect(sent).not.toContain('x'.repeat(65));
  expect(sent).toContain('Ann.');
});

/** A model that thinks before each answer, and shows what it was asked. */
function answering(provider: string) {
  const asked: string[] = [];
  const parts = [
    { type: 'reasoning-start', id: 'r' },
    { type: 'reasoning-delta', id: 'r', delta: `a thought of ${provider}` },
    { type: 'reasoning-end', id: 'r' },
    { type: 'text-start', id: 't' },
    { type: 'text-delta', id: 't', delta: `said by ${provider}` },
    { type: 'text-end', id: 't' },
    { type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage },
  ];
  const doStream = async ({ prompt }: { readonly prompt: unknown }) => {
    asked.push(JSON.stringify(prompt));
    return { stream: ReadableStream.from(parts) };
  };
  const model = { specificationVersion: 'v4', provider, modelId: 'm', supportedUrls: {}, doStream } as never;
  return { model, asked };
}

const [openai, anthropic] = ['openai.responses', 'anthropic.messages'];

test.for([
  [openai, true],
  [anthropic, false],
] as const)(
  'a history that a host gives back, as JSON, still says who thought: %s gets the thought: %s (failover 10, 11, 14)',
  async ([provider, isSent]) => {
    const { messages } = await hostOf({ models: { fast: answering(openai).model } }).run();
    const { model, asked } = answering(provider);
    const history = JSON.parse(JSON.stringify(messages));
    const result = await hostOf({ models: { fast: model } }).run({ history });
    expect(result.messages.map(({ providerOptions }) => providerOptions?.pawl?.model)).toEqual([
      undefined,
      `${openai}/m`,
      undefined,
      `${provider}/m`,
    ]);
    expect(asked[0]).toContain(`said by ${openai}`);
    expect(asked[0]).not.toContain('pawl');
    expect(asked[0]?.includes(`a thought of ${openai}`)).toBe(isSent);
  },
);

test('a conversation that another provider continues gets its words, and back again its own thoughts alone (failover 10, 14)', async () => {
  const store = memoryStore();
  const sent: string[] = [];
  for (const [at, provider] of [openai, anthropic, openai].entries()) {
    const { model, asked } = answering(provider);
    const host = hostOf({ models: { fast: model }, store });
    const thread = host.executor.thread('t', { agent: host.agent, callerId: 'ada' });
    await thread.send({ id: `m${at}`, text: `Message ${at}.` });
    await until(() => asked.length === 1);
    await until(async () => (await thread.messages()).length === 2 * (at + 1));
    sent.push(asked[0] ?? '');
    await host.executor.shutdown();
  }
  const [, second = '', third = ''] = sent;
  expect(second).toContain(`said by ${openai}`);
  expect(second).not.toMatch(/a thought of|pawl/);
  expect(third).toContain(`said by ${anthropic}`);
  expect(third).toContain(`a thought of ${openai}`);
  expect(third).not.toMatch(/a thought of anthropic|pawl/);
});
