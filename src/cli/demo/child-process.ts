import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { codeFile } from '../own-package.ts';

/** The fields of a `--json` line that the demo uses. */
export interface ProgressLine {
  readonly type: string;
  readonly iteration?: number;
  readonly tools?: readonly string[];
  readonly status?: string;
  readonly output?: string;
}

/** Starts the command `pawl` in a process of its own for the demo, and can kill it. */
export class PawlProcess {
  readonly pid: number;
  /** Resolves at the end of the process with its stderr. */
  readonly ended: Promise<string>;
  readonly #child: ChildProcess;
  #isOver = false;

  /** @param env variables besides our own environment */
  constructor(args: readonly string[], env: NodeJS.ProcessEnv, onLine: (line: ProgressLine) => void) {
    const child = spawn(process.execPath, [fileURLToPath(codeFile('src/cli/bin')), ...args], {
      env: { ...process.env, PAWL_MODEL: '', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child = child;
    this.pid = child.pid ?? 0;
    let complaints = '';
    child.stderr.on('data', (chunk) => {
      complaints += chunk;
    });
    createInterface({ input: child.stdout }).on('line', (line) => onLine(JSON.parse(line)));
    this.ended = once(child, 'close').then(() => {
      this.#isOver = true;
      return complaints.trim();
    });
    // The child must end with the demo.
    process.once('exit', () => child.kill('SIGKILL'));
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Stops the process until a signal. */
  freeze(): void {
    this.#signal('SIGSTOP');
  }

  thaw(): void {
    this.#signal('SIGCONT');
  }

  /** Windows has no such signals. */
  #signal(signal: NodeJS.Signals): void {
    if (process.platform !== 'win32') this.#child.kill(signal);
  }

  /** Ends the process like a power cut: it cannot clean up. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.ended;
  }
}
