import { defineTool, defineWorkflow, step } from 'pawl';
import { assign, setup } from 'xstate';
import { z } from 'zod';

/** Does something in the world for an order, once for each key: a warehouse, a bank, a carrier. */
export type Act = (what: string, order: string, key: string) => Promise<void>;

/** An order: what was done is undone in the opposite order when a later step fails. */
export function orderWith(act: Act) {
  const doing = (name: string) =>
    step(
      defineTool({
        name,
        description: `${name} for an order`,
        input: z.object({ order: z.string() }),
        effect: 'idempotent',
        execute: ({ order }, { idempotencyKey }) => act(name, order, idempotencyKey),
      }),
    );
  return defineWorkflow({
    id: 'order',
    input: z.object({ order: z.string() }),
    machine: setup({
      types: {
        input: {} as { order: string },
        context: {} as { order: string; why: string },
        output: {} as { why: string },
      },
      actors: {
        reserve: doing('reserve'),
        charge: doing('charge'),
        ship: doing('ship'),
        refund: doing('refund'),
        release: doing('release'),
      },
      actions: { blame: assign({ why: (_, { message }: { message: string }) => message }) },
    }).createMachine({
      id: 'order',
      context: ({ input }) => ({ order: input.order, why: '' }),
      initial: 'reserving',
      states: {
        reserving: {
          invoke: { src: 'reserve', input: ({ context }) => context, onDone: 'charging', onError: 'failed' },
        },
        charging: {
          invoke: {
            src: 'charge',
            input: ({ context }) => context,
            onDone: 'shipping',
            onError: { target: 'releasing', actions: { type: 'blame', params: ({ event }) => event.error as Error } },
          },
        },
        shipping: {
          invoke: {
            src: 'ship',
            input: ({ context }) => context,
            onDone: 'shipped',
            onError: { target: 'refunding', actions: { type: 'blame', params: ({ event }) => event.error as Error } },
          },
        },
        refunding: { invoke: { src: 'refund', input: ({ context }) => context, onDone: 'releasing' } },
        releasing: { invoke: { src: 'release', input: ({ context }) => context, onDone: 'failed' } },
        shipped: { type: 'final' },
        failed: { type: 'final' },
      },
      output: ({ context }) => ({ why: context.why }),
    }),
  });
}
