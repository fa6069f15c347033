import {
  type CheckpointStore,
  createExecutor,
  createPalette,
  type Defaults,
  defineAgent,
  defineTool,
  memoryStore,
} from 'pawl';
import { callTool, callTools, hang, reply, type ScriptedRequest, type ScriptedStep } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { answeringModel, promptOf, resultsOf, turnsOf } from '../fixtures/answering-model.ts';
import { until } from '../fixtures/host.ts';
import { type MortalProcess, mortalProcess } from '../fixtures/mortal-process.ts';

const self = defineAgent({ id: 'self', instructions: 'Call yourself.', subAgents: ['self'] });
const palette = createPalette({ agents: [self] });

/** Each run calls itself so often in one step, and then says what came of it. */
const calling = (width: number) => (request: ScriptedRequest) => {
  const results = resultsOf(request);
  if (turnsOf(request) > 0) return reply(results.find((result) => result.includes('not started')) ?? 'done');
  const call = (_: unknown, i: number) => ({ name: 'agent__self', input: { prompt: `${promptOf(request)}.${i}` } });
  return callTools(Array.from({ length: width }, call));
};

interface Host {
  readonly answer: (request: ScriptedRequest) => ScriptedStep | Promise<ScriptedStep>;
  readonly defaults?: Partial<Defaults>;
  readonly store?: CheckpointStore;
  readonly reaching?: MortalProcess;
}

/** An executor, and the runs of the tree below `r` whose model was asked, by their prompts. */
function hostOf({ answer, defaults = {}, store, reaching }: Host) {
  const asked = new Set<string>();
  const noting = (request: ScriptedRequest) => {
    if (promptOf(request) !== 'r') asked.add(promptOf(request));
    return answer(request);
  };
  const model = answeringModel(noting, 10_000);
  const executor = createExecutor({
    models: { fast: reaching?.model(model) ?? model },
    agents: [self],
    ports: { palette },
    defaults,
    logger: { warn: () => {} },
    ...(store ? { store } : {}),
  });
  return { executor, asked };
}

const wait = defineTool({
  name: 'wait',
  description: 'Waits for a person.',
  input: { type: 'object', properties: {} },
  needsApproval: true,
  execute: async () => 'on',
});
const worker = defineAgent({ id: 'worker', instructions: 'worker' });
const lead = defineAgent({ id: 'lead', instructions: 'lead', subAgents: ['worker'], tools: [wait] });
const root = defineAgent({ id: 'root', instructions: 'root', subAgents: ['lead'] });

/** An executor whose runs rest soon: root, leads and workers. */
const restingHost = (answer: Host['answer'], { store, defaults }: Pick<Host, 'store' | 'defaults'>) =>
  createExecutor({
    models: { fast: answeringModel(answer) },
    agents: [root],
    ...(store ? { store } : {}),
    ports: { palette: createPalette({ agents: [lead, worker] }) },
    defaults: { ...defaults, waitLingerMs: 1, dueMs: 10, controlMs: 10 },
  });

/** How many workers so many leads begin, each once it was approved, in another process than the one in which they rested. */
async function workersOf(leads: number, defaults: Partial<Defaults>): Promise<number> {
  const calls = Array.from({ length: leads }, (_, i) => ({ name: 'agent__lead', input: { prompt: `${i}` } }));
  let workers = 0;
  const answer = (request: ScriptedRequest) => {
    if (request.system === 'worker') workers += 1;
    if (request.system === 'worker') return reply('worked');
    const ofLead = [callTool('wait', {}), callTool('agent__worker', { prompt: 'w' })];
    return (request.system === 'lead' ? ofLead : [callTools(calls)])[turnsOf(request)] ?? reply('done');
  };
  const store = memoryStore();
  const boot = () => restingHost(answer, { store, defaults: { toolConcurrency: leads, ...defaults } });
  const first = boot();
  expect(await first.run(root, { runId: 'r', prompt: 'r' })).toMatchObject({ status: 'waiting' });
  await first.shutdown();
  const second = boot();
  await second.recover();
  for (const { runId, id } of await second.waiting({ limit: leads })) await second.control(runId).approve(id);
  await until(async () => (await store.outcomes.find('r')) !== null);
  expect((await store.outcomes.find('r'))?.status).toBe('ok');
  await second.shutdown();
  return workers;
}

