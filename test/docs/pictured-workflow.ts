// The workflow of the pictures: an order that is reviewed while its goods are held.
import { ask, defineTool, defineWorkflow, step, waitForSignal } from 'pawl';
import { setup } from 'xstate';
import { z } from 'zod';

const tool = (name: string) =>
  defineTool({
    name,
    description: '',
    input: z.object({}).optional(),
    effect: 'idempotent',
    execute: async () => ({ isThere: true }),
  });

/** An order: a person reviews it while the goods are held, and what was done is undone where that fails. */
export const order = defineWorkflow({
  id: 'order',
  machine: setup({
    types: { events: {} as { type: 'cancel' | 'pause' | 'resume' } },
    actors: {
      checkStock: step(tool('checkStock')),
      charge: step(tool('charge')),
      giveBack: step(tool('giveBack')),
      reviewer: ask({ question: 'May this order leave?', options: ['yes', 'no'] }),
      packed: waitForSignal('packed'),
    },
    guards: { isThere: () => true },
    delays: { patience: 3 * 86_400_000 },
  }).createMachine({
    id: 'order',
    initial: 'checking',
    states: {
      checking: {
        invoke: {
          src: 'checkStock',
          input: {},
          onDone: [{ guard: 'isThere', target: 'open' }, { target: 'cancelled' }],
        },
      },
      open: {
        type: 'parallel',
        on: { cancel: 'undoing' },
        onDone: 'paying',
        states: {
          review: {
            initial: 'asked',
            states: {
              asked: { invoke: { src: 'reviewer', onDone: 'fine' }, on: { pause: 'paused' } },
              paused: { on: { resume: 'asked' } },
              fine: { type: 'final' },
            },
          },
          goods: {
            initial: 'held',
            states: {
              held: { invoke: { src: 'packed', onDone: 'ready' }, after: { patience: '#order.undoing' } },
              ready: { type: 'final' },
            },
          },
        },
      },
      paying: { invoke: { src: 'charge', input: {}, onDone: 'done', onError: 'undoing' } },
      undoing: { invoke: { src: 'giveBack', input: {}, onDone: 'cancelled' } },
      done: { type: 'final' },
      cancelled: { type: 'final' },
    },
  }),
});
