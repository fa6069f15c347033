import { checkKeys, checkMethods, type KnownKeys, kindOf } from '../../values/known-options.ts';

/** A connection of the driver pg, for notifications alone. */
export interface ListenClient {
  query(text: string): Promise<unknown>;
  on(event: 'notification' | 'error' | 'end', listener: (...args: never[]) => void): unknown;
  end(): Promise<unknown> | unknown;
}

export interface WorkOptions {
  /**
   * Most runs that this worker works on at once.
   * @default 16
   */
  readonly concurrency?: number;
  /**
   * How long it works on a run before it leaves it to any worker of the fleet.
   * @default 600_000
   */
  readonly budgetMs?: number;
  /**
   * How long calls that are under way then may last. As for `drive`.
   * @default 30_000
   */
  readonly graceMs?: number;
  /**
   * Most live runs of one fair key in this process: see `createExecutor({ fairBy })`.
   * @default none: no bound
   * @example perKey: 4
   */
  readonly perKey?: number;
  /**
   * How often a worker with free places asks for due runs, give or take 20 %.
   * @default 1_000
   */
  readonly dueMs?: number;
  /**
   * Makes a connection of the driver pg on which notifications of the PostgreSQL store wake this worker at once. It is a connection
   * of its own, not one of a pool, and not behind a pooler of transactions. Losing it costs only latency: it is made again.
   * @default none: it only asks
   * @example listen: async () => { const client = new Client(); await client.connect(); return client; }
   */
  readonly listen?: () => Promise<ListenClient>;
  /**
   * An abort drains the worker, with `graceMs` for calls that are under way.
   * @default none
   * @example signal: stop.signal
   */
  readonly signal?: AbortSignal;
}

const optionKeys: KnownKeys<WorkOptions> = {
  concurrency: true,
  budgetMs: true,
  graceMs: true,
  perKey: true,
  dueMs: true,
  listen: true,
  signal: true,
};

/** The options of `work`, complete. */
export interface WorkLimits extends Required<Omit<WorkOptions, 'perKey' | 'listen' | 'signal'>> {
  readonly perKey: number;
  readonly listen: WorkOptions['listen'] | undefined;
  readonly signal: AbortSignal | undefined;
}

/** A timer takes no longer time, ms. */
const MAX_MS = 2 ** 31 - 1;

/** Reads the options of `work`. @throws {TypeError} that names the option and its valid values */
export function workLimitsOf(options: WorkOptions): WorkLimits {
  checkKeys(options, optionKeys, { of: 'work' });
  const { concurrency = 16, budgetMs = 600_000, graceMs = 30_000, perKey, dueMs = 1_000, listen, signal } = options;
  checkMethods('work: signal', signal, { methods: ['addEventListener', 'removeEventListener'] });
  if (listen !== undefined && typeof listen !== 'function')
    throw new TypeError(`work: listen must be a function, not ${kindOf(listen)}`);
  return {
    concurrency: countOf('concurrency', concurrency),
    budgetMs: msOf('budgetMs', budgetMs, 0),
    graceMs: msOf('graceMs', graceMs, 0),
    perKey: perKey === undefined ? Number.POSITIVE_INFINITY : countOf('perKey', perKey),
    dueMs: msOf('dueMs', dueMs, 1),
    listen,
    signal,
  };
}

function countOf(name: string, count: number): number {
  if (Number.isInteger(count) && count > 0) return count;
  throw new TypeError(`work: ${name} must be a whole number above 0, not ${String(count)}`);
}

function msOf(name: string, ms: number, least: number): number {
  if (typeof ms === 'number' && ms >= least) return Math.min(ms, MAX_MS);
  throw new TypeError(`work: ${name} must be a number of milliseconds, ${least} or more, not ${String(ms)}`);
}
