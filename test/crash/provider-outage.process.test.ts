import { once } from 'node:events';
import { mkdtemp } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Clock, createExecutor, defineAgent, type RunOutcome } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { expect, test } from 'vitest';
import { toolOf, until } from '../fixtures/host.ts';
import { modelAt } from '../model/providers/provider-server.ts';
import { torture } from './random.ts';

const RUNS = torture > 1 ? 100 : 30;
/** The tool calls of a run, before its answer. */
const CALLS = 10;
const [OUTAGE_MS, SPEED] = torture > 1 ? [20_000, 1] : [3_000, 60];

/** The real time, so many times as fast: three seconds without a server are three minutes. */
function fastClock(speed: number): Clock {
  const begun = Date.now() - performance.now() * speed;
  return {
    now: () => begun + performance.now() * speed,
    monotonic: () => performance.now() * speed,
    setTimeout: (callback, ms) => setTimeout(callback, ms / speed),
    clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
  };
}

interface Asked {
  readonly messages: readonly { readonly role: string; readonly content: unknown }[];
}

const chunk = (delta: object, finish_reason: string | null = null) =>
  `data: ${JSON.stringify({ id: 'r', choices: [{ index: 0, delta, finish_reason }] })}\n\n`;

/** An OpenAI-compatible server that can be stopped, and started again at the same address. */
function provider() {
  /** What each request asked: the run, and its turn. */
  const asked: { readonly prompt: string; readonly turn: number }[] = [];
  let port = 0;
  const answer = async (body: string, response: ServerResponse) => {
    const { messages } = JSON.parse(body) as Asked;
    const turn = messages.filter(({ role }) => role === 'assistant').length;
    asked.push({ prompt: JSON.stringify(messages.find(({ role }) => role === 'user')?.content), turn });
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write(chunk({ role: 'assistant', content: '' }));
    // Slow enough that some replies are cut in their middle.
    await sleep(30);
    const call = {
      index: 0,
      id: `c${turn}`,
      type: 'function',
      function: { name: 'look', arguments: `{"turn":${turn}}` },
    };
    response.write(chunk(turn < CALLS ? { tool_calls: [call] } : { content: 'done' }));
    await sleep(30);
    response.end(`${chunk({}, turn < CALLS ? 'tool_calls' : 'stop')}data: [DONE]\n\n`);
  };
  const make = () =>
    createServer((request, response) => {
      let body = '';
      response.on('error', () => {});
      request.on('data', (data) => (body += data)).on('end', () => void answer(body, response));
    });
  let server = make();
  return {
    asked,
    get url() {
      return `http://127.0.0.1:${port}`;
    },
    async start() {
      server = make();
      await once(server.listen(port, '127.0.0.1'), 'listening');
      port = (server.address() as AddressInfo).port;
    },
    async stop() {
      server.closeAllConnections();
      await once(server.close(), 'close');
    },
  };
}

test('a provider that is stopped in the middle of the work ends no run: all end ok when it is back, and each call ran once (waiting 29, 37)', async () => {
  const server = provider();
  await server.start();
  const clock = fastClock(SPEED);
  const store = sqliteStore({ path: join(await mkdtemp(join(tmpdir(), 'pawl-outage-')), 'runs.db'), clock });
  const outcomes: RunOutcome[] = [];
  const ran: string[] = [];
  const waited: string[] = [];
  const tools = [toolOf('look', 'once', ({ turn }, { runId }) => ran.push(`${runId} ${turn}`))];
  const agent = defineAgent({ id: 'surveyor', instructions: 'Look.', tools, maxRuntimeMs: 86_400_000 });
  // A busy machine is not slow 60 times over.
  const ample = { portMs: 600_000, leaseMs: 600_000, finalizeMs: 600_000, firstChunkMs: 600_000, chunkGapMs: 600_000 };
  const executor = createExecutor({
    ...{ models: { fast: modelAt('compatible', server.url) }, agents: [agent], clock, store },
    onOutcome: (outcome) => void outcomes.push(outcome),
    observers: [{ onEvent: ({ type, runId }) => type === 'wait.opened' && waited.push(runId) }],
    defaults: ample,
  });
  const runIds = Array.from({ length: RUNS }, (_, n) => `r${n}`);
  await Promise.all(runIds.map((runId) => executor.start(agent, { runId, prompt: `Survey ${runId}.` })));
  await until(() => ran.length >= RUNS);
  await server.stop();
  await sleep(OUTAGE_MS);
  expect(outcomes.length).toBeLessThan(RUNS / 2);
  await server.start();
  for (let ms = 0; outcomes.length < RUNS && ms < 150_000; ms += 20) await sleep(20);

  expect(outcomes.map(({ status }) => status)).toEqual(Array(RUNS).fill('ok'));
  expect([ran.length, new Set(ran).size]).toEqual([RUNS * CALLS, RUNS * CALLS]);
  expect(new Set(waited).size).toBeGreaterThan(torture > 1 ? 0 : RUNS / 2);
  const turns = new Map<string, number>();
  for (const { prompt, turn } of server.asked) {
    // A turn may be asked again if its reply was cut; one that was acted on never is.
    expect(turn - (turns.get(prompt) ?? 0)).toBeGreaterThanOrEqual(0);
    expect(turn - (turns.get(prompt) ?? 0)).toBeLessThanOrEqual(1);
    turns.set(prompt, turn);
  }
  await executor.shutdown();
  await store.close();
  await server.stop();
}, 240_000);
