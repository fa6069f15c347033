// A host machine that spawns several runs, and is itself persisted and restored: a help desk with one clerk a ticket.
//
// In a project that has installed pawl and xstate (Node runs no TypeScript below node_modules, so copy the folder first):
//
//   npm pkg set type=module
//   cp -r node_modules/pawl/docs/examples/desk .
//   node desk/desk.ts "My printer is broken." "My mouse is gone."
//   node desk/desk.ts
//
// Ended in the middle by SIGKILL, SIGTERM or Ctrl-C, the second command continues with the open tickets. The desk is in
// desk.json, its runs in desk.db.
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { createExecutor, defineAgent, type Executor, type RunOutput } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { reply, scriptedModel } from 'pawl/testing';
import { type ActorRefFrom, assign, createActor, type DoneActorEvent, setup, waitFor } from 'xstate';

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
    types: {
      context: {} as { readonly opened: number; readonly answers: Readonly<Record<string, string>> },
      events: {} as DeskEvent,
    },
    actors: { clerk: executor.logic(clerk) },
  }).createMachine({
    id: 'desk',
    context: { opened: 0, answers: {} },
    on: {
      'ticket.opened': {
        actions: assign(({ spawn, context, event: { ticket } }) => {
          // The run's id makes the ticket's run the same one in every process.
          spawn('clerk', { id: `ticket.${ticket.id}`, input: { runId: `ticket.${ticket.id}`, prompt: ticket.text } });
          return { opened: context.opened + 1 };
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

/** Answers after a while; put a model of the AI SDK in its place. */
const model = scriptedModel(
  Array.from({ length: 1_000 }, () => async () => {
    await sleep(Number(process.env.ANSWER_MS ?? 500));
    return reply('It will be seen to.');
  }),
);

if (import.meta.main) {
  const executor = createExecutor({
    models: { fast: model },
    agents: [clerk],
    store: sqliteStore({ path: 'desk.db' }),
  });
  const machine = deskMachine(executor);
  const saved = existsSync('desk.json') ? { snapshot: JSON.parse(readFileSync('desk.json', 'utf8')) } : {};
  const desk = createActor(machine, saved).start();
  const keep = () => {
    // A crash in the middle of a write leaves the old file.
    writeFileSync('desk.json.new', JSON.stringify(desk.getPersistedSnapshot()));
    renameSync('desk.json.new', 'desk.json');
  };
  // The desk's own subscription: in that of a run the desk would not know of the run's end yet.
  desk.subscribe(keep);
  // A signal ends no run: each stays active in desk.json, and its record in desk.db.
  executor.shutdownOnSignals();
  for (const text of process.argv.slice(2)) {
    const id = String(desk.getSnapshot().context.opened + 1);
    desk.send({ type: 'ticket.opened', ticket: { id, text } });
    console.log(`ticket.${id}: ${text}`);
  }
  const { context } = await waitFor(desk, ({ context: { opened, answers } }) => Object.keys(answers).length === opened);
  for (const [ticket, answer] of Object.entries(context.answers)) console.log(`${ticket}: ${answer}`);
  await executor.shutdown();
}
