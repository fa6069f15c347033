// node main.ts [order]: refunds an order. Kill it at any time and start it again: it continues where it was.
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { createExecutor } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import desk, { models } from './agent.ts';

const order = process.argv[2] ?? '7';
const runId = `refund-${order}`;
const person = { id: process.env.USER ?? 'you' };
const over = Promise.withResolvers<string>();

const executor = createExecutor({
  agents: [desk],
  models,
  store: sqliteStore({ path: process.env.RUNS_DB ?? 'runs.db' }),
  onOutcome: (outcome) => {
    if (outcome.runId === runId) over.resolve(outcome.output || `ended: ${outcome.status}`);
  },
  defaults: { dueMs: 250 }, // it looks for answers four times a second
});
executor.shutdownOnSignals();
await executor.recover(); // continues what the last process left
const run = await executor.start(desk, { runId, prompt: `Refund order ${order}.` });
// An order is refunded once: a second start gets the first answer.
if (run.accepted === 'ended') over.resolve((await run.result).output);

while ((await Promise.race([over.promise, sleep(250)])) === undefined) {
  for (const wait of await executor.waiting({ kind: 'approval' })) {
    const said = await ask(wait.kind === 'approval' ? (wait.prompt ?? '') : '');
    if (said === undefined) over.resolve('There is no terminal to answer: the run waits until the next start.');
    else if (/^y(es)?$/i.test(said)) await executor.control(wait.runId).approve(wait.id, { by: person });
    else await executor.control(wait.runId).deny(wait.id, { by: person, reason: 'not this time' });
    await sleep(500); // the run reads the answer
  }
}
console.log(await over.promise);
await executor.shutdown();

/** Asks the terminal; undefined = there is none. */
function ask(question: string): Promise<string | undefined> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  return new Promise((resolve) => {
    terminal.on('close', () => resolve(undefined));
    terminal.question(`${question} [y/N] `, (said) => {
      resolve(said.trim());
      terminal.close();
    });
  });
}
