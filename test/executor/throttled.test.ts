import { memoryStore } from 'pawl';
import { type Claim, createCheckpointerFactory } from 'pawl/stores/kit';
import { callTool, hang, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { gate, hostOf, settle, toolOf, until } from '../fixtures/host.ts';
import { isWrite, watchedStore } from '../fixtures/watched-store.ts';

/** A store that refuses as many writes as it is told, behind a throttle of a minute on a still clock. */
function throttled() {
  const clock = testClock();
  const inner = memoryStore({ clock });
  const state = { failing: 0 };
  const store = watchedStore(
    { before: (call) => isWrite(call) && state.failing-- > 0 && Promise.reject(new Error('blip')) },
    inner,
  );
  return { clock, inner, store, state, checkpointer: createCheckpointerFactory(store, { throttleMs: 60_000, clock }) };
}

describe('a run whose checkpointer has a throttle', () => {
  test('a command whose save failed is not acknowledged because a newer state was put off (supervision 9)', async () => {
    const { clock, inner, state, checkpointer } = throttled();
    const looking = gate();
    const look = toolOf('look', 'read', () => looking.pass());
    const host = hostOf({ clock, tools: [look], script: [callTool('look', {}), hang()], ports: { checkpointer } });
    await host.start({ runId: 'r' });
    await looking.reached;
    state.failing = 1;
    await hostOf({ store: inner }).executor.control('r').steer('also X');
    await clock.advance(500);
    looking.open();
    await until(() => host.model.calls.length === 2);
    await settle(20);
    expect(state.failing).toBeLessThan(1);
    const stored = JSON.stringify([await inner.load('r'), await inner.commands.inbox({ runId: 'r' })]);
    expect(stored).toContain('also X');
  });

  test('what came of a `once` call is stored with the next step when its own save failed (executor 11)', async () => {
    const { clock, inner, state, checkpointer } = throttled();
    const send = toolOf('send', 'once', () => {
      state.failing = 1;
      return 'sent';
    });
    const script = [callTool('send', {}), callTool('look', {}), hang()];
    const host = hostOf({ clock, tools: [send, toolOf('look')], script, ports: { checkpointer } });
    await host.start({ runId: 'r' });
    await until(() => host.model.calls.length === 3);
    await clock.advance(1_000);
    expect((await inner.load('r'))?.openStep).toBeUndefined();
  });

  test('a run that lost its lease writes nothing more, and no timer keeps its process alive (recovery 3)', async () => {
    const { clock, inner, store, checkpointer } = throttled();
    const claims: (Claim | null)[] = [];
    const { claim } = store;
    store.claim = async (...args) => {
      claims.push(await claim(...args));
      return claims.at(-1) ?? null;
    };
    const day = 86_400_000;
    const host = hostOf({
      script: [callTool('look'), callTool('look', { again: true }), hang()],
      tools: [toolOf('look')],
      clock,
      ports: { checkpointer },
      agent: { maxRuntimeMs: day },
      defaults: { leaseMs: 30_000, firstChunkMs: day, chunkGapMs: day },
    });
    const run = await host.start({ runId: 'r' });
    await until(() => host.model.calls.length === 3);
    await inner.release(claims[0] as Claim);
    await inner.claim('r', 'somebody else', day);
    await clock.advance(10_000);
    expect(await run.result).toMatchObject({ status: 'interrupted', error: { code: 'LEASE_LOST' } });
    await settle();
    expect(clock.pending).toBe(0);
    store.log.length = 0;
    await clock.advance(600_000);
    expect(store.methods).toEqual([]);
  });

  test('a run learns from its put-off write that another process has it, and stops at once (recovery 3)', async () => {
    const { clock, inner, store, checkpointer } = throttled();
    const look = toolOf('look');
    const day = 86_400_000;
    const host = hostOf({
      script: [callTool('look'), callTool('look', { again: true }), hang()],
      tools: [look],
      clock,
      ports: { checkpointer },
      agent: { maxRuntimeMs: day },
      defaults: { leaseMs: day, firstChunkMs: day, chunkGapMs: day },
    });
    const { append } = store;
    let isTaken = false;
    store.append = async (...args) => {
      if (isTaken) throw Object.assign(new Error('taken'), { code: 'LEASE_LOST' });
      return append(...args);
    };
    const run = await host.start({ runId: 'r' });
    await until(() => host.model.calls.length === 3);
    isTaken = true;
    await clock.advance(60_000);
    expect(await run.result).toMatchObject({ status: 'interrupted', error: { code: 'LEASE_LOST' } });
    expect((await inner.load('r'))?.iteration).toBe(0);
  });
});
