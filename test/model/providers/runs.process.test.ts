import { LLMock } from '@copilotkit/aimock';
import { createExecutor, defineAgent, defineTool, type Invocation, type Tool } from 'pawl';
import { testClock } from 'pawl/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { modelAt } from './provider-server.ts';

const providers = ['anthropic', 'compatible'] as const;

const server = new LLMock({ port: 0 });
/** The bodies of the requests, as the provider packages wrote them. */
const sent: string[] = [];
const recordingFetch: typeof fetch = (input, init) => {
  sent.push(String(init?.body));
  return fetch(input, init);
};
beforeAll(() => server.start());
beforeEach(() => {
  server.reset();
  sent.length = 0;
});
afterAll(() => server.stop());

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==';
const signature = 'RXFRQkNrWUlCeGdD+/c2lnbmF0dXJl==';

describe.each(providers)('a run over HTTP, with the provider package for %s', (provider) => {
  /** Runs an agent with one tool that notes what it is called with. Time passes only for retries. */
  async function run(invocation: Partial<Invocation> = {}) {
    const clock = testClock();
    const called: unknown[] = [];
    const lookup = defineTool({
      name: 'lookup',
      description: 'Looks a person up.',
      input: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'], additionalProperties: false },
      effect: 'read',
      execute: async (input) => {
        called.push(input);
        return { name: `person ${(input as { id: string }).id}` };
      },
    }) as unknown as Tool;
    const agent = defineAgent({ id: 'clerk', name: 'Clerk', instructions: 'Be brief.', tools: [lookup] });
    const models = { fast: modelAt(provider, server.url, { fetch: recordingFetch }) };
    const executor = createExecutor({ models, agents: [agent], clock });
    const handle = await executor.start(agent, { prompt: 'Who is 7?', ...invocation });
    const events: { readonly type: string }[] = [];
    const listening = (async () => {
      for await (const event of handle.events()) {
        events.push(event);
        if (event.type === 'model.retry') await clock.advance(event.delayMs);
      }
    })();
    const result = await handle.result;
    await listening;
    await executor.shutdown();
    return { result, called, events };
  }

  test('calls two tools at once and answers (executor 14)', async () => {
    server
      .on(
        { hasToolResult: false },
        { toolCalls: ['7', '8'].map((id) => ({ name: 'lookup', arguments: `{"id":"${id}"}` })) },
      )
      .on({ hasToolResult: true }, { content: 'Two people.' });
    const { result, called } = await run();
    expect(result).toMatchObject({ status: 'ok', output: 'Two people.', iterations: 2 });
    expect(called).toEqual([{ id: '7' }, { id: '8' }]);
    expect(sent.length).toBe(2);
    const [first, second] = [sent[1]?.indexOf('person 7') ?? -1, sent[1]?.indexOf('person 8') ?? -1];
    expect([first > 0, second > first]).toEqual([true, true]);
  });

  test.for(['{"id": "7', '{"id": tru', 'not json', '[1,', '{"id":"7"}}', '"7"'])(
    'the malformed arguments %j never reach the tool; the model gets an error (executor 7, 15)',
    async (args) => {
      server
        .on({ hasToolResult: false }, { toolCalls: [{ name: 'lookup', arguments: args }] })
        .on({ hasToolResult: true }, { content: 'Sorry.' });
      const { result, called, events } = await run();
      expect(called).toEqual([]);
      expect(result).toMatchObject({ status: 'ok', output: 'Sorry.' });
      const done = events.filter(({ type }) => type === 'tool.done');
      expect(done).toMatchObject([{ output: { type: expect.stringMatching(/^error/) } }]);
      expect(sent.length).toBe(2);
    },
  );

  test('sends the images of the prompt (api, messages)', async () => {
    server.on({}, { content: 'A dot.' });
    const { result } = await run({ images: [{ mediaType: 'image/png', data: png }] });
    expect(result).toMatchObject({ status: 'ok', output: 'A dot.' });
    expect(sent[0]).toContain(png);
    expect(JSON.stringify(result.messages[0])).toContain(png);
  });

  test('shows the reasoning as it comes, and keeps it (executor 17, 20)', async () => {
    server
      .on(
        { hasToolResult: false },
        {
          toolCalls: [{ name: 'lookup', arguments: '{"id":"7"}' }],
          reasoning: 'I must look.',
          reasoningSignature: signature,
        },
      )
      .on({ hasToolResult: true }, { content: 'It is Ann.' });
    const { result, events } = await run();
    const reasoning = events.filter((event) => 'kind' in event && event.kind === 'reasoning') as { text?: string }[];
    expect(reasoning.map(({ text }) => text).join('')).toBe('I must look.');
    expect(result.messages[1]?.content).toContainEqual(
      expect.objectContaining({ type: 'reasoning', text: 'I must look.' }),
    );
    // Sent back word for word, and with Anthropic its signature byte for byte.
    expect(sent[1]).toContain('I must look.');
    const block = JSON.stringify({ type: 'thinking', thinking: 'I must look.', signature });
    if (provider === 'anthropic') expect(sent[1]).toContain(block);
  });

  test('a refusal that passes is a retry, told as an event, and no other step (executor 8, 20)', async () => {
    server
      .on(
        { sequenceIndex: 0 },
        { error: { message: 'Slow down.', type: 'rate_limit_error' }, status: 429, retryAfter: 2 },
      )
      .on({ sequenceIndex: 1 }, { content: 'It is Ann.' });
    const { result, events } = await run();
    expect(result).toMatchObject({ status: 'ok', output: 'It is Ann.', iterations: 1 });
    const told = events.filter(({ type }) => ['step.started', 'model.retry', 'step.done'].includes(type));
    expect(told).toMatchObject([
      { type: 'step.started', step: 1 },
      {
        type: 'model.retry',
        step: 1,
        attempt: 2,
        error: { code: 'MODEL', message: expect.stringMatching(/Slow down/) },
      },
      { type: 'step.done', step: 1 },
    ]);
    const { delayMs } = told[1] as unknown as { delayMs: number };
    expect(delayMs).toBeGreaterThanOrEqual(2_000);
    expect(delayMs).toBeLessThanOrEqual(3_000);
    expect(sent[1]).toBe(sent[0]);
  });

  test('one that does not pass ends a run without a store after five attempts (waiting 28, executor 8)', async () => {
    server.on({}, { error: { message: 'Overloaded.', type: 'overloaded_error' }, status: 529 });
    const { result, events } = await run();
    expect(result).toMatchObject({
      status: 'error',
      error: { code: 'MODEL', message: expect.stringMatching(/Overloaded.*\(after 5 attempts\)/) },
    });
    expect(events.filter(({ type }) => type === 'model.retry').length).toBe(4);
    expect(sent.length).toBe(5);
  });
});
