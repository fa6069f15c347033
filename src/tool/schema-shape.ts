import { isObject } from '../values/json.ts';
import { kindOf } from '../values/known-options.ts';

/*
 * The keywords of a JSON Schema that the check of a value relies on. A schema may come from an MCP server: for a keyword with
 * a wrong kind of value, the validator would fail at each call, with a message of its own. Other keywords are not checked.
 */

/** Returns the problem of a keyword's value; undefined = none. */
type Check = (value: unknown) => string | undefined;

const TYPES = ['string', 'number', 'integer', 'boolean', 'object', 'array', 'null'];

/** The names of the bounds in the validator's copy of a schema begin with it. */
const OWN_PROTOCOL = 'pawl:';

/** Keywords that name a schema, or refer to one by its name. */
const NAMES = ['$id', 'id', '$ref', '$anchor', '$dynamicRef', '$dynamicAnchor', '$recursiveRef'];

const needs =
  (needed: string, isFine: (value: unknown) => boolean): Check =>
  (value) =>
    isFine(value) ? undefined : `must be ${needed}, not ${kindOf(value)}`;

const isText = (value: unknown): value is string => typeof value === 'string';
const isSchema = (value: unknown): boolean => isObject(value) || typeof value === 'boolean';
const isTexts = (value: unknown): boolean => Array.isArray(value) && value.every(isText);
const text = needs('a string', isText);
const number = needs('a number', (value) => typeof value === 'number');
const limit = needs('a number or a boolean', (value) => typeof value === 'number' || typeof value === 'boolean');
const count = needs('a whole number of 0 or more', (value) => Number.isInteger(value) && Number(value) >= 0);
const schema = needs('a schema', isSchema);
const schemas = needs('a list of schemas', (value) => Array.isArray(value) && value.every(isSchema));
const oneOrMore = needs('a schema or a list of schemas', (value) =>
  Array.isArray(value) ? value.every(isSchema) : isSchema(value),
);
const named = needs('an object of schemas', (value) => isObject(value) && Object.values(value).every(isSchema));

const keywords: Readonly<Record<string, Check>> = {
  __proto__: null as never,
  type: (value) => {
    const types = Array.isArray(value) ? value : [value];
    if (types.length > 0 && types.every((each) => TYPES.includes(each))) return undefined;
    return `must be one or more of ${TYPES.join(', ')}`;
  },
  enum: needs('an array', Array.isArray),
  required: needs('an array of strings', isTexts),
  dependentRequired: needs('an object of arrays', (value) => isObject(value) && Object.values(value).every(isTexts)),
  dependencies: needs(
    'an object of schemas or arrays',
    (value) => isObject(value) && Object.values(value).every((each) => isSchema(each) || isTexts(each)),
  ),
  uniqueItems: needs('true or false', (value) => typeof value === 'boolean'),
  multipleOf: needs('a number above 0', (value) => typeof value === 'number' && value > 0),
  ...table(text, ['$schema', 'format', 'pattern']),
  ...table((value) => text(value) ?? ownNameProblem(value), NAMES),
  ...table(number, ['maximum', 'minimum']),
  ...table(limit, ['exclusiveMaximum', 'exclusiveMinimum']),
  ...table(count, ['maxLength', 'minLength', 'maxItems', 'minItems']),
  ...table(count, ['maxProperties', 'minProperties', 'maxContains', 'minContains']),
  ...table(schema, ['not', 'if', 'then', 'else', 'contains', 'propertyNames']),
  ...table(schema, ['additionalProperties', 'additionalItems', 'unevaluatedItems', 'unevaluatedProperties']),
  ...table(schemas, ['allOf', 'anyOf', 'oneOf', 'prefixItems']),
  ...table(named, ['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas']),
  items: oneOrMore,
};

function table(check: Check, keys: readonly string[]): Record<string, Check> {
  return Object.fromEntries(keys.map((key) => [key, check]));
}

/** A schema of such a name would replace a bound, and remove it. URLs are compared as the validator reads them. */
function ownNameProblem(name: unknown): string | undefined {
  const isOwn = isText(name) && URL.canParse(name) && new URL(name).protocol === OWN_PROTOCOL;
  return isOwn ? `must not begin with ${OWN_PROTOCOL}` : undefined;
}

/** Keywords whose value is a schema or a list of schemas; and those whose value has names as keys, and schemas as values. */
const SCHEMAS: ReadonlySet<string> = new Set([
  ...['not', 'if', 'then', 'else', 'contains', 'propertyNames', 'items', 'allOf', 'anyOf', 'oneOf', 'prefixItems'],
  ...['additionalProperties', 'additionalItems', 'unevaluatedItems', 'unevaluatedProperties'],
]);
const NAMED: ReadonlySet<string> = new Set([
  ...['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas', 'dependencies'],
]);

/**
 * Checks that a value is a well-formed JSON Schema: returns the problem with its path; undefined = none.
 * @param schema plain JSON of a bounded depth
 * @param table the checks; inside values that are not schemas only names are checked, because the validator looks for them
 *   everywhere
 */
export function schemaProblem(schema: unknown, path = '', table = keywords): string | undefined {
  if (typeof schema !== 'object' || schema === null) return undefined;
  for (const [key, value] of Object.entries(schema)) {
    const at = path === '' ? key : `${path}.${key}`;
    const problem = Array.isArray(schema) ? undefined : table[key]?.(value);
    if (problem !== undefined) return `${at} ${problem}`;
    const inner = innerProblem(key, value, { at, table });
    if (inner !== undefined) return inner;
  }
  return undefined;
}

const names: typeof keywords = { __proto__: null as never, ...table(ownNameProblem, NAMES) };

function innerProblem(
  key: string,
  value: unknown,
  { at, table }: { readonly at: string; readonly table: typeof keywords },
): string | undefined {
  if (table === names || !(SCHEMAS.has(key) || NAMED.has(key))) return schemaProblem(value, at, names);
  const isList = Array.isArray(value);
  if (!isList && !NAMED.has(key)) return schemaProblem(value, at);
  for (const [name, each] of Object.entries(value as object)) {
    const problem = schemaProblem(each, isList ? `${at}[${name}]` : `${at}.${name}`);
    if (problem !== undefined) return problem;
  }
  return undefined;
}
