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

/** Loaded with the first check: most processes that import Pawl (a command, a test, a web worker) never make one. */
function newValidator(schema: JsonObject): Validator {
  const require = process.getBuiltinModule('node:module').createRequire(import.meta.url);
  const library = require('@cfworker/json-schema') as typeof import('@cfworker/json-schema');
  // The validator writes its marks into the schema that it gets.
  return new library.Validator(structuredClone(schema) as Schema, draftOf(schema), false);
}

/** A check against a JSON Schema; gives what is wrong, nothing = it fits. The validator is made with the first check. */
export function jsonSchemaValidator(schema: JsonObject): (value: unknown) => readonly SchemaIssue[] {
  let validator: Validator | undefined;
  return (value) => {
    validator ??= newValidator(schema);
    const { valid, errors } = validator.validate(value);
    return valid ? [] : issuesOf(errors);
  };
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
