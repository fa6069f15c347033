import { memoryStore, type RunOutcome } from 'pawl';
import { callTool, hang, reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { LeaseLostError } from '../../src/values/errors.ts';
import { gate, hostOf, settle, toolOf, until } from '../fixtures/host.ts';
import { onlyRecord, type StoreCall, watchedStore } from '../fixtures/watched-store.ts';

const LEASE = 30_000;
const tools = [toolOf('look')];

/** A run in its second model call, on a store and a clock of the test's. */
async function working(before: (call: StoreCall) => unknown = () => {}) {
  const clock = testClock();
  const inner = memoryStore({ clock });
  const store = watchedStore({ before }, inner);
  const delivered: RunOutcome[] = [];
  const host = hostOf({
    script: [callTool('look'), hang()],
    tools,
    store,
    clock,
    agent: { maxRuntimeMs: 10 ** 9 },
    defaults: { leaseMs: LEASE, firstChunkMs: 10 ** 9, chunkGapMs: 10 ** 9 },
    onOutcome: (outcome) => void delivered.push(outcome),
  });
  const run = await host.start({ runId: 'r' });
  await until(async () => (await inner.load('r'))?.iteration === 1 && host.model.calls.length === 2);
  return { clock, inner, store, host, run, delivered };
}

describe('the claim of a run', () => {
  test('is renewed as long as the run lives, during any work of the run (recovery 3)', async () => {
    const { clock, inner, store } = await working();
    for (let minute = 0; minute < 10; minute++) {
      await clock.advance(60_000);
      expect(await inner.claim('r', 'another', LEASE)).toBeNull();
    }
    expect(store.methods.filter((name) => name === 'renew').length).toBeGreaterThanOrEqual(20);
  });

  test('is free at once when the run has ended, was cancelled, or was left (recovery 3)', async () => {
    for (const stop of ['cancel', 'shutdown'] as const) {
      const { inner, run, host } = await working();
      await (stop === 'cancel' ? run.cancel() : host.executor.shutdown());
      await settle();
      expect(await inner.claim('r', 'another', LEASE)).not.toBeNull();
    }
  });

  test('that is refused at its renewal ends the run here at once, as interrupted, LEASE_LOST: nothing is written or announced (recovery 3)', async () => {
    const { clock, inner, store, run, delivered } = await working(
      ({ method }) => method === 'renew' && Promise.reject(new LeaseLostError('taken')),
    );
    const before = await onlyRecord(inner);
    store.log.length = 0;
    await clock.advance(LEASE / 3);
    expect(await run.result).toMatchObject({ status: 'interrupted', error: { code: 'LEASE_LOST' } });
    const looks = ['renew', 'commands.inbox', 'deliveries.take'];
    expect(store.methods.filter((name) => !looks.includes(name))).toEqual([]);
    expect(delivered).toEqual([]);
    expect(await onlyRecord(inner)).toEqual(before);
  });

  test('survives a store that is unreachable for less than its time (recovery 7)', async () => {
    let isDown = false;
    const { clock, run, inner } = await working(
      ({ method }) => method === 'renew' && isDown && Promise.reject(new Error('down')),
    );
    await clock.advance(LEASE);
    isDown = true;
    await clock.advance(LEASE / 2);
    isDown = false;
    await clock.advance(10 * LEASE);
    expect(run.actor.getSnapshot().status).toBe('active');
    expect(await inner.claim('r', 'another', LEASE)).toBeNull();
  });

  test('that another process took meanwhile makes every later write of the first fail, and its outcome stays unsaid (recovery 3)', async () => {
    const delivered: RunOutcome[] = [];
    const clock = testClock();
    const store = memoryStore({ clock });
    const slow = gate();
    const frozen = hostOf({
      script: [callTool('look'), () => slow.pass().then(() => reply('too late'))],
      tools,
      store: { ...store, renew: () => new Promise<never>(() => {}) } as typeof store,
      onOutcome: (outcome) => void delivered.push(outcome),
    });
    const late = await frozen.start({ runId: 'q' });
    await slow.reached;
    await clock.advance(10 * LEASE);
    const second = hostOf({ script: [hang()], tools, store });
    await second.start({ runId: 'q' });
    const before = await store.load('q');
    slow.open();
    expect(await late.result).toMatchObject({ status: 'interrupted', error: { code: 'LEASE_LOST' } });
    expect(delivered).toEqual([]);
    expect(await store.load('q')).toEqual(before);
  });

  test('keeps its record from the late delete of a start that failed (recovery 3, promise a)', async () => {
    const late = gate();
    const landed = Promise.withResolvers<unknown>();
    const inner = memoryStore();
    let saves = 0;
    const store: typeof inner = {
      ...inner,
      save: (...args) => (saves++ === 0 ? Promise.reject(new Error('no answer')) : inner.save(...args)),
      delete: async (...args) => {
        await late.pass();
        landed.resolve(await inner.delete(...args).catch((error: unknown) => error));
      },
    };
    const host = hostOf({
      ...{ script: [hang()], store, requireDurable: true },
      defaults: { portMs: 100 },
    });
    expect(await host.run({ runId: 'r' })).toMatchObject({ error: { code: 'NOT_DURABLE' } });
    await host.start({ runId: 'r' });
    late.open();
    expect(await landed.promise).toMatchObject({ code: 'LEASE_LOST' });
    expect(await onlyRecord(inner)).toMatchObject({ meta: { runId: 'r' } });
  });
});
