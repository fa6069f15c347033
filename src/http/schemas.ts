import type { JsonObject } from '../values/json.ts';

/** A JSON Schema of an object. @param required names of fields that must be there */
export function objectOf(properties: JsonObject, required: readonly string[] = []): JsonObject {
  return { type: 'object', properties, required: [...required], additionalProperties: false };
}

/** A JSON Schema of an answer: later versions may add fields. */
export function answerSchemaOf(
  properties: JsonObject,
  required: readonly string[] = Object.keys(properties),
): JsonObject {
  return { type: 'object', properties, required: [...required] };
}

export const text: JsonObject = { type: 'string' };
export const countSchema: JsonObject = { type: 'integer', minimum: 0 };
export const time: JsonObject = { type: 'number', description: 'Wall clock, ms since 1970.' };
export const anything: JsonObject = {};
export const texts: JsonObject = { type: 'object', additionalProperties: { type: 'string' } };

/** A text with a bound, in UTF-16 units. */
export function upTo(maxLength: number, minLength = 0): JsonObject {
  return { type: 'string', minLength, maxLength };
}

/** A page of a list. */
export function pageSchemaOf(items: JsonObject): JsonObject {
  const next = { type: 'string', description: 'Give it as `after` to get the next page; absent = there is none.' };
  return answerSchemaOf({ items: { type: 'array', items }, next }, ['items']);
}

/** The parameters of a list by pages. */
export const pageQuery = {
  after: { description: 'The `next` of the page before.', schema: text },
  limit: { description: 'Most entries, up to 100; default 50.', schema: { type: 'integer', minimum: 1, maximum: 100 } },
} as const;
