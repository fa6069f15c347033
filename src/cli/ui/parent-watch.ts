import { readFileSync, readlinkSync } from 'node:fs';
import { basename } from 'node:path';
import type { Output } from './output.ts';

/** How often the parent is looked at, ms: a command without one ends within a second. */
const LOOK_MS = 500;
/** What `npm`, `npx` and `node --run` set for the script that they start. */
const variables = ['npm_command', 'npm_lifecycle_event', 'npm_execpath', 'NODE_RUN_SCRIPT_NAME'] as const;
const shells = new Set(['ash', 'bash', 'busybox', 'dash', 'ksh', 'sh', 'zsh']);

/**
 * Watches the parent of a command that npm, npx or `node --run` has started: these end at a SIGTERM without passing it on, and their
 * command would live on without a supervisor. When the parent has gone, this process acts as on a SIGTERM. `PAWL_ORPHAN=keep` turns
 * that off.
 */
export function watchParent(output: Output): Disposable {
  const { env } = process;
  const isOfScript = variables.some((name) => env[name] !== undefined);
  if (!isOfScript || env.PAWL_ORPHAN === 'keep') return { [Symbol.dispose]: () => {} };
  const by = env.npm_command === undefined && env.NODE_RUN_SCRIPT_NAME !== undefined ? 'node --run' : 'npm';
  output.say(`pawl: ${by} started this command, and passes no signals on: use node_modules/.bin/pawl`);
  const starters = readStarters();
  const timer = setInterval(() => {
    if (readStarters() === starters) return;
    clearInterval(timer);
    output.say('pawl: the process that started this one has gone; stopping as on SIGTERM');
    process.emit('SIGTERM', 'SIGTERM');
  }, LOOK_MS);
  timer.unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

/** The parent, and what is above it as far as shells are between: the shell of a script stays when `node --run` has gone. */
function readStarters(): string {
  const found = [process.ppid];
  for (let pid = readParentOfShell(process.ppid); pid; pid = readParentOfShell(pid)) found.push(pid);
  return found.join();
}

/** Undefined where the process is no shell, and where the system has no `/proc`: its `sh -c` becomes the command itself. */
function readParentOfShell(pid: number): number | undefined {
  try {
    if (!shells.has(basename(readlinkSync(`/proc/${pid}/exe`)))) return undefined;
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name may have blanks and parentheses.
    return Number(stat.slice(stat.lastIndexOf(')')).split(' ')[2]);
  } catch {
    return undefined;
  }
}
