import type { StandardJSONSchemaV1, StandardSchemaV1 } from '@standard-schema/spec';
import { readProperty, toErrorData } from '../values/error-data.ts';
import { frozenJson, isObject, type JsonObject, type JsonValue } from '../values/json.ts';
import { letGo } from '../values/thenable.ts';
import { uncheckedPatterns } from './bounded-schema.ts';
import { jsonSchemaValidator, type SchemaIssue } from './json-schema.ts';
import { schemaProblem } from './schema-shape.ts';

/** Whether an input fits; `value` is the tool's input (a schema may fill in defaults or convert). */
export type Validation<Value = unknown> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly message: string };

/** A tool's input: the JSON Schema for the model, and the check of the model's arguments. */
export interface ToolInput<Value = unknown> {
  readonly jsonSchema: JsonObject;
  /** Resolves when `jsonSchema` is known, or with the reason why it cannot be; absent = it is known. Never rejects. */
  readonly pending?: Promise<Error | undefined>;
  /** Synchronous if the schema is. `message` names the paths and the problems. */
  validate(value: unknown): Validation<Value> | Promise<Validation<Value>>;
}

/** A schema of the AI SDK (`jsonSchema()`, `zodSchema()`), known by its type parameter. */
export interface AiSdkSchemaOf<Value> {
  readonly _type: Value;
  readonly jsonSchema: unknown;
}

/** The form of an answer as the AI SDK writes it: `Output.object({ schema })`. */
export interface AiSdkOutput<Value> {
  readonly name: string;
  readonly responseFormat: PromiseLike<unknown>;
  parseCompleteOutput(options: { text: string }, context: never): Promise<Value>;
}

/** The output of a schema: of a Standard Schema its output, of an AI SDK schema its type, of a plain JSON Schema `Plain`. */
export type ValueOf<Schema, Plain> =
  Schema extends StandardSchemaV1<unknown, infer Value>
    ? Value
    : Schema extends AiSdkSchemaOf<infer Value>
      ? Value
      : Schema extends () => AiSdkSchemaOf<infer Value>
        ? Value
        : Schema extends AiSdkOutput<infer Value>
          ? Value
          : Plain;

/** What a schema takes: of a Standard Schema its input, of an AI SDK schema its type, of a plain JSON Schema `Plain`. */
export type GivenOf<Schema, Plain> =
  Schema extends StandardSchemaV1<infer Given, unknown> ? Given : ValueOf<Schema, Plain>;

/** The type of `data` for an agent's `output` schema: `undefined` without a schema, `unknown` if its type is unknown. */
export type DataOf<Schema> = unknown extends Schema
  ? unknown
  : Schema extends undefined
    ? undefined
    : ValueOf<Schema, JsonValue>;

type Standard = StandardSchemaV1.Props & Partial<StandardJSONSchemaV1.Props>;

/** The return value of AI SDK's `jsonSchema()` and `zodSchema()`. */
interface AiSdkSchema {
  readonly jsonSchema: unknown;
  readonly validate?: (value: unknown) => AiSdkResult | PromiseLike<AiSdkResult>;
}
type AiSdkResult =
  | { readonly success: true; readonly value: unknown }
  | { readonly success: false; readonly error: unknown };

const aiSdkSymbol = Symbol.for('vercel.ai.schema');
const MAX_ISSUES = 8;
const MAX_MESSAGE = 1_000;

/**
 * Reads a tool's input schema, in this order: a Standard Schema that also has a JSON Schema, a schema of the AI SDK (or a
 * function that returns one), a plain JSON Schema.
 * @throws {TypeError} naming the tool, if none of these fits or there is no JSON Schema
 */
export function readSchema(schema: unknown, toolName: string): ToolInput {
  const standard = readProperty(schema, '~standard');
  if (isObject(standard)) return standardInput(standard as unknown as Standard, toolName);
  if (isObject(schema) && schema[aiSdkSymbol as never] === true) return aiSdkInput(schema as never, toolName);
  if (typeof schema === 'function') return readSchema(schema(), toolName);
  if (isObject(schema)) return plainInput(asJsonSchema(schema, toolName), toolName);
  throw new TypeError(`tool "${toolName}": input must be a Standard Schema, an AI SDK schema or a JSON Schema object`);
}

/**
 * Reads the form of an agent's answer: a schema, or an `Output` of the AI SDK, whose JSON Schema is a promise.
 * @returns undefined for `Output.text()` @throws as `readSchema`
 */
export function readOutput(given: unknown, name: string): ToolInput | undefined {
  if (!isObject(given) || typeof given.parseCompleteOutput !== 'function') return readSchema(given, name);
  const output = given as unknown as AiSdkOutput<unknown>;
  if (output.name === 'text') return undefined;
  let jsonSchema: JsonObject = {};
  const read = async () => {
    jsonSchema = asJsonSchema(readProperty(await output.responseFormat, 'schema') ?? {}, name);
  };
  return {
    get jsonSchema() {
      return jsonSchema;
    },
    pending: read().then(
      () => undefined,
      (cause) => new TypeError(`${name} has no JSON Schema: ${toErrorData(cause).message}`, { cause }),
    ),
    validate: (value) => fromOutput(output, value),
  };
}

async function fromOutput(output: AiSdkOutput<unknown>, value: unknown): Promise<Validation> {
  const context = { response: {}, usage: {}, finishReason: 'stop' };
  try {
    const text = JSON.stringify(value);
    return { ok: true, value: await output.parseCompleteOutput({ text }, context as never) };
  } catch (error) {
    const { message, cause } = toErrorData(error);
    return { ok: false, message: `${message} ${cause?.message ?? ''}`.trim().slice(0, MAX_MESSAGE) };
  }
}

