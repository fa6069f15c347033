import { canonicalJson, isObject, type JsonObject, type JsonValue } from '../values/json.ts';

/*
 * The check of a model's value is synchronous and blocks the process, so it must take linear time. Three keywords of the
 * validator do not, and are rewritten in its copy of a schema. `pattern` runs an expression of the schema's author, who may be
 * an MCP server: it gets texts up to a length only. `uniqueItems` compares each item with each. Three formats are expressions
 * that take exponential time, or are not proven linear.
 */

/** The most characters of a value that is checked against a schema: its keys and texts, and one for each of its parts. */
const MAX_CHARACTERS = 2_000_000;
/** The deepest nesting of a value that is checked against a schema. */
const MAX_DEPTH = 256;
/** The most characters of a key, and of a text that has to match a `pattern`. */
const MAX_PATTERN_CHARACTERS = 10_000;
/** Longer arrays are searched for duplicates here, in linear time. */
const MAX_COMPARED_ITEMS = 256;

/** Values of these keywords are not schemas. */
const DATA = new Set(['const', 'enum', 'default', 'examples', 'required', 'type', 'dependentRequired']);
/** Values of these keywords have schemas as values; their keys are names. */
const NAMED = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas', 'dependencies']);

/** The prefix of the formats that Pawl checks itself. The prefix is never shown. */
export const FORMAT_PREFIX = 'pawl:';
/** The checks of formats whose expressions in the validator take too long. */
export const boundedFormats: { readonly [name: string]: (text: string) => boolean } = {
  [`${FORMAT_PREFIX}url`]: isUrl,
  [`${FORMAT_PREFIX}uri`]: isUri,
  [`${FORMAT_PREFIX}uri-reference`]: (text) => hasUriCharacters(text) && URL.canParse(text, 'http://host/'),
};

