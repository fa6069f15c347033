import type { Warn } from '../../log/log.ts';
import { type Backoff, backoffMs } from '../../values/backoff.ts';
import type { Clock } from '../../values/clock.ts';
import { withDeadline } from '../../values/deadline.ts';
import { letGo } from '../../values/thenable.ts';
import type { ListenClient } from './options.ts';

/** The channel on which the PostgreSQL store says that a run is due. */
const CHANNEL = 'pawl_due';

/** The pauses before a lost connection is made again, ms. */
const pauses: Backoff = { firstMs: 1_000, maxMs: 30_000, jitter: 'around' };

interface Surroundings {
  readonly clock: Clock;
  readonly random: () => number;
  readonly warn: Warn;
  /** Longest wait for the connection, ms. */
  readonly ms: number;
  /** A run may be due. */
  readonly wake: () => void;
}

/** Listens for due runs on a connection of the host. While it is lost, the worker polls as without one. */
export class Listener {
  readonly #connect: () => Promise<ListenClient>;
  readonly #around: Surroundings;
  #client: ListenClient | undefined;
  #timer: unknown;
  #failures = 0;
  #isOver = false;

  constructor(connect: () => Promise<ListenClient>, around: Surroundings) {
    this.#connect = connect;
    this.#around = around;
  }

  /** Connects, and again whenever the connection is lost. Never rejects. */
  async begin(): Promise<void> {
    if (this.#isOver) return;
    try {
      await this.#listen(await this.#connectOnce());
    } catch (error) {
      this.#lost(undefined, error);
    }
  }

  end(): void {
    this.#isOver = true;
    this.#around.clock.clearTimeout(this.#timer);
    close(this.#client);
    this.#client = undefined;
  }

  /** A connection that comes too late is closed. */
  async #connectOnce(): Promise<ListenClient> {
    const { ms, clock } = this.#around;
    let isLate = false;
    const connecting = (async () => this.#connect())();
    connecting.then((client) => isLate && close(client)).catch(() => {});
    try {
      return await withDeadline(connecting, { ms, clock, what: 'listen' });
    } catch (error) {
      isLate = true;
      throw error;
    }
  }

  async #listen(client: ListenClient): Promise<void> {
    if (this.#isOver) return close(client);
    const { ms, clock, wake } = this.#around;
    this.#client = client;
    client.on('notification', () => wake());
    client.on('error', (error: unknown) => this.#lost(client, error));
    client.on('end', () => this.#lost(client, new Error('the connection has ended')));
    await withDeadline(Promise.resolve(client.query(`LISTEN ${CHANNEL}`)), { ms, clock, what: 'LISTEN' });
    this.#failures = 0;
    // Runs that became due before it listened.
    wake();
  }

  /** Connects again after a pause. @param client undefined = the one that is being made */
  #lost(client: ListenClient | undefined, error: unknown): void {
    if (this.#isOver || (client && client !== this.#client)) return;
    const { clock, random, warn } = this.#around;
    close(this.#client);
    this.#client = undefined;
    if (this.#failures === 0) warn('due.listener.lost', { error });
    this.#failures += 1;
    clock.clearTimeout(this.#timer);
    this.#timer = clock.setTimeout(() => void this.begin(), backoffMs(this.#failures, pauses, random));
  }
}

function close(client: ListenClient | undefined): void {
  try {
    letGo(client?.end());
  } catch {
    // It is gone already.
  }
}
