import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { type Clock, createExecutor, defineAgent, defineTool, type ExecutorOptions, type RunOptions } from 'pawl';
import { createCheckpointerFactory } from 'pawl/stores/kit';
import { sqliteStore } from 'pawl/stores/sqlite';
import { callTool, callTools, reply, type ScriptedEntry, scriptedModel } from 'pawl/testing';
import type { InspectionEvent, Observer } from 'xstate';
import { systemClock } from '../../src/values/clock.ts';

const stem = 'hush';
/** A secret that says where it was put. */
export const secret = (where: string): string => `${stem}<${where}>`;

/** The places whose secrets stand in these texts. */
export function leaksIn(texts: Iterable<string>): string[] {
  const places = new Set<string>();
  for (const text of texts) for (const [, where = ''] of text.matchAll(/hush<([^>]*)>/g)) places.add(where);
  return [...places].sort();
}

const headers = (where: string) => ({
  headers: { authorization: secret(where) },
  apiKey: secret(`${where} key`),
  providerOptions: { vendor: { token: secret(`${where} provider options`) } },
});

/** The same where other names are refused: keys that are symbols are nobody's typing errors. */
const beside = (where: string) => ({ [Symbol('kept by the host')]: headers(where) });

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
    ...beside(`the definition of ${name}`),
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

/** The clock of this machine, with something to keep. */
function clockOf(where: string): Clock {
  const { now, monotonic, setTimeout, clearTimeout } = systemClock;
  const kept = { now: keeping(`now of ${where}`, now), setTimeout: keeping(`setTimeout of ${where}`, setTimeout) };
  return { monotonic, clearTimeout, ...kept, ...headers(where) } as Clock;
}

/** A whole host with a secret in everything that is none of its runs' business. */
export function secretiveHost(client: Observer<InspectionEvent>, play: readonly ScriptedEntry[] = script) {
  const folder = mkdtempSync(join(tmpdir(), `pawl-${stem}-`));
  const path = join(folder, secret('the path of the store'), 'runs.db');
  const log: string[] = [];
  const storeOptions = { path, clock: clockOf('the clock of the store'), ...beside('the options of the store') };
  const store = Object.assign(sqliteStore(storeOptions), { password: secret('the password of the store') });
  const failing = { ...store, append: failingOnce(store.append) };
  const factory = createCheckpointerFactory(failing, { ...beside('the options of the factory') } as never);
  const model = Object.assign(scriptedModel(play), { config: headers('the model') });
  const agent = defineAgent({
    id: 'keeper',
    instructions: secret('the instructions'),
    tools: toolsOf() as never,
    ...beside('the agent'),
  });
  // Each option there is: a new one has to say here how it keeps a secret.
  const options: { readonly [Name in keyof Required<ExecutorOptions>]: unknown } = {
    models: Object.assign({ fast: model }, { other: Object.assign(scriptedModel([]), headers('another model')) }),
    failover: beside('failover'),
    limits: undefined,
    tools: [tool('spare', 'read', async () => 'spare')],
    agents: [agent],
    workflows: [],
    skills: [],
    store,
    journal: true,
    audit: true,
    retention: { records: 60_000, outcomes: 60_000, signals: 60_000, audit: '1d', ...beside('retention') },
    ports: { checkpointer: Object.assign(factory, headers('the factory')), ...beside('the ports') },
    defaults: { model: 'fast' },
    requireDurable: false,
    deployment: 1,
    fairBy: 'tenant',
    schedules: [],
    onSaveError: beside('onSaveError'),
    onUnknownOutcome: 'tell',
    onModelOutage: 'park',
    onBudgetExceeded: 'park',
    onBudgetAway: 'wait',
    onDefinitionChange: 'refuse',
    observers: [{ onEvent: keeping('an observer', () => undefined) }],
    middleware: [{ tool: keeping('middleware', (_: unknown, next: () => unknown) => next()) }],
    tracing: Object.assign(
      { begin: () => undefined, enter: (_: unknown, next: () => unknown) => void next(), event: () => {} },
      headers('the tracing'),
    ),
    approvals: keeping('approvals', () => undefined),
    migrate: keeping('migrate', (record: unknown) => record),
    redact: keeping('redact', (text: string) => text),
    systemHeader: secret('the system header'),
    compactor: keeping('compactor', (messages: unknown) => messages),
    contextTokens: keeping('contextTokens', () => undefined),
    clock: clockOf('the clock'),
    random: keeping('random', () => 0),
    ids: keeping('ids', () => {
      throw requestError('an error of ids');
    }),
    logger: Object.assign({ warn: (...line: unknown[]) => log.push(lineOf(line)) }, headers('the logger')),
    inspect: {
      next: keeping('inspect', (event: InspectionEvent) => client.next?.(event)),
      ...headers('the inspector'),
    },
    onStep: keeping('onStep', () => {
      throw requestError('an error of onStep');
    }),
    onOutcome: keeping('onOutcome', () => {}),
    onDue: keeping('onDue', () => {
      throw requestError('an error of onDue');
    }),
    notify: keeping('notify', () => {
      throw requestError('an error of notify');
    }),
  };
  const executor = createExecutor({ ...options, ...beside('the options of the executor') } as never);
  return {
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

/** Options of one run with secrets in them. @param watch gets the inspection events as XState makes them */
export function secretiveOptions(signal: AbortSignal, watch: (event: InspectionEvent) => void): RunOptions {
  return {
    signal: Object.assign(signal, headers('the signal')),
    inspect: keeping('inspect of a run', (event: InspectionEvent) => {
      watch(event);
      throw requestError('an error of inspect');
    }),
    onStep: keeping('onStep of a run', () => {}),
    ...beside('the options of the run'),
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
