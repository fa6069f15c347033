// One process that asks four models, to be killed: node -C pawl-source kill-worker.ts '<job as JSON>'
import { existsSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { defineTool } from 'pawl';
import { fanOut } from 'pawl/fan-out';
import { callTool, callTools, reply, type ScriptedRequest, type ScriptedStep, scriptedModel } from 'pawl/testing';
import { appendJsonLine } from '../crash/json-lines.ts';
import type { KillJob } from './kill-trial.ts';

const { folder, path, naive } = JSON.parse(process.argv[2] ?? '') as KillJob;
const ledger = (line: object) => appendJsonLine(join(folder, 'ledger.jsonl'), line);
const text = (size: number, seed: string) => `${seed} `.repeat(size / (seed.length + 1));

/** Writes something outside, twice for the same call when that call was under way as its process died. */
const publish = defineTool({
  name: 'publish',
  description: 'Publishes a text.',
  input: { type: 'object', properties: { title: { type: 'string' } }, required: ['title'] },
  effect: 'idempotent',
  execute: ({ title }, { idempotencyKey }) => {
    ledger({ event: 'published', title: String(title), key: idempotencyKey });
    return 'published';
  },
});

/** What each model does, turn by turn; which turn it is stands in what it is asked. */
const plans: Readonly<Record<string, readonly ScriptedStep[]>> = {
  quick: [reply('Quick.')],
  reader: [
    callTool('list_files', {}, 'r1'),
    callTool('read_file', { path: 'a.txt' }, 'r2'),
    callTools([
      { name: 'read_file', input: { path: 'b.txt' }, callId: 'r3' },
      { name: 'read_file', input: { path: 'c.txt' }, callId: 'r4' },
    ]),
    callTool('read_file', { path: 'none.txt' }, 'r5'),
    reply('Read it all.'),
  ],
  writer: [
    callTool('read_file', { path: 'a.txt' }, 'w1'),
    callTool('write_file', { path: 'a.txt', content: text(900, 'changed') }, 'w2'),
    callTools([
      { name: 'write_file', input: { path: 'new/one.txt', content: text(400, 'one') }, callId: 'w3' },
      { name: 'delete_file', input: { path: 'c.txt' }, callId: 'w4' },
    ]),
    callTool('read_file', { path: 'a.txt' }, 'w5'),
    callTool('write_file', { path: 'new/one.txt', content: text(500, 'two') }, 'w6'),
    reply('Three files are to be changed.'),
  ],
  publisher: [
    callTool('publish', { title: 'first' }, 'p1'),
    callTool('publish', { title: 'second' }, 'p2'),
    callTool('read_file', { path: 'b.txt' }, 'p3'),
    callTool('publish', { title: 'third' }, 'p4'),
    callTool('write_file', { path: 'log.txt', content: 'published\n' }, 'p5'),
    callTool('list_files', { folder: '' }, 'p6'),
    reply('All is out.'),
  ],
};

function planned(modelId: string) {
  const plan = plans[modelId] ?? [];
  const play = async ({ messages }: ScriptedRequest): Promise<ScriptedStep> => {
    const turn = messages.filter(({ role }) => role === 'assistant').length;
    process.stdout.write('working\n');
    ledger({ event: 'asked', modelId, turn, pid: process.pid });
    await sleep(4);
    return plan[turn] ?? reply('There is no such turn.');
  };
  return scriptedModel(Array.from({ length: 50 }, () => play));
}

if (naive === 'forgetful') for (const each of [path, `${path}.runs`]) rmSync(each, { recursive: true, force: true });
if (naive === 'in-place') {
  const broken = `{"version":1,"prompt":"${'x'.repeat(100_000)}`;
  setInterval(() => existsSync(path) && writeFileSync(path, broken), 3).unref();
}

const models = Object.fromEntries(Object.keys(plans).map((id) => [id, planned(id)]));
const prices = () => 0.001;
process.stdout.write('started\n');
const { responses, interrupted, saveError } = await fanOut({
  prompt: 'Work.',
  models,
  tools: [publish],
  path,
  root: join(folder, 'tree'),
  prices,
});
if (saveError) throw new Error(saveError.message);
const result = { interrupted, responses: responses.map((response) => ({ ...response, latencyMs: 0 })) };
writeFileSync(join(folder, 'result.tmp'), JSON.stringify(result));
renameSync(join(folder, 'result.tmp'), join(folder, 'result.json'));
process.stdout.write('ended\n');
