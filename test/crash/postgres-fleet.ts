import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { createExecutor, defineAgent, type Executor } from 'pawl';
import { type PostgresStore, postgresStore } from 'pawl/stores/postgres';
import { scriptedModel } from 'pawl/testing';
import type pg from 'pg';
import type { PostgresServer } from '../fixtures/postgres-server.ts';
import { packageFlags } from '../toolchain/programs.ts';
import type { FleetWorkerJob } from './postgres-fleet-worker.ts';

const program = fileURLToPath(new URL('./postgres-fleet-worker.ts', import.meta.url));
const agent = defineAgent({ id: 'worker', instructions: 'Work.' });

/** Processes that take due runs from one schema, and the ledger that all of them write. */
export class PostgresFleet implements AsyncDisposable {
  readonly store: PostgresStore;
  readonly schema: string;
  readonly #folder = mkdtempSync(join(tmpdir(), 'pawl-postgres-fleet-'));
  readonly #url: string;
  readonly #pool: pg.Pool;
  readonly #job: Partial<FleetWorkerJob>;
  readonly #admitting: Executor;
  readonly #children = new Set<ChildProcess>();
  readonly #server: PostgresServer;
  #admitted = 0;

  constructor(server: PostgresServer, job: Partial<FleetWorkerJob> = {}) {
    this.#server = server;
    this.schema = server.freshSchema();
    this.#url = server.url;
    this.#job = job;
    this.#pool = server.pool();
    this.store = postgresStore({ pool: this.#pool, schema: this.schema, notify: job.listens ?? false });
    const models = { fast: scriptedModel([]) };
    this.#admitting = createExecutor({ models, store: this.store, logger: { warn: () => {} } });
  }

  /** Stores a run for the processes of the fleet. @returns its id */
  async admit(): Promise<string> {
    const runId = `run-${this.#admitted++}`;
    const { accepted } = await this.#admitting.start(agent, { prompt: runId, runId }, { drive: 'later' });
    if (accepted !== 'started') throw new Error(`${runId} was not admitted: ${accepted}`);
    return runId;
  }

  /** A hundred at once: more would have to wait for their store longer than they may. */
  async admitAll(count: number): Promise<void> {
    for (let left = count; left > 0; left -= 100)
      await Promise.all(Array.from({ length: Math.min(left, 100) }, () => this.admit()));
  }

  begin(version = 1): ChildProcess {
    const rest = { ledger: this.#path('ledger'), url: this.#url, schema: this.schema, version };
    const usual = {
      steps: 4,
      modelMs: 5,
      dueMs: 100,
      budgetMs: 60_000,
      leaseMs: 1_500,
      maxAttempts: 3,
      listens: false,
    };
    const job: FleetWorkerJob = { ...usual, ...this.#job, ...rest };
    const complaints = openSync(this.#path('complaints'), 'a');
    const stdio = ['ignore', complaints, complaints] as const;
    const child = spawn(process.execPath, [...packageFlags, program, JSON.stringify(job)], { stdio: [...stdio] });
    closeSync(complaints);
    this.#children.add(child);
    return child;
  }

  /** The lines of the ledger that begin with a word, each without it, split into words. */
  lines(what: string): readonly (readonly string[])[] {
    return this.ledger().flatMap(([first, ...rest]) => (first === what ? [rest] : []));
  }

  ledger(): readonly (readonly string[])[] {
    const lines = this.#read('ledger').split('\n').slice(0, -1);
    return lines.map((line) => line.split(' '));
  }

  /** All that the ledger has of some runs, for the message of a test. */
  linesOf(runIds: readonly string[]): string {
    return this.ledger()
      .filter(([, runId = '']) => runIds.includes(runId))
      .map((words) => words.join(' '))
      .join('\n');
  }

  /** The ids of the processes that are within a call with effect `once`, or were when they ended. */
  paying(): ReadonlySet<number> {
    const open = new Map<string, number>();
    for (const [what, runId = '', call = '', pid] of this.ledger()) {
      if (!call.startsWith('pay-')) continue;
      if (what === 'called') open.set(runId, Number(pid));
      if (what === 'recorded') open.delete(runId);
    }
    return new Set(open.values());
  }

  /** How many runs have ended. */
  ended(): number {
    return new Set(this.lines('ended').map(([runId]) => runId)).size;
  }

  async until(what: string, isSo: () => boolean | Promise<boolean>, ms = 60_000): Promise<void> {
    for (const latest = performance.now() + ms; !(await isSo()); await sleep(25)) {
      if (performance.now() > latest) throw new Error(`waited ${ms} ms: ${what}\n${await this.#report()}`);
    }
  }

  /** What the store, the list and the processes say of the runs that have not ended. */
  async #report(): Promise<string> {
    const ended = new Set(this.lines('ended').map(([runId]) => runId));
    const missing = Array.from({ length: this.#admitted }, (_, i) => `run-${i}`).filter((runId) => !ended.has(runId));
    const taken = Map.groupBy(this.lines('taken'), ([runId]) => runId);
    const isMissing = (runId: string) => missing.includes(runId);
    const listed = await this.store.listInterrupted({ limit: 1_000 }).catch((error) => [{ runId: '', error }]);
    const processes = [...this.#children].map(
      ({ pid, exitCode, signalCode }) => `${pid}: ${exitCode ?? signalCode ?? 'lives'}`,
    );
    return [
      `${missing.length} of ${this.#admitted} runs have not ended: ${missing.slice(0, 20).join(' ')}`,
      ...(await this.#rows())
        .filter(({ run_id }) => isMissing(String(run_id)))
        .slice(0, 20)
        .map((row) => JSON.stringify(row)),
      ...missing
        .slice(0, 20)
        .map((runId) => `${runId} was taken: ${JSON.stringify(taken.get(runId)?.slice(-6) ?? [])}`),
      ...listed
        .filter(({ runId }) => isMissing(runId))
        .slice(0, 20)
        .map((run) => JSON.stringify(run).slice(0, 600)),
      `processes ${processes.join(', ')}`,
      this.#read('complaints').slice(-4_000),
    ].join('\n');
  }

  #rows(): Promise<Record<string, unknown>[]> {
    const columns = "convert_from(run_id, 'UTF8') AS run_id, epoch, attempts, owner, revision, due_at, deployment";
    const times = 'expires_at - extract(epoch FROM now()) * 1000 AS lease_ms, body IS NOT NULL AS has_record';
    return this.#server
      .sql(`SELECT ${columns}, ${times} FROM "${this.schema}".runs`)
      .catch((error) => [{ run_id: '', error: String(error) }]);
  }

  /** A SIGTERM, as at a deploy. @returns its exit code when it has ended */
  async terminate(child: ChildProcess): Promise<number | null> {
    const isGone = new Promise<number | null>((resolve) => child.once('exit', resolve));
    child.kill('SIGTERM');
    return isGone;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#children) child.kill('SIGKILL');
    await this.#admitting.shutdown();
    await this.store.close();
    await this.#pool.end();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #path(name: string): string {
    return join(this.#folder, name);
  }

  #read(name: string): string {
    try {
      return readFileSync(this.#path(name), 'utf8');
    } catch {
      return '';
    }
  }
}

/** A call that was made once too often. */
export interface Repeat {
  readonly call: string;
  readonly pid: string;
  /** Another process has taken the run since this one did. */
  readonly isLate: boolean;
}

/** Calls that began after a record had their answer, and calls with effect `once` that began twice. */
export function repeatsIn(ledger: readonly (readonly string[])[]): readonly Repeat[] {
  const recorded = new Set<string>();
  const begun = new Set<string>();
  /** Who has each run, and the epoch of the claim: a process that was frozen writes down late what it took before. */
  const takers = new Map<string, { readonly pid: string; readonly epoch: number }>();
  const repeats: Repeat[] = [];
  for (const [what, runId = '', call = '', pid = '', taker = '', epoch = ''] of ledger) {
    const name = `${runId} ${call}`;
    if (what === 'taken' && Number(epoch) >= (takers.get(runId)?.epoch ?? 0))
      takers.set(runId, { pid: taker, epoch: Number(epoch) });
    if (what === 'recorded') recorded.add(name);
    if (what !== 'called') continue;
    if (recorded.has(name) || (call.startsWith('pay-') && begun.has(name)))
      repeats.push({ call: name, pid, isLate: takers.get(runId)?.pid !== pid });
    begun.add(name);
  }
  return repeats;
}
