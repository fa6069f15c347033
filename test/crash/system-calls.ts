import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** What changes files, as the system sees it; all but the ledger of the tools, which is written with another call. */
export const fileChanges = [
  'pwrite64',
  'fdatasync',
  'fsync',
  'ftruncate',
  'rename',
  'link',
  'unlink',
  'rmdir',
] as const;

export type FileChange = (typeof fileChanges)[number];

/** A system call of a process, by its place in the order of those of its name. */
export interface Moment {
  readonly call: FileChange;
  readonly nth: number;
}

/** Why system calls cannot be meddled with here. */
export const whyNoStrace: string | undefined = canTrace() ? undefined : 'strace is missing, or may trace nothing here';
if (whyNoStrace !== undefined) console.warn(`skipped: ${whyNoStrace}`);

function canTrace(): boolean {
  return (
    spawnSync('strace', ['-f', '-qq', '-e', 'inject=fsync:error=EIO:when=9', 'true'], { stdio: 'ignore' }).status === 0
  );
}

/** With one thread for files their calls come in one order; strace counts those of each thread. */
const strace = ['env', 'UV_THREADPOOL_SIZE=1', 'strace', '-f', '-qq'];

/** Something that happens at a moment of a process: an error in the place of the call, or a signal before it. */
export class Meddling {
  readonly #log = join(mkdtempSync(join(tmpdir(), 'pawl-strace-')), 'log');
  /** The command that runs the process. */
  readonly under: readonly string[];

  constructor({ call, nth }: Moment, what: `error=${string}` | `signal=${string}`) {
    this.under = [...strace, '-o', this.#log, '-e', `trace=${call}`, '-e', `inject=${call}:${what}:when=${nth}`];
  }

  /** Whether it has happened; asked once, at the end. */
  fired(): boolean {
    const log = readFileSync(this.#log, 'utf8');
    rmSync(dirname(this.#log), { recursive: true, force: true });
    return /\(INJECTED\)|killed by SIG/.test(log);
  }
}

/** All moments at which a process changes files. @param run runs a process under a command, to its end */
export async function momentsOf(folder: string, run: (under: readonly string[]) => Promise<void>): Promise<Moment[]> {
  const log = join(folder, 'calls.log');
  await run([...strace, '-o', log, '-e', `trace=${fileChanges.join(',')}`]);
  // Of each thread, because that is how they are counted: at most as many as there are in all.
  const counts = new Map<string, number>();
  for (const [, thread, call] of readFileSync(log, 'utf8').matchAll(/^(\d+) +(\w+)\(/gm)) {
    const key = `${thread} ${call}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return fileChanges.flatMap((call) => {
    const most = Math.max(0, ...[...counts].filter(([key]) => key.endsWith(` ${call}`)).map(([, count]) => count));
    return Array.from({ length: most }, (_, i) => ({ call, nth: i + 1 }));
  });
}
