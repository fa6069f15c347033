import fc from 'fast-check';
import { type Executor, memoryStore } from 'pawl';
import { callTool, reply, type ScriptedEntry } from 'pawl/testing';
import { expect, test } from 'vitest';
import { ShutdownError } from '../../../src/values/errors.ts';
import { torture } from '../../crash/random.ts';
import { hostOf, settle, toolOf, until } from '../../fixtures/host.ts';

const RUNS = torture > 1 ? 200 : 60;

/** A model for all runs of one executor: where a run is, is told by its transcript. */
const scriptFor = (steps: number): ScriptedEntry[] =>
  Array.from(
    { length: RUNS * (steps + 2) },
    (): ScriptedEntry =>
      async ({ messages }) => {
        await settle(messages.length % 3);
        const done = (messages.length - 1) / 2;
        return done < steps ? callTool(done % 2 === 0 ? 'once' : 'look', { done }) : reply('end');
      },
  );

test(`${RUNS} runs shut down at random moments, and again while they drain, all end ok after a restart (finalize 9)`, async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.nat(400), { minLength: 1, maxLength: 4 }),
      fc.nat(3),
      fc.boolean(),
      async (moments, again, byDispose) => {
        const store = memoryStore();
        const outcomes = new Map<string, string[]>();
        const effects = new Map<string, number>();
        const once = toolOf('once', 'once', async (_, { idempotencyKey, signal }) => {
          effects.set(idempotencyKey, (effects.get(idempotencyKey) ?? 0) + 1);
          await settle(2);
          signal.throwIfAborted();
        });
        const steps = 4;
        const boot = () =>
          hostOf({
            script: scriptFor(steps),
            tools: [once, toolOf('look')],
            store,
            onOutcome: ({ runId, status }) => void outcomes.set(runId, [...(outcomes.get(runId) ?? []), status]),
          });
        const stop = async (executor: Executor) => {
          const first = byDispose ? executor[Symbol.asyncDispose]() : executor.shutdown();
          await settle(again);
          await Promise.all([first, executor.shutdown()]);
          await settle();
        };

        let host = boot();
        for (let i = 0; i < RUNS; i++) void host.start({ runId: `r${i}` });
        for (const moment of moments) {
          await settle(moment % 40);
          await stop(host.executor);
          host = boot();
          void host.executor.recover({ concurrency: RUNS });
        }
        const started = (await store.listInterrupted()).length + outcomes.size;
        await until(async () => (await store.listInterrupted()).length === 0, 'the end of all runs');
        await settle();
        expect(outcomes.size).toBe(started);
        for (const [runId, statuses] of outcomes) expect([runId, ...statuses]).toEqual([runId, 'ok']);
        for (const [key, count] of effects) expect([key, count]).toEqual([key, 1]);
      },
    ),
    { numRuns: 4 },
  );
}, 180_000);

test('a shutdown that the host says again, or by a signal too, is still one shutdown (finalize 8, 9)', async () => {
  const store = memoryStore();
  const controller = new AbortController();
  const host = hostOf({ script: [() => new Promise(() => {})], store });
  const run = await host.start({ runId: 'r' }, { signal: controller.signal });
  controller.abort(new ShutdownError());
  const stops = [host.executor.shutdown(), host.executor.shutdown(), run.cancel()];
  await Promise.all(stops);
  expect((await run.result).status).toBe('interrupted');
  expect(await store.listInterrupted()).toMatchObject([{ runId: 'r', attempts: 0 }]);
});
