import { clearTimeout, setTimeout } from 'node:timers';
import { isConnectionLost, NoAnswer } from './postgres-errors.ts';

/** A statement with its parameters, as `pg` takes it. */
export interface PostgresQuery {
  readonly text: string;
  readonly values?: unknown[];
  /** Says how columns are read. */
  readonly types?: { getTypeParser(): (value: string) => string };
}

/** What the store needs of a connection. A client of a `pg` pool has it. */
export interface PostgresClient {
  query(query: PostgresQuery): Promise<{ readonly rows: readonly object[] }>;
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

/** One connection, for as long as some work needs it. */
export interface Session {
  /** @throws the driver's error @throws {NoAnswer} when the time of the work is over */
  query(text: string, values?: unknown[]): Promise<Row[]>;
}

const asWritten = { getTypeParser: () => (value: string) => value };

/** The host's pool. Each piece of work takes a connection out and gives it back, in bounded time. */
export class Connections {
  readonly #pool: PostgresPool;

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
      const client = await this.#connect(timer);
      return await lend(client, timer, work);
    } finally {
      timer.clear();
    }
  }

  close(): void {
    this.#pool.removeListener('error', ignore);
    this.#pool.removeListener('connect', guard);
  }

  async #connect(timer: Timer): Promise<PostgresClient> {
    const connecting = (async () => this.#pool.connect())();
    try {
      return await timer.race(connecting, 'no connection of the pool came free');
    } catch (error) {
      // It may come after all; then nobody waits for it any more.
      if (timer.isOver) connecting.then((client) => client.release()).catch(ignore);
      throw error;
    }
  }
}

async function lend<T>(client: PostgresClient, timer: Timer, work: (session: Session) => Promise<T>): Promise<T> {
  let broken: Error | undefined;
  const onError = (error: Error) => {
    broken = error;
  };
  client.on('error', onError);
  const query = async (text: string, values: unknown[] = []): Promise<Row[]> => {
    const asked = (async () => client.query({ text, values, types: asWritten }))();
    const { rows } = await timer.race(asked, 'the server did not answer');
    return rows as Row[];
  };
  try {
    return await work({ query });
  } catch (error) {
    if (isConnectionLost(error)) broken ??= error instanceof Error ? error : new Error(String(error));
    throw error;
  } finally {
    giveBack(client, onError, broken);
  }
}

function giveBack(client: PostgresClient, onError: (error: Error) => void, broken: Error | undefined): void {
  try {
    client.release(broken);
    // One that is being closed may still say that it broke.
    if (!broken) client.removeListener('error', onError);
  } catch {
    // The pool has ended meanwhile; the connection goes with it.
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
  race<T>(promise: Promise<T>, complaint: string): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#onEnd = () => reject(new NoAnswer(`${complaint} within ${Math.round(this.#ms)} ms`));
      if (this.isOver) this.#onEnd();
      promise.then(resolve, reject);
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
