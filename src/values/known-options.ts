import { isObject } from './json.ts';
import { isThenable } from './thenable.ts';

/** A table of all fields of a type. It does not compile while a field is missing or superfluous. */
export type KnownKeys<Options> = { readonly [Key in keyof Options]-?: true };

/** Where the options are, for the error that refuses one of them. */
export interface OptionsPlace {
  /** The function that takes the options, for example `createExecutor`. */
  readonly of: string;
  /** The place inside them, for example `defaults`; absent = the top level. */
  readonly at?: string;
  /** Full names of options in other places: suggested if no option of this place is similar. */
  readonly elsewhere?: readonly string[];
  /** Names that other libraries have for something, and what to write here in their place. */
  readonly foreign?: Readonly<Record<string, string>>;
}

/** Names that options of agents, phases, skills and defaults had before, each with the name of today. */
export const earlierNames = {
  modelTier: 'model takes the name of a tier, or a language model',
  maxIterations: 'maxSteps is the most steps of a run',
} as const;

/**
 * Refuses unknown options: a typing error in a limit would silently remove the limit. Only own enumerable string keys are
 * checked, so an instance of a class may be given; symbols are never typing errors.
 * @throws {TypeError} for a value that is not an object, and for the first unknown key, with the most similar known one
 * @example checkKeys(options.defaults, defaultsKeys, { of: 'createExecutor', at: 'defaults' })
 */
export function checkKeys(given: unknown, known: Readonly<Record<string, true>>, place: OptionsPlace): void {
  const { of, at } = place;
  if (!isObject(given)) throw new TypeError(`${of}: ${at ?? 'the options'} must be an object, not ${kindOf(given)}`);
  const unknown = Object.keys(given).find((key) => !Object.hasOwn(known, key));
  if (unknown === undefined) return;
  const path = (key: string) => (at === undefined ? key : `${at}.${key}`);
  const here = Object.keys(known).map(path);
  const { elsewhere = [], foreign = {} } = place;
  const word = Object.hasOwn(foreign, unknown) ? foreign[unknown] : undefined;
  if (word !== undefined) throw new TypeError(`${of}: unknown option ${path(unknown)}; ${word}`);
  // The same name in another place is nearer than a similar one here.
  const same = elsewhere.find((name) => name.endsWith(`.${unknown}`));
  const near = same ?? nearest(unknown, here) ?? nearest(unknown, elsewhere);
  const advice = near === undefined ? `known: ${here.join(', ')}` : `did you mean ${near}?`;
  throw new TypeError(`${of}: unknown option ${path(shown(unknown))}; ${advice}`);
}

/**
 * Checks options and reads each field once, into a frozen copy: later answers of a getter or a proxy change nothing.
 * @throws {TypeError} as `checkKeys` @throws what a getter throws
 */
export function readOptions<Options extends object>(
  given: Options,
  known: KnownKeys<Options>,
  place: OptionsPlace,
): Options {
  checkKeys(given, known as Readonly<Record<string, true>>, place);
  const entries = Object.keys(known).map((key) => [key, given[key as keyof Options]] as const);
  return Object.freeze(Object.fromEntries(entries.filter(([, value]) => value !== undefined))) as Options;
}

/** Describes a value in a few words. The text of a string is left out: it may be a key, or a URL with a password. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined || typeof value === 'boolean') return String(value);
  if (typeof value === 'number' || typeof value === 'bigint') return `the number ${String(value)}`;
  if (typeof value === 'object')
    return isThenable(value) ? 'a promise' : Array.isArray(value) ? 'an array' : 'an object';
  return `a ${typeof value}`;
}

/**
 * Checks an option that accepts only these words.
 * @throws {TypeError} that lists them, with the most similar one
 */
export function checkWord(name: string, value: unknown, words: readonly string[]): void {
  if (value === undefined || (typeof value === 'string' && words.includes(value))) return;
  const near = typeof value === 'string' ? nearest(value, words) : undefined;
  const got = typeof value === 'string' ? quoted(value) : kindOf(value);
  const advice = near === undefined ? '' : `; did you mean '${near}'?`;
  throw new TypeError(`${name} must be ${words.map((word) => `'${word}'`).join(' or ')}, not ${got}${advice}`);
}

