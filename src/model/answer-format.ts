import type { SharedV4ProviderOptions } from '@ai-sdk/provider';
import { isObject, type JsonObject, type JsonValue } from '../values/json.ts';
import type { Vendor } from './vendor.ts';

/*
 * The schema of an answer as providers take it. In their strict mode each object is closed and has all its keys, and the root
 * is an object. The answer itself is checked against the schema of the agent, which may allow more.
 */

/** An answer format of a model call, and the provider options that belong to it. */
interface AnswerFormat {
  readonly responseFormat: { readonly type: 'json'; readonly schema: never };
  readonly providerOptions?: SharedV4ProviderOptions;
}

/** The key of an answer whose schema is no object. */
const WRAPPER = 'result';

/** Of each schema, what is sent: agents are few, and each step of a run needs it. */
const formats = new WeakMap<JsonObject, { readonly schema: JsonObject; readonly isStrict: boolean }>();

/** Returns the options of a model call whose answer has to fit a schema. @param given the host's options for this call */
export function answerFormat(
  schema: JsonObject,
  vendor: Vendor,
  given: SharedV4ProviderOptions | undefined,
): AnswerFormat {
  const format = formats.get(schema) ?? formatOf(schema);
  formats.set(schema, format);
  const responseFormat = { type: 'json' as const, schema: format.schema as never };
  const { strictIn } = vendor;
  const isSet = [...vendor.namespaces].some((name) => given?.[name]?.strictJsonSchema !== undefined);
  if (format.isStrict || strictIn === undefined || isSet) return { responseFormat };
  const namespace = [...vendor.namespaces].find((name) => given?.[name]) ?? strictIn;
  return {
    responseFormat,
    providerOptions: { ...given, [namespace]: { ...given?.[namespace], strictJsonSchema: false } },
  };
}

function formatOf(schema: JsonObject): { readonly schema: JsonObject; readonly isStrict: boolean } {
  const sent = closed(isWrapped(schema) ? wrapped(schema) : schema) as JsonObject;
  return { schema: sent, isStrict: fitsStrict(sent) };
}

/** Returns whether the answer to a schema is sent as `{ result: … }`: providers want an object at the root. */
export function isWrapped(schema: JsonObject): boolean {
  return schema.type !== 'object' || NOT_AT_ROOT.some((key) => schema[key] !== undefined);
}

/** Returns the answer in `{ result: … }`; undefined for any other value. */
export function unwrapped(value: unknown): { readonly value: unknown } | undefined {
  const isOnly = isObject(value) && !Array.isArray(value) && Object.keys(value).join() === WRAPPER;
  return isOnly ? { value: value[WRAPPER] } : undefined;
}

/** Definitions stay at the root, where references look for them; a reference to the root follows it. */
function wrapped({ $schema, $defs, definitions, ...schema }: JsonObject): JsonObject {
  const shared = Object.fromEntries(
    Object.entries({ $schema, $defs, definitions }).filter(([, value]) => value !== undefined),
  ) as JsonObject;
  const root: JsonObject = { type: 'object', properties: { [WRAPPER]: schema }, required: [WRAPPER], ...shared };
  return moved(root) as JsonObject;
}

function moved(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(moved);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value as JsonObject).map(([key, each]) => [
      key,
      key === '$ref' && typeof each === 'string' ? movedReference(each) : moved(each),
    ]),
  );
}

function movedReference(reference: string): string {
  const isRoot = reference === '#' || (reference.startsWith('#/') && !/^#\/(?:\$defs|definitions)\//.test(reference));
  return isRoot ? `#/properties/${WRAPPER}${reference.slice(1)}` : reference;
}

const NOT_AT_ROOT = ['anyOf', 'oneOf', 'allOf', 'not', 'enum', '$ref'];
/** What an object must have beside these keywords is not in its `properties`. */
const COMBINING = ['anyOf', 'oneOf', 'allOf', 'not', 'if', '$ref', 'dependentSchemas', 'patternProperties'];
const LISTS = ['anyOf', 'oneOf', 'prefixItems'];
const NAMED = ['properties', '$defs', 'definitions'];

/** Closes each object that says which keys it has. Inside of `allOf` and its like one part may not close the others. */
function closed(value: JsonValue): JsonValue {
  if (!isObject(value) || Array.isArray(value)) return value;
  const node = value as JsonObject;
  const isMixed = isObject(node.properties) && COMBINING.some((key) => node[key] !== undefined);
  if (isMixed) return node;
  const inner = Object.fromEntries(Object.entries(node).map(([key, each]) => [key, closedKeyword(key, each)]));
  const isOpen = isObject(node.properties) && node.additionalProperties === undefined;
  return isOpen && node.unevaluatedProperties === undefined ? { ...inner, additionalProperties: false } : inner;
}

function closedKeyword(key: string, value: JsonValue): JsonValue {
  if (LISTS.includes(key) && Array.isArray(value)) return value.map(closed);
  if (key === 'items' || key === 'additionalProperties') return closed(value);
  if (!NAMED.includes(key) || !isObject(value)) return value;
  return Object.fromEntries(Object.entries(value as JsonObject).map(([name, each]) => [name, closed(each)]));
}

/** What strict modes know. Anything else makes a provider refuse the request. */
const STRICT = new Set([
  ...['$schema', '$defs', 'definitions', '$ref', 'title', 'description', 'type', 'enum', 'const', 'anyOf'],
  ...['properties', 'required', 'additionalProperties', 'items', 'minItems', 'maxItems', 'pattern', 'format'],
  ...['multipleOf', 'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'],
]);
const FORMATS = ['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uuid'];
/** Keywords one of which says what a value is. */
const KINDS = ['type', 'anyOf', '$ref', 'enum', 'const'];

/** Whether a strict mode can hold a closed schema: no optional keys, no records, no keywords that it does not know. */
function fitsStrict(value: JsonValue): boolean {
  if (!isObject(value) || Array.isArray(value)) return false;
  const node = value as JsonObject;
  const { properties, required, additionalProperties, format, items, anyOf } = node;
  const keys = Object.keys(node);
  if (!keys.every((key) => STRICT.has(key)) || !keys.some((key) => KINDS.includes(key))) return false;
  if (format !== undefined && !FORMATS.includes(String(format))) return false;
  const isOfObjects = properties !== undefined || [node.type].flat().includes('object');
  if (isOfObjects && additionalProperties !== false) return false;
  const needed = Array.isArray(required) ? required : [];
  if (!Object.keys(properties ?? {}).every((key) => needed.includes(key))) return false;
  const inner = [properties, node.$defs, node.definitions].flatMap((named) => Object.values(named ?? {}));
  const others = [...(items === undefined ? [] : [items]), ...(Array.isArray(anyOf) ? anyOf : [])];
  return [...inner, ...others].every(fitsStrict);
}
