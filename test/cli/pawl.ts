import { type ChildProcess, fork, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll } from 'vitest';
import { torture } from '../crash/random.ts';
import { bin, isBuilt } from '../toolchain/programs.ts';
import type { Order } from './command-host.ts';

export const agentFile = (name: string): string => fileURLToPath(new URL(`agents/${name}.ts`, import.meta.url));

/** Where the commands of tests keep what belongs to this machine. */
export const stateHome = join(tmpdir(), 'pawl-test-state');

export interface Ended {
  /** Null when a signal ended it. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Settings {
  /** Another process starts it, as npx does. */
  readonly isBehindNpm?: boolean;
  /** For `pawl()`: what is tested is the process of the command, for example its memory or its death. */
  readonly isAlone?: boolean;
  readonly cwd: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly nodeOptions?: readonly string[];
  readonly uid?: number;
  /** Default: nothing to read. */
  readonly stdin?: string;
}

// Tests run side by side here, where the hooks of a single test cannot be told apart after its first `await`.
const started = new Set<ChildProcess>();
const folders: string[] = [];
afterAll(() => {
  for (const child of started) child.kill('SIGKILL');
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** Starts a command as npm does, and says its process: it ends at a SIGTERM, and passes it on to nothing. */
const likeNpm = `
const [file, ...args] = process.argv.slice(1);
const { pid } = require('node:child_process').spawn(file, args, { stdio: [0, 1, 2] });
console.error('behind npm: ' + pid);
process.on('SIGTERM', () => process.exit(143));
`;

/** The command in a process of its own, running from the sources. */
export class Pawl {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  stdout = '';
  stderr = '';

  constructor(args: readonly string[], { cwd, env = {}, nodeOptions = [], uid, stdin, isBehindNpm }: Settings) {
    const stand = isBehindNpm ? ['--eval', likeNpm, '--', process.execPath] : [];
    this.child = spawn(process.execPath, [...stand, ...nodeOptions, bin, ...args], {
      cwd,
      env: { ...cleanEnvironment(), ...env },
      stdio: [stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
      ...(uid === undefined ? {} : { uid }),
    });
    // A command that needs none of it may have closed it.
    this.child.stdin?.on('error', () => {}).end(stdin);
    this.child.stdout?.on('data', (chunk) => {
      this.stdout += chunk;
    });
    this.child.stderr?.on('data', (chunk) => {
      this.stderr += chunk;
    });
    this.ended = new Promise((resolve) => {
      this.child.on('close', (code) => resolve({ code, stdout: this.stdout, stderr: this.stderr }));
    });
    started.add(this.child);
  }

  /** Waits until it has said something. */
  async says(what: string | RegExp, stream: 'stdout' | 'stderr' = 'stderr'): Promise<void> {
    const isThere = () => (typeof what === 'string' ? this[stream].includes(what) : what.test(this[stream]));
    while (!isThere()) {
      if (this.child.exitCode !== null) throw new Error(`it ended without saying ${what}: ${this.stderr}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }
}

/**
 * Runs a command to its end: in a process of its own if it says so, or needs it; else where other commands have run, because most
 * commands cost less than the start of a process. `npm run torture` gives each its own, and so does what runs from the sources.
 */
export function pawl(args: readonly string[], settings: Settings): Promise<Ended> {
  const { cwd, env, isAlone, isBehindNpm, nodeOptions, stdin, uid } = settings;
  // How the command names itself is found in PATH when it is loaded.
  const isPlain = [isBehindNpm, nodeOptions, stdin, uid, env?.PATH].every((setting) => setting === undefined);
  if (isAlone || !isPlain || !isBuilt || torture > 1) return new Pawl(args, settings).ended;
  return (hosts.pop() ?? new CommandHost()).run({ args, cwd, env: { ...cleanEnvironment(), ...env } });
}

/** Those that run no command now. */
const hosts: CommandHost[] = [];

class CommandHost {
  readonly #child = fork(
    fileURLToPath(new URL('command-host.ts', import.meta.url)),
    [new URL('main.js', pathToFileURL(bin)).href],
    { env: cleanEnvironment(), execArgv: ['--no-warnings'] },
  );

  run(order: Order): Promise<Ended> {
    const ended = new Promise<Ended>((resolve) => {
      const leave = (code: number | null) => resolve({ code, stdout: '', stderr: '' });
      this.#child.once('exit', leave);
      this.#child.once('message', (message) => {
        this.#child.off('exit', leave);
        hosts.push(this);
        resolve(message as Ended);
      });
    });
    this.#child.send(order);
    return ended;
  }
}

/** A folder that has the command: then the lines that a person can type name it as `pawl`, on each machine. */
export function binFolder(): string {
  const folder = join(tmpdir(), 'pawl-test-bin');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'pawl'), '', { mode: 0o755 });
  return folder;
}

/** What the machine of a developer has set must not change what is tested. */
function cleanEnvironment(): NodeJS.ProcessEnv {
  const names = ['HOME', 'TMPDIR', 'SystemRoot'];
  const kept = names.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : []));
  // Dozens of processes load the same sources: they share what the first of them compiled.
  const { NODE_COMPILE_CACHE } = process.env;
  return {
    ...Object.fromEntries(kept),
    PATH: `${binFolder()}${delimiter}${process.env.PATH}`,
    NODE_COMPILE_CACHE,
    PAWL_STATE_HOME: stateHome,
  };
}

/** An empty folder that goes away after the tests of this file. */
export function emptyFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-test-'));
  folders.push(folder);
  return folder;
}

/** The JSON lines of an output. */
export function jsonLines(text: string): Record<string, unknown>[] {
  return text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => JSON.parse(line));
}