/** Checks an option that is true, false or absent. @throws {TypeError} */
export function checkFlag(name: string, value: unknown): void {
  if (value !== undefined && typeof value !== 'boolean')
    throw new TypeError(`${name} must be true or false, not ${kindOf(value)}`);
}

/** Returns whether a value bounds something that is counted: a whole number above 0, or Infinity. */
export function isWholeBound(value: unknown): value is number {
  return typeof value === 'number' && value > 0 && (Number.isInteger(value) || value === Number.POSITIVE_INFINITY);
}

/** The longest id of an agent or a workflow, in UTF-16 units. */
const MAX_AGENT_ID_CHARS = 200;

/** Returns whether an agent or a workflow may have this id. */
export function isAgentId(id: string): boolean {
  return id !== '' && id.length <= MAX_AGENT_ID_CHARS && !/\p{Cc}/u.test(id) && id.isWellFormed();
}

/**
 * Checks the id of an agent or a workflow: records, lists and log lines have it.
 * @throws {TypeError}
 */
export function checkId(what: string, id: unknown): asserts id is string {
  if (typeof id !== 'string' || id === '') throw new TypeError(`${what} needs an id: a string that is not empty`);
  if (!isAgentId(id))
    throw new TypeError(
      `the id of ${what} has 1 to ${MAX_AGENT_ID_CHARS} characters, none of them a control character: not ${quoted(id)}`,
    );
}

const MAX_SHOWN = 64;

/** A key as code spells it if it is an identifier, else quoted; long ones are cut. */
function shown(key: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(key) && key.length <= MAX_SHOWN ? key : quoted(key);
}

/** A string as one line of printable ASCII, at most 64 of its characters. */
function quoted(text: string): string {
  const cut = text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
  return JSON.stringify(cut).replaceAll(/[^ -~…]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Returns the candidate whose last name is the most similar; undefined if none is similar enough. */
export function nearest(key: string, candidates: readonly string[]): string | undefined {
  if (key.length > MAX_SHOWN) return undefined;
  let best: string | undefined;
  let least = 2 + Math.floor(key.length / 4);
  for (const candidate of candidates) {
    const name = candidate.slice(candidate.lastIndexOf('.') + 1);
    const distance = editDistance(key.toLowerCase(), name.toLowerCase());
    // A few edits turn a short name into any other: most of it must stay.
    if (distance >= least || distance * 2 > name.length) continue;
    [best, least] = [candidate, distance];
  }
  return best ?? candidates.find((candidate) => isPartOf(key, candidate.slice(candidate.lastIndexOf('.') + 1)));
}

/** Whether one name holds the other: `timeout` may mean `toolTimeoutMs`, `abortSignal` may mean `signal`. */
function isPartOf(key: string, name: string): boolean {
  const [shorter, longer] = [key.toLowerCase(), name.toLowerCase()].sort((a, b) => a.length - b.length);
  return shorter !== undefined && shorter.length >= 4 && longer?.includes(shorter) === true;
}

/** How many characters must be added, removed or replaced to make one text the other. Both are short. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, i) => i);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}

/**
 * Checks that a port has the functions that Pawl calls; an absent port is fine. The prototype may hold them.
 * @param needed.advice ends the message
 * @throws {TypeError} that names the port and the missing functions
 */
export function checkMethods(
  name: string,
  port: unknown,
  { methods, advice = '' }: { readonly methods: readonly string[]; readonly advice?: string },
): void {
  if (port === undefined) return;
  const missing = missingMethods(port, methods);
  if (missing.length === 0) return;
  const plural = methods.length === 1 ? 'function' : 'functions';
  const isRead = (typeof port === 'object' && port !== null) || typeof port === 'function';
  const got = isRead ? `it has no ${missing.join(', ')}` : `it is ${kindOf(port)}`;
  throw new TypeError(`${name} must have the ${plural} ${methods.join(', ')}${advice || `; ${got}`}`);
}

/**
 * Returns the functions that a value lacks. A function whose getter throws counts as present: the call that needs it gets that
 * error.
 */
export function missingMethods(value: unknown, methods: readonly string[]): readonly string[] {
  return methods.filter((method) => {
    try {
      return typeof (value as Record<string, unknown> | null | undefined)?.[method] !== 'function';
    } catch {
      return false;
    }
  });
}
