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
  readonly checkpoints?: CheckpointStore;
  readonly reaching?: MortalProcess;
}

/** An executor, and the runs of the tree below `r` whose model was asked, by their prompts. */
function hostOf({ answer, defaults = {}, checkpoints, reaching }: Host) {
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
    ...(checkpoints ? { checkpoints } : {}),
  });
  return { executor, asked };
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
    for (const checkpoints of [undefined, memoryStore()]) {
      const host = { answer: calling(3), defaults: { maxTreeRuns: 20 }, ...(checkpoints ? { checkpoints } : {}) };
      const { executor, asked } = hostOf(host);
      const { status, output } = await executor.run(self, { prompt: 'r' });
      const why = 'a tree of runs may have 20 agents at work in all (maxTreeRuns): this one is not started';
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
      const one = hostOf({ answer: calling(4), defaults, checkpoints: first.store, reaching: first });
      await Promise.race([one.executor.run(self, { runId: 'r', prompt: 'r' }), first.died]);
      const next = mortalProcess(await first.left());
      const two = hostOf({ answer: calling(4), defaults, checkpoints: next.store });
      await two.executor.recover();
      const ended = two.executor.get('r')?.result ?? two.executor.run(self, { runId: 'r', prompt: 'r' });
      expect(await ended, `died after write ${diesAfter}`).toMatchObject({ status: 'ok' });
      // One child at a time begins here: the count of the one that was beginning may be lost.
      const runs = new Set([...one.asked, ...two.asked]).size;
      expect([9, 10], `died after write ${diesAfter}`).toContain(runs);
    }
  });

  test('is counted where a child rests, continues in another process, and its end reaches its parent there (edges 21)', async () => {
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
    const checkpoints = memoryStore();
    const boot = () =>
      createExecutor({
        models: { fast: answeringModel(answer) },
        agents: [root],
        checkpoints,
        ports: { palette: createPalette({ agents: [lead, worker] }) },
        defaults: { maxTreeRuns: 6, toolConcurrency: 1, waitLingerMs: 1, dueMs: 10, controlMs: 10 },
      });
    const first = boot();
    expect(await first.run(root, { runId: 'r', prompt: 'r' })).toMatchObject({ status: 'waiting' });
    await first.shutdown();
    const second = boot();
    await second.recover();
    const [open] = await second.waiting({ kind: 'approval' });
    await second.control('r').approve(open?.id ?? '');
    await until(async () => (await checkpoints.outcome('r')) !== null);
    // The first lead and its four workers, and the second lead; no worker is left for it.
    expect((await checkpoints.outcome('r'))?.output).toBe('a tree of runs ,a tree of runs ');
    await second.shutdown();
  });
});

describe('hundreds of children that begin', () => {
  test('leave their turns to timers, and to a cancel of another run (edges 21)', async () => {
    const answer = (request: ScriptedRequest) => (promptOf(request) === 'other' ? hang() : calling(6)(request));
    const { executor, asked } = hostOf({ answer });
    const other = await executor.start(self, { prompt: 'other' });
    const tree = await executor.start(self, { prompt: 'r' });
    const look = { before: 0, most: 0, isOver: false };
    const turn = () => {
      look.most = Math.max(look.most, asked.size - look.before);
      look.before = asked.size;
      if (!look.isOver) setImmediate(turn);
    };
    setImmediate(turn);
    setTimeout(() => other.cancel(), 20);
    expect(await other.result).toMatchObject({ status: 'cancelled' });
    // The tree is not over, and what of it began in one turn of the event loop was a small part.
    expect(asked.size).toBeLessThan(100);
    await until(() => asked.size > 150);
    expect(await tree.cancel()).toMatchObject({ status: 'cancelled' });
    look.isOver = true;
    expect(look.most).toBeLessThan(64);
  });
});
