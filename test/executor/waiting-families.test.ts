import { describe, expect, test } from 'vitest';
import { ids, type TreeWorld, treeWorld } from '../fixtures/waiting-tree.ts';

const { root, mid, leaf } = ids;
const ada = { by: { id: 'ada' } };

/** The tree rests, and no process has it. */
async function atRest(world: TreeWorld) {
  const process = world.process();
  const run = await process.start();
  await world.until(async () => (await world.resting()).length === 3, 'the rest of the tree');
  return { ...process, run };
}

async function approveAt(world: TreeWorld, runId: string, executor = world.process().executor) {
  const wait = await world.waitOf(leaf);
  return executor.control(runId).approve(wait?.id ?? '', ada);
}

const ended = (world: TreeWorld) => world.until(() => world.isEmpty(), 'the end of all runs');
const outcomeOf = (world: TreeWorld, runId: string) => world.outcomes.find((outcome) => outcome.runId === runId);

describe('a child that rests', () => {
  test('makes the call of its parent wait, and all generations rest without a claim (waiting 23)', async () => {
    const world = treeWorld();
    const { run } = await atRest(world);
    const result = await run.result;
    expect(result).toMatchObject({ status: 'waiting', waits: [{ kind: 'child', childRunId: mid, callId: 'to-mid' }] });
    expect(await world.waitOf(mid, 'child')).toMatchObject({ childRunId: leaf, tool: 'agent__leaf' });
    expect(await world.waitOf(leaf)).toMatchObject({ kind: 'approval', tool: 'pay' });
    expect(await world.resting()).toEqual([root, mid, leaf]);
    expect(world.turns).toEqual(['root 0', 'mid 0', 'leaf 0']);
    await world.shutdown();
  });

  test('is continued by itself; its end continues its parent, and starts nothing again (waiting 23, 24)', async () => {
    const world = treeWorld();
    await atRest(world);
    expect(await approveAt(world, leaf)).toBe('sent');
    await ended(world);
    expect(outcomeOf(world, root)).toMatchObject({ status: 'ok', output: 'root(mid(leaf(paid 700)))' });
    expect(world.turns).toEqual(['root 0', 'mid 0', 'leaf 0', 'leaf 1', 'mid 1', 'root 1']);
    expect(world.outcomes.map(({ runId }) => runId)).toEqual([leaf, mid, root]);
    await world.shutdown();
  });

  test('is answered at the root, from a process that has none of the runs (waiting 24)', async () => {
    const world = treeWorld();
    await atRest(world);
    expect(await approveAt(world, root)).toBe('sent');
    await ended(world);
    expect(outcomeOf(world, root)).toMatchObject({ status: 'ok' });
    expect(world.paid.size).toBe(1);
    await world.shutdown();
  });

  test('gives its parent the error text of a cancel, and the parent continues (waiting 23)', async () => {
    const world = treeWorld();
    await atRest(world);
    expect(await world.process().executor.control(leaf).cancel('not now')).toBe('ended');
    await ended(world);
    expect(outcomeOf(world, mid)?.output).toContain('leaf ended with status cancelled: CANCELLED: not now');
    expect(outcomeOf(world, root)).toMatchObject({ status: 'ok' });
    expect(world.paid.size).toBe(0);
    await world.shutdown();
  });
});

describe('the end of a parent', () => {
  test('cancels the runs below it that rest, down to the last generation (waiting 24)', async () => {
    const world = treeWorld();
    await atRest(world);
    expect(await world.process().executor.control(root).cancel('enough')).toBe('ended');
    expect(await world.isEmpty()).toBe(true);
    expect(world.outcomes.map(({ runId, status }) => `${runId} ${status}`).toSorted()).toEqual(
      [root, mid, leaf].map((runId) => `${runId} cancelled`).toSorted(),
    );
    await world.shutdown();
  });
});
