/*
 * A host with one thread: `node talker.ts <file> <messages>`. It sends all messages, in their order, and ends when each has had its
 * turn. Killed at any time, it may be started again.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { createExecutor, defineAgent } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { callTool, reply, type ScriptedEntry, scriptedModel } from 'pawl/testing';
import { toolOf } from '../../fixtures/host.ts';
import { textsIn } from './thread-host.ts';

const [path = '', count = '0'] = process.argv.slice(2);
const ids = Array.from({ length: Number(count) }, (_, i) => `m${i}`);
const script = Array.from(
  { length: 1_000 },
  (): ScriptedEntry =>
    async ({ messages }) => {
      await sleep(3);
      const last = messages.at(-1);
      if (last?.role === 'user') return callTool('work', {}, `call-${messages.length}`);
      return reply(`re ${textsIn(messages.filter(({ role }) => role === 'user')).at(-1)}`);
    },
);
const agent = defineAgent({ id: 'echo', name: 'Echo', instructions: 'Echo.', tools: [toolOf('work', 'once')] });
const store = sqliteStore({ path, durability: 'process' });
// On a busy machine each of several processes in a row may die before it has recorded anything: that must not park the run.
const defaults = { maxAttempts: 1_000 };
const executor = createExecutor({ models: { fast: scriptedModel(script) }, agents: [agent], store, defaults });
const thread = executor.thread('t', { agent, callerId: 'ada' });
await executor.recover();
for (const id of ids) await thread.send({ id, text: id });
process.stdout.write('sent\n');
for (const id of ids) while ((await thread.turn(id))?.state !== 'ended') await sleep(5);
process.stdout.write('ended\n');
process.exit(0);
