import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { createCheckpointerFactory, createExecutor, defineAgent, defineTool, type RunOptions } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { callTool, callTools, reply, type ScriptedEntry, scriptedModel } from 'pawl/testing';
import { inspector } from './frames.ts';

const stem = 'hush';
/** A secret that says where it was put. */
export const secret = (where: string): string => `${stem}<${where}>`;

/** The places whose secrets stand in these texts. */
export function leaksIn(texts: Iterable<string>): string[] {
  const places = new Set<string>();
  for (const text of texts) for (const [, where = ''] of text.matchAll(/hush<([^>]*)>/g)) places.add(where);
  return [...places].sort();
}

const headers = (where: string) => ({ headers: { authorization: secret(where) }, apiKey: secret(`${where} key`) });

/** What HTTP clients throw: an error with the whole request in it. */
export function requestError(where: string, rest: object = {}): Error {
  const cause = Object.assign(new Error('refused'), { config: headers(`${where} cause`) });
  return Object.assign(new Error('401', { cause }), { request: headers(where), config: headers(where), ...rest });
}

/** A function with a secret in it, and one on it. */
function keeping<A extends unknown[], R>(where: string, work: (...args: A) => R): (...args: A) => R {
  const kept = headers(where);
  const keeper = (...args: A): R => {
    if (kept.apiKey === '') throw new Error('lost');
    return work(...args);
  };
  return Object.assign(keeper, { kept });
}

const script: readonly ScriptedEntry[] = [
  { type: 'fail', error: requestError('an error of the model', { isRetryable: true }) },
  callTools([
    { name: 'look', input: {} },
    { name: 'send', input: {} },
    { name: 'break', input: {} },
    { name: 'record', input: {} },
  ]),
  callTool('look', { n: 2 }),
  reply('done'),
];

const tool = (name: string, effect: 'read' | 'once', execute: () => unknown) =>
  defineTool({
    name,
    description: secret(`the description of ${name}`),
    input: { type: 'object', description: secret(`the schema of ${name}`) },
    effect,
    execute: keeping(`the tool ${name}`, execute) as never,
    ...headers(`the definition of ${name}`),
  });

/** An agent with AI SDK tools as well; a list and a record cannot be mixed, so two registries. */
const toolsOf = () => ({
  look: tool('look', 'read', async () => 'seen'),
  send: tool('send', 'once', async () => 'sent'),
  break: tool('break', 'read', () => Promise.reject(requestError('an error of a tool'))),
  record: {
    description: secret('the description of record'),
    inputSchema: { type: 'object' },
    execute: keeping('the tool record', async () => 'ok'),
    ...headers('the AI SDK tool'),
  },
});

/** A whole host with a secret in everything that is none of its runs' business. */
export function secretiveHost(play: readonly ScriptedEntry[] = script) {
  const folder = mkdtempSync(join(tmpdir(), `pawl-${stem}-`));
  const path = join(folder, secret('the path of the store'), 'runs.db');
  const log: string[] = [];
  const store = Object.assign(sqliteStore({ path }), { password: secret('the password of the store') });
  const failing = { ...store, append: failingOnce(store.append) };
  const factory = createCheckpointerFactory(failing, { ...headers('the options of the factory') } as never);
  const model = Object.assign(scriptedModel(play), { config: headers('the model') });
  const seen = inspector();
  const agent = defineAgent({
    id: 'keeper',
    instructions: secret('the instructions'),
    tools: toolsOf() as never,
    ...headers('the agent'),
  });
  const executor = createExecutor({
    models: Object.assign({ fast: model }, { other: Object.assign(scriptedModel([]), headers('another model')) }),
    agents: [agent],
    ports: { checkpointer: Object.assign(factory, headers('the factory')) },
    logger: Object.assign({ warn: (...line: unknown[]) => log.push(lineOf(line)) }, headers('the logger')),
    ids: keeping('ids', () => 'r'),
    inspect: keeping('inspect', seen.inspect),
    onStep: keeping('onStep', () => {
      throw requestError('an error of onStep');
    }),
    onOutcome: keeping('onOutcome', () => {}),
    ...headers('the options of the executor'),
  } as never);
  return {
    seen,
    log,
    executor,
    agent,
    model,
    /** The bytes of each file of the store, as text. */
    files: () => readdirSync(join(path, '..')).map((name) => readFileSync(join(path, '..', name)).toString('latin1')),
    async close() {
      await store.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Options of one run with secrets in them. */
export function secretiveOptions(signal: AbortSignal): RunOptions {
  const run = inspector();
  return {
    signal: Object.assign(signal, headers('the signal')),
    inspect: keeping('inspect of a run', run.inspect),
    onStep: keeping('onStep of a run', () => {}),
    ...headers('the options of the run'),
  } as RunOptions;
}

/** A log line as a console shows it and as JSON. */
function lineOf(line: readonly unknown[]): string {
  return `${inspect(line, { depth: 20, showHidden: true })} ${JSON.stringify(line)}`;
}

function failingOnce<A extends unknown[]>(append: (...args: A) => Promise<void>): (...args: A) => Promise<void> {
  let hasFailed = false;
  return (...args) => {
    if (hasFailed) return append(...args);
    hasFailed = true;
    return Promise.reject(requestError('an error of the store'));
  };
}
