// A host machine that spawns several runs, and is itself persisted and restored: a help desk with one clerk a ticket.
import type { Executor } from 'pawl';
import { defineAgent, type RunOutput } from 'pawl';
import { type ActorRefFrom, assign, type DoneActorEvent, setup } from 'xstate';

export const clerk = defineAgent({ id: 'clerk', instructions: 'Answer the ticket in one sentence.' });

export interface Ticket {
  readonly id: string;
  readonly text: string;
}

type DeskEvent =
  | { readonly type: 'ticket.opened'; readonly ticket: Ticket }
  | { readonly type: 'ticket.withdrawn'; readonly id: string }
  | DoneActorEvent<RunOutput, `ticket.${string}`>;

/** The desk. Its snapshot holds only references to its runs: their truth is the store. */
export function deskMachine(executor: Executor) {
  return setup({
    types: { context: {} as { readonly answers: Readonly<Record<string, string>> }, events: {} as DeskEvent },
    actors: { clerk: executor.logic(clerk) },
  }).createMachine({
    id: 'desk',
    context: { answers: {} },
    on: {
      'ticket.opened': {
        actions: assign(({ spawn, event: { ticket } }) => {
          // The run's id makes the ticket's run the same one in every process.
          spawn('clerk', { id: `ticket.${ticket.id}`, input: { runId: `ticket.${ticket.id}`, prompt: ticket.text } });
          return {};
        }),
      },
      'ticket.withdrawn': {
        // Leaving a run is not cancelling it: a host that means cancel says so.
        actions: ({ self, event }) =>
          (self.getSnapshot().children[`ticket.${event.id}`] as ActorRefFrom<typeof executor.logic> | undefined)?.send({
            type: 'run.cancel',
            reason: 'the ticket was withdrawn',
          }),
      },
      'xstate.done.actor.ticket.*': {
        actions: assign({
          answers: ({ context, event }) => ({
            ...context.answers,
            [event.actorId]: event.output.status === 'ok' ? event.output.output : event.output.status,
          }),
        }),
      },
    },
  });
}
