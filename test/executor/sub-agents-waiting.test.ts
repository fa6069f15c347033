import { createPalette, memoryStore } from 'pawl';
import { hang, reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { childId, turnKey } from '../fixtures/child-id.ts';
import { asking, askReviewer, family, reviewer } from '../fixtures/family.ts';
import { gate, settle, until } from '../fixtures/host.ts';
import { notingBudget } from '../fixtures/noting-ports.ts';
import { watchedStore } from '../fixtures/watched-store.ts';

const LEASE = 30_000;
const palette = createPalette({ agents: [reviewer] });
const agent = { subAgents: ['reviewer'], maxRuntimeMs: 10 ** 7 };

describe('a child that another process holds on to', () => {
  /** The parent has asked for its child, which somebody else holds. */
  async function waiting() {
    const clock = testClock();
    const store = memoryStore({ clock });
    const held = await store.claim(childId('r', 'c1'), 'another', LEASE);
    if (!held) throw new Error('the claim was not free');
    const options = {
      agent,
      clock,
      store,
      ports: { palette },
      defaults: { leaseMs: LEASE },
      retention: { records: 0 },
    };
    const host = family(
      asking(askReviewer, () => reply('fine')),
      options,
    );
    const run = await host.start({ runId: 'r' });
    await until(() => clock.pending > 2, 'the wait');
    await settle();
    return { ...host, clock, store, run, held };
  }

  test('is waited for: that process is dead, or about to let it go (supervision 7)', async () => {
    const { clock, run, model } = await waiting();
    await clock.advance(LEASE - 1);
    expect(model.calls).toHaveLength(1);
    await clock.advance(LEASE / 3 + 1);
    expect(await run.result).toMatchObject({ status: 'ok', output: 'fine' });
  });

  test('is taken over when it is released, at the next look (supervision 7)', async () => {
    const { clock, run, store, held } = await waiting();
    await store.release(held);
    await clock.advance(LEASE / 3);
    expect(await run.result).toMatchObject({ status: 'ok', output: 'fine' });
  });

  test('is not waited for when the parent is cancelled: it ends at once, and leaves no timer (supervision 7)', async () => {
    const { clock, run, model } = await waiting();
    expect((await run.cancel()).status).toBe('cancelled');
    await settle();
    expect(clock.pending).toBe(0);
    expect(model.calls).toHaveLength(1);
  });
});

test('a child that is cancelled while it begins asks no model: its claim is given back, and it leaves no record (supervision 7)', async () => {
  const claiming = gate();
  const inner = memoryStore();
  const store = watchedStore(
    {
      before: ({ method, args }) =>
        method === 'claim' && args[0] === childId('r', 'c1') ? claiming.pass() : undefined,
    },
    inner,
  );
  const { start, model } = family(asking(askReviewer, hang), { agent, store, ports: { palette } });
  const run = await start({ runId: 'r' });
  await claiming.reached;
  expect((await run.cancel()).status).toBe('cancelled');
  claiming.open();
  await until(async () => (await inner.claim(childId('r', 'c1'), 'another', 1)) !== null, 'the free claim');
  expect(model.calls).toHaveLength(1);
  expect(await inner.listInterrupted()).toEqual([]);
});

test('a child whose caller has used up the budget is refused, and that is data for its parent (supervision 4, 6)', async () => {
  const inner = notingBudget();
  let checks = 0;
  const budget = {
    ...inner,
    check: async (callerId: string) => {
      checks += 1;
      if (checks > 1) throw Object.assign(new Error(`${callerId} has used it up`), { code: 'BUDGET_EXCEEDED' });
    },
  };
  const host = family(
    asking(askReviewer, () => reply('never')),
    { agent, ports: { palette, budget } },
  );
  const result = await host.run({ runId: 'r', callerId: 'ann' });
  expect(result).toMatchObject({
    status: 'ok',
    output: expect.stringContaining('BUDGET_EXCEEDED: ann has used it up'),
  });
  expect([...inner.counted.keys()]).toEqual([turnKey('r', 1), turnKey('r', 2)]);
});
