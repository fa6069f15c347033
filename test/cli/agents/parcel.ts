import { ask, defineWorkflow } from 'pawl';
import { assign, setup } from 'xstate';

/** Waits for a manager, for at most a day; a clerk may stop it. */
export default defineWorkflow({
  id: 'parcel',
  machine: setup({
    types: { context: {} as { by: string }, events: {} as { type: 'stop'; by: string }, output: {} as { by: string } },
    actors: { manager: ask({ question: 'Send it?' }) },
    delays: { aDay: 86_400_000 },
  }).createMachine({
    context: { by: '' },
    initial: 'asking',
    states: {
      asking: {
        invoke: { src: 'manager', onDone: 'done' },
        on: { stop: { target: 'done', actions: assign({ by: ({ event }) => event.by }) } },
        after: { aDay: 'done' },
      },
      done: { type: 'final' },
    },
    output: ({ context }) => context,
  }),
});
