/// <reference lib="esnext.disposable" preserve="true" />
import { type Clock, systemClock } from '../values/clock.ts';
import { StoreUnavailableError } from '../values/errors.ts';
import { checkKeys, type KnownKeys } from '../values/known-options.ts';
import { letGo } from '../values/thenable.ts';
import type { Audit } from './port.ts';
import type { AuditQueries, AuditTotalsFilter } from './queries.ts';
import { EntryQueue } from './queue.ts';
import { Recorder, type Redact } from './recorder.ts';
import type { AuditFile } from './sqlite-file.ts';

export interface AuditOptions {
  /** The file; made, with its folder, when something is first written or asked. It must not be the one of a `sqliteStore`. */
  readonly path: string;
  /** How long runs are kept after their end; default 90 days, Infinity = for good. Runs that have not ended stay. */
  readonly retentionDays?: number | undefined;
  /**
   * Gives what is to be written in the place of a value: of the run (`prompt`, `inputs`, `output`, `error`), of its tools
   * (`tool.input`, `tool.output`), of its phases (`phase.output`), of an `event`. What it throws for is not written.
   */
  readonly redact?: Redact | undefined;
  /**
   * Of a tool's input or output, or of an event, so many characters are written; default 16,384. Of what belongs to the
   * run as a whole (prompt, inputs, output, outputs of its phases) sixteen times as many.
   */
  readonly maxChars?: number | undefined;
  /** How long a write or a query waits while another process holds the lock, ms; default 5,000. */
  readonly busyTimeoutMs?: number | undefined;
  /** Where warnings go; default: the console. */
  readonly logger?: { warn(message: string, fields: Readonly<Record<string, unknown>>): void } | undefined;
  readonly clock?: Clock | undefined;
}

/** An audit that can be asked. */
export interface SqliteAudit extends Audit, AuditQueries {
  /** Entries that could not be written, and will not be. */
  readonly dropped: number;
  /** Writes what waits and closes the file. What comes later is dropped; queries are refused. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

const optionKeys: KnownKeys<AuditOptions> = {
  path: true,
  retentionDays: true,
  redact: true,
  maxChars: true,
  busyTimeoutMs: true,
  logger: true,
  clock: true,
};

const DAY_MS = 86_400_000;

/**
 * Remembers runs in a SQLite file of its own, for all processes of one machine, also when their records are gone: how they
 * went and ended, their steps, tool calls, phases, saves and retries. A run that goes on in another process goes on here.
 *
 * Nothing of a run waits for it, but its end, which is written down before `run.result` resolves. What happens within a
 * twentieth of a second is written together: so much is lost when the process is killed. While the file cannot be written up
 * to 20,000 entries or 64 MB wait for it; what comes then is dropped, counted in `dropped`, and warned of once.
 *
 * Prompts, inputs and outputs are written as they are: keep the file as safe as the data, or give `redact`.
 *
 * Queries reject with StoreUnavailableError when the file is damaged, locked for too long, or cannot be opened.
 *
 * @throws {TypeError} for options that make no sense
 * @example
 * const audit = createAudit({ path: 'audit.db', retentionDays: 30 });
 * const executor = createExecutor({ models, ports: { audit } });
 * await audit.totals({ by: 'day' });
 */
export function createAudit(options: AuditOptions): SqliteAudit {
  checkKeys(options, optionKeys, { of: 'createAudit' });
  const { path, retentionDays = 90, redact, maxChars = 16_384, busyTimeoutMs = 5_000, clock = systemClock } = options;
  if (typeof path !== 'string' || path === '') throw new TypeError('createAudit: path must be the path of a file');
  const days = atLeast(0, { retentionDays });
  const file = lazily(() => openFile(path, atLeast(0, { busyTimeoutMs })));
  const warn = warning(options.logger);
  const queue = new EntryQueue({ clock, warn, open: file.get, retentionMs: days * DAY_MS });
  const recording = { queue, clock, redact, maxChars: atLeast(1, { maxChars }) };
  const asked = async () => {
    await queue.flush();
    return file.get();
  };
  const close = async () => {
    await queue.close();
    await file.close();
  };
  return {
    startRun: (info) => new Recorder(recording, info),
    runs: async (filter = {}) => (await asked()).runs(filter, most(100, filter.limit)),
    run: async (runId, { limit } = {}) => (await asked()).run(runId, most(10_000, limit)),
    tree: async (runId, { depth = 8, limit } = {}) => (await asked()).tree(runId, { depth, limit: most(1_000, limit) }),
    totals: async (filter) => (await asked()).totals(checkedBy(filter), most(1_000, filter.limit)),
    get dropped() {
      return queue.dropped;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** SQLite is loaded when it is first needed: who has no audit does not pay for it. */
async function openFile(path: string, busyTimeoutMs: number): Promise<AuditFile> {
  try {
    const { AuditFile } = await import('./sqlite-file.ts');
    return new AuditFile({ path, busyTimeoutMs });
  } catch (error) {
    throw new StoreUnavailableError('the audit needs node:sqlite, which this Node does not have; use 22.18 or newer', {
      cause: error,
    });
  }
}

/** A file that is opened when somebody first asks for it, and never after it was closed. */
function lazily(open: () => Promise<AuditFile>) {
  let opening: Promise<AuditFile> | undefined;
  let isClosed = false;
  return {
    get: (): Promise<AuditFile> => {
      if (isClosed && !opening) return Promise.reject(new StoreUnavailableError('the audit was closed'));
      opening ??= open();
      return opening;
    },
    close: async () => {
      isClosed = true;
      (await opening)?.close();
    },
  };
}

/** What a host's logger throws is nobody's business here. */
function warning(logger: AuditOptions['logger']) {
  return (message: string, fields: Readonly<Record<string, unknown>>) => {
    try {
      if (logger) letGo(logger.warn(message, fields));
      else console.warn(message, fields);
    } catch {
      // There is nowhere left to say it.
    }
  };
}

function atLeast(least: number, given: { readonly [name: string]: number }): number {
  for (const [name, value] of Object.entries(given)) {
    if (typeof value === 'number' && value >= least) return value;
    throw new TypeError(`createAudit: ${name} must be a number from ${least}, not ${String(value)}`);
  }
  return least;
}

function checkedBy(filter: AuditTotalsFilter): AuditTotalsFilter {
  if (['day', 'agent', 'caller'].includes(filter.by)) return filter;
  throw new TypeError(`totals are by 'day', 'agent' or 'caller', not by ${JSON.stringify(filter.by)}`);
}

const MOST = 10_000;

/** @throws {TypeError} for a limit that is no whole number from 1 */
function most(usual: number, limit: number | undefined): number {
  if (limit === undefined) return usual;
  if (!Number.isSafeInteger(limit) || limit < 1)
    throw new TypeError(`limit must be a whole number from 1, not ${limit}`);
  return Math.min(MOST, limit);
}
