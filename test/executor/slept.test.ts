import { memoryStore } from 'pawl';
import { callTool, reply, testClock } from 'pawl/testing';
import { expect, test } from 'vitest';
import { gate, hostOf, toolOf } from '../fixtures/host.ts';
import { watchedStore } from '../fixtures/watched-store.ts';

const MINUTE = 60_000;

/** A run whose last middleware holds its call, on a computer whose monotonic clock stands still while it sleeps; the store's does not. */
async function held(effect: 'read' | 'idempotent' | 'once') {
  const [clock, server] = [testClock(1_000_000), testClock(1_000_000)];
  const inner = memoryStore({ clock: server });
  const store = watchedStore({}, inner);
  const asleep = gate();
  let calls = 0;
  const host = hostOf({
    script: [callTool('pay'), reply('paid')],
    tools: [toolOf('pay', effect, async () => `paid ${++calls}`)],
    store,
    clock,
    middleware: [{ tool: async (_, next) => asleep.pass().then(() => next()) }],
  });
  const run = await host.start({ runId: 'r' });
  await asleep.reached;
  /** @returns how the run ended, how often the tool ran, and how often the store was asked for the claim */
  const wake = async (sleptMs: number, meanwhile = async () => {}) => {
    clock.wallJump(sleptMs);
    await server.advance(Math.max(0, sleptMs));
    await meanwhile();
    const asked = store.methods.filter((name) => name === 'renew').length;
    asleep.open();
    const { status } = await run.result;
    return { status, calls, asks: store.methods.filter((name) => name === 'renew').length - asked };
  };
  return { inner, wake };
}

test.each(['idempotent', 'once'] as const)(
  'a computer that slept makes no call of effect %s in a run that another process has taken, though its monotonic clock stood still (edges 20)',
  async (effect) => {
    const { inner, wake } = await held(effect);
    const takenOver = async () => expect(await inner.claim('r', 'another', MINUTE)).not.toBeNull();
    expect(await wake(MINUTE, takenOver)).toMatchObject({ status: 'interrupted', calls: 0 });
  },
);

test('a computer that slept and whose run is still its own makes the call, after it has asked (edges 20)', async () => {
  const { wake } = await held('once');
  expect(await wake(2_000)).toEqual({ status: 'ok', calls: 1, asks: 1 });
});

test.each([
  ['that did not sleep', 'once', 0],
  ['whose wall clock was corrected by less than a second', 'once', 900],
  ['whose wall clock was set back', 'once', -MINUTE],
  ['that slept, before a call without effects,', 'read', 2_000],
] as const)('a computer %s asks nothing (edges 20)', async (_, effect, ms) => {
  const { wake } = await held(effect);
  expect(await wake(ms)).toEqual({ status: 'ok', calls: 1, asks: 0 });
});
