import { hash } from 'node:crypto';
import { clearTimeout, setTimeout } from 'node:timers';
import { isConnectionLost, isStatementLost, NoAnswer } from './errors.ts';

/** A statement with its parameters, as `pg` accepts it. */
export interface PostgresQuery {
  readonly text: string;
  readonly values?: unknown[];
  /** The server keeps the statement under this name until the connection ends. */
  readonly name?: string;
  /** Defines how columns are read. */
  readonly types?: { getTypeParser(): (value: string) => string };
}

/** The parts of a connection that the store uses. A client of a `pg` pool has them. */
export interface PostgresClient {
  query(query: PostgresQuery): Promise<{ readonly rows: readonly object[]; readonly rowCount?: number | null }>;
  on(event: 'error', listener: (error: Error) => void): unknown;
  removeListener(event: 'error', listener: (error: Error) => void): unknown;
  /** Returns the connection to the pool; with an error it is closed instead. */
  release(error?: Error): void;
}

/** The parts of a connection pool that the store uses: `new Pool()` of `pg` is one. */
export interface PostgresPool {
  connect(): Promise<PostgresClient>;
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'connect', listener: (client: PostgresClient) => void): unknown;
  removeListener(event: 'error', listener: (error: Error) => void): unknown;
  removeListener(event: 'connect', listener: (client: PostgresClient) => void): unknown;
}

/** Columns as the server wrote them, independent of the parsers that the host has set for its own queries. */
export type Row = Readonly<Record<string, string | null | undefined>>;

/** A statement that is sent often, and always the same. */
export interface Statement {
  readonly text: string;
  /** Unique to this statement, its schema and this version of the code. */
  readonly name: string;
}

/** One connection, for the time of a task. */
export interface PoolSession {
  /** @throws the driver's error @throws {NoAnswer} when the time of the task is over */
  query(text: string, values?: unknown[]): Promise<Row[]>;
  /** @returns how many rows it changed @throws the errors of `query` */
  change(statement: Statement, values: unknown[]): Promise<number>;
  /** @throws the errors of `query` */
  rows(statement: Statement, values: unknown[]): Promise<Row[]>;
}

/** Works in a transaction. A failure changes nothing. */
export async function inTransaction<T>(session: PoolSession, work: () => Promise<T>): Promise<T> {
  await session.query('BEGIN ISOLATION LEVEL READ COMMITTED');
  try {
    const value = await work();
    await session.query('COMMIT');
    return value;
  } catch (error) {
    // If this fails too, the connection is lost, and the transaction with it.
    await session.query('ROLLBACK').catch(() => {});
    throw error;
  }
}

/** Works in a transaction that has the locks of some names. Two names may share a lock: they only wait for each other. */
export function inLockedTransaction<T>(
  session: PoolSession,
  names: readonly string[],
  work: () => Promise<T>,
): Promise<T> {
  return inTransaction(session, async () => {
    // All take the locks in the same order: no two wait for each other.
    for (const lock of [...new Set(names.map(lockOf))].sort())
      await session.query('SELECT pg_catalog.pg_advisory_xact_lock($1::bigint)', [lock]);
    return work();
  });
}

function lockOf(name: string): string {
  return BigInt.asIntN(64, BigInt(`0x${hash('sha256', name).slice(0, 16)}`)).toString();
}

const asWritten = { getTypeParser: () => (value: string) => value };

/** The connections of the host's pool, for one store. Each task borrows a connection and returns it, in bounded time. */
export class Connections {
  readonly #pool: PostgresPool;
  /** Whether connections keep statements: behind a pooler the next statement may reach another connection of the server. */
  #isKeeping = true;

  constructor(pool: PostgresPool) {
    this.#pool = pool;
    // A pool emits this event if an idle connection breaks; without a listener it would end the process. The same happens if a
    // server ends a new connection with its very first bytes, before any task has it.
    pool.on('error', ignore);
    pool.on('connect', guard);
  }

