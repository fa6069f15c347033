import { memoryStore } from 'pawl';
import { callTools, reply } from 'pawl/testing';
import { expect, test } from 'vitest';
import { gate, hostOf, toolOf, until } from '../fixtures/host.ts';
import { afterCrash } from '../fixtures/watched-store.ts';

test('begin again with each recorded result: a step of many calls that dies after each of them is not parked (recovery 2)', async () => {
  const calls = Array.from({ length: 6 }, (_, n) => ({ name: 'work', input: { n } }));
  let store = memoryStore();
  for (let done = 1; done <= calls.length; done++) {
    const reached = gate();
    // One call at a time: this process finishes one more than the one before, and dies in the next.
    const work = toolOf('work', 'idempotent', async ({ n }) => (Number(n) < done ? `did ${n}` : reached.pass()), {
      concurrency: 1,
    });
    const host = hostOf({
      script: [...(done === 1 ? [callTools(calls)] : []), reply('all')],
      tools: [work],
      store,
    });
    const run = await host.start({ runId: 'r' });
    if (done === calls.length) {
      expect(await run.result).toMatchObject({ status: 'ok', output: 'all' });
      return;
    }
    let isReached = false;
    void reached.reached.then(() => {
      isReached = true;
    });
    // Not a race: the loop of the loser would turn for ten seconds more.
    await until(() => isReached || run.actor.getSnapshot().status === 'done');
    const results = (await store.load('r'))?.openStep?.calls.filter(({ state }) => state === 'done');
    expect(results, `process ${done}`).toHaveLength(done);
    store = await afterCrash(store);
  }
});
