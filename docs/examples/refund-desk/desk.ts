// A refund desk of several processes on one SQLite file. Each command is a process of its own, and may die at any moment.
//
//   node desk.ts ask case-7 "Refund A1 for 49.90 and B2 for 5.00, please."
//   node desk.ts inbox
//   node desk.ts approve case-7 <wait> ada
//   node desk.ts approve case-7 <wait> ben      (the second person)
//   node desk.ts deny case-7 <wait> ada "The order is too old."
//   node desk.ts work                           (takes up what is due, until Ctrl-C)
//   node desk.ts statement
//
// DESK=<folder> for another place than .pawl/desk
import { mkdirSync } from 'node:fs';
import { createExecutor } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { refundDesk } from './agent.ts';
import { Bank } from './bank.ts';
import { clerk } from './clerk.ts';

const team = { ada: 100_000, ben: 100_000, cleo: 3_000 };

const folder = process.env.DESK ?? '.pawl/desk';
mkdirSync(folder, { recursive: true });
const bank = new Bank(`${folder}/bank.jsonl`);
const agent = refundDesk(bank, team);
const store = sqliteStore({ path: `${folder}/runs.db` });
// Cases are kept for a month: replay.ts makes them again with another prompt.
const executor = createExecutor({ models: { fast: clerk() }, agents: [agent], store, retention: { records: '30d' } });

const [command, caseId = '', wait = '', person = '', reason = ''] = process.argv.slice(2);

async function inbox(): Promise<void> {
  for (const { runId, id, kind, ...rest } of await executor.waiting()) {
    const votes = 'votes' in rest ? ` (${rest.votes.length} of ${rest.quorum})` : '';
    console.log(`${runId} ${id} ${kind}${votes}: ${('prompt' in rest && rest.prompt) || rest.tool || ''}`);
  }
}

try {
  await obey();
} catch (error) {
  // An answer that comes too late, twice, or from the wrong person is said, and is no crash.
  const { code, message } = error as { readonly code?: string; readonly message: string };
  console.error(`${code ?? 'error'}: ${message}`);
  process.exitCode = 1;
}
await executor.shutdown();
await store.close();

async function obey(): Promise<void> {
  switch (command) {
    case 'ask': {
      const result = await executor.run(agent, { runId: caseId, prompt: wait });
      console.log(`${caseId} ${result.status}${result.status === 'ok' ? `: ${result.output}` : ''}`);
      if (result.status === 'waiting') await inbox();
      break;
    }
    case 'inbox':
      await inbox();
      break;
    case 'approve':
      console.log(await executor.control(caseId).approve(wait, { by: { id: person } }));
      break;
    case 'deny':
      console.log(await executor.control(caseId).deny(wait, { by: { id: person }, reason }));
      break;
    case 'work': {
      executor.shutdownOnSignals();
      const { resumed, waiting } = await executor.recover();
      console.log(`working: ${resumed.length} taken up, ${waiting} wait`);
      await executor.recover({ follow: true });
      break;
    }
    case 'statement':
      for (const { order, cents } of bank.transfers) console.log(`${order} ${cents}`);
      break;
    default:
      console.error('ask | inbox | approve | deny | work | statement: see the head of this file');
      process.exitCode = 2;
  }
}
