import { createPalette, memoryStore, type RunCheckpoint, type RunOutcome } from 'pawl';
import { reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { StoreUnavailableError } from '../../src/values/errors.ts';
import { childId } from '../fixtures/child-id.ts';
import { asking, askReviewer, family, reviewer } from '../fixtures/family.ts';
import { settle } from '../fixtures/host.ts';
import { type StoreCall, watchedStore } from '../fixtures/watched-store.ts';

const palette = createPalette({ agents: [reviewer] });
const child = childId('r', 'c1');

/** A parent with one child, on a store that refuses what it is told to as long as it is down. */
function world(isMeant: (call: StoreCall) => boolean, policy: 'wait' | 'fail' = 'wait') {
  const clock = testClock();
  const state = { isDown: true, refused: 0 };
  const store = watchedStore(
    {
      before: (call) => {
        if (!state.isDown || !isMeant(call)) return;
        state.refused += 1;
        throw new StoreUnavailableError('down');
      },
    },
    memoryStore({ clock }),
  );
  const told: RunOutcome[] = [];
  const host = family(
    asking(askReviewer, () => reply('fine')),
    {
      agent: { subAgents: ['reviewer'], maxRuntimeMs: 600_000 },
      ...{ clock, store, ports: { palette }, retention: { records: 0 } },
      // biome-ignore lint/suspicious/noThenProperty: a policy's word, and nobody awaits a policy
      onSaveError: { then: policy },
      onOutcome: (outcome) => void told.push(outcome),
    },
  );
  return { ...host, clock, state, store, told };
}

const isClaim = ({ method, args }: StoreCall) => method === 'claim' && args[0] === child;
const isFirstSave = ({ method, args }: StoreCall) =>
  method === 'save' && (args[0] as RunCheckpoint).meta.runId === child;

describe('a child while the store fails for a minute', () => {
  for (const [what, isMeant] of [
    ['whose claim is refused', isClaim],
    ['whose first record is refused', isFirstSave],
  ] as const) {
    test(`${what} is started again until the store answers: its parent waits, and gets its answer (supervision 7)`, async () => {
      const { start, clock, state, told, store } = world(isMeant);
      const run = await start({ runId: 'r' });
      await clock.advance(60_000);
      expect(state.refused).toBeGreaterThan(2);
      expect(told).toEqual([]);
      state.isDown = false;
      await clock.advance(10_000);
      expect(await run.result).toMatchObject({ status: 'ok', output: 'fine', durable: true });
      expect(told.map(({ runId, status, durable }) => [runId, status, durable])).toEqual([
        [child, 'ok', true],
        ['r', 'ok', true],
      ]);
      expect(await store.listInterrupted()).toEqual([]);
    });
  }

  test('is a failed call at once where the host would rather fail (onSaveError.then)', async () => {
    const { start, state } = world(isClaim, 'fail');
    const run = await start({ runId: 'r' });
    expect((await run.result).output).toContain('STORE_UNAVAILABLE');
    expect(state.refused).toBe(1);
  });

  test('is not waited for by a parent that is cancelled: it ends at once, and leaves no timer', async () => {
    const { start, clock } = world(isClaim);
    const run = await start({ runId: 'r' });
    await clock.advance(1_000);
    expect((await run.cancel()).status).toBe('cancelled');
    await settle();
    // The look for ends to deliver.
    expect(clock.pending).toBe(1);
  });
});
