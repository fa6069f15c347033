import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { defineTool, type Tool } from 'pawl';
import { createClient, type JournalEvent } from 'pawl/client';
import { toNodeListener } from 'pawl/http';
import { callTool, reply } from 'pawl/testing';
import { afterEach, expect, test } from 'vitest';
import { unknownRun, withEvent } from '../../src/react/run-state.ts';
import { type Clock, systemClock } from '../../src/values/clock.ts';
import { randomFrom } from '../crash/random.ts';
import { CuttingProxy } from '../fixtures/cutting-proxy.ts';
import { chatHost } from '../http/chat/chat-host.ts';
import { PlainChat } from './plain-chat.ts';

const lookTool = defineTool({
  name: 'look',
  description: 'Looks.',
  effect: 'read',
  input: { type: 'object' },
  execute: () => 'two',
}) as unknown as Tool;
const answer = 'There are two of them, an \u00f6 and a \u{1F980}.';

const left: (() => void)[] = [];
afterEach(() => {
  for (const leave of left.splice(0)) leave();
});

/** A handler on real sockets behind a proxy that cuts connections in both directions, at any byte. */
async function shakyServer(seed: number) {
  const host = chatHost({ tools: [lookTool], script: [callTool('look', { at: 'x' }, 'k'), reply(answer)] });
  const server = createServer(toNodeListener(host.handler));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const proxy = new CuttingProxy(server.address() as AddressInfo, randomFrom(seed));
  await proxy.listen();
  left.push(() => {
    proxy.close();
    server.closeAllConnections();
    server.close();
  });
  // What is cut may be cut again at the next try, but not without end.
  const clock: Clock = { ...systemClock, setTimeout: (callback, ms) => setTimeout(callback, ms >= 2_000 ? ms : 10) };
  const options = { headers: { authorization: 'Bearer ada' }, clock, silenceMs: 2_000 };
  return { host, proxy, client: createClient({ url: `http://127.0.0.1:${proxy.port}`, ...options }) };
}

test('a run is followed over sockets that are cut at any byte: nothing is lost, nothing comes twice (web 33)', async () => {
  let cuts = 0;
  for (let seed = 1; seed <= 30; seed += 1) {
    const { host, proxy, client } = await shakyServer(seed);
    const { runId } = await client.start({ agent: 'worker', prompt: 'How many?' });
    // A start has four tries; a stream has as many as it needs.
    proxy.chance = 0.2;
    const events: JournalEvent[] = [];
    for await (const event of client.run(runId).events()) events.push(event);
    const state = events.reduce(withEvent, unknownRun);
    expect(state.steps.at(-1)?.parts, `seed ${seed}`).toEqual([{ type: 'text', block: 0, text: answer }]);
    expect(state.result).toMatchObject({ status: 'ok', output: answer });
    expect(new Set(events.map(({ cursor }) => cursor)).size).toBe(events.length);
    expect(host.model.calls).toHaveLength(2);
    cuts += proxy.cuts['from the server'] + proxy.cuts['to the server'];
  }
  expect(cuts).toBeGreaterThan(5);
});

test('useChat shows one answer over sockets that are cut at any byte, with two model calls (web 33)', async () => {
  for (let seed = 1; seed <= 30; seed += 1) {
    const { host, proxy, client } = await shakyServer(seed);
    proxy.chance = 0.2;
    const page = new PlainChat(client.chatTransport());
    await page.sendMessage({ text: 'How many?' });
    expect(page.error, `seed ${seed}`).toBeUndefined();
    const parts = page.messages[1]?.parts.filter(({ type }) => !type.startsWith('data-'));
    expect(parts, `seed ${seed}`).toMatchObject([
      { type: 'step-start' },
      { type: 'tool-look', state: 'output-available', output: 'two' },
      { type: 'step-start' },
      { type: 'text', text: answer },
    ]);
    expect(page.messages).toHaveLength(2);
    expect(host.model.calls).toHaveLength(2);
  }
});
