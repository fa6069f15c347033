import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { passOnErrors } from '../../fixtures/processes.ts';
import { packageFlags } from '../../toolchain/programs.ts';

const program = fileURLToPath(new URL('world-process.ts', import.meta.url));

/** A run of the world: what it is to do is the first word of its prompt. */
export interface Order {
  readonly runId: string;
  readonly prompt: string;
  readonly agent?: 'line';
}

/** The runs of the browser tests: a SQLite store, a process that works on it. */
export class World {
  readonly folder: string = mkdtempSync(join(tmpdir(), 'pawl-studio-world-'));
  readonly path: string = join(this.folder, 'runs.db');
  #worker: ChildProcess | undefined;

  /** Starts the process that works on the runs. */
  async work(): Promise<void> {
    const worker = spawn(process.execPath, [...packageFlags, program, this.path], {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    passOnErrors(worker as typeof worker & { readonly stderr: NodeJS.ReadableStream });
    this.#worker = worker;
    await once(worker, 'message');
  }

  get isAtWork(): boolean {
    return this.#worker !== undefined;
  }

  /** Ends that process as a crash would. */
  async crash(): Promise<void> {
    const worker = this.#worker;
    this.#worker = undefined;
    if (worker?.kill('SIGKILL')) await once(worker, 'exit');
  }

  /** Starts a run, and waits until it is recorded. */
  start(order: Order): Promise<void> {
    const worker = this.#worker;
    if (!worker) return Promise.reject(new Error('no process works on the world'));
    return new Promise((resolve, reject) => {
      const onMessage = ({ runId, error }: { readonly runId?: string; readonly error?: string }) => {
        if (runId !== order.runId) return;
        worker.off('message', onMessage);
        if (error === undefined) resolve();
        else reject(new Error(error));
      };
      worker.on('message', onMessage).send(order);
    });
  }

  async end(): Promise<void> {
    await this.crash();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
