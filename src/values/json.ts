import { NotJsonError } from './errors.ts';

/** A value that JSON can hold without loss. */
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject;
export type JsonObject = { readonly [key: string]: JsonValue };

/** Values nested deeper than this are refused: recursion must end before the stack does. */
export const MAX_DEPTH = 256;
/** Levels of a message: a value of the greatest depth may be some levels down in it. */
export const MESSAGE_DEPTH: number = MAX_DEPTH + 16;
/** Levels of a record, which contains messages. */
export const RECORD_DEPTH: number = MESSAGE_DEPTH + 16;

/** Returns whether objects and arrays are nested deeper than `levels`. Ends early for a value that refers to itself. */
export function isDeeperThan(levels: number, value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levels === 0) return true;
  // Each message of a record is walked when it is loaded: a list of the values of each object would cost three times as much.
  if (Array.isArray(value)) {
    for (const item of value) if (isDeeperThan(levels - 1, item)) return true;
    return false;
  }
  for (const key in value) if (isDeeperThan(levels - 1, (value as JsonObject)[key])) return true;
  return false;
}

/**
 * Copies a value into deep-frozen plain JSON.
 *
 * A property that is `undefined` counts as absent. Every other value that JSON would change or drop (Date, Map, class
 * instances, functions, NaN, `undefined` inside an array, cycles) is refused with its path.
 *
 * @param levels how deep objects and arrays may be nested
 * @throws {NOT_JSON} naming the path, for example `message.content[0].input.when`
 */
export function frozenJson(value: unknown, path = 'value', levels: number = MAX_DEPTH): JsonValue {
  const frozen = copy(value, levels);
  return frozen === refused ? refuse(value, path, levels) : frozen;
}

/**
 * Returns the JSON text of a record or a part of one: the same refusals as `frozenJson`, without the copy.
 * @throws {NOT_JSON} naming the path
 */
export function jsonText(value: unknown, path = 'value'): string {
  if (!isJson(value, RECORD_DEPTH)) refuse(value, path, RECORD_DEPTH);
  return JSON.stringify(value);
}

/** Most bytes of UTF-8 of one unit of a text. */
const UNIT_BYTES = 3;

/** Returns how many bytes a text has in UTF-8 if they are more than that; undefined for all others. Only long texts are counted. */
export function bytesAbove(text: string, most: number): number | undefined {
  if (text.length * UNIT_BYTES <= most) return undefined;
  const bytes = Buffer.byteLength(text);
  return bytes > most ? bytes : undefined;
}

/* Nearly every value is JSON. Only a second walk, for the error, builds paths: each step of a run walks all its new values. */

const refused = Symbol('refused');

/** An array that grows by `push` has room for this many items at first. */
const SHORT = 17;

function copy(value: unknown, left: number): JsonValue | typeof refused {
  if (typeof value !== 'object' || value === null) return isLeaf(value) ? withoutSign(value) : refused;
  if (whyNoContainer(value, left) !== undefined) return refused;
  return Array.isArray(value) ? copyArray(value, left) : copyObject(value, left);
}

function copyArray(values: readonly unknown[], left: number): JsonValue | typeof refused {
  const result: JsonValue[] = [];
  for (let i = 0; i < values.length; i++) {
    const item = copy(values[i], left - 1);
    if (item === refused) return refused;
    result.push(item);
  }
  // An array that grew has room for more than it will ever hold, which counts where arrays are short.
  return Object.freeze(result.length < SHORT ? result.slice() : result);
}

function copyObject(value: object, left: number): JsonValue | typeof refused {
  const result: Record<string, JsonValue> = {};
  for (const key of Object.keys(value)) {
    const item = (value as Record<string, unknown>)[key];
    if (item === undefined) continue;
    const copied = copy(item, left - 1);
    if (copied === refused) return refused;
    setOwn(result, key, copied);
  }
  return Object.freeze(result);
}

function isJson(value: unknown, left: number): boolean {
  if (typeof value !== 'object' || value === null) return isLeaf(value);
  if (whyNoContainer(value, left) !== undefined) return false;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) if (!isJson(value[i], left - 1)) return false;
    return true;
  }
  for (const key of Object.keys(value)) {
    const item = (value as Record<string, unknown>)[key];
    if (typeof item !== 'string' && item !== undefined && !isJson(item, left - 1)) return false;
  }
  return true;
}

function isLeaf(value: unknown): value is JsonValue {
  if (typeof value === 'number') return Number.isFinite(value);
  return typeof value === 'string' || typeof value === 'boolean' || value === null;
}

