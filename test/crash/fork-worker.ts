// Forks, or imports, and is killed at a call of its store: node -C pawl-source fork-worker.ts <file> origin|fork|import <call>
import { appendFileSync, existsSync, writeFileSync, writeSync } from 'node:fs';
import { createExecutor, defineAgent, defineTool } from 'pawl';
import { exportRuns, importRuns, readRun } from 'pawl/lab';
import { sqliteStore } from 'pawl/stores/sqlite';
import { callTool, reply, scriptedModel } from 'pawl/testing';
import { wrapStore } from '../../src/store/read-only.ts';

const [path = '', what = '', at = '0'] = process.argv.slice(2);
const script = [callTool('pay', { n: 1 }), callTool('pay', { n: 2 }), reply('done')];
const file = `${path}.jsonl`;

let calls = 0;
/** Each write of the store has a moment before it, and one after it. */
const moment = () => {
  if (++calls === Number(at)) process.kill(process.pid, 'SIGKILL');
};

const inner = sqliteStore({ path: what === 'import' ? `${path}.import` : path });
const writes = ['claim', 'save', 'append', 'history.end', 'release', 'renew', 'due.leave'];
const store = wrapStore(inner, (name, call) =>
  !writes.includes(name)
    ? call
    : async (...args) => {
        moment();
        const done = await call(...args);
        moment();
        return done;
      },
);

const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  input: { type: 'object' },
  effect: 'once',
  execute: (input, { idempotencyKey }) => {
    appendFileSync(`${path}.paid`, `${what} ${JSON.stringify(input)} ${idempotencyKey}\n`);
    return 'paid';
  },
});
const agent = defineAgent({ id: 'worker', instructions: 'Work.', tools: [pay] });
const kept = what === 'fork' ? await inner.load('f') : null;
const answered = kept ? kept.iteration + (kept.openStep ? 1 : 0) : 1;
const model = scriptedModel(script.slice(what === 'fork' ? answered : 0));
const executor = createExecutor({ agents: [agent], models: { fast: model }, store, retention: { records: '1h' } });

if (what === 'origin') {
  await executor.run(agent, { runId: 'r', prompt: 'Pay.' });
  const lines: string[] = [];
  for await (const line of exportRuns(executor, ['r'])) lines.push(line);
  writeFileSync(file, lines.join(''));
}
if (what === 'fork') {
  const run = await executor.fork('r', { at: 1, runId: 'f', effects: 'live' });
  const { status, output } = await run.result;
  const messages = await executor.messages('f');
  writeSync(1, JSON.stringify({ status, output, messages: messages?.length, calls }));
}
if (what === 'import') {
  const { imported, skipped } = existsSync(file) ? await importRuns(executor, file) : { imported: [], skipped: [] };
  const { status, imported: isImported } = await readRun(executor, 'r');
  writeSync(1, JSON.stringify({ status, isImported, runs: imported.length + skipped.length, calls }));
}
await executor.shutdown();
await inner.close();