function standardInput(standard: Standard, toolName: string): ToolInput {
  if (typeof standard.jsonSchema?.input !== 'function') {
    throw new TypeError(
      `tool "${toolName}": the input schema (of ${standard.vendor}) has no JSON Schema; ${standard.vendor === 'zod' ? 'install zod@4' : 'use a version that implements ~standard.jsonSchema'}, or pass a JSON Schema`,
    );
  }
  return {
    jsonSchema: asJsonSchema(convert(standard.jsonSchema, toolName), toolName),
    validate(value) {
      const result = standard.validate(value);
      return isPromise(result) ? Promise.resolve(result).then(fromStandard) : fromStandard(result);
    },
  };
}

function convert(converter: StandardJSONSchemaV1.Converter, toolName: string): unknown {
  try {
    const schema: unknown = converter.input({ target: 'draft-2020-12' });
    letGo(schema);
    return schema;
  } catch (cause) {
    const why = toErrorData(cause).message;
    throw new TypeError(`tool "${toolName}": the input schema has no JSON Schema: ${why}`, { cause });
  }
}

function fromStandard(result: StandardSchemaV1.Result<unknown>): Validation {
  return result.issues ? refusal(result.issues) : { ok: true, value: result.value };
}

function aiSdkInput(schema: AiSdkSchema, toolName: string): ToolInput {
  const { jsonSchema } = schema;
  if (isPromise(jsonSchema)) {
    letGo(jsonSchema);
    throw new TypeError(
      `tool "${toolName}": the JSON Schema of the input is a promise; await it before defining the tool`,
    );
  }
  const plain = asJsonSchema(jsonSchema, toolName);
  if (typeof schema.validate !== 'function') return plainInput(plain, toolName);
  return {
    jsonSchema: plain,
    validate(value) {
      const result = schema.validate?.(value) as AiSdkResult | PromiseLike<AiSdkResult>;
      return isPromise(result) ? Promise.resolve(result).then(fromAiSdk) : fromAiSdk(result);
    },
  };
}

function fromAiSdk(result: AiSdkResult): Validation {
  if (result.success) return { ok: true, value: result.value };
  const issues = readProperty(result.error, 'issues');
  if (Array.isArray(issues)) return refusal(issues);
  return { ok: false, message: toErrorData(result.error).message.slice(0, MAX_MESSAGE) };
}

/** Warnings that were given: an MCP client makes its tools again and again. */
const warned = new Set<string>();
const MAX_WARNED = 1_000;

/** A definition has no logger. */
function warnOfPatterns(jsonSchema: JsonObject, toolName: string): void {
  const [pattern, ...more] = uncheckedPatterns(jsonSchema);
  if (pattern === undefined) return;
  const others = more.length === 0 ? '' : `, and ${more.length} more`;
  const text = `tool "${toolName}": the pattern ${JSON.stringify(pattern.slice(0, 100))}${others} is not checked: it is no JavaScript expression with the flag u`;
  if (warned.has(text) || warned.size >= MAX_WARNED) return;
  warned.add(text);
  process.emitWarning(text, { type: 'PawlWarning', code: 'PAWL_PATTERN_NOT_CHECKED' });
}

function plainInput(jsonSchema: JsonObject, toolName: string): ToolInput {
  warnOfPatterns(jsonSchema, toolName);
  const validate = jsonSchemaValidator(jsonSchema);
  return {
    jsonSchema,
    validate(value) {
      const issues = validate(value);
      return issues instanceof Promise ? issues.then((found) => fromIssues(found, value)) : fromIssues(issues, value);
    },
  };
}

/**
 * The model's arguments are frozen, as part of the transcript; the tool gets its own copy. It is JSON, for which this is
 * several times as fast as structuredClone.
 */
function fromIssues(issues: readonly SchemaIssue[], value: unknown): Validation {
  return issues.length > 0 ? refusal(issues) : { ok: true, value: JSON.parse(JSON.stringify(value)) };
}

function asJsonSchema(schema: unknown, toolName: string): JsonObject {
  if (!isObject(schema)) throw new TypeError(`tool "${toolName}": the JSON Schema of the input is not an object`);
  const plain = plainSchema(schema, toolName);
  const problem = schemaProblem(plain);
  if (problem === undefined) return plain;
  throw new TypeError(`tool "${toolName}": the input is not a JSON Schema: ${problem}`);
}

function plainSchema(schema: object, toolName: string): JsonObject {
  try {
    return frozenJson(schema, 'input') as JsonObject;
  } catch (cause) {
    throw new TypeError(`tool "${toolName}": the input is not a JSON Schema: ${toErrorData(cause).message}`, { cause });
  }
}

function refusal(issues: readonly Partial<StandardSchemaV1.Issue>[]): Validation {
  const lines = issues.slice(0, MAX_ISSUES).map(({ path, message }) => {
    const where = pathText(path ?? []);
    return where === '' ? String(message) : `${where}: ${message}`;
  });
  if (issues.length > MAX_ISSUES) lines.push(`and ${issues.length - MAX_ISSUES} more`);
  return { ok: false, message: lines.join('; ').slice(0, MAX_MESSAGE) };
}

function pathText(path: NonNullable<StandardSchemaV1.Issue['path']>): string {
  let text = '';
  for (const segment of path) {
    const key = typeof segment === 'object' ? segment.key : segment;
    text += typeof key === 'number' ? `[${key}]` : `${text === '' ? '' : '.'}${String(key)}`;
  }
  return text;
}

function isPromise<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof readProperty(value, 'then') === 'function';
}
