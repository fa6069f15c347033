// The refund desk, to be played through in Studio. Two terminals, one command each:
//
//   node docs/examples/refunds/play.ts                             (works until Ctrl-C)
//   npx --no-install pawl studio --store .pawl/refunds.db --write --open        (the page: approve, change, deny, steer)
//
// Refunds of 10 € and more wait for a person. Kill this process at any moment, and start it again: no money moves twice.
import { mkdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { createExecutor } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { callTool, reply, type ScriptedRequest, scriptedModel } from 'pawl/testing';
import { refundDesk } from './desk.ts';

const path = process.env.REFUNDS ?? '.pawl/refunds.db';
const SLOW_MS = Number(process.env.REFUNDS_MS ?? 1_500);
const DAY_MS = 86_400_000;

/** Takes the place of a language model, so that no key is needed: it refunds each order that the prompt names. */
async function clerk({ messages }: ScriptedRequest) {
  await sleep(SLOW_MS);
  const asked = JSON.stringify(messages.find(({ role }) => role === 'user'));
  const orders = [...asked.matchAll(/\b[A-Z]\d\b/g)].map(([order]) => order);
  const done = messages.filter(({ role }) => role === 'tool').length;
  // Each order is looked up, and then refunded.
  const order = orders[Math.floor(done / 2)];
  if (order === undefined) return reply(`Done with ${orders.join(' and ')}.`);
  return callTool(done % 2 === 0 ? 'look_up' : 'refund', { order }, `call-${done}`);
}

const agent = refundDesk({
  async refund(order, reference) {
    await sleep(SLOW_MS);
    console.log(`  money moves: ${order}, reference ${reference.slice(0, 8)}`);
    return `refunded ${order}`;
  },
});

mkdirSync('.pawl', { recursive: true });
const store = sqliteStore({ path });
const executor = createExecutor({
  models: { fast: scriptedModel(Array.from({ length: 1_000 }, () => clerk)) },
  agents: [agent],
  store,
  journal: true, // Studio's timeline
  retention: { records: 7 * DAY_MS }, // Studio shows runs that have ended as well
  // B2 cost 4.50 €: only that is refunded without a person.
  approvals: ({ name, input }) => (name === 'refund' && !JSON.stringify(input).includes('B2') ? 'ask' : undefined),
});
executor.shutdownOnSignals();

void executor.recover({ follow: true }); // what an earlier process left, and what a person answers from now on
const cases = { 'case-1': 'Refund B2.', 'case-2': 'Refund A1, please.', 'case-3': 'Refund B2 and C3. It is urgent!' };
for (const [runId, prompt] of Object.entries(cases)) await executor.start(agent, { runId, prompt });
console.log(
  `Works on three cases in ${path}. Look at them: npx --no-install pawl studio --store ${path} --write --open`,
);
