// Takes the cases that the refund desk has closed, and says what would have been different with another prompt. No money moves.
//
//   node replay.ts            (the cases of DESK, else of .pawl/desk)
import { createExecutor } from 'pawl';
import { readRun, replay } from 'pawl/lab';
import { sqliteStore } from 'pawl/stores/sqlite';
import { refundDesk } from './agent.ts';
import { Bank } from './bank.ts';
import { clerk } from './clerk.ts';
import { effectsOf } from './evals.ts';

const folder = process.env.DESK ?? '.pawl/desk';
const store = sqliteStore({ path: `${folder}/runs.db` });
const executor = createExecutor({ store });

// The desk as it is, and as it may be tomorrow. Neither can reach the bank: a replay runs no tool with an effect.
const today = refundDesk(new Bank(`${folder}/bank.jsonl`), {});
const tomorrow = { ...today, instructions: `${today.instructions} Refund whole euros only.` };

for (const { runId } of await executor.history()) {
  const run = await readRun(executor, runId);
  // The agent of today still works through the case: this is the test of a deploy, and costs nothing.
  const baseline = await replay(run, { agent: today });
  // The model of today with the prompt of tomorrow. A refund with another sum gets the recorded result of the next one.
  const candidate = await replay(run, { agent: tomorrow, model: clerk() });
  console.log(`${runId}: ${baseline.same ? 'the same today' : 'not the same today'}`);
  const [was, is] = [run, candidate].map((each) => effectsOf(each).map((call) => JSON.stringify(call)));
  for (const [i, call] of (was ?? []).entries())
    if (call !== is?.[i]) console.log(`  ${call} → ${is?.[i] ?? 'nothing'}`);
}
await store.close();
