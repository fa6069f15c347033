import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { defineTool } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { callTool, reply } from 'pawl/testing';
import { programOf, whyNo } from '../engines/engines.ts';
import { toolOf } from '../fixtures/host.ts';
import { type RestateHost, restateHost } from '../restate/restate-host.ts';
import { WatchedServer } from '../restate/watched-server.ts';
import { inFolder, median } from './measure.ts';
import type { Part, Row } from './report.ts';

const asking = defineTool({
  name: 'ask',
  description: 'Asks a person.',
  input: { type: 'object' },
  effect: 'read',
  execute: async (_, context) => String(await context.ask({ question: 'Which?' })),
});

/** What Restate costs a run, on a real server. */
export async function restateRows(isQuick: boolean): Promise<Part> {
  const missing = whyNo('restate-server');
  if (missing) {
    console.error(`restate: skipped: ${missing}`);
    return { rows: [], broken: [] };
  }
  const rows = await inFolder(async (folder) => {
    const server = new WatchedServer(programOf('restate-server'), join(folder, 'restate'));
    await server.start();
    try {
      const times = isQuick ? 20 : 60;
      return [
        await journalRow(server, join(folder, 'small.db'), 1_000),
        await journalRow(server, join(folder, 'large.db'), 1_000_000),
        ...(await latencyRows(server, join(folder, 'waits.db'), times)),
      ];
    } finally {
      await server.kill();
    }
  });
  return { rows, broken: [] };
}

async function journalRow(server: WatchedServer, path: string, length: number): Promise<Row> {
  const look = toolOf('look', 'read', () => '.'.repeat(length));
  const script = [1, 2].map((n) => callTool('look', { n }));
  const options = { agent: { tools: [look] }, restate: { budgetMs: 0 } };
  const host = await restateHost(server, {
    ...options,
    store: sqliteStore({ path }),
    script: [...script, reply('done')],
  });
  await server.keepJournals(host.name);
  await host.start({ runId: 'r', prompt: 'Go.' }, { drive: 'later' });
  await until(async () => (await host.executor.find('r'))?.status === 'ended');
  await until(async () => (await host.invocations()).every(({ status }) => status === 'completed'));
  const slices = await host.invocations();
  const journals = await Promise.all(slices.map(({ id }) => server.journalOf(id)));
  await host.close();
  const value = Math.max(...journals.map(({ bytes }) => bytes)) / 1_000;
  const note = `${slices.length} slices`;
  return {
    what: `journal of a slice in Restate, transcript of ${length} characters`,
    value,
    unit: 'KB',
    budget: 2,
    note,
  };
}

/** A slice that finds nothing to do, and the time from an answer to the slice that it begins. */
async function latencyRows(server: WatchedServer, path: string, times: number): Promise<Row[]> {
  const script = Array.from({ length: times + 1 }, () => [callTool('ask'), reply('thanks')]).flat();
  const options = { store: sqliteStore({ path }), agent: { tools: [asking] } };
  const host = await restateHost(server, { ...options, script });
  const idle: number[] = [];
  const wakes: number[] = [];
  for (let i = 0; i <= times; i++) {
    const runId = `r${i}`;
    await host.start({ runId, prompt: 'Go.' }, { drive: 'later' });
    const wait = await waitOf(host, runId);
    await until(async () => (await host.invocations()).length === 0);
    const before = performance.now();
    await host.call(runId, 'drive');
    idle.push(performance.now() - before);
    wakes.push(await wakeMs(host, runId, wait));
  }
  await host.close();
  const note = `p50 of ${times}, on SQLite, over loopback`;
  return [
    { what: 'slice by Restate that has nothing to do', value: median(idle.slice(1)), unit: 'ms', budget: 10, note },
    { what: 'from an answer to the slice by Restate', value: median(wakes.slice(1)), unit: 'ms', budget: 50, note },
  ];
}

/** The time from an answer to the slice that it begins. Waits for the end of the run. */
async function wakeMs(host: RestateHost, runId: string, waitId: string): Promise<number> {
  const { drive } = host.executor;
  const begun = Promise.withResolvers<number>();
  host.executor.drive = (...args) => {
    begun.resolve(performance.now());
    return drive(...args);
  };
  const before = performance.now();
  await host.executor.control(runId).answer(waitId, 'red');
  const ms = (await begun.promise) - before;
  host.executor.drive = drive;
  await until(async () => (await host.executor.find(runId))?.status === 'ended');
  return ms;
}

async function waitOf(host: RestateHost, runId: string): Promise<string> {
  let id: string | undefined;
  await until(async () => {
    id = (await host.executor.waiting()).find((wait) => wait.runId === runId)?.id;
    return id !== undefined;
  });
  return id ?? '';
}

async function until(isDone: () => Promise<boolean>): Promise<void> {
  while (!(await isDone())) await sleep(5);
}
