import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { memoryStore } from 'pawl';
import { callTool, reply } from 'pawl/testing';
import { describe, expect, onTestFinished, test } from 'vitest';
import { hostOf, toolOf } from '../fixtures/host.ts';

const failed = {
  content: [
    { type: 'text', text: 'upstream' },
    { type: 'image', data: 'AA==' },
    { type: 'text', text: 'said 500' },
  ],
  isError: true,
};
const output = (messages: readonly { role: string; content: unknown }[]) =>
  (
    messages.find(({ role }) => role === 'tool')?.content as { output: { type: string; value: string } }[] | undefined
  )?.[0]?.output;
const call = (times = 1) => [...Array.from({ length: times }, (_, n) => callTool('t', { n })), reply('done')];

/** A tool of the AI SDK as its MCP client makes them: the whole result, and its content for the model. */
const adapted = (result: unknown) => ({
  t: {
    tool: {
      description: 'x',
      inputSchema: { type: 'object' },
      execute: async () => result,
      toModelOutput: ({ output }: { output: typeof failed }) => ({ type: 'content', value: output.content }),
    },
    effect: 'read' as const,
  },
});

describe('the result of an MCP tool that failed', () => {
  const tools = [
    ['by a client in a tool of a host', () => ({ tools: [toolOf('t', 'read', async () => failed)] })],
    ['by the adapter of the AI SDK', () => ({ agent: { tools: adapted(failed) as never } })],
  ] as const;

  test.for(tools)('is an error with its texts, %s (edges 11)', async ([, options]) => {
    const { messages } = await hostOf({ script: call(), ...options() }).run();
    expect(output(messages)).toEqual({ type: 'error-text', value: 'upstream\nsaid 500' });
  });

  test.for(tools)(
    'counts as a failed call: a run that makes nothing else is a tool loop, %s (edges 11)',
    async ([, options]) => {
      const result = await hostOf({ script: call(6), ...options() }).run();
      expect(result).toMatchObject({ status: 'error', error: { code: 'TOOL_LOOP' }, iterations: 3 });
    },
  );

  test.for([
    { isError: true },
    { isError: true, content: 'no' },
    { isError: 'true', content: [] },
    { isError: false, content: [{ type: 'text', text: 'ok' }] },
    { isError: true, content: [7] },
  ])('is not what %j is: that is JSON (edges 11)', async (result) => {
    const { messages } = await hostOf({ script: call(), tools: [toolOf('t', 'read', async () => result)] }).run();
    expect(output(messages)).toEqual({ type: 'json', value: result });
  });

  test('without a text says that there is none (edges 11)', async () => {
    const tools = [toolOf('t', 'read', async () => ({ isError: true, content: [] }))];
    const { messages } = await hostOf({ script: call(), tools }).run();
    expect(output(messages)?.value).toContain('did not say why');
  });
});

const coded = (code: string, more: object = {}) => Object.assign(new Error(`it broke (${code})`), { code, ...more });
const mcp = (name: string, message: string) => Object.assign(new Error(message), { name });
const fetchFailed = (cause: unknown) => new TypeError('fetch failed', { cause });

describe('a connection that broke', () => {
  test.for([
    ['a reset', coded('ECONNRESET')],
    ['a pipe', coded('EPIPE')],
    ['a socket of fetch', fetchFailed(coded('UND_ERR_SOCKET'))],
    ['no headers in time', fetchFailed(coded('UND_ERR_HEADERS_TIMEOUT'))],
    ['a body that was cut', new TypeError('terminated', { cause: coded('UND_ERR_SOCKET') })],
    ['the MCP SDK', mcp('McpError', 'MCP error -32000: Connection closed')],
    ['the MCP client of the AI SDK', mcp('MCPClientError', 'Connection closed')],
    ['a wrapped one', new Error('the call failed', { cause: fetchFailed(coded('ECONNRESET')) })],
  ] as const)('after a once call was sent is an unknown outcome: %s (edges 11)', async ([, error]) => {
    const fail = async () => Promise.reject(error);
    const { messages } = await hostOf({ script: call(), tools: [toolOf('t', 'once', fail)] }).run();
    expect(output(messages)).toMatchObject({ type: 'error-text', value: expect.stringMatching(/^Outcome unknown: /) });
    for (const effect of ['read', 'idempotent'] as const) {
      const harmless = await hostOf({ script: call(), tools: [toolOf('t', effect, fail)] }).run();
      expect(output(harmless.messages)?.value).not.toMatch(/unknown/);
    }
  });

  test.for([
    ['a refused connection', fetchFailed(coded('ECONNREFUSED', { syscall: 'connect' }))],
    ['a connection that came too late', fetchFailed(coded('ETIMEDOUT', { syscall: 'connect' }))],
    ['an unknown host', fetchFailed(coded('ENOTFOUND'))],
    ['an answer of the server', mcp('McpError', 'MCP error -32000: out of stock')],
    ['a thrown text', 'terminated'],
    [
      'a cycle of causes',
      (() => {
        const error = new Error('round');
        error.cause = error;
        return error;
      })(),
    ],
  ] as const)('is not %s: nothing was sent, or an answer came (edges 11)', async ([, error]) => {
    const tools = [toolOf('t', 'once', async () => Promise.reject(error))];
    const { messages } = await hostOf({ script: call(), tools, store: memoryStore() }).run();
    expect(output(messages)?.value).not.toMatch(/unknown/);
  });

  test('is known from a real socket that the server destroys after it has the request (edges 11)', async () => {
    const server = createServer((request, response) => request.on('data', () => response.destroy()).resume());
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const pay = async () => (await fetch(url, { method: 'POST', body: '{"cents":1}' })).text();
    const { messages } = await hostOf({ script: call(), tools: [toolOf('t', 'once', pay)] }).run();
    expect(output(messages)?.value).toMatch(/^Outcome unknown: .*may or may not have taken effect/);
  });
});
