import { isObject, type JsonValue } from '../values/json.ts';
import { type Message, type ToolCallPart, toolCallsOf } from '../values/message.ts';

/** The secret fields of a tool's input, by the tool's name. `a.b` names a field of a field, in lists too. */
export type SecretFields = { readonly [tool: string]: readonly string[] };

const REDACTED = '[redacted]';

/** Shorter values appear by chance in other text: removing them there would damage the text. */
const MIN_SECRET = 6;

/**
 * Returns the input of a tool call without its secret fields, for the model that summarizes. An input that has no such
 * fields is treated as secret as a whole.
 */
export function redactedInput({ toolName, input }: ToolCallPart, secrets: SecretFields): JsonValue {
  const paths = fieldsOf(toolName, secrets);
  if (paths.length === 0) return (input ?? null) as JsonValue;
  if (!isObject(input)) return REDACTED;
  return paths.reduce<JsonValue>((value, path) => replaced(value, path.split('.')), input as JsonValue);
}

/** Returns a function that removes the secrets of all tool calls from a text: models and tools may repeat them anywhere. */
export function scrubber(messages: readonly Message[], secrets: SecretFields): (text: string) => string {
  const found = new Set<string>();
  for (const message of messages) {
    for (const { toolName, input } of toolCallsOf(message)) {
      for (const path of fieldsOf(toolName, secrets)) collect(valuesAt(input, path.split('.')), found);
    }
  }
  // Also as escaped in a JSON text. Longer secrets first, since one may contain another.
  const forms = [...found].flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1)]);
  const ordered = [...new Set(forms)].sort((a, b) => b.length - a.length);
  return (text) => ordered.reduce((rest, secret) => rest.replaceAll(secret, REDACTED), text);
}

function fieldsOf(tool: string, secrets: SecretFields): readonly string[] {
  return Object.hasOwn(secrets, tool) ? (secrets[tool] ?? []) : [];
}

function replaced(value: JsonValue, path: readonly string[]): JsonValue {
  const [key, ...rest] = path;
  if (key === undefined) return REDACTED;
  if (Array.isArray(value)) return value.map((item: JsonValue) => replaced(item, path));
  if (!isObject(value) || !Object.hasOwn(value, key)) return value;
  return { ...value, [key]: replaced(value[key] as JsonValue, rest) } as JsonValue;
}

function valuesAt(value: unknown, path: readonly string[]): unknown[] {
  const [key, ...rest] = path;
  if (key === undefined) return [value];
  if (Array.isArray(value)) return value.flatMap((item) => valuesAt(item, path));
  return isObject(value) && Object.hasOwn(value, key) ? valuesAt(value[key], rest) : [];
}

/** The texts and numbers in a secret value. */
function collect(value: unknown, found: Set<string>): void {
  if (Array.isArray(value)) for (const item of value) collect(item, found);
  else if (isObject(value)) for (const item of Object.values(value)) collect(item, found);
  else if ((typeof value === 'string' || typeof value === 'number') && String(value).length >= MIN_SECRET)
    found.add(String(value));
}
