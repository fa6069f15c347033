import { NotJsonError } from './errors.ts';

/** A value that JSON can hold without loss. */
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject;
export type JsonObject = { readonly [key: string]: JsonValue };

/** Values nested deeper than this are refused: recursion must end before the stack does. */
const MAX_DEPTH = 256;

/**
 * Copies a value into deep-frozen plain JSON.
 *
 * A property that is `undefined` counts as absent. Everything else that JSON would alter or drop (Date, Map, class
 * instances, functions, NaN, `undefined` inside an array, cycles) is refused with the path to it.
 *
 * @throws {NotJsonError} naming the path, for example `message.content[0].input.when`
 */
export function frozenJson(value: unknown, path = 'value'): JsonValue {
  return copy(value, path, 0);
}

function copy(value: unknown, path: string, depth: number): JsonValue {
  if (typeof value !== 'object' || value === null) return checkedLeaf(value, path);
  checkContainer(value, path, depth);
  return Array.isArray(value) ? copyArray(value, path, depth) : copyObject(value, path, depth);
}

function copyArray(values: readonly unknown[], path: string, depth: number): JsonValue {
  const result: JsonValue[] = [];
  for (let i = 0; i < values.length; i++) result.push(copy(values[i], `${path}[${i}]`, depth + 1));
  return Object.freeze(result);
}

function copyObject(value: object, path: string, depth: number): JsonValue {
  const result: Record<string, JsonValue> = {};
  for (const key of Object.keys(value)) {
    const item = (value as Record<string, unknown>)[key];
    if (item !== undefined) setOwn(result, key, copy(item, `${path}.${key}`, depth + 1));
  }
  return Object.freeze(result);
}

/**
 * The JSON text of a value that is not kept as an object: the same refusals as `frozenJson`, without the copy.
 * @throws {NotJsonError} naming the path
 */
export function jsonText(value: unknown, path = 'value'): string {
  check(value, path, 0);
  return JSON.stringify(value);
}

function check(value: unknown, path: string, depth: number): void {
  if (typeof value !== 'object' || value === null) {
    checkedLeaf(value, path);
    return;
  }
  checkContainer(value, path, depth);
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) check(value[i], `${path}[${i}]`, depth + 1);
    return;
  }
  for (const key of Object.keys(value)) {
    const item = (value as Record<string, unknown>)[key];
    // Most are strings, and the path of those is never needed.
    if (typeof item !== 'string' && item !== undefined) check(item, `${path}.${key}`, depth + 1);
  }
}

function checkedLeaf(value: unknown, path: string): JsonValue {
  if (typeof value === 'string' || typeof value === 'boolean' || value === null) return value;
  if (typeof value !== 'number') throw new NotJsonError(`${path} is ${typeof value}; only plain JSON can be stored`);
  if (Number.isFinite(value)) return value === 0 ? 0 : value;
  throw new NotJsonError(`${path} is ${value}; JSON has no such number`);
}

function checkContainer(value: object, path: string, depth: number): void {
  if (depth >= MAX_DEPTH) {
    throw new NotJsonError(`${path} is nested deeper than ${MAX_DEPTH} levels or refers to itself`);
  }
  const prototype = Object.getPrototypeOf(value);
  if (Array.isArray(value) || prototype === null || Object.getPrototypeOf(prototype) === null) return;
  const name = prototype.constructor?.name || 'class instance';
  throw new NotJsonError(`${path} is a ${name}; only plain JSON can be stored`);
}

/** Plain assignment to `__proto__` would replace the prototype instead of storing the key. */
function setOwn(target: Record<string, JsonValue>, key: string, value: JsonValue): void {
  if (key !== '__proto__') target[key] = value;
  else Object.defineProperty(target, key, { value, enumerable: true, writable: true, configurable: true });
}

/** JSON text with the keys of every object in order: equal values give equal text, whatever order they were built in. */
export function canonicalJson(value: JsonValue): string {
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  const object = value as JsonObject;
  const fields = Object.keys(object)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(object[key] ?? null)}`);
  return `{${fields.join(',')}}`;
}

/** Whether a value is a non-null object that is not an array. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
