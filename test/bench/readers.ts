// What the streams of one caller cost another one: large events, of which a text has 8 MB.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { createExecutor, defineAgent, defineTool, memoryStore } from 'pawl';
import { httpHandler, toNodeListener } from 'pawl/http';
import { sqliteStore } from 'pawl/stores/sqlite';
import { callTool, reply, scriptedModel } from 'pawl/testing';
import { inFolder, median } from './measure.ts';
import type { Row } from './report.ts';

/** The runs that the streams are about, each with one large result. */
const RUNS = 10;
const LARGE_CHARS = 8_000_000;
const KEYS = 85_000;

const worker = fileURLToPath(new URL('readers-worker.ts', import.meta.url));

/** How long a small request takes while another caller opens 50 streams with an event of 8 MB in each. */
export function largeEventRows(isQuick: boolean): Promise<Row[]> {
  return inFolder(async (folder) => {
    const store = sqliteStore({ path: join(folder, 'pawl.db') });
    const large = defineTool({
      ...{ name: 'large', description: 'A large result.', effect: 'read', input: { type: 'object' } },
      execute: () => 'x'.repeat(LARGE_CHARS),
    } as const);
    const agent = defineAgent({ id: 'worker', instructions: 'Work.', tools: [large] });
    const script = Array.from({ length: RUNS }, () => [callTool('large', {}), reply('done')]).flat();
    const models = { fast: scriptedModel([...script, reply('done')]) };
    const executor = createExecutor({
      models,
      agents: [agent],
      store,
      journal: true,
      retention: { events: 3_600_000 },
    });
    for (let run = 0; run < RUNS; run++) {
      const { result } = await executor.start(agent, { runId: `large-${run}`, prompt: 'Go.', callerId: 'many' });
      await result;
    }
    const small = await executor.start(agent, { runId: 'small', prompt: 'Go.', callerId: 'other' });
    await small.result;
    const authorize = (request: Request) => ({ callerId: request.headers.get('authorization') ?? '' });
    const server = createServer(toNodeListener(httpHandler(executor, { agents: { worker: agent }, authorize })));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    try {
      return await latencyRows(String((server.address() as AddressInfo).port), isQuick ? 1 : 3);
    } finally {
      server.closeAllConnections();
      server.close();
      await executor.shutdown();
      await store.close();
    }
  });
}

async function latencyRows(port: string, rounds: number): Promise<Row[]> {
  const quiet: number[] = [];
  const slowest: number[] = [];
  const all: number[] = [];
  const turns: number[] = [];
  for (let round = 0; round < rounds; round++) {
    quiet.push(...(await asked(port, () => sleep(500))));
    const beside = await asked(port, async () => {
      const readers = fork(worker, ['read', port, String(RUNS)]);
      turns.push(await longestTurn(once(readers, 'message')));
      readers.kill();
    });
    slowest.push(Math.max(...beside));
    all.push(...beside);
  }
  const note = `the slowest of each round, median of ${rounds}; all ${all.length}: median ${median(all).toFixed(1)} ms, alone ${median(quiet).toFixed(1)} ms, at most ${Math.max(...quiet).toFixed(0)} ms`;
  return [
    {
      what: 'a small request beside 50 streams of another caller, 8 MB in each',
      value: median(slowest),
      unit: 'ms',
      budget: 100,
      note,
    },
    {
      what: 'the longest turn of the event loop of that server',
      value: median(turns),
      unit: 'ms',
      budget: 100,
      note: `CPU of its thread: other processes do not count; median of ${rounds}`,
    },
  ];
}

/** How long the event loop is held by a body that is refused for its number of keys. */
export async function manyKeysRow(): Promise<Row> {
  const agent = defineAgent({ id: 'worker', instructions: 'Work.' });
  const executor = createExecutor({ models: { fast: scriptedModel([]) }, store: memoryStore(), journal: true });
  const handler = httpHandler(executor, { agents: { worker: agent }, authorize: () => ({ callerId: 'many' }) });
  const inputs = Object.fromEntries(Array.from({ length: KEYS }, (_, i) => [`k${i.toString(36)}`, 0]));
  const body = JSON.stringify({ agent: 'worker', prompt: 'Go.', inputs });
  const turns: number[] = [];
  for (let round = 0; round < 7; round++) {
    const headers = { 'content-type': 'application/json' };
    const answer = handler(new Request('http://127.0.0.1/runs', { method: 'POST', headers, body }));
    turns.push(await longestTurn(answer));
    const { status } = await answer;
    if (status !== 400) throw new Error(`a body of ${KEYS} keys got ${status}`);
  }
  await executor.shutdown();
  return {
    what: `the event loop held by a body of ${KEYS} keys, which is refused`,
    value: median(turns),
    unit: 'ms',
    budget: 50,
    note: `${(body.length / 1e6).toFixed(1)} MB; CPU, median of 7, the slowest ${Math.max(...turns).toFixed(1)} ms`,
  };
}

/** The most CPU that this thread takes in one turn of the event loop until something happens, ms. */
async function longestTurn(until: Promise<unknown>): Promise<number> {
  const cpuMs = () => {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1_000;
  };
  let [longest, before, isOver] = [0, cpuMs(), false];
  const look = () => {
    const now = cpuMs();
    longest = Math.max(longest, now - before);
    before = now;
    if (!isOver) setImmediate(look);
  };
  look();
  await until;
  isOver = true;
  look();
  return longest;
}

/** The times of small requests that are made while something happens, ms. */
async function asked(port: string, meanwhile: () => Promise<unknown>): Promise<readonly number[]> {
  const asker: ChildProcess = fork(worker, ['ask', port]);
  await once(asker, 'spawn');
  // Its first requests are those of a process that has just begun.
  await sleep(500);
  await meanwhile();
  asker.send('over');
  const [tookMs] = (await once(asker, 'message')) as [number[]];
  asker.kill();
  return tookMs.slice(5);
}
