import type { Clock } from '../values/clock.ts';
import { pageOfCode } from '../values/error-codes.ts';
import { readProperty, toErrorData } from '../values/error-data.ts';
import { letGo } from '../values/thenable.ts';
import { type LogEvent, type LogRow, logTable } from './table.ts';

/** The fields of a log line: `event`, `level`, often `code` with `see` (where it is explained), `runId`, `agentId` and `traceId`, and what the line tells. */
export type LogFields = Readonly<Record<string, unknown>>;

/**
 * Receives log lines; default: the console. Each has `event` and `level` among its fields, and docs/log-lines.md has all
 * events. A line that is repeated comes once a minute, with `count`.
 */
export interface Logger {
  /** A line of level `warn`; without `error` also one of level `error`. */
  warn(message: string, fields: LogFields): void;
  /** A line that needs a person. */
  error?(message: string, fields: LogFields): void;
  /** Which runs this process takes, ends and leaves. Absent = such lines are not written. */
  info?(message: string, fields: LogFields): void;
}

/** Writes the line of an event. Its field `error` may be anything that was thrown. Never throws. */
export type Warn = (event: LogEvent, fields?: LogFields) => void;

/** What a line says of its run besides the id. */
interface RunNames {
  readonly agentId: string;
  readonly traceId?: string | undefined;
}

/** Gets the fields of each line of level `warn` or `error`, also of those that are not written because they are repeated. */
type LineListener = (fields: LogFields) => void;

/** The logger of a host that has none. */
export const consoleLogger: Logger = {
  warn: (message, fields) => console.warn(message, fields),
  error: (message, fields) => console.error(message, fields),
};

/** A line that is repeated is written once in this time, ms. */
const REPEATED_MS = 60_000;
/** Most different lines whose repetition is known. */
const MAX_KNOWN_LINES = 1_000;

interface Written {
  at: number;
  /** How many were not written since. */
  more: number;
}

/** Writes log lines: the only way in which Pawl warns. */
export class LogLines {
  readonly #logger: Logger;
  readonly #written = new Map<string, Written>();
  readonly #listeners = new Set<LineListener>();
  /** For the time of repetitions. A guarded clock warns itself, so it comes later. */
  clock: Pick<Clock, 'monotonic'> = { monotonic: () => performance.now() };
  /** Finds the names of a live run. */
  namesOf: ((runId: string) => RunNames | undefined) | undefined;

  constructor(logger: Logger = consoleLogger) {
    this.#logger = logger;
  }

  /** Whether `info` lines are written. */
  get hasInfo(): boolean {
    return typeof this.#logger.info === 'function';
  }

  /** Calls a function with each warning from now on. It must not throw. */
  listen(listener: LineListener): void {
    this.#listeners.add(listener);
  }

  readonly warn: Warn = (event, given = {}) => {
    try {
      const row: LogRow = logTable[event];
      const fields = this.#fieldsOf(event, row, given);
      if (row.level !== 'info') for (const listener of this.#listeners) listener(fields);
      const message = sentenceOf(row.says, fields);
      const count = row.level === 'info' ? 1 : this.#countOf(keyOf(message, fields));
      if (count > 0) this.#write(row.level, message, count === 1 ? fields : { ...fields, count });
    } catch {
      // A logger that throws must not end the run that wanted to log, and no other place is left to say so.
    }
  };

  #write(level: LogRow['level'], message: string, fields: LogFields): void {
    const logger = this.#logger;
    if (level === 'info') letGo(logger.info?.(message, fields) as unknown);
    else if (level === 'error' && logger.error) letGo(logger.error(message, fields) as unknown);
    else letGo(logger.warn(message, fields) as unknown);
  }

  #fieldsOf(event: LogEvent, { level }: LogRow, given: LogFields): LogFields {
    const { runId, error: thrown, code: givenCode, ...rest } = given;
    const names = typeof runId === 'string' ? this.namesOf?.(runId) : undefined;
    // Anything may have been thrown, `undefined` too.
    const error = 'error' in given ? toErrorData(thrown) : undefined;
    const code = givenCode ?? error?.code;
    const see = level === 'info' ? undefined : pageOfCode(code);
    return {
      event,
      level,
      ...(typeof code === 'string' ? { code: code.slice(0, MAX_FIELD_CHARS) } : {}),
      ...(see === undefined ? {} : { see }),
      ...(runId === undefined ? {} : { runId }),
      ...(names ? { agentId: names.agentId, ...(names.traceId === undefined ? {} : { traceId: names.traceId }) } : {}),
      ...rest,
      ...(error ? { error } : {}),
    };
  }

  /** For how many lines this one stands; 0 = it is not written. */
  #countOf(key: string): number {
    const now = this.clock.monotonic();
    const before = this.#written.get(key);
    if (before && now - before.at < REPEATED_MS) {
      before.more += 1;
      return 0;
    }
    this.#written.delete(key);
    this.#written.set(key, { at: now, more: 0 });
    const [oldest] = this.#written.keys();
    if (this.#written.size > MAX_KNOWN_LINES && oldest !== undefined) this.#written.delete(oldest);
    return 1 + (before?.more ?? 0);
  }
}

/**
 * Lines that need a person are repeated only where they are of the same run: a person must see each run. Of another line the run
 * makes no difference, nor does its id in the message of the error.
 */
function keyOf(sentence: string, { level, code, runId, agentId, error }: LogFields): string {
  const message = readProperty(error, 'message');
  const why = typeof message === 'string' ? message.replaceAll(String(runId), '').slice(0, MAX_FIELD_CHARS) : '';
  return JSON.stringify([sentence, code, why, level === 'error' ? [runId, agentId] : undefined]);
}

const MAX_FIELD_CHARS = 200;

function sentenceOf(says: string, fields: LogFields): string {
  return says.replace(/\{(\w+)\}/g, (_, name: string) => String(fields[name]).slice(0, MAX_FIELD_CHARS));
}
