import { memoryStore, type RunOutcome } from 'pawl';
import { reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { gate, hostOf, settle } from '../../fixtures/host.ts';
import { afterCrash } from '../../fixtures/watched-store.ts';

const stages = ['onOutcome', 'outcomes.keep', 'delete'] as const;

/** A host whose run has its answer, and stands at one of the last steps of its end. */
async function hostAt(stage: (typeof stages)[number]) {
  const clock = testClock();
  const store = memoryStore({ clock });
  const held = gate();
  const told: RunOutcome[] = [];
  const at = (name: (typeof stages)[number]) => (name === stage ? held.pass() : undefined);
  const checkpoints: typeof store = {
    ...store,
    outcomes: {
      ...store.outcomes,
      keep: async (...given) => {
        await at('outcomes.keep');
        return store.outcomes.keep(...given);
      },
    },
    delete: async (...given) => {
      await at('delete');
      return store.delete(...given);
    },
  };
  const host = hostOf({
    clock,
    store: checkpoints,
    script: [reply('the answer')],
    onOutcome: async (outcome) => {
      told.push(outcome);
      await at('onOutcome');
    },
  });
  const run = await host.start({ runId: 'r' });
  await held.reached;
  return { host, run, clock, store, held, told };
}

describe('a shutdown in the middle of the end of a run (faults 22)', () => {
  test.each(stages)('lets the end continue from %s, when there is time for it', async (stage) => {
    const { host, run, store, held, told } = await hostAt(stage);
    const shutdown = host.executor.shutdown();
    await settle();
    held.open();
    await shutdown;
    expect(await run.result).toMatchObject({ status: 'ok', output: 'the answer' });
    expect(told.map(({ status }) => status)).toEqual(['ok']);
    expect(await store.listInterrupted()).toEqual([]);
    expect((await store.outcomes.find('r'))?.status).toBe('ok');
  });

  test.each(stages)(
    'that hangs at %s is over in time; the outcome is what it was, and is delivered by the next process',
    async (stage) => {
      const { host, clock, store, told } = await hostAt(stage);
      const shutdown = host.executor.shutdown({ drainMs: 1_000 });
      let isOver = false;
      void shutdown.then(() => {
        isOver = true;
      });
      await clock.advance(1_000);
      await settle();
      expect(isOver).toBe(true);

      const left = await afterCrash(store);
      const again: RunOutcome[] = [];
      const next = hostOf({
        script: [],
        store: left,
        onOutcome: (outcome) => void again.push(outcome),
      });
      await next.executor.recover();
      const end = await next.run({ runId: 'r' });
      expect(end).toMatchObject({ status: 'ok', output: 'the answer' });
      expect(again.map(({ status, output }) => [status, output])).toEqual([['ok', 'the answer']]);
      expect(new Set([...told, ...again].map(({ outcomeId }) => outcomeId)).size).toBe(1);
      expect(next.model.calls.length).toBe(0);
      expect(await left.listInterrupted()).toEqual([]);
    },
  );
});
