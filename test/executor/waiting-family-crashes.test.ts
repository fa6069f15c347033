import { describe, expect, test } from 'vitest';
import { ids, type TreeWorld, treeWorld } from '../fixtures/waiting-tree.ts';

const { root, leaf } = ids;
const LEASE = 31_000;

/** The approval of the leaf is given at the root as soon as its wait is stored; a repeated one changes nothing. */
async function approve(world: TreeWorld): Promise<boolean> {
  const wait = await world.waitOf(leaf);
  if (!wait) return (await world.isEmpty()) || world.paid.size > 0;
  await world
    .process()
    .executor.control(root)
    .approve(wait.id, { by: { id: 'ada' } });
  return true;
}

/** Every run has ended as an uninterrupted tree ends, and the call was made under one key. */
async function expectWhole(world: TreeWorld): Promise<void> {
  await world.until(() => world.isEmpty(), 'the end of all runs');
  const last = world.outcomes.findLast(({ runId }) => runId === root);
  expect(last).toMatchObject({ status: 'ok', output: 'root(mid(leaf(paid 700)))' });
  expect([...world.paid.values()]).toEqual([700]);
  expect(new Set(world.outcomes.map(({ outcomeId }) => outcomeId)).size).toBe(3);
}

/** Whether the process died before the tree was at rest or at its end. */
async function untilDead(world: TreeWorld, process: ReturnType<TreeWorld['process']>): Promise<boolean> {
  await world.until(
    async () => process.life.isDead || (await world.isEmpty()) || (await world.resting()).length === 3,
    'death or rest',
  );
  return process.life.isDead;
}

describe('a tree of runs whose process dies', () => {
  test('after any of its writes on the way to rest ends whole, and makes its call under one key (waiting 23, 24)', async () => {
    let deaths = 0;
    for (let diesAfter = 1; diesAfter < 100; diesAfter++) {
      const world = treeWorld();
      const first = world.process(diesAfter);
      void first.start();
      const isDead = await untilDead(world, first);
      if (isDead) deaths += 1;
      first.die();
      await world.clock.advance(LEASE);
      const second = world.process();
      if ((await second.executor.recover()).resumed.length === 0 && (await world.isEmpty())) void second.start();
      await world.until(() => approve(world), 'the approval');
      await expectWhole(world);
      await world.shutdown();
      if (!isDead) break;
    }
    expect(deaths).toBeGreaterThan(10);
  });

  test('after any of its writes on the way from the answer to the end ends whole (waiting 23, 24)', async () => {
    let deaths = 0;
    for (let diesAfter = 1; diesAfter < 100; diesAfter++) {
      const world = treeWorld();
      const first = world.process();
      await first.start();
      await world.until(async () => (await world.resting()).length === 3, 'the rest of the tree');
      first.die();
      const second = world.process(diesAfter);
      await second.executor.recover();
      expect(await approve(world)).toBe(true);
      await world.until(async () => second.life.isDead || (await world.isEmpty()), 'death or end');
      const isDead = second.life.isDead;
      if (isDead) deaths += 1;
      second.die();
      await world.clock.advance(LEASE);
      await world.process().executor.recover();
      await expectWhole(world);
      // The model of a parent is asked once about the end of its child: only a turn that was not recorded is repeated.
      expect(world.turns.filter((turn) => turn === 'root 0' || turn === 'mid 0' || turn === 'leaf 0')).toHaveLength(3);
      await world.shutdown();
      if (!isDead) break;
    }
    expect(deaths).toBeGreaterThan(10);
  });

  test('after any of its writes during a cancel leaves nothing of the tree (waiting 24)', async () => {
    let deaths = 0;
    for (let diesAfter = 1; diesAfter < 100; diesAfter++) {
      const world = treeWorld();
      const first = world.process();
      await first.start();
      await world.until(async () => (await world.resting()).length === 3, 'the rest of the tree');
      first.die();
      const second = world.process(diesAfter);
      void second.executor
        .control(root)
        .cancel('enough')
        .catch(() => {});
      await world.until(async () => second.life.isDead || (await world.isEmpty()), 'death or end');
      const isDead = second.life.isDead;
      if (isDead) deaths += 1;
      second.die();
      await world.clock.advance(LEASE);
      const third = world.process();
      await third.executor.recover();
      if (world.outcomes.length === 0 && !(await world.isEmpty())) await third.executor.control(root).cancel('enough');
      await world.until(() => world.isEmpty(), 'the end of all runs');
      const statuses = new Map(world.outcomes.map(({ runId, status }) => [runId, status]));
      expect([...statuses.values()]).toEqual(['cancelled', 'cancelled', 'cancelled']);
      expect(world.paid.size).toBe(0);
      await world.shutdown();
      if (!isDead) break;
    }
    expect(deaths).toBeGreaterThan(5);
  });
});
