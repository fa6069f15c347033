import { NotJsonError } from './errors.ts';

/** A value that JSON can hold without loss. */
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject;
export type JsonObject = { readonly [key: string]: JsonValue };

/** Values nested deeper than this are refused: recursion must end before the stack does. */
export const MAX_DEPTH = 256;
/** Levels of a message: a value of the greatest depth stands some levels down in it. */
export const MESSAGE_DEPTH: number = MAX_DEPTH + 16;
/** Levels of a record, in which messages stand. */
export const RECORD_DEPTH: number = MESSAGE_DEPTH + 16;

/** Whether objects and arrays are nested in each other at more than so many levels. Ends early in one that refers to itself. */
export function isDeeperThan(levels: number, value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levels === 0) return true;
  for (const item of Object.values(value)) if (isDeeperThan(levels - 1, item)) return true;
  return false;
}

/**
 * Copies a value into deep-frozen plain JSON.
 *
 * A property that is `undefined` counts as absent. Everything else that JSON would alter or drop (Date, Map, class
 * instances, functions, NaN, `undefined` inside an array, cycles) is refused with the path to it.
 *
 * @param levels most objects and arrays nested in each other
 * @throws {NotJsonError} naming the path, for example `message.content[0].input.when`
 */
export function frozenJson(value: unknown, path = 'value', levels: number = MAX_DEPTH): JsonValue {
  const frozen = copy(value, levels);
  return frozen === refused ? refuse(value, path, levels) : frozen;
}

/**
 * The JSON text of a record or a part of one: the same refusals as `frozenJson`, without the copy.
 * @throws {NotJsonError} naming the path
 */
export function jsonText(value: unknown, path = 'value'): string {
  if (!isJson(value, RECORD_DEPTH)) refuse(value, path, RECORD_DEPTH);
  return JSON.stringify(value);
}

/*
 * Nearly every value is JSON: paths are made only for the error of one that is not, by a second walk. Each step of a run
 * walks through all that it says.
 */

const refused = Symbol('refused');

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
  return Object.freeze(result);
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

/** Says what is wrong, and where. @throws {NotJsonError} */
function refuse(value: unknown, path: string, levels: number): never {
  findFault(value, path, levels);
  throw new NotJsonError(`${path} does not say the same twice; only plain JSON can be stored`);
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
 * The first key, at any depth, by which code that merges or copies the value would reach a prototype: an own `__proto__`, or
 * a `constructor` that holds a `prototype`. `undefined` when there is none.
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

/** Whether a value is an object in which each of these fields is a string. */
export function hasTexts(value: unknown, fields: readonly string[]): value is Record<string, unknown> {
  return isObject(value) && fields.every((field) => typeof value[field] === 'string');
}

/** Whether a value is a whole number that is not negative. */
export function isCount(value: unknown): boolean {
  return Number.isInteger(value) && Number(value) >= 0;
}

/** Whether a value is a finite number that is not negative. */
export function isAmount(value: unknown): boolean {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}
