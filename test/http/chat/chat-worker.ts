import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createExecutor, defineAgent, defineTool } from 'pawl';
import { httpHandler, toNodeListener } from 'pawl/http';
import { sqliteStore } from 'pawl/stores/sqlite';
import { callTool, reply } from 'pawl/testing';
import { answeringModel, turnsOf } from '../../fixtures/answering-model.ts';

/** A server of one chat on a SQLite file, which is killed at any time. It says its port. */
const [folder = ''] = process.argv.slice(2);

const mail = defineTool({
  name: 'mail',
  description: 'Sends a mail.',
  effect: 'idempotent',
  needsApproval: true,
  input: { type: 'object', properties: { to: { type: 'string' } } },
  execute: async (_, { idempotencyKey }) => {
    appendFileSync(`${folder}/mails.log`, `${idempotencyKey}\n`);
    return 'sent';
  },
});
const text = Array.from({ length: 40 }, (_, i) => `word ${i}`).join(' ');
const agent = defineAgent({ id: 'worker', name: 'Worker', instructions: 'Mail.', tools: [mail] });
const executor = createExecutor({
  models: {
    fast: answeringModel((request) => (turnsOf(request) === 0 ? callTool('mail', { to: 'bo' }) : reply(text))),
  },
  agents: [agent],
  store: sqliteStore({ path: `${folder}/runs.db` }),
  journal: { flushMs: 2 },
  defaults: { waitLingerMs: 1, dueMs: 20, controlMs: 20, leaseMs: 1_000 },
});
const handler = httpHandler(executor, {
  agents: { worker: agent },
  authorize: () => ({ callerId: 'ada', by: { id: 'ada' } }),
});
await executor.recover();
const server = createServer(toNodeListener(handler));
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port));
