import fc from 'fast-check';
import { defineAgent, type RunEvent } from 'pawl';
import { callTool, hang, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { createActor } from 'xstate';
import { seed, torture } from '../crash/random.ts';
import { resultsOf, turnsOf } from '../fixtures/answering-model.ts';
import { childId } from '../fixtures/child-id.ts';
import { gate, settle } from '../fixtures/host.ts';
import { ids, type TreeOptions, type TreeWorld, treeWorld, twoLeaves } from '../fixtures/waiting-tree.ts';

const { root, mid, leaf } = ids;
const ada = { by: { id: 'ada' } };
const ended = (world: TreeWorld) => world.until(() => world.isEmpty(), 'the end of all runs');
const outcomeOf = (world: TreeWorld, runId: string) => world.outcomes.findLast((outcome) => outcome.runId === runId);

/** The tree rests, and no process has it. */
async function atRest(world: TreeWorld, resting = 3) {
  const process = world.process();
  const run = await process.start();
  await world.until(async () => (await world.resting()).length === resting, 'the rest of the tree');
  return { ...process, run };
}

async function approve(world: TreeWorld, of: string, at = of) {
  const wait = await world.waitOf(of);
  return world
    .process()
    .executor.control(at)
    .approve(wait?.id ?? '', ada);
}

describe('the end of a child', () => {
  test('that comes before its parent has recorded its wait is recorded once, and nothing waits without end (waiting 23)', async () => {
    const world = treeWorld();
    const left = gate();
    const first = world.process(
      undefined,
      {},
      {
        after: ({ method, args }) => {
          const [claim] = args as [{ runId: string }];
          return method === 'due.leave' && claim.runId === leaf ? left.pass() : undefined;
        },
      },
    );
    void first.start();
    await world.until(async () => (await world.resting()).includes(leaf), 'the rest of the leaf');
    // The call of its parent still runs: the store has not answered.
    expect(await world.process().executor.control(leaf).cancel('not now')).toBe('ended');
    expect((await world.store.commands.inbox({ runId: mid })).map(({ command }) => command)).toMatchObject([
      { kind: 'child-ended', childRunId: leaf, callId: 'to-leaf', output: { type: 'error-text' } },
    ]);
    await world.clock.advance(5_000);
    left.open();
    await ended(world);
    expect(outcomeOf(world, mid)?.output).toContain('leaf ended with status cancelled: CANCELLED: not now');
    expect(outcomeOf(world, root)).toMatchObject({ status: 'ok' });
    expect(world.turns.filter((turn) => turn.startsWith('leaf'))).toEqual(['leaf 0']);
    await world.shutdown();
  });

  test('that comes a second time, or of a child that no call waits for, changes nothing (waiting 23)', async () => {
    const world = treeWorld();
    await atRest(world);
    const output = { type: 'text', value: 'forged' } as const;
    await world.store.commands.send(root, {
      id: 'x',
      kind: 'child-ended',
      childRunId: '~other',
      callId: 'other',
      output,
    });
    await approve(world, leaf);
    await world.until(async () => (await world.store.load(leaf)) === null, 'the end of the leaf');
    await world.store.commands
      .send(mid, { id: 'y', kind: 'child-ended', childRunId: leaf, callId: 'to-leaf', output })
      .catch(() => {});
    await ended(world);
    expect(outcomeOf(world, root)?.output).toBe('root(mid(leaf(paid 700)))');
    await world.shutdown();
  });

  test('is the result of the call for a parent that may not rest, in its events as well: no second start (waiting 23, 26)', async () => {
    const world = treeWorld();
    const { executor, agent } = world.process();
    const actor = createActor(executor.logic(agent), { input: { runId: root, prompt: 'Go.' } }).start();
    const events: RunEvent[] = [];
    await world.until(() => executor.get(root));
    const run = executor.get(root);
    void (async () => {
      for await (const event of run?.actor ? run.events() : []) events.push(event);
    })();
    await world.until(async () => (await world.resting()).length === 2, 'the rest of the runs below');
    expect(await world.resting()).toEqual([mid, leaf]);
    await approve(world, leaf, root);
    await ended(world);
    expect(actor.getSnapshot()).toMatchObject({ status: 'done', output: { output: 'root(mid(leaf(paid 700)))' } });
    const told = events.filter(
      ({ type }) => type.startsWith('wait.') || type.startsWith('tool.') || type === 'step.done',
    );
    expect(told.map(({ type }) => type)).toEqual([
      'tool.started',
      'wait.opened',
      'tool.done',
      'step.done',
      'wait.answered',
      'step.done',
    ]);
    expect(told[2]).toMatchObject({ callId: 'to-mid', name: 'agent__mid', output: { value: 'mid(leaf(paid 700))' } });
    expect(told[4]).toMatchObject({ kind: 'child', how: 'ended', callId: 'to-mid' });
    await world.shutdown();
  });
});

describe('control of the root', () => {
  test('answers for runs below it that are live and cannot rest (waiting 24)', async () => {
    const world = treeWorld();
    const process = world.process(undefined, { store: undefined } as never);
    const run = await process.start();
    await world.until(() => process.executor.runs.get().filter(({ state }) => state.endsWith('waiting')).length > 0);
    const live = process.executor.get(leaf);
    const waits = live?.actor?.getSnapshot().context.progress.waiting?.waits;
    const control = process.executor.control(root);
    await expect(control.approve('no-such-wait', ada)).rejects.toMatchObject({ code: 'WAIT_GONE' });
    expect(await control.approve(waits?.[0]?.id ?? '', ada)).toBe('recorded');
    await world.clock.advance(1_000);
    expect(await run.result).toMatchObject({ status: 'ok', output: 'root(mid(leaf(paid 700)))' });
    await world.shutdown();
  });

  test('refuses an answer to a wait of another tree (waiting 24)', async () => {
    const world = treeWorld();
    await atRest(world);
    const other = world.process();
    const agent = defineAgent({ id: 'root', instructions: 'root', subAgents: ['mid'] });
    void other.executor.start(agent, { runId: 'other', prompt: 'Go.' });
    const otherLeaf = childId('other', 'to-mid', 'to-leaf');
    await world.until(() => world.waitOf(otherLeaf), 'the other tree');
    const wait = await world.waitOf(otherLeaf);
    const answer = world
      .process()
      .executor.control(root)
      .approve(wait?.id ?? '', ada);
    await expect(answer).rejects.toMatchObject({ code: 'WAIT_GONE' });
    expect((await world.store.load(otherLeaf))?.waiting?.waits).toHaveLength(1);
    await world.shutdown();
  });
});

describe('a tree that rests', () => {
  const pair: TreeOptions = {
    answer: (request) => (request.system === 'mid' && turnsOf(request) === 0 ? twoLeaves : undefined),
  };
  const [one, two] = [childId(root, 'to-mid', 'one'), childId(root, 'to-mid', 'two')];

  test('continues its parent when the last of two children has ended, in either order (waiting 23)', async () => {
    for (const [first, last] of [
      [one, two],
      [two, one],
    ] as const) {
      const world = treeWorld(pair);
      await atRest(world, 4);
      await approve(world, first, root);
      await world.until(async () => (await world.store.load(first)) === null, 'the end of the first');
      await world.clock.advance(10_000);
      expect(world.turns.filter((turn) => turn.startsWith('mid'))).toEqual(['mid 0']);
      expect((await world.store.load(mid))?.waiting?.waits).toMatchObject([{ kind: 'child', childRunId: last }]);
      await approve(world, last, root);
      await ended(world);
      expect(outcomeOf(world, root)?.output).toBe('root(mid(leaf(paid 700) + leaf(paid 700)))');
      expect(world.paid.size).toBe(2);
      await world.shutdown();
    }
  });

  test('is cancelled from below when its root is gone: no model is asked (waiting 24)', async () => {
    const world = treeWorld();
    await atRest(world);
    await world.store.delete(root);
    await approve(world, leaf);
    await ended(world);
    expect(world.outcomes.map(({ runId, status }) => [runId, status])).toEqual([
      [leaf, 'cancelled'],
      [mid, 'cancelled'],
    ]);
    expect(world.turns).toEqual(['root 0', 'mid 0', 'leaf 0']);
    expect(world.paid.size).toBe(0);
    await world.shutdown();
  });

  test('is in the report of recover with the run that works alone, and no other (waiting 24)', async () => {
    const world = treeWorld();
    const { die } = await atRest(world);
    die();
    await approve(world, leaf);
    const second = world.process();
    expect((await second.executor.recover()).resumed).toEqual([{ runId: leaf }]);
    await ended(world);
    expect(outcomeOf(world, root)).toMatchObject({ status: 'ok' });
    await world.shutdown();
  });

  test('is cancelled whole when its root ends while it lingers, and reports each wait as withdrawn (waiting 24)', async () => {
    const world = treeWorld();
    const process = world.process();
    const run = await process.start();
    const events: RunEvent[] = [];
    const read = (async () => {
      for await (const event of run.events()) events.push(event);
    })();
    await world.until(async () => (await world.resting()).includes(mid), 'the rest of the children');
    expect((await run.cancel('enough')).status).toBe('cancelled');
    await read;
    const types = events.map(({ type }) => type);
    expect(types.indexOf('wait.withdrawn')).toBeGreaterThan(types.indexOf('wait.opened'));
    expect(types.indexOf('run.ended')).toBeGreaterThan(types.indexOf('wait.withdrawn'));
    await ended(world);
    expect(new Set(world.outcomes.map(({ status }) => status))).toEqual(new Set(['cancelled']));
    expect(world.outcomes).toHaveLength(3);
    await world.shutdown();
  });

  test('is cancelled whole by a start of its root whose signal is aborted already (waiting 24)', async () => {
    const world = treeWorld();
    const { die } = await atRest(world);
    die();
    const run = await world.process().start({ signal: AbortSignal.abort() });
    await world.clock.advance(100);
    expect((await run.result).status).toBe('cancelled');
    await ended(world);
    expect(world.outcomes.map(({ status }) => status)).toEqual(['cancelled', 'cancelled', 'cancelled']);
    await world.shutdown();
  });

  test('whose damaged records wait for each other can be cancelled (waiting 24)', async () => {
    const world = treeWorld();
    await atRest(world);
    const record = await world.store.load(leaf);
    const facts = { id: 'w', createdAt: 1, step: 1, kind: 'child', childRunId: root } as const;
    if (record) await world.store.save({ ...record, revision: 99, waiting: { waits: [facts], settled: [] } });
    expect(await world.process().executor.control(root).cancel('enough')).toBe('ended');
    await ended(world);
    expect(world.outcomes).toHaveLength(3);
    await world.shutdown();
  });

  test('is cancelled with its root also where a call of it has joined a child that continued by itself (waiting 24)', async () => {
    const world = treeWorld({
      answer: ({ system, messages }) => (system === 'leaf' && messages.length > 1 ? hang() : undefined),
    });
    const { die } = await atRest(world);
    die();
    await approve(world, leaf);
    const second = world.process();
    await second.executor.recover();
    await world.until(() => world.turns.includes('leaf 1'), 'the work of the leaf');
    // An older record of its parent is put back: the call begins again.
    const record = await world.store.load(mid);
    if (!record?.openStep) throw new Error('no open step');
    const calls = record.openStep.calls.map((call) => ({ ...call, state: 'started' as const }));
    await world.store.save({
      ...record,
      revision: 99,
      openStep: { ...record.openStep, calls },
      waiting: { waits: [], settled: [] },
    });
    await world.until(() => second.executor.get(mid)?.actor, 'the start of its parent');
    await world.clock.advance(5_000);
    expect(
      second.executor.runs
        .get()
        .map(({ agentId }) => agentId)
        .toSorted(),
    ).toEqual(['leaf', 'mid']);
    expect(world.turns.filter((turn) => turn === 'leaf 0')).toHaveLength(1);
    await second.executor.control(mid).cancel('enough');
    await world.until(async () => (await world.store.load(leaf)) === null, 'the end of the leaf');
    expect(outcomeOf(world, leaf)).toMatchObject({ status: 'cancelled' });
    await ended(world);
    await world.shutdown();
  });

  test('grows no deeper than eight agents, also where each continued by itself (waiting 24)', async () => {
    const world = treeWorld({
      answer: (request) => {
        if (request.system === 'root' && turnsOf(request) === 0) return callTool('agent__self', { prompt: 'x' }, 'c');
        if (request.system !== 'self') return undefined;
        const steps = [callTool('pay', { cents: 1 }, 'p'), callTool('agent__self', { prompt: 'x' }, 'c')];
        return steps[turnsOf(request)] ?? reply(resultsOf(request).join());
      },
      root: { subAgents: ['self'] },
    });
    await world.process().start();
    for (let depth = 1, runId = childId(root, 'c'); depth <= 8; depth++, runId = childId(runId, 'c')) {
      await world.until(async () => (await world.waitOf(runId)) && (await world.resting()).length === depth + 1);
      await approve(world, runId, root);
    }
    await ended(world);
    expect(outcomeOf(world, root)?.output).toContain('agents may be nested 8 deep');
    expect(world.paid.size).toBe(8);
    await world.shutdown();
  });
});

/** What may befall a tree, in any order. */
const befalling = fc.constantFrom(
  'approve',
  'a process begins',
  'a process dies',
  'a process shuts down',
  'time',
  'much time',
);

test('a tree ends whole after any order of approvals, deaths, shutdowns and waiting, and pays once for each call (waiting 23, 24)', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(befalling, { maxLength: 12 }), async (story) => {
      const world = treeWorld();
      const processes = [world.process()];
      void processes[0]?.start();
      for (const what of story) {
        const process = processes.at(-1);
        if (what === 'a process dies') process?.die();
        else if (what === 'a process shuts down') void process?.executor.shutdown({ drainMs: 100 });
        else if (what === 'time') await world.clock.advance(700);
        else if (what === 'much time') await world.clock.advance(31_000);
        else if (what === 'approve') await approve(world, leaf, root).catch(() => {});
        else {
          const next = world.process();
          processes.push(next);
          void next.executor.recover().catch(() => {});
        }
        await settle(3);
      }
      for (const process of processes) process.die();
      await world.clock.advance(31_000);
      const last = world.process();
      await last.executor.recover();
      await last.start().catch(() => {});
      await world.until(async () => {
        if (await world.waitOf(leaf)) await approve(world, leaf, root).catch(() => {});
        return world.isEmpty();
      }, 'the end of all runs');
      const outcome = (await world.store.outcomes.find(root)) ?? outcomeOf(world, root);
      expect(outcome).toMatchObject({ status: 'ok', output: 'root(mid(leaf(paid 700)))' });
      expect([...world.paid.values()]).toEqual([700]);
      await world.shutdown();
    }),
    { numRuns: torture > 1 ? 400 : 15, seed },
  );
});
