import { memoryStore } from 'pawl';
import { createCheckpointer } from 'pawl/stores/kit';
import { callTool, hang, reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { endId } from '../fixtures/child-id.ts';
import { gate, hostOf, settle, toolOf } from '../fixtures/host.ts';
import { afterCrash, plainStore, watchedStore } from '../fixtures/watched-store.ts';

/** A run that a process left in good order. */
async function left() {
  const store = memoryStore();
  const host = hostOf({ script: [hang()], store });
  await host.start({ runId: 'r' });
  await host.executor.shutdown();
  return store;
}

describe('a cancel of a run that is live here says `ended` when the record is gone, and not before (recovery 3)', () => {
  test('a run that a shutdown leaves, because a call with effects is under way, is ended in the store', async () => {
    const store = memoryStore();
    const slow = gate();
    const send = toolOf('send', 'once', () => slow.pass());
    const host = hostOf({ script: [callTool('send', {})], tools: [send], store });
    const run = await host.start({ runId: 'r' });
    await slow.reached;
    const down = host.executor.shutdown();
    await settle();
    const cancel = host.executor.control('r').cancel('no more');
    await settle();
    slow.open();
    expect((await run.result).status).toBe('interrupted');
    expect(await cancel).toBe('ended');
    await down;
    expect(await store.listInterrupted()).toEqual([]);
    expect(await store.outcomes.find('r')).toMatchObject({ status: 'cancelled', error: { message: 'no more' } });
  });

  test('a run that only tries to start here, and that another process works on, is sent the cancel', async () => {
    const inner = memoryStore();
    const owner = hostOf({ script: [hang()], store: inner });
    await owner.start({ runId: 'r' });
    const slow = gate();
    const store = watchedStore({ before: ({ method }) => method === 'claim' && slow.pass() }, inner);
    const host = hostOf({ store });
    const started = host.start({ runId: 'r' });
    await slow.reached;
    const cancel = host.executor.control('r').cancel('no more');
    await settle();
    slow.open();
    expect((await (await started).result).error?.code).toBe('RUN_OWNED_ELSEWHERE');
    expect(await cancel).toBe('sent');
    expect(await inner.commands.inbox({ runId: 'r' })).toMatchObject([
      { command: { kind: 'cancel', reason: 'no more' } },
    ]);
  });

  test('a run whose store is away is stopped, but its cancel rejects; said again when the store is back, it ends', async () => {
    const inner = memoryStore();
    let isAway = false;
    const before = () => isAway && Promise.reject(new Error('the store is away'));
    const clock = testClock();
    const host = hostOf({ store: watchedStore({ before }, inner), clock, script: [hang()] });
    const run = await host.start({ runId: 'r' });
    isAway = true;
    const cancel = expect(host.executor.control('r').cancel('no more')).rejects.toThrow('the store is away');
    for (let i = 0; i < 4; i++) {
      await settle();
      await clock.advance(1_000);
    }
    await cancel;
    expect((await run.result).status).toBe('cancelled');
    isAway = false;
    expect(await inner.listInterrupted()).toHaveLength(1);
    expect(await host.executor.control('r').cancel('no more')).toBe('ended');
    expect(await inner.listInterrupted()).toEqual([]);
  });

  test('a run that is not durable has no record: it is over when it has stopped, also while the store is away', async () => {
    const before = () => Promise.reject(new Error('the store is away'));
    const host = hostOf({ store: watchedStore({ before }, memoryStore()), script: [hang()] });
    const without = hostOf({ script: [hang()] });
    await without.start({ runId: 'r' });
    expect(await without.executor.control('r').cancel()).toBe('ended');
    await host.start({}, { checkpointer: createCheckpointer(undefined, {} as never) });
    const [run] = host.executor.runs.get();
    if (!run) throw new Error('no run');
    expect(await host.executor.control(run.runId).cancel()).toBe('ended');
  });
});

describe('a message for a run that only tries to start here', () => {
  test.for([
    ['and that another process works on is sent to its owner', hang(), 'sent'],
    ['is said to it when it has started', undefined, 'durable'],
  ] as const)('%s (recovery 3)', async ([, owner, answer]) => {
    const inner = memoryStore();
    if (owner) await hostOf({ script: [owner], store: inner }).start({ runId: 'r' });
    const slow = gate();
    const store = watchedStore({ before: ({ method }) => method === 'claim' && slow.pass() }, inner);
    const host = hostOf({ store, script: [hang()] });
    const started = host.start({ runId: 'r' });
    await slow.reached;
    const said = host.executor.control('r').steer('also check X');
    await settle();
    slow.open();
    expect(await said).toBe(answer);
    expect(await inner.commands.inbox({ runId: 'r' })).toHaveLength(owner ? 1 : 0);
    expect((await started).runId).toBe('r');
    await host.executor.shutdown();
  });
});

test('a live run whose time ends while its outcome is delivered has no second delivery beside it (promise e)', async () => {
  const clock = testClock();
  const store = memoryStore({ clock });
  const slow = gate();
  const told = new Set<string>();
  let telling = 0;
  let most = 0;
  const host = hostOf({
    ...{ script: [hang()], store, clock },
    onOutcome: async ({ outcomeId }) => {
      told.add(outcomeId);
      telling += 1;
      most = Math.max(most, telling);
      await slow.pass();
      telling -= 1;
    },
  });
  const run = await host.start({ runId: 'r' });
  const cancelling = host.executor.control('r').cancel('enough');
  await slow.reached;
  await clock.advance(10_000);
  expect((await run.result).status).toBe('cancelled');
  await settle();
  slow.open();
  expect(await cancelling).toBe('ended');
  expect([most, ...told]).toEqual([1, endId('r')]);
  expect(await store.listInterrupted()).toEqual([]);
  expect(await store.outcomes.find('r')).toMatchObject({ outcomeId: endId('r') });
});

describe('two who want the same stored run in one executor (recovery 3)', () => {
  test('both cancels of a stored run at once report that it ended, for the reason of the first, and once', async () => {
    const told: unknown[] = [];
    const host = hostOf({
      store: await left(),
      onOutcome: async ({ error }) => {
        told.push(error?.message);
        await settle(5);
      },
    });
    const { control } = host.executor;
    expect(await Promise.all([control('r').cancel('first'), control('r').cancel('second')])).toEqual([
      'ended',
      'ended',
    ]);
    expect(told).toEqual(['first']);
  });

  test('a cancel beside a start of the same run ends it, in either order', async () => {
    for (const isFirst of [true, false]) {
      const store = await left();
      const host = hostOf({ store, script: [hang()] });
      const early = isFirst ? host.executor.control('r').cancel('enough') : undefined;
      const start = host.start({ runId: 'r' });
      expect(await (early ?? host.executor.control('r').cancel('enough'))).toBe('ended');
      expect((await (await start).result).status).toBe('cancelled');
      expect(await store.listInterrupted()).toEqual([]);
    }
  });

  test('a start that comes while the run is cancelled in the store waits for that, and is given its end', async () => {
    for (const isOwned of [true, false]) {
      const store = await left();
      const told: unknown[] = [];
      const host = hostOf({
        store: isOwned ? store : plainStore(store),
        script: [hang()],
        onOutcome: async ({ status }) => {
          told.push(status);
          await settle();
        },
      });
      const cancel = host.executor.control('r').cancel('enough');
      const start = host.start({ runId: 'r' });
      expect(await cancel).toBe('ended');
      const run = await start;
      if (isOwned) expect(await run.result).toMatchObject({ status: 'cancelled', error: { message: 'enough' } });
      // A store that keeps no answers knows nothing of it any more: the run begins anew.
      else expect((await store.load('r'))?.messages).toHaveLength(1);
      expect(told).toEqual(['cancelled']);
      await host.executor.shutdown();
    }
  });

  test('parking and unparking at once take their turns: the last word stands, and neither takes the run from the other', async () => {
    for (const store of [await left(), plainStore(await left())]) {
      const { executor } = hostOf({ store });
      await Promise.all([executor.park('r', 'one'), executor.unpark('r'), executor.park('r', 'two')]);
      expect((await store.load('r'))?.parked?.reason).toBe('two');
    }
  });

  test('what is refused lets the next one have its turn', async () => {
    const store = await left();
    let refusals = 1;
    const before = ({ method }: { method: string }) => {
      if (method === 'load' && refusals-- > 0) throw new Error('a blip');
    };
    const { executor } = hostOf({ store: watchedStore({ before }, await afterCrash(store)) });
    const answers = await Promise.allSettled([executor.park('r', 'one'), executor.park('r', 'two')]);
    expect(answers.map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
  });
});

describe('the end of a run', () => {
  /** A host that writes down in which order a run ends: the calls of its store that change it, `onOutcome` and the audit. */
  function hostWithOrder(inner: ReturnType<typeof memoryStore>, fault?: (method: string) => void) {
    const order: string[] = [];
    const store = watchedStore(
      {
        before: ({ method }) => {
          if (!['load', 'claim', 'listInterrupted', 'commands.inbox', 'outcomes.find'].includes(method))
            order.push(method);
          fault?.(method);
        },
      },
      inner,
    );
    const host = hostOf({
      script: [reply('done')],
      store,
      retention: { records: 0 },
      onOutcome: () => void order.push('onOutcome'),
      ports: { audit: { startRun: () => ({ close: () => void order.push('audit') }) } },
    });
    return Object.assign(host, { order });
  }
  const inOrder = ['append', 'onOutcome', 'audit', 'outcomes.keep', 'delete'];

  test('has one order, whether the run is live or cancelled in the store', async () => {
    const live = hostWithOrder(memoryStore());
    expect(await live.run({ runId: 'r' })).toMatchObject({ status: 'ok' });
    expect(live.order.slice(-5)).toEqual(inOrder);
    const stored = hostWithOrder(await left());
    expect(await stored.executor.control('r').cancel('no more')).toBe('ended');
    expect(stored.order.filter((method) => method !== 'release')).toEqual(inOrder);
  });

  test('comes also to a stored run whose record cannot hold its outcome: it is cancelled without it', async () => {
    const store = await left();
    const tooLarge = Object.assign(new Error('too large'), { code: 'RECORD_TOO_LARGE' });
    const host = hostWithOrder(store, (method) => {
      if (method === 'append') throw tooLarge;
    });
    expect(await host.executor.control('r').cancel('no more')).toBe('ended');
    expect(host.warnings).toEqual(['run: outcome save failed']);
    expect([await store.load('r'), (await store.outcomes.find('r'))?.status]).toEqual([null, 'cancelled']);
  });
});
