import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { engineEnvironment, inEngine, programOf, whyNo } from '../engines/engines.ts';
import { passOnErrors } from '../fixtures/processes.ts';
import { packageFlags } from '../toolchain/programs.ts';

/** A runtime of JavaScript in which hosts live. */
export type Runtime = 'Node' | 'Bun' | 'Deno';

/** The runtimes beside the one that these tests run in. */
export const others = ['Bun', 'Deno'] as const;

/** Why there is no such runtime here; undefined if there is one. */
export const whyNoRuntime = (runtime: (typeof others)[number]) => whyNo(engines[runtime]);

/** The title of tests in a runtime: where there is none, it says why they are skipped. */
export const inRuntime = (runtime: (typeof others)[number], title: string) =>
  inEngine(engines[runtime], `${runtime}: ${title}`);

const engines = { Bun: 'bun', Deno: 'deno' } as const;

/** The beginning of a command that runs a program, sources or what was built as `programs.ts` says. */
export function commandOf(runtime: Runtime): readonly string[] {
  if (runtime === 'Bun') return [programOf('bun'), ...packageFlags];
  if (runtime === 'Deno') return [programOf('deno'), 'run', '--allow-all', '--no-lock', '--quiet', ...packageFlags];
  return [process.execPath, ...packageFlags];
}

/** What a program of any runtime finds in its environment. Deno keeps what it has compiled in the folder. */
export const runtimeEnvironment: NodeJS.ProcessEnv = {
  ...engineEnvironment,
  NODE_NO_WARNINGS: '1',
  DENO_DIR: fileURLToPath(new URL('../../node_modules/.cache/deno', import.meta.url)),
};

/** A server that a test has started. */
export interface Server {
  /** Sends a request to a path of it. */
  readonly ask: (path: string, init?: RequestInit) => Promise<Response>;
  stop(): Promise<void>;
}

/** Starts the program that serves a handler in a runtime. */
export function startServer(runtime: Runtime): Promise<Server> {
  return listening(start(runtime, './serve-host.ts'));
}

/** Waits until a program has printed its port as JSON, in a line of its own. */
export async function listening(child: Started): Promise<Server> {
  passOnErrors(child);
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const said = Promise.withResolvers<number>();
  child.stdout.on('data', (text) => said.resolve(JSON.parse(text).port));
  void ended.then(() => said.reject(new Error('the program ended before it had a port')));
  const port = await said.promise;
  return {
    ask: (path, init) => fetch(`http://127.0.0.1:${port}${path}`, init),
    stop: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

type Started = ChildProcessByStdio<null, Readable, Readable>;

function start(runtime: Runtime, program: string, ...args: readonly string[]): Started {
  const [command = '', ...flags] = [...commandOf(runtime), fileURLToPath(new URL(program, import.meta.url)), ...args];
  return spawn(command, flags, { stdio: ['ignore', 'pipe', 'pipe'], env: runtimeEnvironment });
}

/** Runs a program to its end. @returns what it printed, as JSON */
export async function printedBy<T>(runtime: Runtime, program: string, job: object): Promise<T> {
  const child = passOnErrors(start(runtime, program, JSON.stringify(job)));
  let text = '';
  child.stdout.on('data', (piece) => {
    text += piece;
  });
  await new Promise((resolve) => child.once('close', resolve));
  return JSON.parse(text);
}
