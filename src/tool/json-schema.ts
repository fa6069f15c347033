import type { OutputUnit, Schema, SchemaDraft, Validator } from '@cfworker/json-schema';
import type { JsonObject } from '../run/json.ts';

/** One thing that is wrong with a value, and where. */
export interface SchemaIssue {
  readonly path: readonly (string | number)[];
  readonly message: string;
}

/** These only say that something below them is wrong, and that something is reported too. */
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

/** Begun with the first schema: most processes that import Pawl (a command, a test, a web worker) never have one. */
async function load(): Promise<Library> {
  loading ??= import('@cfworker/json-schema');
  library = await loading;
  return library;
}

/**
 * A check against a JSON Schema; gives what is wrong, nothing = it fits. The validator is made with the first check, which
 * is a promise as long as the library is not there.
 */
export function jsonSchemaValidator(
  schema: JsonObject,
): (value: unknown) => readonly SchemaIssue[] | Promise<readonly SchemaIssue[]> {
  let validator: Validator | undefined;
  const check = ({ Validator }: Library, value: unknown) => {
    // The validator writes its marks into the schema that it gets.
    validator ??= new Validator(structuredClone(schema) as Schema, draftOf(schema), false);
    const { valid, errors } = validator.validate(value);
    return valid ? [] : issuesOf(errors);
  };
  // A library that cannot be had is the trouble of whoever checks something.
  load().catch(() => {});
  return (value) => (library ? check(library, value) : load().then((loaded) => check(loaded, value)));
}

function draftOf({ $schema }: JsonObject): SchemaDraft {
  if (typeof $schema !== 'string') return '2020-12';
  if (/draft-0[4-6]/.test($schema)) return '4';
  if ($schema.includes('draft-07')) return '7';
  return $schema.includes('2019-09') ? '2019-09' : '2020-12';
}

function issuesOf(errors: readonly OutputUnit[]): SchemaIssue[] {
  const telling = errors.filter(
    (error) => !wrappers.has(error.keyword) || !errors.some((other) => other !== error && isBelow(other, error)),
  );
  return telling.map(({ instanceLocation, error }) => ({ path: pathOf(instanceLocation), message: error }));
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
