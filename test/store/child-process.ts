import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach } from 'vitest';
import { passOnErrors } from '../fixtures/processes.ts';
import { packageFlags } from '../toolchain/programs.ts';

const running = new Set<ChildProcess>();

afterEach(() => {
  for (const child of running) child.kill('SIGKILL');
});

export interface Child {
  /** The next value that it says; undefined when it has ended. */
  next(): Promise<unknown>;
  /** Lets it go on. */
  tell(): void;
  /** Kills it with SIGKILL, and waits until it is gone. */
  kill(): Promise<void>;
  readonly exited: Promise<void>;
}

export interface ChildOptions {
  readonly role: string;
  readonly path: string;
  readonly argument?: string;
  /** Whose roles, from this folder; default `./sqlite/child.ts`. */
  readonly script?: string;
  /** A command that runs the rest of its arguments as a command. */
  readonly under?: readonly string[];
}

/** Starts a role in a process of its own. */
export function startChild(options: ChildOptions): Child {
  const { role, path, argument = '', script = './sqlite/child.ts', under = [] } = options;
  const program = fileURLToPath(new URL(script, import.meta.url));
  const [command = '', ...args] = [...under, process.execPath, ...packageFlags, program, role, path, argument];
  const child = passOnErrors(spawn(command, args));
  running.add(child);
  const exited = once(child, 'exit').then(() => {
    running.delete(child);
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    next: async () => {
      const line = await lines.next();
      return line.done ? undefined : JSON.parse(line.value);
    },
    tell: () => child.stdin.write('go\n'),
    kill: async () => {
      child.kill('SIGKILL');
      await exited;
    },
    exited,
  };
}

/** Whether a command can be run here. */
export function canRun(command: string, ...args: readonly string[]): boolean {
  try {
    execFileSync(command, args, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
