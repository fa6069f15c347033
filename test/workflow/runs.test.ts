import { ask, createExecutor, defineTool, defineWorkflow, memoryStore, step, waitForSignal } from 'pawl';
import { testClock } from 'pawl/testing';
import { expect, test } from 'vitest';
import { assign, setup } from 'xstate';
import { z } from 'zod';

const lookUp = defineTool({
  name: 'lookUp',
  description: '',
  input: z.object({ order: z.string() }),
  effect: 'read',
  execute: async ({ order }) => ({ order, cents: 70_000 }),
});

function refundWith(paid: number[]) {
  const pay = defineTool({
    name: 'pay',
    description: '',
    input: z.object({ cents: z.number() }),
    effect: 'once',
    execute: async ({ cents }) => {
      paid.push(cents);
      return { receipt: `r-${cents}` };
    },
  });
  return defineWorkflow({
    id: 'refund',
    machine: setup({
      types: {
        input: {} as { order: string },
        context: {} as { order: string; cents: number; receipt: string },
        events: {} as { type: 'cancel'; by: string },
        output: {} as { receipt: string; by: string },
      },
      actors: {
        lookUp: step(lookUp),
        pay: step(pay),
        manager: ask({ question: (input: { cents: number }) => `Refund ${input.cents}?`, options: ['yes', 'no'] }),
        settled: waitForSignal('settled', { key: (input: { order: string }) => input.order }),
      },
      guards: { isSmall: ({ context }) => context.cents < 1_000 },
      delays: { patience: 3 * 86_400_000 },
    }).createMachine({
      context: ({ input }) => ({ order: input.order, cents: 0, receipt: '' }),
      initial: 'looking',
      states: {
        looking: {
          invoke: {
            src: 'lookUp',
            input: ({ context }) => ({ order: context.order }),
            onDone: { target: 'asking', actions: assign({ cents: ({ event }) => event.output.cents }) },
          },
        },
        asking: {
          invoke: {
            src: 'manager',
            input: ({ context }) => ({ cents: context.cents }),
            onDone: [{ guard: ({ event }) => event.output === 'yes', target: 'paying' }, { target: 'refused' }],
          },
          after: { patience: 'refused' },
          on: { cancel: 'refused' },
        },
        paying: {
          invoke: {
            src: 'pay',
            input: ({ context }) => ({ cents: context.cents }),
            onDone: { target: 'settling', actions: assign({ receipt: ({ event }) => event.output.receipt }) },
          },
        },
        settling: {
          invoke: { src: 'settled', input: ({ context }) => ({ order: context.order }), onDone: 'done' },
        },
        refused: { type: 'final' },
        done: { type: 'final' },
      },
      output: ({ context }) => ({ receipt: context.receipt, by: 'x' }),
    }),
  });
}

test('a workflow looks up, asks a person, pays once, waits for a signal, and has the output of its machine (workflow 1, 7, 8, 11)', async () => {
  const paid: number[] = [];
  const refund = refundWith(paid);
  const clock = testClock(1_000_000);
  const store = memoryStore({ clock });
  const executor = createExecutor({
    checkpoints: store,
    workflows: [refund],
    clock,
    defaults: { waitLingerMs: 1_000_000_000 },
  });
  const run = await executor.start(refund, { runId: 'r', input: { order: '42' } });
  const seen: unknown[] = [];
  void (async () => {
    for await (const event of run.events()) seen.push([event.type, (event as { to?: unknown }).to]);
  })();
  for (let i = 0; i < 100; i++) await new Promise((r) => setImmediate(r));
  const [wait] = await executor.waiting({ kind: 'question' });
  console.log(JSON.stringify(await executor.waiting()));
  await executor.control('r').answer(wait?.id ?? '', 'yes');
  for (let i = 0; i < 100; i++) await new Promise((r) => setImmediate(r));
  console.log(JSON.stringify(await store.load('r'), null, 1));
  await executor.signal('settled', { ok: true }, { key: '42', id: 's' });
  const result = await run.result;
  console.log(JSON.stringify(result), seen);
  expect(result).toMatchObject({ status: 'ok', data: { receipt: 'r-70000' } });
  expect(paid).toEqual([70_000]);
});
