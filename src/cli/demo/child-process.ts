import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { codeFile } from '../own-package.ts';

/** A line of `--json`, as far as the demo looks at it. */
export interface ProgressLine {
  readonly type: string;
  readonly iteration?: number;
  readonly tools?: readonly string[];
  readonly status?: string;
  readonly output?: string;
}

/** The command itself, in a process of its own. */
export class PawlProcess {
  readonly pid: number;
  /** Resolves at the end of the process with what it said on stderr. */
  readonly ended: Promise<string>;
  readonly #child: ChildProcess;
  #isOver = false;

  /** @param env what it gets besides our own environment */
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
    // Whoever stops the demo does not want to leave a process behind.
    process.once('exit', () => child.kill('SIGKILL'));
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Holds it where it is. */
  freeze(): void {
    this.#signal('SIGSTOP');
  }

  thaw(): void {
    this.#signal('SIGCONT');
  }

  /** Windows has nothing like it. */
  #signal(signal: NodeJS.Signals): void {
    if (process.platform !== 'win32') this.#child.kill(signal);
  }

  /** Ends it as a power cut would: it gets no chance to do anything. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.ended;
  }
}