/** Characters of any language, unlike a URI. */
function isUrl(text: string): boolean {
  const isPlain = !/[\s"<>\\^`{|}]/.test(text) && URL.canParse(text);
  return isPlain && ['http:', 'https:', 'ftp:'].includes(new URL(text).protocol);
}

function isUri(text: string): boolean {
  return hasUriCharacters(text) && URL.canParse(text);
}

/** URL parsers trim and repair characters that a URI must not hold. */
function hasUriCharacters(text: string): boolean {
  return !/[^!#-;=?-Z[\]_a-z~]/.test(text);
}

/** A reference to nothing: the validator throws at it, and no `not` or `if` around it can hide that. */
const TOO_LONG = 'pawl:too-long';
const MIXED = 'pawl:mixed';

/** Whether all, some or none of the long arrays of a value have unique items. */
export type LongArrays = 'unique' | 'duplicated' | 'mixed';

const forLong: { readonly [each in LongArrays]: JsonValue } = {
  unique: true,
  duplicated: false,
  mixed: { $ref: MIXED },
};

/** Whether the validator can compile a pattern, as it does. */
function isChecked(pattern: string): boolean {
  try {
    new RegExp(pattern, 'u');
    return true;
  } catch {
    return false;
  }
}

/** Returns the patterns of a schema that are not checked: no JavaScript expressions, or only without the flag `u`. */
export function uncheckedPatterns(schema: JsonValue): readonly string[] {
  if (Array.isArray(schema)) return schema.flatMap(uncheckedPatterns);
  if (!isObject(schema)) return [];
  return Object.entries(schema as JsonObject).flatMap(([key, value]) => {
    if (DATA.has(key)) return [];
    if (key === 'pattern') return typeof value === 'string' && !isChecked(value) ? [value] : [];
    if (!NAMED.has(key) || !isObject(value)) return uncheckedPatterns(value);
    const names = key === 'patternProperties' ? Object.keys(value).filter((name) => !isChecked(name)) : [];
    return [...names, ...Object.values(value as JsonObject).flatMap(uncheckedPatterns)];
  });
}

/** A schema without the patterns that the validator cannot compile. What they would allow is not refused either. */
function withoutUnchecked(schema: JsonObject): JsonObject {
  const { pattern, patternProperties, ...rest } = schema;
  const isKept = pattern !== undefined && (typeof pattern !== 'string' || isChecked(pattern));
  const whole: JsonObject = isKept ? { ...rest, pattern } : rest;
  if (!isObject(patternProperties)) return whole;
  const known = Object.entries(patternProperties as JsonObject).filter(([name]) => isChecked(name));
  const named = { patternProperties: Object.fromEntries(known) };
  if (known.length === Object.keys(patternProperties).length) return { ...whole, ...named };
  const { additionalProperties: _, unevaluatedProperties: __, ...open } = whole;
  return { ...open, ...named };
}

/** Rewrites a JSON Schema so that the validator can check it, in linear time. */
export function boundedSchema(schema: JsonValue, long: LongArrays): JsonValue {
  if (Array.isArray(schema)) return schema.map((each) => boundedSchema(each, long));
  if (!isObject(schema)) return schema;
  const bounded = Object.fromEntries(
    Object.entries(withoutUnchecked(schema as JsonObject)).map(([key, value]) => [
      key,
      boundedKeyword(key, value, long),
    ]),
  );
  const added = boundsOf(bounded, long);
  if (added.length === 0) return bounded;
  const { pattern: _, uniqueItems: __, ...rest } = bounded;
  return { ...rest, allOf: [...(Array.isArray(bounded.allOf) ? bounded.allOf : []), ...added] };
}

function boundedKeyword(key: string, value: JsonValue, long: LongArrays): JsonValue {
  if (DATA.has(key)) return value;
  if (key === 'format' && typeof value === 'string') {
    const own = `${FORMAT_PREFIX}${value}`;
    return Object.hasOwn(boundedFormats, own) ? own : value;
  }
  if (!NAMED.has(key) || !isObject(value)) return boundedSchema(value, long);
  return Object.fromEntries(
    Object.entries(value as JsonObject).map(([name, each]) => [name, boundedSchema(each, long)]),
  );
}

function boundsOf({ pattern, uniqueItems }: JsonObject, long: LongArrays): JsonValue[] {
  const bounds: JsonValue[] = [];
  // Beyond the bound the validator throws before it reaches the pattern.
  if (typeof pattern === 'string') {
    bounds.push({ if: { maxLength: MAX_PATTERN_CHARACTERS }, else: { $ref: TOO_LONG }, pattern });
  }
  if (uniqueItems === true) {
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    bounds.push({ if: { maxItems: MAX_COMPARED_ITEMS }, then: { uniqueItems }, else: forLong[long] });
  }
  return bounds;
}

/** Returns the message for a value that is too large to be checked, made of the validator's error. */
export function boundPassed(message: string): string | undefined {
  if (message.includes(`"${TOO_LONG}"`)) {
    return `a text of more than ${MAX_PATTERN_CHARACTERS} characters cannot be checked against a pattern`;
  }
  if (!message.includes(`"${MIXED}"`)) return undefined;
  return `arrays of more than ${MAX_COMPARED_ITEMS} items cannot be checked for unique items if only some of them hold duplicates`;
}

/** The result of a walk over a value. */
interface Measures {
  /** Why the value cannot be checked. */
  readonly fault?: string;
  readonly characters: number;
  readonly long: LongArrays;
}

/** Measures the size of a value before any recursive code reads it: characters, depth, long lists. */
export function measure(value: unknown): Measures {
  const open: { readonly value: unknown; readonly depth: number }[] = [{ value, depth: 0 }];
  const long: (readonly unknown[])[] = [];
  let characters = 0;
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { value: each, depth } = next;
    characters += typeof each === 'string' ? each.length + 1 : 1;
    if (characters > MAX_CHARACTERS) return refused(`has more than ${MAX_CHARACTERS} characters`);
    if (typeof each !== 'object' || each === null) continue;
    if (depth >= MAX_DEPTH) return refused(`is nested deeper than ${MAX_DEPTH} levels`);
    if (Array.isArray(each)) {
      if (each.length > MAX_COMPARED_ITEMS) long.push(each);
      for (const item of each) open.push({ value: item, depth: depth + 1 });
      continue;
    }
    for (const [key, item] of Object.entries(each)) {
      if (key.length > MAX_PATTERN_CHARACTERS)
        return refused(`has a key of more than ${MAX_PATTERN_CHARACTERS} characters`);
      characters += key.length;
      open.push({ value: item, depth: depth + 1 });
    }
  }
  return { characters, long: duplicatesIn(long) };
}

function refused(what: string): Measures {
  return { fault: `the value ${what} and is not checked; send a smaller one`, characters: 0, long: 'unique' };
}

/** Linear: long arrays can be nested in long arrays at very few levels only. */
function duplicatesIn(arrays: readonly (readonly unknown[])[]): LongArrays {
  const duplicated = arrays.filter(
    (items) => new Set(items.map((item) => canonicalJson(item as JsonValue))).size < items.length,
  );
  if (duplicated.length === 0) return 'unique';
  return duplicated.length === arrays.length ? 'duplicated' : 'mixed';
}
