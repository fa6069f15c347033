import type { OutputUnit, Schema, SchemaDraft, Validator } from '@cfworker/json-schema';
import { toErrorData } from '../values/error-data.ts';
import type { JsonObject } from '../values/json.ts';
import {
  boundedFormats,
  boundedSchema,
  boundPassed,
  FORMAT_PREFIX,
  type LongArrays,
  measure,
} from './bounded-schema.ts';

/** One problem of a value, and its path. */
export interface SchemaIssue {
  readonly path: readonly (string | number)[];
  readonly message: string;
}

/** These issues only say that something below them is wrong, which is reported too. */
const wrappers = new Set([
  'properties',
  'patternProperties',
  'items',
  'prefixItems',
  'additionalProperties',
  '$ref',
  'allOf',
]);

type Library = typeof import('@cfworker/json-schema');

let library: Library | undefined;
let loading: Promise<Library> | undefined;

/** Loaded with the first schema: most processes that import Pawl (a command, a test, a web worker) have none. */
async function load(): Promise<Library> {
  loading ??= import('@cfworker/json-schema');
  library = await loading;
  return library;
}

/** The check of a larger value stops at its first fault: each fault of each item would be an object. */
const MAX_WITH_ALL_ISSUES = 20_000;
/** Most faults that are compared with each other, to leave out those that only repeat another. */
const MAX_COMPARED_ISSUES = 200;

/**
 * How many times a check may look at a schema: this number, and the same again for each character of the value. Alternatives
 * that are nested are all tried, at each level of a value: an honest schema takes twice as long for each level of a hostile
 * one.
 */
const LOOKS = 100_000;
const LOOKS_PER_CHARACTER = 20;

/** The looks that a check has left. Each look reads a field of the schema, which counts it. */
interface Looks {
  left: number;
}

class TooManyLooksError extends Error {}

/**
 * Makes the function that checks a value against a JSON Schema and returns its problems; none = it fits. Takes linear time
 * (see `boundedSchema`), except for `pattern` on a text of up to 10,000 characters. A value that is too large does not fit.
 * The first check makes the validator, and returns a promise until the library is loaded.
 */
export function jsonSchemaValidator(
  schema: JsonObject,
): (value: unknown) => readonly SchemaIssue[] | Promise<readonly SchemaIssue[]> {
  const validators = new Map<string, Validator>();
  const looks: Looks = { left: 0 };
  const check = (found: Library, value: unknown): SchemaIssue[] => {
    const { fault, characters, long } = measure(value);
    if (fault !== undefined) return [{ path: [], message: fault }];
    const isLarge = characters > MAX_WITH_ALL_ISSUES;
    const key = `${long} ${isLarge}`;
    looks.left = Number.POSITIVE_INFINITY;
    const validator = validators.get(key) ?? validatorOf(found, schema, { long, isLarge, looks });
    validators.set(key, validator);
    looks.left = LOOKS + LOOKS_PER_CHARACTER * characters;
    return issuesFor(validator, value);
  };
  // The next check reports a library that cannot be loaded.
  load().catch(() => {});
  return (value) => (library ? check(library, value) : load().then((loaded) => check(loaded, value)));
}

function validatorOf(
  { Validator, format }: Library,
  schema: JsonObject,
  { long, isLarge, looks }: { readonly long: LongArrays; readonly isLarge: boolean; readonly looks: Looks },
): Validator {
  // The library has one table of formats. Only Pawl uses these names.
  Object.assign(format, boundedFormats);
  // The validator writes its marks into the schema that it gets.
  const own = structuredClone(boundedSchema(schema, long));
  // Without a reference no part of a schema is looked at more than once for a part of the value.
  const text = JSON.stringify(schema);
  if (REFERENCES.some((name) => text.includes(name))) countLooks(own, looks);
  return new Validator(own as Schema, draftOf(schema), isLarge);
}

const TOO_MANY_LOOKS = 'the value takes too many steps to check against its schema; send a smaller or flatter one';

const REFERENCES = ['"$ref"', '"$recursiveRef"'];

/** The validator reads this keyword once of each schema that it looks at. */
const READ_ONCE = '$recursiveAnchor';

function countLooks(schema: unknown, looks: Looks): void {
  if (typeof schema !== 'object' || schema === null) return;
  for (const each of Object.values(schema)) countLooks(each, looks);
  if (Array.isArray(schema)) return;
  const value = (schema as JsonObject)[READ_ONCE];
  Object.defineProperty(schema, READ_ONCE, {
    enumerable: value !== undefined,
    get() {
      looks.left -= 1;
      if (looks.left < 0) throw new TooManyLooksError(TOO_MANY_LOOKS);
      return value;
    },
  });
}

function issuesFor(validator: Validator, value: unknown): SchemaIssue[] {
  try {
    const { valid, errors } = validator.validate(value);
    return valid ? [] : issuesOf(errors);
  } catch (error) {
    // A schema that refers to itself endlessly overflows the stack before its looks are used up.
    const isEndless = error instanceof TooManyLooksError || error instanceof RangeError;
    const message = isEndless ? TOO_MANY_LOOKS : boundPassed(toErrorData(error).message);
    if (message === undefined) throw error;
    return [{ path: [], message }];
  }
}

function draftOf({ $schema }: JsonObject): SchemaDraft {
  if (typeof $schema !== 'string') return '2020-12';
  if (/draft-0[4-6]/.test($schema)) return '4';
  if ($schema.includes('draft-07')) return '7';
  return $schema.includes('2019-09') ? '2019-09' : '2020-12';
}

function issuesOf(all: readonly OutputUnit[]): SchemaIssue[] {
  // The issues below an `if` say what is wrong.
  const errors = all.filter(({ keyword }) => keyword !== 'if');
  const compared = errors.slice(0, MAX_COMPARED_ISSUES);
  const telling = compared.filter(
    (error) => !wrappers.has(error.keyword) || !compared.some((other) => other !== error && isBelow(other, error)),
  );
  return [...telling, ...errors.slice(MAX_COMPARED_ISSUES)].map(issueOf);
}

function issueOf({ instanceLocation, keyword, error }: OutputUnit): SchemaIssue {
  const path = pathOf(instanceLocation);
  // A schema `false`, mostly that of the fields which an object does not have.
  if (keyword === 'false')
    return { path, message: typeof path.at(-1) === 'string' ? 'unknown field' : 'no value is allowed here' };
  return { path, message: error.replace(`format "${FORMAT_PREFIX}`, 'format "') };
}

function isBelow(inner: OutputUnit, outer: OutputUnit): boolean {
  return (
    inner.keywordLocation.startsWith(`${outer.keywordLocation}/`) ||
    inner.instanceLocation.startsWith(`${outer.instanceLocation}/`)
  );
}

/** `#/items/0/id` as keys. */
function pathOf(pointer: string): (string | number)[] {
  const keys = pointer.split('/').slice(1);
  return keys.map((key) => (/^\d+$/.test(key) ? Number(key) : key.replaceAll('~1', '/').replaceAll('~0', '~')));
}
