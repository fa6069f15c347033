import { memoryStore, type RunOutcome, type RunResult } from 'pawl';
import { callTool, hang, reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { LeaseRenewal } from '../../src/executor/services/lease-renewal.ts';
import { StoreUnavailableError } from '../../src/values/errors.ts';
import { hostOf, toolOf, until } from '../fixtures/host.ts';
import { watchedStore } from '../fixtures/watched-store.ts';

describe('while the store fails, a run whose policy is to fail', () => {
  test('continues while fewer steps are unsaved than it allows, however often the save is tried again (checkpoint 21)', async () => {
    const clock = testClock();
    const store = memoryStore({ clock });
    let isDown = false;
    let tries = 0;
    const checkpoints = {
      ...store,
      append: async (...args: Parameters<typeof store.append>) => {
        if (isDown) tries += 1;
        if (isDown) throw new Error('the store is down');
        return store.append(...args);
      },
    };
    const tools = [
      toolOf('work', 'read', () => {
        isDown = true;
        return 'worked';
      }),
    ];
    const thinking = Promise.withResolvers<void>();
    const script = [callTool('work', {}), () => thinking.promise.then(() => reply('done'))];
    // biome-ignore lint/suspicious/noThenProperty: the option is called so
    const onSaveError = { maxUnsavedSteps: 8, then: 'fail' as const };
    const run = await hostOf({ script, tools, store: checkpoints, clock, onSaveError }).start({ runId: 'run-1' });
    await until(async () => tries === 1);
    for (let i = 0; i < 4; i++) await clock.advance(2_500);
    expect(tries).toBeGreaterThan(2);
    isDown = false;
    thinking.resolve();
    expect((await run.result).status).toBe('ok');
  });
});

describe('a run that comes to its end while its store is away', () => {
  /** Its tool pays, and the store is away from then on. */
  const payingHost = () => {
    const clock = testClock();
    const inner = memoryStore({ clock });
    const world = { isDown: false, paid: 0 };
    const store = watchedStore(
      { before: () => world.isDown && Promise.reject(new StoreUnavailableError('away')) },
      inner,
    );
    const tools = [
      toolOf('pay', 'once', () => {
        world.isDown = true;
        world.paid += 1;
        return 'paid';
      }),
    ];
    const ends: string[] = [];
    const onOutcome = ({ outcomeId, output }: RunOutcome) => void ends.push(`${outcomeId} ${output}`);
    const script = [callTool('pay', {}), reply('It is paid.')];
    return { clock, inner, world, ends, host: hostOf({ script, tools, store, clock, onOutcome }) };
  };

  test('waits until its steps are stored, and ends once: the result of its call is not lost while its process lives (finalize 10)', async () => {
    const { clock, inner, world, ends, host } = payingHost();
    await host.executor.recover();
    const run = await host.start({ runId: 'r' });
    let result: RunResult | undefined;
    void run.result.then((end) => {
      result = end;
    });
    await until(async () => host.warnings.includes('run: the end waits until its last steps are stored'));
    await clock.advance(60_000);
    expect({ result, ends }).toEqual({ result: undefined, ends: [] });
    world.isDown = false;
    await clock.advance(20_000);
    expect(result).toMatchObject({ status: 'ok', output: 'It is paid.', durable: true });
    await clock.advance(60_000);
    expect(ends).toEqual([expect.stringMatching(/:1 It is paid\.$/)]);
    expect(world.paid).toBe(1);
    expect(await inner.listInterrupted()).toEqual([]);
  });

  test('waits no longer when it is cancelled (finalize 10)', async () => {
    const { clock, host } = payingHost();
    const run = await host.start({ runId: 'r' });
    await until(async () => host.warnings.includes('run: the end waits until its last steps are stored'));
    void run.cancel();
    await clock.advance(20_000);
    expect((await run.result).status).toBe('ok');
  });

  test('is left by a shutdown: the next process continues with what was stored (finalize 10)', async () => {
    const { clock, inner, ends, host } = payingHost();
    const run = await host.start({ runId: 'r' });
    await until(async () => host.warnings.includes('run: the end waits until its last steps are stored'));
    const shutdown = host.executor.shutdown();
    await clock.advance(20_000);
    await Promise.all([shutdown, run.result]);
    expect(ends).toEqual([]);
    expect(await inner.load('r')).toMatchObject({ openStep: { calls: [{ name: 'pay', state: 'started' }] } });
  });
});

describe('a claim that was lost', () => {
  test('is not asked for again: no call waits for an answer that cannot come (recovery 3)', async () => {
    const clock = testClock();
    const store = memoryStore({ clock });
    const claim = await store.claim('run-1', 'us', 300);
    const leases = new LeaseRenewal(store, clock, 300);
    const holder = { claim: claim ?? undefined, loseLease: () => {} };
    leases.keep(holder, clock.monotonic());
    holder.claim = undefined;
    await clock.advance(1_000);
    expect(await leases.confirm(holder, () => false)).toBe(false);
  });
});

describe('a host’s own checkpointer that never answers', () => {
  test('does not keep a run that its host stopped from settling (executor 7)', async () => {
    const clock = testClock();
    let isStuck = false;
    const checkpointer = {
      save: () => (isStuck ? new Promise<void>(() => {}) : Promise.resolve()),
      complete: async () => {},
      fail: async () => {},
    };
    const run = await hostOf({ script: [hang()], clock }).start({}, { checkpointer });
    isStuck = true;
    run.actor.stop();
    let status = '';
    void run.result.then((result) => {
      status = result.status;
    });
    await clock.advance(20_000);
    expect(status).toBe('interrupted');
  });
});

function refuse(): never {
  throw new Error('no phases today');
}

test('a run that cannot even be made is skipped by recover, with its reason, and the others continue (recovery 1)', async () => {
  const store = memoryStore();
  const first = hostOf({ script: [hang(), hang()], store });
  await first.start({ runId: 'a' });
  await first.start({ runId: 'b' });
  await first.executor.shutdown();
  const second = hostOf({ store });
  const broken = new Proxy(second.agent, {
    get: (agent, key) => (key === 'phases' ? refuse() : Reflect.get(agent, key)),
  });
  const { executor } = hostOf({ store, agents: [broken] });
  const report = await executor.recover();
  expect(report.skipped.map(({ runId }) => runId).toSorted()).toEqual(['a', 'b']);
  expect(report.skipped[0]?.reason).toContain('no phases today');
  expect((await store.listInterrupted()).map(({ runId }) => runId)).toEqual(['a', 'b']);
});
