import { defineTool, defineWorkflow, step, waitForSignal } from 'pawl';
import { setup } from 'xstate';
import { z } from 'zod';

const DAY = 86_400_000;

/** An invoice: a reminder after 14 days, a warning after 30, and no service after 45, unless it is paid. No process waits for it. */
export function dunningWith(mail: (what: string, customer: string, key: string) => Promise<void>) {
  const sending = (what: string) =>
    step(
      defineTool({
        name: what,
        description: `Sends a customer: ${what}.`,
        input: z.object({ customer: z.string() }),
        effect: 'idempotent',
        execute: ({ customer }, { idempotencyKey }) => mail(what, customer, idempotencyKey),
      }),
    );
  return defineWorkflow({
    id: 'dunning',
    machine: setup({
      types: { input: {} as { customer: string }, context: {} as { customer: string } },
      actors: {
        paid: waitForSignal('paid', { key: (input: { customer: string }) => input.customer }),
        remind: sending('remind'),
        warn: sending('warn'),
        suspend: sending('suspend'),
      },
    }).createMachine({
      id: 'dunning',
      context: ({ input }) => input,
      invoke: { src: 'paid', input: ({ context }) => context, onDone: '.paid' },
      initial: 'due',
      states: {
        due: { after: { [14 * DAY]: 'reminded' } },
        reminded: { invoke: { src: 'remind', input: ({ context }) => context }, after: { [16 * DAY]: 'warned' } },
        warned: { invoke: { src: 'warn', input: ({ context }) => context }, after: { [15 * DAY]: 'suspending' } },
        suspending: { invoke: { src: 'suspend', input: ({ context }) => context, onDone: 'suspended' } },
        suspended: { type: 'final' },
        paid: { type: 'final' },
      },
    }),
  });
}
