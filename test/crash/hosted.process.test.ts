import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { packageFlags } from '../toolchain/programs.ts';
import type { HostedJob } from './hosted-worker.ts';

const worker = fileURLToPath(new URL('./hosted-worker.ts', import.meta.url));
const desk = fileURLToPath(new URL('../../docs/examples/desk/desk.ts', import.meta.url));

/** A process, what it printed, and its end. */
class Process {
  readonly #child: ChildProcess;
  readonly ended: Promise<number | null>;
  printed = '';

  constructor(args: readonly string[], options: { readonly cwd?: string; readonly env?: Record<string, string> } = {}) {
    this.#child = spawn(process.execPath, [...packageFlags, ...args], {
      stdio: ['ignore', 'pipe', 'ignore'],
      ...options,
      env: { ...process.env, ...options.env },
    });
    this.ended = new Promise((resolve) => this.#child.once('close', resolve));
  }

  /** Ends the process once it has printed a text so many times. */
  async endAt(text: string, times: number, signal: NodeJS.Signals): Promise<void> {
    for await (const chunk of this.#child.stdout ?? []) {
      this.printed += String(chunk);
      if (this.printed.split(text).length > times) this.#child.kill(signal);
    }
    await this.ended;
  }

  async output(): Promise<string> {
    for await (const chunk of this.#child.stdout ?? []) this.printed += String(chunk);
    await this.ended;
    return this.printed;
  }
}

const cases = (['SIGTERM', 'SIGKILL'] as const).flatMap((signal) =>
  [false, true].map((isGuarded) => ({ signal, isGuarded })),
);

test.for(cases)(
  'a machine that invokes a run continues it after a $signal, with a guard: $isGuarded (edges 14)',
  { timeout: 60_000 },
  async ({ signal, isGuarded }) => {
    const folder = mkdtempSync(join(tmpdir(), 'pawl-hosted-'));
    const of = (job: Pick<HostedJob, 'isAnswered'>) =>
      new Process([worker, JSON.stringify({ folder, isGuarded, ...job })]);
    for (let times = 0; times < 2; times++) await of({ isAnswered: false }).endAt('asked', 1, signal);
    expect(await of({ isAnswered: true }).output()).toBe('asked\nheard ok\n');
  },
);

test.for(['SIGTERM', 'SIGKILL'] as const)(
  'the desk of the examples, which spawns its runs, continues with the open tickets after a %s (edges 14)',
  { timeout: 60_000 },
  async (signal) => {
    const cwd = mkdtempSync(join(tmpdir(), 'pawl-desk-'));
    const tickets = ['My printer is broken.', 'My mouse is gone.'];
    await new Process([desk, ...tickets], { cwd, env: { ANSWER_MS: '60000' } }).endAt('ticket.2', 1, signal);
    const printed = await new Process([desk], { cwd, env: { ANSWER_MS: '0' } }).output();
    expect(printed.trim().split('\n').toSorted()).toEqual([
      'ticket.1: It will be seen to.',
      'ticket.2: It will be seen to.',
    ]);
  },
);
