import { setTimeout as sleep } from 'node:timers/promises';
import { type Backoff, backoffMs } from '../../values/backoff.ts';
import { StoreUnavailableError } from '../../values/errors.ts';
import { isTableMissing, isTransient, serverError } from './errors.ts';
import { Parameters } from './parameters.ts';
import { Connections, type PoolSession, type PostgresPool } from './pool.ts';
import { Appends } from './prepared-appends.ts';
import type { Times } from './run-row.ts';
import { Schema, type Tables } from './schema.ts';

/** The channel of notifications that a run has become due, with an empty payload: one for all schemas of a database. */
const DUE_CHANNEL = 'pawl_due';

/** An attempt gets at least this many ms, even if less time is left. */
const LEAST_MS = 500;

/** A lease that expired this many ms ago has no owner. */
const LONG_OVER_MS = 86_400_000;

interface ServerOptions {
  readonly pool: PostgresPool;
  readonly schema: string;
  readonly times: Times;
  /** Notifies listeners when a run becomes due. */
  readonly notifies: boolean;
  /** Makes, migrates and removes nothing. */
  readonly isReadOnly: boolean;
}

/** Runs work on a PostgreSQL server over the host's pool: prepares the schema, retries, converts errors. */
export class Server {
  readonly tables: Tables;
  readonly appends: Appends;
  readonly times: Times;
  /** SQL of a text: notifies the listeners of `DUE_CHANNEL`. Undefined: the store notifies none. */
  readonly wake: string | undefined;
  readonly #connections: Connections;
  readonly #schema: Schema;
  readonly #name: string;
  readonly isReadOnly: boolean;
  #isSwept: boolean;
  #isClosed = false;

  constructor({ pool, schema, times, notifies, isReadOnly }: ServerOptions) {
    this.times = times;
    this.wake = notifies ? `pg_catalog.pg_notify('${DUE_CHANNEL}', '')::pg_catalog.text` : undefined;
    this.#connections = new Connections(pool);
    this.#schema = new Schema(schema);
    this.isReadOnly = isReadOnly;
    this.#isSwept = isReadOnly;
    this.#name = `the PostgreSQL store in schema ${schema}`;
    this.tables = this.#schema.tables;
    this.appends = new Appends(this.tables);
  }

  /** One attempt: lends `work` a connection, once the tables exist. */
  async attempt<T>(ms: number, work: (session: PoolSession) => Promise<T>): Promise<T> {
    if (this.#isClosed) throw new StoreUnavailableError(`${this.#name} was closed`);
    try {
      return await this.#connections.use(Math.max(ms, LEAST_MS), async (session) => {
        if (!this.#schema.isReady) await this.#schema.prepare(session, this);
        if (!this.#isSwept) await this.#sweep(session);
        return work(session);
      });
    } catch (error) {
      if (isTableMissing(error)) this.#schema.forget();
      throw error;
    }
  }

  /** Retries, over other connections, until the time is over. For work that may be done twice. */
  async insist<T>(ms: number, work: (session: PoolSession) => Promise<T>): Promise<T> {
    try {
      return await insisting(ms, (left) => this.attempt(left, work));
    } catch (error) {
      throw this.seen(error);
    }
  }

  /** Converts an error for a caller. */
  seen(error: unknown): unknown {
    return serverError(error, this.#name);
  }

  close(): void {
    this.#isClosed = true;
    this.#connections.close();
  }

  /** Once: removes claims of runs without a record that were released, or expired long ago; no other code removes them. */
  async #sweep(session: PoolSession): Promise<void> {
    const parameters = new Parameters();
    const { runs } = this.tables;
    await session.query(
      `DELETE FROM ${runs} WHERE run_id IN (SELECT run_id FROM ${runs} WHERE body IS NULL
         AND (owner IS NULL OR expires_at < ${this.times.lease(parameters)} - ${LONG_OVER_MS}) FOR UPDATE SKIP LOCKED)`,
      parameters.values,
    );
    this.#isSwept = true;
  }
}

/**
 * Tries until the time is over, while the errors may pass. @param attempt gets the time that is left, ms
 * @throws the error of the last attempt
 */
export async function insisting<T>(ms: number, attempt: (ms: number) => Promise<T>): Promise<T> {
  const until = performance.now() + ms;
  for (let failures = 1; ; failures++) {
    try {
      return await attempt(Math.max(until - performance.now(), LEAST_MS));
    } catch (error) {
      if (!isTransient(error) || performance.now() >= until) throw error;
    }
    await pauseServer(failures);
  }
}

const backoff: Backoff = { firstMs: 10, maxMs: 500, jitter: 'around' };

/** Waits before the next attempt at the server. With jitter: hosts that wait for one server should not return together. */
export function pauseServer(failures: number): Promise<void> {
  return sleep(backoffMs(failures, backoff));
}