  /**
   * Lends `work` a connection. It is closed after any failure except a refused statement, and after a missing answer: its
   * later answers would be unreliable.
   * @param ms for everything, the wait for a connection included
   */
  async use<T>(ms: number, work: (session: PoolSession) => Promise<T>): Promise<T> {
    const timer = new Timer(ms);
    try {
      const loan = new Loan(await this.#connect(timer), timer, this);
      try {
        return await work(loan);
      } catch (error) {
        loan.onFailure(error);
        throw error;
      } finally {
        loan.giveBack();
      }
    } finally {
      timer.clear();
    }
  }

  close(): void {
    this.#pool.removeListener('error', ignore);
    this.#pool.removeListener('connect', guard);
  }

  get isKeeping(): boolean {
    return this.#isKeeping;
  }

  keepNone(): void {
    this.#isKeeping = false;
  }

  async #connect(timer: Timer): Promise<PostgresClient> {
    let connecting: Promise<PostgresClient> | undefined;
    const connect = () => {
      connecting = this.#pool.connect();
      return connecting;
    };
    try {
      return await timer.race(connect, 'no connection of the pool came free');
    } catch (error) {
      // The connection may still arrive; no task waits for it then.
      if (timer.isOver) connecting?.then((client) => client.release()).catch(ignore);
      throw error;
    }
  }
}

/** A borrowed connection. */
class Loan implements PoolSession {
  readonly #client: PostgresClient;
  readonly #timer: Timer;
  readonly #connections: Connections;
  #broken: Error | undefined;
  readonly #onError = (error: Error) => {
    this.#broken = error;
  };

  constructor(client: PostgresClient, timer: Timer, connections: Connections) {
    this.#client = client;
    this.#timer = timer;
    this.#connections = connections;
    client.on('error', this.#onError);
  }

  async query(text: string, values: unknown[] = []): Promise<Row[]> {
    const { rows } = await this.#ask({ text, values, types: asWritten });
    return rows as Row[];
  }

  async change({ text, name }: Statement, values: unknown[]): Promise<number> {
    return (await this.#askKept({ text, name, values })).rowCount ?? 0;
  }

  async rows({ text, name }: Statement, values: unknown[]): Promise<Row[]> {
    return (await this.#askKept({ text, name, values, types: asWritten })).rows as Row[];
  }

  async #askKept({ name, ...query }: PostgresQuery & Statement): ReturnType<PostgresClient['query']> {
    if (this.#connections.isKeeping) {
      try {
        return await this.#ask({ ...query, name });
      } catch (error) {
        if (!isStatementLost(error)) throw error;
        // The statement had no effect. A pooler is in between, or the server had to drop all statements.
        this.#connections.keepNone();
      }
    }
    return this.#ask(query);
  }

  onFailure(error: unknown): void {
    if (isConnectionLost(error)) this.#broken ??= error instanceof Error ? error : new Error(String(error));
  }

  giveBack(): void {
    try {
      this.#client.release(this.#broken);
      // A closing connection may still emit that it broke.
      if (!this.#broken) this.#client.removeListener('error', this.#onError);
    } catch {
      // The pool has ended meanwhile, and closes the connection.
    }
  }

  #ask(query: PostgresQuery): ReturnType<PostgresClient['query']> {
    return this.#timer.race(() => this.#client.query(query), 'the server did not answer');
  }
}

/** The whole time of a task. */
class Timer {
  isOver = false;
  readonly #ms: number;
  readonly #handle: NodeJS.Timeout;
  #onEnd: () => void = ignore;

  constructor(ms: number) {
    this.#ms = ms;
    this.#handle = setTimeout(() => {
      this.isOver = true;
      this.#onEnd();
    }, ms);
  }

  /**
   * Waits for an answer of the server, up to the time limit.
   * @throws {NoAnswer} when the time is over before the promise has settled
   */
  race<T>(ask: () => Promise<T>, complaint: string): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#onEnd = () => reject(new NoAnswer(`${complaint} within ${Math.round(this.#ms)} ms`));
      if (this.isOver) this.#onEnd();
      else ask().then(resolve, reject);
    });
  }

  clear(): void {
    clearTimeout(this.#handle);
  }
}

function guard(client: PostgresClient): void {
  client.on('error', ignore);
}

function ignore(): void {}
