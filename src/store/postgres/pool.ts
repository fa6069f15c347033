import { clearTimeout, setTimeout } from 'node:timers';
import { isConnectionLost, isStatementLost, NoAnswer } from './errors.ts';

/** A statement with its parameters, as `pg` takes it. */
export interface PostgresQuery {
  readonly text: string;
  readonly values?: unknown[];
  /** Under it the server keeps the statement for as long as the connection lasts. */
  readonly name?: string;
  /** Says how columns are read. */
  readonly types?: { getTypeParser(): (value: string) => string };
}

/** What the store needs of a connection. A client of a `pg` pool has it. */
export interface PostgresClient {
  query(query: PostgresQuery): Promise<{ readonly rows: readonly object[]; readonly rowCount?: number | null }>;
  on(event: 'error', listener: (error: Error) => void): unknown;
  removeListener(event: 'error', listener: (error: Error) => void): unknown;
  /** Gives the connection back; with an error it is closed instead. */
  release(error?: Error): void;
}

/** What the store needs of a pool of connections: `new Pool()` of `pg` is one. */
export interface PostgresPool {
  connect(): Promise<PostgresClient>;
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'connect', listener: (client: PostgresClient) => void): unknown;
  removeListener(event: 'error', listener: (error: Error) => void): unknown;
  removeListener(event: 'connect', listener: (client: PostgresClient) => void): unknown;
}

/** Columns as the server wrote them: whatever parsers the host has set for its own queries. */
export type Row = Readonly<Record<string, string | null | undefined>>;

/** A statement that is sent often, and always the same. */
export interface Statement {
  readonly text: string;
  /** Of no other statement, in whatever schema or version of this code. */
  readonly name: string;
}

/** One connection, for as long as some work needs it. */
export interface Session {
  /** @throws the driver's error @throws {NoAnswer} when the time of the work is over */
  query(text: string, values?: unknown[]): Promise<Row[]>;
  /** @returns how many rows it changed @throws what `query` throws */
  change(statement: Statement, values: unknown[]): Promise<number>;
}

const asWritten = { getTypeParser: () => (value: string) => value };

/** The host's pool. Each piece of work takes a connection out and gives it back, in bounded time. */
export class Connections {
  readonly #pool: PostgresPool;
  /** Whether connections keep statements: behind a pooler the next one may reach another connection of the server. */
  #isKeeping = true;

  constructor(pool: PostgresPool) {
    this.#pool = pool;
    // A pool says by this event that an idle connection broke; without a listener that would end the process. So would a
    // server that ends a new connection with the very bytes that open it, before anybody can have been handed it.
    pool.on('error', ignore);
    pool.on('connect', guard);
  }

  /**
   * Lends `work` a connection. One that failed in any way other than a refused statement, or that did not answer in time,
   * is closed: nobody knows what it would say next.
   * @param ms for all of it, the wait for a connection included
   */
  async use<T>(ms: number, work: (session: Session) => Promise<T>): Promise<T> {
    const timer = new Timer(ms);
    try {
      const loan = new Loan(await this.#connect(timer), timer, this);
      try {
        return await work(loan);
      } catch (error) {
        loan.failed(error);
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
      // It may come after all; then nobody waits for it any more.
      if (timer.isOver) connecting?.then((client) => client.release()).catch(ignore);
      throw error;
    }
  }
}

/** A connection that is lent out. */
class Loan implements Session {
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
    if (this.#connections.isKeeping) {
      try {
        return (await this.#ask({ text, values, name })).rowCount ?? 0;
      } catch (error) {
        if (!isStatementLost(error)) throw error;
        // It has done nothing. A pooler is in between, or somebody told the server to forget all statements.
        this.#connections.keepNone();
      }
    }
    return (await this.#ask({ text, values })).rowCount ?? 0;
  }

  failed(error: unknown): void {
    if (isConnectionLost(error)) this.#broken ??= error instanceof Error ? error : new Error(String(error));
  }

  giveBack(): void {
    try {
      this.#client.release(this.#broken);
      // One that is being closed may still say that it broke.
      if (!this.#broken) this.#client.removeListener('error', this.#onError);
    } catch {
      // The pool has ended meanwhile; the connection goes with it.
    }
  }

  #ask(query: PostgresQuery): ReturnType<PostgresClient['query']> {
    return this.#timer.race(() => this.#client.query(query), 'the server did not answer');
  }
}

/** The time that some work may take, all in all. */
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

  /** @throws {NoAnswer} when the time is over before the promise has settled */
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
