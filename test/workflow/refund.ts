import { ask, defineTool, defineWorkflow, step, waitForSignal } from 'pawl';
import { assign, setup } from 'xstate';
import { z } from 'zod';

const DAY = 86_400_000;

/** What the tools of a refund did. */
export interface Desk {
  readonly paid: { readonly cents: number; readonly key: string }[];
  /** Fails each payment with this error. */
  fail?: Error | undefined;
}

/** A refund: it looks an order up, asks a manager with a patience of three days, pays once, and waits until the bank has settled. */
export function refundOf(desk: Desk) {
  const lookUp = defineTool({
    name: 'lookUp',
    description: '',
    input: z.object({ order: z.string() }),
    effect: 'read',
    execute: async ({ order }) => ({ order, cents: order === 'small' ? 500 : 70_000 }),
  });
  const pay = defineTool({
    name: 'pay',
    description: '',
    input: z.object({ cents: z.number() }),
    effect: 'once',
    execute: async ({ cents }, { idempotencyKey: key }) => {
      if (desk.fail) throw desk.fail;
      desk.paid.push({ cents, key });
      return { receipt: `r-${cents}` };
    },
  });
  return defineWorkflow({
    id: 'refund',
    machine: setup({
      types: {
        input: {} as { order: string },
        context: {} as { order: string; cents: number; receipt: string; why: string },
        events: {} as { type: 'cancel'; by: string },
        output: {} as { receipt: string; why: string },
      },
      actors: {
        lookUp: step(lookUp),
        pay: step(pay),
        manager: ask({ question: (input: { cents: number }) => `Refund ${input.cents}?`, options: ['yes', 'no'] }),
        settled: waitForSignal('settled', { key: (input: { order: string }) => input.order }),
      },
      guards: { isSmall: ({ context }) => context.cents < 1_000 },
      delays: { patience: 3 * DAY },
    }).createMachine({
      id: 'refund',
      context: ({ input }) => ({ order: input.order, cents: 0, receipt: '', why: '' }),
      initial: 'looking',
      states: {
        looking: {
          invoke: {
            src: 'lookUp',
            input: ({ context }) => ({ order: context.order }),
            onDone: { target: 'deciding', actions: assign({ cents: ({ event }) => event.output.cents }) },
          },
        },
        deciding: { always: [{ guard: 'isSmall', target: 'paying' }, { target: 'asking' }] },
        asking: {
          invoke: {
            src: 'manager',
            input: ({ context }) => ({ cents: context.cents }),
            onDone: [{ guard: ({ event }) => event.output === 'yes', target: 'paying' }, { target: 'refused' }],
          },
          after: { patience: { target: 'refused', actions: assign({ why: 'no answer' }) } },
          on: { cancel: { target: 'refused', actions: assign({ why: ({ event }) => event.by }) } },
        },
        paying: {
          invoke: {
            src: 'pay',
            input: ({ context }) => ({ cents: context.cents }),
            onDone: { target: 'settling', actions: assign({ receipt: ({ event }) => event.output.receipt }) },
            onError: {
              target: 'refused',
              actions: assign({ why: ({ event }) => (event.error as { code: string }).code }),
            },
          },
        },
        settling: {
          invoke: { src: 'settled', input: ({ context }) => ({ order: context.order }), onDone: 'done' },
          after: { [DAY]: 'done' },
        },
        refused: { type: 'final' },
        done: { type: 'final' },
      },
      output: ({ context }) => ({ receipt: context.receipt, why: context.why }),
    }),
  });
}