describe('a tree of runs', () => {
  test('is as deep as `maxDepth`: the call of a deeper agent fails, its model reads why, and the run continues (edges 21)', async () => {
    const { executor, asked } = hostOf({ answer: calling(1), defaults: { maxDepth: 2 } });
    const result = await executor.run(self, { prompt: 'r' });
    expect(result).toMatchObject({ status: 'ok' });
    expect([...asked]).toEqual(['r.0', 'r.0.0']);
    expect(result.output).toBe('agents may be nested 2 deep (maxDepth): this one is not started');
  });

  test('is no deeper than what a cancel looks through (edges 21)', () => {
    const deeper = () => hostOf({ answer: calling(1), defaults: { maxDepth: 33 } });
    expect(deeper).toThrow(new TypeError('createExecutor: defaults.maxDepth must be 32 or less'));
  });

  test('has `maxTreeRuns` runs below its root, counted over all levels: the call of a further one fails, and the run continues (edges 21)', async () => {
    for (const store of [undefined, memoryStore()]) {
      const host = { answer: calling(3), defaults: { maxTreeRuns: 20 }, ...(store ? { store } : {}) };
      const { executor, asked } = hostOf(host);
      const { status, output } = await executor.run(self, { prompt: 'r' });
      const why = 'a tree of runs has at most 20 runs below its root (maxTreeRuns): this one is not started';
      expect([status, output, asked.size]).toEqual(['ok', why, 20]);
      // Another tree has a count of its own.
      asked.clear();
      await executor.run(self, { prompt: 'r' });
      expect(asked.size).toBe(20);
    }
  });

  test('keeps its count over a kill: a child that continues is not counted twice (edges 21)', async () => {
    const defaults = { maxTreeRuns: 9, toolConcurrency: 1, maxDepth: 2 };
    for (let diesAfter = 4; diesAfter < 60; diesAfter += 9) {
      const first = mortalProcess(undefined, diesAfter);
      const one = hostOf({ answer: calling(4), defaults, store: first.store, reaching: first });
      await Promise.race([one.executor.run(self, { runId: 'r', prompt: 'r' }), first.died]);
      const next = mortalProcess(await first.left());
      const two = hostOf({ answer: calling(4), defaults, store: next.store });
      await two.executor.recover();
      const ended = two.executor.get('r')?.result ?? two.executor.run(self, { runId: 'r', prompt: 'r' });
      expect(await ended, `died after write ${diesAfter}`).toMatchObject({ status: 'ok' });
      // One child at a time begins here: the count of the one that was beginning may be lost.
      const runs = new Set([...one.asked, ...two.asked]).size;
      expect([9, 10], `died after write ${diesAfter}`).toContain(runs);
    }
  });

  test('is counted where a child rests, continues in another process, and its end reaches its parent there (edges 21)', async () => {
    const two = callTools(['1', '2'].map((prompt) => ({ name: 'agent__worker', input: { prompt } })));
    const answer = (request: ScriptedRequest) => {
      const turn = turnsOf(request);
      const results = resultsOf(request);
      if (request.system === 'worker') return reply('worked');
      if (request.system === 'lead')
        return results.some((result) => result.includes('maxTreeRuns'))
          ? reply(results.map((result) => result.slice(0, 15)).join())
          : ([two, callTool('wait', {}), two][turn] ?? reply('led'));
      return (
        [callTool('agent__lead', { prompt: 'a' }), callTool('agent__lead', { prompt: 'b' })][turn] ??
        reply(`${results}`)
      );
    };
    const store = memoryStore();
    const boot = () => restingHost(answer, { store, defaults: { maxTreeRuns: 6, toolConcurrency: 1 } });
    const first = boot();
    expect(await first.run(root, { runId: 'r', prompt: 'r' })).toMatchObject({ status: 'waiting' });
    await first.shutdown();
    const second = boot();
    await second.recover();
    const [open] = await second.waiting({ kind: 'approval' });
    await second.control('r').approve(open?.id ?? '');
    await until(async () => (await store.outcomes.find('r')) !== null);
    // The first lead and its four workers, and the second lead; no worker is left for it.
    expect((await store.outcomes.find('r'))?.output).toBe('a tree of runs ,a tree of runs ');
    await second.shutdown();
  });

  test('has one count in a process, also of children that rest beside a parent that rests (edges 21)', async () => {
    expect(await workersOf(40, { maxTreeRuns: 45 })).toBe(5);
  });

  test('is no deeper where a child that rested continues by itself in another process (edges 21)', async () => {
    expect(await workersOf(2, { maxDepth: 2 })).toBe(2);
    expect(await workersOf(2, { maxDepth: 1 })).toBe(0);
  });
});

describe('hundreds of children that begin', () => {
  test('all begin where more of their parents wait than begin at once (edges 21)', async () => {
    const { executor, asked } = hostOf({ answer: calling(12), defaults: { maxDepth: 2, toolConcurrency: 12 } });
    expect(await executor.run(self, { prompt: 'r' })).toMatchObject({ status: 'ok' });
    expect(asked.size).toBe(12 + 12 * 12);
  });

  test('leave their turns to timers, and to a cancel of another run (edges 21)', async () => {
    const answer = (request: ScriptedRequest) => (promptOf(request) === 'other' ? hang() : calling(6)(request));
    const { executor, asked } = hostOf({ answer });
    const other = await executor.start(self, { prompt: 'other' });
    const tree = await executor.start(self, { prompt: 'r' });
    let isOver = false;
    void tree.result.then(() => {
      isOver = true;
    });
    setTimeout(() => other.cancel(), 20);
    expect(await other.result).toMatchObject({ status: 'cancelled' });
    expect(isOver).toBe(false);
    await until(() => asked.size > 150);
    expect(await tree.cancel()).toMatchObject({ status: 'cancelled' });
  });
});
