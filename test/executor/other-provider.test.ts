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
  '%s that a deploy continues with another provider sends it nothing that it would refuse (edges 9)',
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

test('an earlier conversation of another provider reaches the next model as that model takes it (edges 9)', async () => {
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
