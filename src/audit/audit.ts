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
  /** The file; made with its folder at the first write or query. It must not be the file of a `sqliteStore`. */
  readonly path: string;
  /** How long runs are kept after their end; default 90 days, Infinity = never deleted. Runs that have not ended stay. */
  readonly retentionDays?: number | undefined;
  /**
   * Returns what is written instead of a value: of the run (`prompt`, `inputs`, `output`, `error`), of its tools
   * (`tool.input`, `tool.output`), of its phases (`phase.output`), of an `event`. If it throws, the value is not written.
   */
  readonly redact?: Redact | undefined;
  /**
   * The most characters that are written of a tool's input or output, or of an event; default 16,384. For texts of the whole
   * run (prompt, inputs, output, outputs of its phases) the limit is sixteen times as high.
   */
  readonly maxChars?: number | undefined;
  /** How long a write or a query waits while another process holds the lock, ms; default 5,000. */
  readonly busyTimeoutMs?: number | undefined;
  /** The logger for warnings; default: the console. */
  readonly logger?: { warn(message: string, fields: Readonly<Record<string, unknown>>): void } | undefined;
  readonly clock?: Clock | undefined;
}

/** An audit with queries. */
export interface SqliteAudit extends Audit, AuditQueries {
  /** The number of entries that were dropped. */
  readonly dropped: number;
  /** Writes the queued entries and closes the file. Later entries are dropped; later queries are refused. */
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
 * Records runs in a SQLite file of its own, for all processes of one machine: how they ran and ended, their steps, tool
 * calls, phases, saves and retries. The entries stay after the runs' records are deleted. If another process continues a
 * run, the audit continues its entry.
 *
 * A run waits for the audit only at its end, which is written before `run.result` resolves. Entries of a twentieth of a
 * second are written together: a process that is killed loses at most these. While the file cannot be written, up to
 * 20,000 entries or 64 MB are queued. Further entries are dropped, counted in `dropped`, and one warning is logged.
 *
 * Prompts, inputs and outputs are written unchanged: protect the file like the data itself, or set `redact`.
 *
 * Queries reject with StoreUnavailableError if the file is damaged, locked for too long, or cannot be opened.
 *
 * @throws {TypeError} if an option is invalid
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

/** SQLite is loaded at the first use, so that programs without an audit do not load it. */
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

/** Opens the file at the first use, and never after it was closed. */
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

/** Errors of the host's logger are ignored. */
function warning(logger: AuditOptions['logger']) {
  return (message: string, fields: Readonly<Record<string, unknown>>) => {
    try {
      if (logger) letGo(logger.warn(message, fields));
      else console.warn(message, fields);
    } catch {
      // There is no place left to report it.
    }
  };
}

function atLeast(least: number, given: { readonly [name: string]: number }): number {
  for (const [name, value] of Object.entries(given)) {
    if (typeof value === 'number' && value >= least) return value;
    throw new TypeError(`createAudit: ${name} must be a number >= ${least}, not ${String(value)}`);
  }
  return least;
}

function checkedBy(filter: AuditTotalsFilter): AuditTotalsFilter {
  if (['day', 'agent', 'caller'].includes(filter.by)) return filter;
  throw new TypeError(`totals: by must be 'day', 'agent' or 'caller', not ${JSON.stringify(filter.by)}`);
}

const MOST = 10_000;

/** The most rows that a query of the audit may return. @throws {TypeError} if the limit is not a whole number >= 1 */
function most(usual: number, limit: number | undefined): number {
  if (limit === undefined) return usual;
  if (!Number.isSafeInteger(limit) || limit < 1) throw new TypeError(`limit must be a whole number >= 1, not ${limit}`);
  return Math.min(MOST, limit);
}
