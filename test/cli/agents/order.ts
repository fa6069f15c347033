import { defineWorkflow } from 'pawl';
import { assign, setup } from 'xstate';

/** Counts once; with FLAKY set it fails at that. */
function counted(): number {
  if (process.env.FLAKY) throw new Error('no such order');
  return 1;
}

export default defineWorkflow({
  id: 'order',
  machine: setup({ types: { context: {} as { n: number }, output: {} as { n: number } } }).createMachine({
    context: { n: 0 },
    initial: 'open',
    states: { open: { after: { 1: { target: 'done', actions: assign({ n: counted }) } } }, done: { type: 'final' } },
    output: ({ context }) => context,
  }),
});
