import { memoryStore } from 'pawl';
import { callTool, reply } from 'pawl/testing';
import { expect, test } from 'vitest';
import { hostOf, toolOf, until } from '../fixtures/host.ts';
import { notingCritic } from '../fixtures/noting-ports.ts';
import { afterCrash, plainStore, withoutMarks } from '../fixtures/watched-store.ts';

const tools = [toolOf('look')];

test('a critic may speak and raise the limit as soon as it is given the run (supervision 2)', async () => {
  const critic = notingCritic((run) => {
    run.nudge('Be brief.');
    run.raiseSteps(2);
    return {};
  });
  const script = [callTool('look', { n: 1 }), callTool('look', { n: 2 }), reply('end')];
  const host = hostOf({ script, tools, ports: { critic }, agent: { maxSteps: 1 } });
  expect(await host.run()).toMatchObject({ status: 'ok', output: 'end' });
  expect(JSON.stringify(host.model.calls[0]?.messages)).toContain('Be brief.');
});

test('a critic sees how far a run is that continues, as soon as it is given it (supervision 3)', async () => {
  const store = memoryStore();
  const first = hostOf({ script: [callTool('look'), () => new Promise(() => {})], tools, store });
  await first.start({ runId: 'r' });
  await until(async () => (await store.load('r'))?.iteration === 1);
  const seen: unknown[] = [];
  const critic = notingCritic((run) => {
    const { iteration, maxIterations, usage } = run.tallies();
    seen.push({ iteration, maxIterations, tokens: usage.inputTokens, tail: run.tail().length });
    return {};
  });
  await hostOf({ tools, store: await afterCrash(store), ports: { critic } }).run({ runId: 'r' });
  expect(seen).toEqual([{ iteration: 1, maxIterations: 20, tokens: 10, tail: 3 }]);
});

test('what the critic remembers is not lost when the process dies right after it took the run over on a store without claims (supervision 3)', async () => {
  const left = memoryStore();
  const remembering = () => notingCritic((run) => ({ state: () => ({ seen: Number(run.saved?.seen ?? 0) + 1 }) }));
  const plain = plainStore(left);
  const first = hostOf({
    script: [callTool('look'), () => new Promise(() => {})],
    tools,
    store: plain,
    ports: { critic: remembering() },
  });
  await first.start({ runId: 'r' });
  await until(async () => (await left.load('r'))?.iteration === 1);
  expect((await left.load('r'))?.critic).toEqual({ seen: 1 });
  const second = hostOf({
    script: [() => new Promise(() => {})],
    tools,
    store: plain,
    ports: { critic: remembering() },
  });
  await second.start({ runId: 'r' });
  await until(() => second.model.calls.length === 1);
  expect((await left.load('r'))?.critic).toEqual({ seen: 1 });
});

test('what the critic remembers stays in the record of a process that has no critic (supervision 3)', async () => {
  const store = memoryStore();
  const critic = notingCritic(() => ({ state: () => ({ granted: 2 }) }));
  const first = hostOf({
    script: [callTool('look'), () => new Promise(() => {})],
    tools,
    store,
    ports: { critic },
  });
  await first.start({ runId: 'r' });
  await until(async () => (await store.load('r'))?.iteration === 1);
  const left = await afterCrash(store);
  const second = hostOf({
    script: [callTool('look', { n: 2 }), () => new Promise(() => {})],
    tools,
    store: left,
  });
  await second.start({ runId: 'r' });
  await until(async () => (await left.load('r'))?.iteration === 2);
  expect((await left.load('r'))?.critic).toEqual({ granted: 2 });
});

test('a critic is not asked about a run that is over and only has its outcome to deliver: nothing of it can be changed any more (supervision 1)', async () => {
  const eager = () =>
    notingCritic((run) => {
      run.raiseSteps(3);
      return {};
    });
  const options = { script: [reply('end')], onOutcome: () => Promise.reject(new Error('not now')) };
  // A store without marks keeps the record of a run whose outcome was refused.
  const store = withoutMarks(memoryStore());
  await hostOf({ ...options, store, ports: { critic: eager() } }).run({ runId: 'r' });
  const left = await afterCrash(store);
  expect((await left.load('r'))?.outcome).toMatchObject({ status: 'ok' });
  const critic = eager();
  const second = hostOf({ ...options, script: [], store: withoutMarks(left), ports: { critic } });
  expect(await second.run({ runId: 'r' })).toMatchObject({ status: 'ok', output: 'end' });
  expect(critic.infos).toEqual([]);
  expect((await left.load('r'))?.raisedSteps).toBe(3);
});
