import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createExecutor, defineAgent, memoryStore } from 'pawl';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { toolOf } from '../../fixtures/host.ts';
import { type DialectName, dialectNames, dialects, MARK, streamed, THOUGHT } from './dialects.ts';

interface Plan {
  readonly name: DialectName;
  /** What its server does, request by request: a status, or an answer. */
  readonly deeds: ('calls' | 'answers' | number)[];
  readonly bodies: string[];
}

const plans: Plan[] = [];
const server = createServer(async (request, response) => {
  const plan = plans[Number(request.url?.split('/')[1])] as Plan;
  let body = '';
  for await (const chunk of request) body += chunk;
  plan.bodies.push(body);
  const deed = plan.deeds.shift() ?? 'answers';
  if (typeof deed === 'number') {
    const error = { type: 'overloaded_error', message: 'Overloaded', code: deed, status: 'UNAVAILABLE' };
    response.writeHead(deed, { 'content-type': 'application/json' }).end(JSON.stringify({ type: 'error', error }));
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' }).end(streamed(dialects[plan.name].events(deed)));
});
let address = '';
beforeAll(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  server.closeAllConnections();
  await once(server.close(), 'close');
});

function modelOf(name: DialectName, deeds: Plan['deeds']) {
  const plan: Plan = { name, deeds, bodies: [] };
  return { model: dialects[name].model(`${address}/${plans.push(plan) - 1}`), plan };
}

/** A run of two models: the first one thinks and calls a tool, and is away then. */
async function handedOver(from: DialectName, to: DialectName) {
  const [first, second] = [modelOf(from, ['calls', 529]), modelOf(to, [])];
  const agent = defineAgent({ id: 'worker', instructions: 'Work.', tools: [toolOf('look')] });
  const list = [
    { model: first.model, maxAttempts: 1, key: 'a' },
    { model: second.model, key: 'b' },
  ];
  const executor = createExecutor({ models: { fast: list }, store: memoryStore(), logger: { warn: () => {} } });
  const result = await executor.run(agent, { prompt: 'Go.' });
  return { result, sent: second.plan.bodies, asked: first.plan.bodies };
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

const pairs = dialectNames.flatMap((from) => dialectNames.map((to) => ({ from, to })));
const idsOf = ['tool_use_id', 'tool_call_id', 'call_id', 'toolCallId'];

describe('a conversation that goes from one provider package to another', () => {
  test.for(pairs)(
    '$from to $to: no thought and no mark of the first is sent, and the ids are such as the second takes (failover 9, edges 9)',
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
      const ids = valuesOf(body, idsOf);
      if (to !== 'google') expect(ids.length).toBeGreaterThan(0);
      for (const id of ids) expect(id).toMatch(dialects[to].takes);
      expect(new Set(ids).size).toBeLessThanOrEqual(1);
      // The record keeps what the first one said.
      expect(JSON.stringify(result.messages)).toContain(THOUGHT);
    },
  );

  test.for(dialectNames)('%s gets its own thoughts and ids back while it answers (edges 9)', async (name) => {
    const { model, plan } = modelOf(name, ['calls']);
    const agent = defineAgent({ id: 'worker', instructions: 'Work.', tools: [toolOf('look')] });
    const executor = createExecutor({ models: { fast: [model] }, store: memoryStore(), logger: { warn: () => {} } });
    expect(await executor.run(agent, { prompt: 'Go.' })).toMatchObject({ status: 'ok', output: 'done' });
    const body = plan.bodies[1] ?? '';
    const isMarked = ['anthropic', 'openai', 'google', 'gateway'].includes(name);
    expect(body.includes(MARK)).toBe(isMarked);
    expect(body).toContain(dialects[name].callId);
  });
});
