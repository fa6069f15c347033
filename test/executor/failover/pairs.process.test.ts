import { createExecutor, defineAgent, memoryStore } from 'pawl';
import { describe, expect, test } from 'vitest';
import { toolOf } from '../../fixtures/host.ts';
import {
  type Answer,
  type Format,
  formats,
  refuses,
  replies,
  serveProvider,
} from '../../model/providers/provider-server.ts';
import { MARK } from '../../model/providers/wire-formats.ts';

const THOUGHT = 'a secret thought';
/** The id of the call that each provider makes, and which ids of calls it takes. */
const ids: { readonly [format in Format]: readonly [made: string, takes: RegExp] } = {
  anthropic: ['toolu_01', /^[a-zA-Z0-9_-]+$/],
  openai: ['call_01', /^.{1,64}$/],
  google: ['', /^.{1,64}$/],
  mistral: ['abcDEF123', /^[a-zA-Z0-9]{9}$/],
  compatible: ['functions.look:0', /^.{1,64}$/],
  gateway: ['toolu_gateway', /^[a-zA-Z0-9_-]+$/],
};
const calls = (format: Format): Answer =>
  replies({ thought: THOUGHT, call: { id: ids[format][0], name: 'look', input: { q: 1 } }, end: 'calls' });
const answers = replies({ text: 'done', end: 'stop' });
const isAway = refuses({ status: 529, message: 'Overloaded' });

/** A run of two models: the first one thinks and calls a tool, and is away then. */
async function handedOver(from: Format, to: Format) {
  await using first = await serveProvider(from, [calls(from), isAway]);
  await using second = await serveProvider(to, [answers]);
  const agent = defineAgent({ id: 'worker', instructions: 'Work.', tools: [toolOf('look')] });
  const list = [
    { model: first.model, maxAttempts: 1, key: 'a' },
    { model: second.model, key: 'b' },
  ];
  const executor = createExecutor({ models: { fast: list }, store: memoryStore(), logger: { warn: () => {} } });
  const result = await executor.run(agent, { prompt: 'Go.' });
  return { result, sent: second.bodies, asked: first.bodies };
}

/** The values of a key, anywhere in a body. */
function valuesOf(body: string, names: readonly string[]): string[] {
  const found: string[] = [];
  JSON.parse(body, (name, value) => {
    if (names.includes(name) && typeof value === 'string') found.push(value);
    return value;
  });
  return found;
}

const pairs = formats.flatMap((from) => formats.map((to) => ({ from, to })));
const idFields = ['tool_use_id', 'tool_call_id', 'call_id', 'toolCallId'];

describe('a conversation that goes from one provider package to another', () => {
  test.for(pairs)(
    '$from to $to: no thought and no mark of the first is sent, and the ids are such as the second takes (failover 9, 10, 11, 29, edges 9)',
    async ({ from, to }) => {
      const { result, sent, asked } = await handedOver(from, to);
      expect(result).toMatchObject({ status: 'ok', output: 'done', iterations: 2 });
      expect([asked.length, sent.length]).toEqual([2, 1]);
      const [body = ''] = sent;
      expect(body).toContain('look ok');
      expect(body).not.toContain(THOUGHT);
      expect(body).not.toContain(MARK);
      expect(body).not.toContain('"pawl"');
      // Google's requests have no ids.
      const sentIds = valuesOf(body, idFields);
      if (to !== 'google') expect(sentIds.length).toBeGreaterThan(0);
      for (const id of sentIds) expect(id).toMatch(ids[to][1]);
      expect(new Set(sentIds).size).toBeLessThanOrEqual(1);
      // The record keeps what the first one said.
      expect(JSON.stringify(result.messages)).toContain(THOUGHT);
    },
  );

  test.for(formats)('%s gets its own thoughts and ids back while it answers (edges 9)', async (name) => {
    await using provider = await serveProvider(name, [calls(name), answers]);
    const agent = defineAgent({ id: 'worker', instructions: 'Work.', tools: [toolOf('look')] });
    const executor = createExecutor({
      models: { fast: [provider.model] },
      store: memoryStore(),
      logger: { warn: () => {} },
    });
    expect(await executor.run(agent, { prompt: 'Go.' })).toMatchObject({ status: 'ok', output: 'done' });
    const body = provider.bodies[1] ?? '';
    const isMarked = ['anthropic', 'openai', 'google', 'gateway'].includes(name);
    expect(body.includes(MARK)).toBe(isMarked);
    expect(body).toContain(ids[name][0]);
  });
});
