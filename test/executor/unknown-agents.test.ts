import { createExecutor, defineAgent, defineWorkflow, diagnose, type Executor, memoryStore } from 'pawl';
import { callTool, hang, reply, scriptedModel, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { setup } from 'xstate';
import { hostOf, settle, toolOf, until } from '../fixtures/host.ts';
import { afterCrash } from '../fixtures/watched-store.ts';

const tools = [toolOf('look')];
const code = 'AGENT_NOT_FOUND';

/** Runs of the agent `clerk` whose process has died, and a process that has another agent. */
async function orphans(count: number) {
  const clock = testClock(1_000);
  const store = memoryStore({ clock });
  for (let i = 0; i < count; i++) {
    const dead = hostOf({
      agent: { id: 'clerk' },
      script: [callTool('look'), hang()],
      tools,
      store,
      clock,
    });
    await dead.start({ runId: `r${i}` });
    await until(async () => (await store.load(`r${i}`))?.iteration === 1);
  }
  const after = await afterCrash(store);
  return { clock, store: after, host: hostOf({ store: after, clock }) };
}

type Begin = (executor: Executor) => unknown;

describe('due runs of an agent that no process has', () => {
  test.each<readonly [string, Begin]>([
    ['a worker', (executor) => executor.work()],
    ['the sweep of a host', (executor) => executor.recover()],
  ])('are a warning of %s, with the id of the agent and their number, once a minute (edges 4)', async (_, begin) => {
    const { clock, store, host } = await orphans(3);
    const warned = () => host.warned.map(({ fields }) => fields).filter((fields) => fields.code === code);
    await begin(host.executor);
    const minutes = async (count: number) => {
      for (let i = 0; i < count * 60; i++) await clock.advance(1_000);
      await settle();
    };
    // Another process may have the agent: it has a minute from the first look on.
    await minutes(1.5);
    expect(warned()).toEqual([]);
    await minutes(1);
    expect(warned()).toMatchObject([{ event: 'agent.unknown', level: 'error', agentId: 'clerk', runs: 3 }]);
    await minutes(1);
    expect(warned()).toHaveLength(2);
    expect(await store.listInterrupted()).toHaveLength(3);
    await host.executor.shutdown();
  });

  test('are no warning where another process takes them (edges 4)', async () => {
    const { clock, store, host } = await orphans(2);
    host.executor.work();
    await clock.advance(61_000);
    const able = hostOf({ agent: { id: 'clerk' }, script: [reply('a'), reply('b')], tools, store, clock });
    able.executor.work();
    await until(async () => (await store.listInterrupted()).length === 0);
    for (let i = 0; i < 120; i++) await clock.advance(1_000);
    expect(host.warnings).toEqual([]);
    await Promise.all([host.executor.shutdown(), able.executor.shutdown()]);
  });

  test('are in the report of recover(), and in a diagnosis, with the id of the agent (edges 4)', async () => {
    const { store, host } = await orphans(1);
    const { skipped } = await host.executor.recover();
    expect(skipped).toEqual([{ runId: 'r0', reason: expect.stringMatching(/^AGENT_NOT_FOUND: .*agent clerk/) }]);
    for await (const found of diagnose(store, { agents: [host.agent] }))
      expect(found).toMatchObject({ verdict: 'skipped', code, reason: expect.stringContaining('agent clerk') });
    await host.executor.shutdown();
  });

  test('do not disturb a store that cannot list them (edges 4)', async () => {
    const { clock, store } = await orphans(1);
    const warned: string[] = [];
    const executor = createExecutor({
      ...{ models: { fast: scriptedModel([]) }, clock, logger: { warn: (message) => void warned.push(message) } },
      store: { ...store, due: { ...store.due, list: () => Promise.reject(new Error('the store is away')) } },
    });
    executor.work();
    for (let i = 0; i < 130; i++) await clock.advance(1_000);
    expect(warned.filter((message) => message === 'executor: the due runs cannot be read')).toHaveLength(2);
    await executor.shutdown();
  });
});

test('runs that rest, and whose workflow or agent this process does not have, are one warning of the first recover() (workflow 19, edges 4)', async () => {
  const clock = testClock(1_000);
  const store = memoryStore({ clock });
  const flowOf = (id: string) => {
    const machine = setup({}).createMachine({ initial: 'a', states: { a: { after: { 86400000: 'b' } }, b: {} } });
    return defineWorkflow({ id, machine });
  };
  const warned: object[] = [];
  const boot = (...ids: string[]) => {
    const logger = { warn: (_: string, fields: object) => void warned.push(fields) };
    return createExecutor({ store, clock, logger, workflows: ids.map(flowOf), defaults: { waitLingerMs: 1 } });
  };
  const first = boot('refund', 'order');
  for (const id of ['refund', 'order']) await first.start(flowOf(id), { runId: id, input: undefined });
  await clock.advance(1_000);
  await settle();
  await first.shutdown();
  const second = boot('order');
  for (let time = 0; time < 2; time++) await second.recover();
  const absent = { event: 'agent.absent', level: 'warn', code, agentIds: ['refund'], runs: 1 };
  expect(warned).toEqual([expect.objectContaining(absent)]);
  await second.shutdown();
  const third = boot('order', 'refund');
  await third.recover();
  expect(warned).toHaveLength(1);
  await third.shutdown();
});

describe('an agent that its executor was not made with', () => {
  const clerk = defineAgent({ id: 'clerk', instructions: 'Work.', tools });
  test.each<readonly [string, Begin]>([
    ['start', (executor) => executor.start(clerk, { prompt: 'Other.', runId: 'other' })],
    ['run', (executor) => executor.run(clerk, { prompt: 'Other.' })],
    ['logic', (executor) => executor.logic(clerk)],
    ['a thread', (executor) => executor.thread('t', { agent: clerk })],
  ])('is known for recover after %s', async (_, see) => {
    const { clock, store } = await orphans(1);
    const model = scriptedModel(Array(3).fill(reply('done')));
    const logger = { warn: () => {} };
    const executor = createExecutor({ models: { fast: model }, store, clock, logger });
    expect((await executor.recover()).skipped).toMatchObject([
      { runId: 'r0', reason: expect.stringContaining('agent') },
    ]);
    await see(executor);
    expect((await executor.recover()).resumed).toContainEqual({ runId: 'r0' });
    await until(async () => (await store.listInterrupted()).length === 0);
    await executor.shutdown();
  });

  test('is forgotten after a thousand others', () => {
    const executor = createExecutor({});
    const agents = Array.from({ length: 1_001 }, (_, i) => defineAgent({ id: `a${i}`, instructions: 'Work.' }));
    for (const agent of agents) executor.logic(agent);
    expect([executor.agent('a0'), executor.agent('a1')]).toEqual([undefined, agents[1]]);
  });
});