/** JSON has no -0. */
function withoutSign(value: JsonValue): JsonValue {
  return value === 0 ? 0 : value;
}

function whyNoContainer(value: object, left: number): string | undefined {
  if (left <= 0) return `is nested deeper than ${MAX_DEPTH} levels or refers to itself`;
  const prototype = Object.getPrototypeOf(value);
  if (Array.isArray(value) || prototype === null || Object.getPrototypeOf(prototype) === null) return undefined;
  return `is a ${prototype.constructor?.name || 'class instance'}; only plain JSON can be stored`;
}

/** Throws an error that names the problem and its path. @throws {NOT_JSON} */
function refuse(value: unknown, path: string, levels: number): never {
  findFault(value, path, levels);
  throw new NotJsonError(`${path} has a getter whose value changes; only plain JSON can be stored`);
}

function findFault(value: unknown, path: string, left: number): void {
  const why = typeof value === 'object' && value !== null ? whyNoContainer(value, left) : whyNoLeaf(value);
  if (why !== undefined) throw new NotJsonError(`${path} ${why}`);
  if (typeof value !== 'object' || value === null) return;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) findFault(value[i], `${path}[${i}]`, left - 1);
    return;
  }
  for (const key of Object.keys(value)) {
    const item = (value as Record<string, unknown>)[key];
    if (item !== undefined) findFault(item, `${path}.${key}`, left - 1);
  }
}

function whyNoLeaf(value: unknown): string | undefined {
  if (isLeaf(value)) return undefined;
  return typeof value === 'number'
    ? `is ${value}; JSON has no such number`
    : `is ${typeof value}; only plain JSON can be stored`;
}

/** Plain assignment to `__proto__` would replace the prototype instead of storing the key. */
function setOwn(target: Record<string, JsonValue>, key: string, value: JsonValue): void {
  if (key !== '__proto__') target[key] = value;
  else Object.defineProperty(target, key, { value, enumerable: true, writable: true, configurable: true });
}

/**
 * Returns the first key, at any depth, through which code that merges or copies the value would reach a prototype: an own
 * `__proto__`, or a `constructor` that holds a `prototype`. `undefined` if there is none.
 */
export function prototypeKeyIn(value: unknown): string | undefined {
  const open: unknown[] = [value];
  while (open.length > 0) {
    const current = open.pop();
    if (Array.isArray(current)) for (const item of current) open.push(item);
    else if (isObject(current)) {
      if (Object.hasOwn(current, '__proto__')) return '__proto__';
      const inner = current.constructor;
      if (isObject(inner) && Object.hasOwn(inner, 'prototype')) return 'constructor.prototype';
      for (const key of Object.keys(current)) open.push(current[key]);
    }
  }
  return undefined;
}

/** Returns JSON text with sorted keys: equal values give equal text, in any order of construction. */
export function canonicalJson(value: JsonValue): string {
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  const object = value as JsonObject;
  const fields = Object.keys(object)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(object[key] ?? null)}`);
  return `{${fields.join(',')}}`;
}

/** Returns whether a value is a non-null object that is not an array. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns whether a value is an object in which each of these fields is a string. */
export function hasTexts(value: unknown, fields: readonly string[]): value is Record<string, unknown> {
  return isObject(value) && fields.every((field) => typeof value[field] === 'string');
}

/** Returns whether a value is a whole number >= 0. */
export function isCount(value: unknown): boolean {
  return Number.isInteger(value) && Number(value) >= 0;
}

/** Returns whether a value is a finite number >= 0. */
export function isAmount(value: unknown): boolean {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}

/**
 * Returns about how many characters a value of JSON has, as far as it is not more than `most`. Nothing is copied, and no more is looked
 * at: `JSON.stringify` of 8 MB takes tens of milliseconds.
 */
export function charsIn(value: unknown, most: number): number {
  let chars = 0;
  const open: unknown[] = [value];
  while (open.length > 0 && chars <= most) {
    const next = open.pop();
    if (typeof next === 'string') chars += next.length;
    else chars += 4;
    if (typeof next !== 'object' || next === null) continue;
    const isList = Array.isArray(next);
    if (!isList) for (const name of Object.keys(next)) chars += name.length;
    const parts: readonly unknown[] = isList ? next : Object.values(next);
    if (chars + parts.length > most) return chars + parts.length;
    for (const part of parts) open.push(part);
  }
  return chars;
}
