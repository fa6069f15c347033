import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { createExecutor, defineTool, memoryStore } from 'pawl';
import { acceptWithoutWal, sqliteStore } from 'pawl/stores/sqlite';
import { callTool, reply, scriptedModel } from 'pawl/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { inEngine, programOf, whyNo } from '../engines/engines.ts';
import { eventually } from '../fixtures/eventually.ts';
import { gate, toolOf } from '../fixtures/host.ts';
import { type RestateHost, type RestateHostOptions, restateHost } from './restate-host.ts';
import { WatchedServer } from './watched-server.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-restate-'));
const server = new WatchedServer(programOf('restate-server'), join(folder, 'restate'));
const hosts: RestateHost[] = [];

async function hostWith(options: RestateHostOptions = {}): Promise<RestateHost> {
  const host = await restateHost(server, { store: memoryStore(), ...options });
  hosts.push(host);
  return host;
}

const ended = (host: RestateHost, runId: string) =>
  eventually(async () => {
    const run = await host.executor.find(runId);
    if (run?.status !== 'ended') throw new Error(`the run is ${run?.status}`);
    return run;
  });

const nap = defineTool({
  name: 'nap',
  description: 'Sleeps.',
  input: { type: 'object' },
  effect: 'read',
  execute: async (input, context) => {
    await context.sleep((input as { ms: number }).ms);
    return 'awake';
  },
});

describe.skipIf(whyNo('restate-server'))(inEngine('restate-server', 'faults of Restate'), () => {
  beforeAll(() => server.start());
  afterAll(async () => {
    for (const host of hosts) await host.close();
    await server.kill();
    rmSync(folder, { recursive: true, force: true });
  });

  test('a waiting run continues on the deployment of its next slice, when the old one is gone (engine 31)', async () => {
    const store = memoryStore();
    const name = 'upgraded';
    const old = await hostWith({
      store,
      script: [callTool('nap', { ms: 1_200 })],
      agent: { tools: [nap] },
      restate: { name },
    });
    await old.call('r', 'start', { agentId: 'worker', prompt: 'Go.' });
    await eventually(async () => expect(await old.invocations()).toMatchObject([{ status: 'scheduled' }]));
    const next = await hostWith({ store, script: [reply('new')], agent: { tools: [nap] }, restate: { name } });
    await old.close();
    expect(await server.remove(old.deployment)).toBe(true);
    expect(await ended(next, 'r')).toMatchObject({ outcome: { status: 'ok', output: 'new' } });
    expect(old.model.calls).toHaveLength(1);
    expect(next.model.calls).toHaveLength(1);
  });

  test('a connection that breaks ends the slice in good order; the repetition continues it and no call is made twice (engine 38)', async () => {
    const open = gate();
    const script = [() => open.pass().then(() => callTool('look')), reply('done')];
    const host = await hostWith({ script, agent: { tools: [toolOf('look')] } });
    await host.call('r', 'start', { agentId: 'worker', prompt: 'Go.' });
    await open.reached;
    host.breakConnections();
    await eventually(async () => {
      const [slice] = await server.query(
        `select retry_count from sys_invocation where target = '${host.name}/r/drive'`,
      );
      expect(slice?.retry_count).toBeGreaterThan(1);
    });
    open.open();
    expect(await ended(host, 'r')).toMatchObject({ outcome: { output: 'done' } });
    expect(host.model.calls).toHaveLength(2);
  });

  test('while another process has the run, its slice is no error: the run ends there once (engine 38)', async () => {
    const store = memoryStore();
    const open = gate();
    const host = await hostWith({ store, script: [] });
    const other = createExecutor({
      store,
      defaults: { leaseMs: 1_500 },
      models: { fast: scriptedModel([() => open.pass().then(() => reply('there'))]) },
      agents: [host.agent],
    });
    const run = await other.start(host.agent, { runId: 'r', prompt: 'Go.' });
    await open.reached;
    const states: string[] = [];
    const { drive } = host.executor;
    host.executor.drive = async (...args) => {
      const driven = await drive(...args);
      states.push(driven.state);
      return driven;
    };
    await host.send('r', 'drive');
    await eventually(() => expect(states).toContain('owned-elsewhere'));
    open.open();
    expect((await run.result).output).toBe('there');
    await eventually(() => expect(states.at(-1)).toBe('ended'));
    expect(host.model.calls).toEqual([]);
    await other.shutdown();
  });

  test('Restate killed in the middle of slices: they continue when it is back, and no recorded call is repeated (engine 36)', async () => {
    const look = toolOf('look', 'once', () => sleep(20));
    const script = Array.from({ length: 12 }, (_, n) => callTool('look', { n }));
    const host = await hostWith({
      script: [...script, reply('done')],
      agent: { tools: [look] },
      restate: { budgetMs: 60 },
    });
    await host.call('r', 'start', { agentId: 'worker', prompt: 'Go.' });
    for (let kills = 0; kills < 2; kills++) {
      await sleep(150);
      await server.kill();
      await server.start();
    }
    expect(await ended(host, 'r')).toMatchObject({ outcome: { output: 'done' } });
    expect(host.model.calls).toHaveLength(13);
  });

  test('a Restate that lost its data, and a store that was restored from an older time: the sweep heals both (engine 30, 38)', async () => {
    const path = join(folder, 'runs.db');
    const options = {
      store: sqliteStore({ path }),
      agent: { tools: [nap] },
      restate: { name: 'wiped', dueMs: 200 },
    };
    const asleepFor = callTool('nap', { ms: 1_500 });
    const host = await hostWith({ ...options, script: [asleepFor, asleepFor, reply('done'), reply('done')] });
    const ids = ['a', 'b'];
    for (const runId of ids) await host.call(runId, 'start', { agentId: 'worker', prompt: 'Go.' });
    const asleep = [{ status: 'scheduled' }, { status: 'scheduled' }];
    await eventually(async () => expect(await host.invocations()).toMatchObject(asleep));
    new DatabaseSync(path).exec(`VACUUM INTO '${path}.old'`);
    // A copy by SQLite itself is whole, and keeps the mark of a store in use.
    acceptWithoutWal(`${path}.old`);
    await server.wipe();
    await server.register(host.url);
    await eventually(async () => expect(await host.invocations()).toEqual([]));
    const ending = new AbortController();
    const sweeping = host.runs.sweep({ signal: ending.signal });
    for (const runId of ids) await ended(host, runId);
    ending.abort();
    await sweeping;
    // A slice under way would wait for its deployment to come back.
    await eventually(async () => expect(await host.invocations()).toEqual([]));
    await host.close();
    // The store is back at the time at which both slept. Restate knows nothing of them.
    const restored = {
      ...options,
      store: sqliteStore({ path: `${path}.old` }),
      script: [reply('again'), reply('again')],
    };
    const later = await hostWith(restored);
    const again = new AbortController();
    const sweepingAgain = later.runs.sweep({ signal: again.signal });
    for (const runId of ids) expect(await ended(later, runId)).toMatchObject({ outcome: { output: 'again' } });
    again.abort();
    await sweepingAgain;
  });
});
