import { defineWorkflow } from 'pawl';
import { setup } from 'xstate';

/** A workflow that waits for an event, without a call and a timer. */
export default defineWorkflow({
  id: 'door',
  machine: setup({ types: { events: {} as { type: 'go' } } }).createMachine({
    initial: 'open',
    states: { open: { on: { go: 'gone' } }, gone: { type: 'final' } },
  }),
});
