import { memoryStore } from 'pawl';
import { callTool, hang, reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { LeaseRenewal } from '../../src/executor/services/lease-renewal.ts';
import { hostOf, toolOf, until } from '../fixtures/host.ts';

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
