import type { Logger } from '../../log/log.ts';
import type { Clock } from '../../values/clock.ts';
import { readProperty, toErrorData } from '../../values/error-data.ts';
import { checkKeys, type KnownKeys } from '../../values/known-options.ts';
import { isThenable, letGo } from '../../values/thenable.ts';
import { isError } from './guard.ts';

/** The options of a JSON logger. */
export interface JsonLoggerOptions {
  /** Writes `info` lines too: which runs this process takes, ends and leaves. Default: false. */
  readonly info?: boolean;
  /** Takes one line, without its line break. Default: `console.error`, which writes to stderr. Its errors are dropped. */
  readonly write?: (line: string) => void;
  /** The time of a line; default: the system clock. */
  readonly clock?: Pick<Clock, 'now'>;
}

const optionKeys: KnownKeys<JsonLoggerOptions> = {
  info: true,
  write: true,
  clock: true,
};

const MAX_TEXT = 4_000;
const MAX_DEPTH = 8;
const MAX_ITEMS = 100;
/** Most characters and members of one line; the rest is marked as cut. */
const MAX_LINE = 32_000;

/** The names that each line has. A field with one of these names is not written. */
const own: readonly string[] = ['time', 'level', 'message'];

/**
 * Returns a logger that writes one JSON object for each line: `time` (ISO), `level` (`warn` or `error`, where a person is
 * needed), `message`, and the fields beside them. Any field can be written: values that JSON does not know are described,
 * errors become `{ name, code, message, cause? }`, long texts and lists are cut.
 * @example createExecutor({ models, logger: jsonLogger() })
 * @example createExecutor({ models, logger: jsonLogger({ write: (line) => file.write(`${line}\n`) }) })
 */
export function jsonLogger(options: JsonLoggerOptions = {}): Logger {
  checkKeys(options, optionKeys, { of: 'jsonLogger' });
  const { write = (line: string) => console.error(line), clock = Date, info = false } = options;
  const writing = (level: string): Logger['warn'] => {
    return (message, fields) => {
      try {
        const left = { room: MAX_LINE };
        const line = { time: timeOf(clock), level, message: textOf(message, left), ...fieldsOf(fields, left) };
        letGo(write(JSON.stringify(line)));
      } catch {
        // No other place is left to report it.
      }
    };
  };
  return { warn: writing('warn'), error: writing('error'), ...(info ? { info: writing('info') } : {}) };
}

/** The rest of a line's limits. */
interface Left {
  room: number;
}

function timeOf(clock: Pick<Clock, 'now'>): string {
  try {
    return new Date(clock.now()).toISOString();
  } catch {
    return new Date().toISOString();
  }
}

function textOf(text: unknown, left: Left): string {
  if (typeof text !== 'string') return `[${typeof text}]`;
  const most = Math.max(0, Math.min(MAX_TEXT, left.room));
  left.room -= Math.min(text.length, most);
  return text.length > most ? `${text.slice(0, most)}… [${text.length - most} more]` : text;
}

function fieldsOf(fields: unknown, left: Left): object {
  const plain = plainOf(fields, left, []);
  if (typeof plain !== 'object' || plain === null || Array.isArray(plain))
    return plain === undefined ? {} : { fields: plain };
  for (const name of own) delete (plain as Record<string, unknown>)[name];
  return plain;
}

/** Converts any value to JSON; `undefined` only for an absent value. Never throws. */
function plainOf(value: unknown, left: Left, around: readonly object[]): unknown {
  left.room -= 1;
  if (typeof value === 'string') return textOf(value, left);
  if (typeof value === 'bigint') return textOf(String(value), left);
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value);
  if (typeof value === 'boolean' || value === null || value === undefined) return value;
  if (typeof value !== 'object') return `[${typeof value}]`;
  if (around.includes(value)) return '[circular]';
  if (around.length >= MAX_DEPTH || left.room <= 0) return '[cut]';
  try {
    return objectOf(value, left, [...around, value]);
  } catch {
    return '[unreadable]';
  }
}

/** A `toJSON` method decides: it may hide parts of its value on purpose. */
function objectOf(value: object, left: Left, around: readonly object[]): unknown {
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  if (isThenable(value)) return '[promise]';
  if (isError(value)) return plainOf(toErrorData(value), left, around);
  if (typeof readProperty(value, 'toJSON') === 'function') {
    return plainOf((value as { toJSON: () => unknown }).toJSON(), left, around);
  }
  return Array.isArray(value) ? arrayOf(value, left, around) : membersOf(value, left, around);
}

function arrayOf(values: readonly unknown[], left: Left, around: readonly object[]): unknown[] {
  const items: unknown[] = [];
  for (let i = 0; i < Math.min(values.length, MAX_ITEMS) && left.room > 0; i++) {
    items.push(read(() => plainOf(values[i], left, around)) ?? null);
  }
  if (items.length < values.length) items.push(`… [${values.length - items.length} more]`);
  return items;
}

function membersOf(value: object, left: Left, around: readonly object[]): object {
  // Without a prototype `__proto__` is an ordinary name.
  const members: Record<string, unknown> = Object.create(null);
  const names = Object.keys(value);
  let count = 0;
  for (const name of names) {
    if (count >= MAX_ITEMS || left.room <= 0) {
      members['…'] = `[${names.length - count} more]`;
      break;
    }
    count += 1;
    const member = read(() => plainOf((value as Record<string, unknown>)[name], left, around));
    if (member !== undefined) members[textOf(name, left)] = member;
  }
  return members;
}

function read(member: () => unknown): unknown {
  try {
    return member();
  } catch {
    return '[unreadable]';
  }
}
