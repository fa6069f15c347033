// One process of a host whose machine invokes a run, to be ended at any moment: node hosted-worker.ts '<job as JSON>'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createExecutor, defineAgent } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { hang, reply, scriptedModel } from 'pawl/testing';
import { assign, createActor, setup, waitFor } from 'xstate';

export interface HostedJob {
  readonly folder: string;
  readonly isGuarded: boolean;
  /** Whether the model answers; one that does not is where the process is ended. */
  readonly isAnswered: boolean;
}

const { folder, isGuarded, isAnswered } = JSON.parse(process.argv[2] ?? '') as HostedJob;
const file = join(folder, 'host.json');
const agent = defineAgent({ id: 'clerk', instructions: 'Answer the ticket.' });
const model = scriptedModel([
  () => {
    process.stdout.write('asked\n');
    return isAnswered ? reply('Solved.') : hang();
  },
]);
const store = sqliteStore({ path: join(folder, 'runs.db') });
const executor = createExecutor({
  models: { fast: model },
  agents: [agent],
  store,
  defaults: { leaseMs: 300, dueMs: 50 },
});

const { createMachine } = setup({
  types: { context: {} as { readonly heard: readonly string[] } },
  actors: { clerk: executor.logic(agent) },
  guards: { isOk: (_, status: string) => status === 'ok' || !isGuarded },
  actions: { hear: assign({ heard: ({ context }, status: string) => [...context.heard, status] }) },
});
const machine = createMachine({
  context: { heard: [] },
  initial: 'answering',
  states: {
    answering: {
      invoke: {
        src: 'clerk',
        input: { runId: 'ticket-7', prompt: 'My printer is on fire.' },
        onDone: {
          guard: { type: 'isOk', params: ({ event }) => event.output.status },
          target: 'answered',
          actions: { type: 'hear', params: ({ event }) => event.output.status },
        },
      },
    },
    answered: { type: 'final' },
  },
});
const actor = createActor(machine, existsSync(file) ? { snapshot: JSON.parse(readFileSync(file, 'utf8')) } : {});
actor.subscribe(() => {
  writeFileSync(`${file}.new`, JSON.stringify(actor.getPersistedSnapshot()));
  renameSync(`${file}.new`, file);
});
actor.start();
executor.shutdownOnSignals();
const { context } = await waitFor(actor, ({ status }) => status === 'done', { timeout: Number.POSITIVE_INFINITY });
process.stdout.write(`heard ${context.heard.join(', ')}\n`);
await executor.shutdown();
await store.close();
