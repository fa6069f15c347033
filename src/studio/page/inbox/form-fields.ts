// A form from a JSON schema, or from the value that it changes: pure.
import type { JsonObject, JsonValue } from '../../wire.ts';
import { words } from '../frame/words.ts';

/** One field of a form. */
export interface FormField {
  /** The name of the property; '' if the whole value is one field. */
  readonly name: string;
  readonly kind: 'text' | 'number' | 'integer' | 'flag' | 'choice' | 'json';
  readonly help?: string;
  readonly isRequired: boolean;
  /** For `choice`. */
  readonly choices: readonly JsonValue[];
}

/** What was typed, by the names of the fields. */
export type Typed = { readonly [name: string]: string };

const MAX_FIELDS = 40;

/** The fields for a value; one field of JSON where neither schema nor value says more. */
export function fieldsOf(schema: JsonObject | undefined, value: JsonValue | undefined): readonly FormField[] {
  const whole = { name: '', isRequired: true, choices: [] };
  if (schema?.type !== 'object' && schema !== undefined) return [{ ...whole, ...kindOf(schema, value) }];
  const properties = objectIn(schema?.properties);
  const known = objectIn(value);
  const names = [...new Set([...Object.keys(properties ?? {}), ...Object.keys(known ?? {})])];
  if (names.length === 0 || names.length > MAX_FIELDS || (value !== undefined && !known))
    return [{ ...whole, kind: 'json' }];
  const required = Array.isArray(schema?.required) ? schema.required : [];
  return names.map((name) => ({
    name,
    choices: [],
    isRequired: required.includes(name),
    ...kindOf(objectIn(properties?.[name]), known?.[name]),
  }));
}

function kindOf(
  schema: JsonObject | undefined,
  value: JsonValue | undefined,
): Pick<FormField, 'kind' | 'help'> & Partial<Pick<FormField, 'choices'>> {
  const help = typeof schema?.description === 'string' ? { help: schema.description } : {};
  if (Array.isArray(schema?.enum)) return { kind: 'choice', choices: schema.enum, ...help };
  const type = schema?.type ?? (schema ? undefined : typeof value);
  if (type === 'string') return { kind: 'text', ...help };
  if (type === 'number' || type === 'integer') return { kind: type, ...help };
  if (type === 'boolean') return { kind: 'flag', ...help };
  return { kind: 'json', ...help };
}

function objectIn(value: JsonValue | undefined): JsonObject | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined;
}

/** JSON as a person reads it. */
export function jsonOfField(value: JsonValue | undefined): string {
  try {
    return value === undefined ? '' : JSON.stringify(value, null, 2);
  } catch {
    return 'It is too deep.';
  }
}

/** What the fields show before something is typed. */
export function typedOf(fields: readonly FormField[], value: JsonValue | undefined): Typed {
  return Object.fromEntries(
    fields.map(({ name, kind }) => {
      const own = name === '' ? value : objectIn(value)?.[name];
      return [name, kind === 'text' && typeof own === 'string' ? own : jsonOfField(own)];
    }),
  );
}

/** A form as a value, or what is wrong with it, by the names of the fields. */
type Filled =
  | { readonly value: JsonValue; readonly wrong?: undefined }
  | { readonly value?: undefined; readonly wrong: Typed };

/** Reads a form. @param before the value whose other properties stay */
export function filledOf(fields: readonly FormField[], typed: Typed, before: JsonValue | undefined): Filled {
  const wrong: { [name: string]: string } = {};
  const value: { [name: string]: JsonValue } = { ...objectIn(before) };
  let whole: JsonValue | undefined;
  for (const field of fields) {
    const { name } = field;
    const read = readField(field, typed[name] ?? '', objectIn(before)?.[name] !== undefined);
    if (read.wrong !== undefined) wrong[name] = read.wrong;
    else if (name === '') whole = read.value;
    else if (read.value === undefined) delete value[name];
    else define(value, name, read.value);
  }
  return Object.keys(wrong).length > 0 ? { wrong } : { value: whole === undefined ? value : whole };
}

/** Sets an own property, also one with the name `__proto__`. */
function define(target: object, name: string, value: JsonValue): void {
  Object.defineProperty(target, name, { value, enumerable: true, configurable: true, writable: true });
}

function readField(
  { kind, isRequired, choices }: FormField,
  text: string,
  wasThere: boolean,
): { readonly value?: JsonValue; readonly wrong?: string } {
  if (kind === 'text') return text === '' && !isRequired && !wasThere ? {} : { value: text };
  if (text.trim() === '') return isRequired ? wrongOf('value') : {};
  try {
    const value = JSON.parse(text) as JsonValue;
    const isFit = {
      number: typeof value === 'number',
      integer: Number.isInteger(value),
      choice: isOneOf(choices, text),
    };
    return isFit[kind as keyof typeof isFit] === false ? wrongOf(kind) : { value };
  } catch {
    return wrongOf(kind);
  }
}

/** What a refusal of the server says of each field: it names the paths of its problems. */
export function refusalsIn(fields: readonly FormField[], message = ''): Typed {
  const said = message.slice(message.indexOf(': ') + 2).split('; ');
  const wrong = fields.map(({ name }) => [name, said.find((text) => text.split(/[:.[]/)[0] === name)] as const);
  return Object.fromEntries(wrong.filter((each): each is [string, string] => each[1] !== undefined));
}

function wrongOf(kind: string): { readonly wrong: string } {
  return { wrong: words.needs?.[kind] ?? '' };
}

function isOneOf(choices: readonly JsonValue[], text: string): boolean {
  return choices.some((choice) => jsonOfField(choice) === text);
}
