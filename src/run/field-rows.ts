import type { FieldRedactor } from '../values/redact.ts';
import {
  type GivenFields,
  type HeadFields,
  type IdentityFields,
  type RunFields,
  runFields,
  type StartFields,
} from './fields.ts';
import type { GivenSpec } from './request.ts';

/* The form of the table of run fields, and what follows from it: its rows by parts, and the values of a run that has done nothing. */

/** When a field is written: `identity` and `start` once, `head` with each save, of `messages` only new ones. */
type FieldPart = 'identity' | 'start' | 'head' | 'messages';

/** How a field is stored, checked, redacted and bounded. */
export interface FieldSpec<T> {
  readonly part: FieldPart;
  /** A record without the field is damaged. */
  readonly required?: true | undefined;
  /** The value for a record without the field. */
  readonly empty?: T | undefined;
  /** `unless-empty`: left out of records while it is absent, or equals `empty`. */
  readonly write: 'always' | 'unless-empty';
  isValid(value: unknown): boolean;
  /** `public`: holds no text of hosts, models or tools. There is no default. */
  readonly redact: 'public' | ((value: T, by: FieldRedactor) => T);
  /** A bound for the UTF-16 units of its JSON; 0 = never more than `SMALL_FIELD`. */
  readonly size: 0 | ((value: T) => number);
}

type PartOf<K> = K extends keyof IdentityFields
  ? 'identity'
  : K extends keyof StartFields
    ? 'start'
    : K extends keyof HeadFields
      ? 'head'
      : 'messages';

/** A field that every run has: a new run begins with its empty value. */
type WhenAbsent<K, T> = undefined extends T
  ? unknown
  : K extends keyof (StartFields & HeadFields)
    ? { readonly empty: T }
    : { readonly required: true };

/** One row for each field. */
export type FieldTable<Fields> = {
  readonly [K in keyof Required<Fields>]: FieldSpec<NonNullable<Fields[K]>> & { readonly part: PartOf<K> } & WhenAbsent<
      K,
      Fields[K]
    > &
    (K extends keyof GivenFields ? { readonly given: GivenSpec<NonNullable<Fields[K]>> } : unknown);
};

/** The head fields that every run has. */
type FullHead = {
  readonly [K in keyof HeadFields as undefined extends HeadFields[K] ? never : K]: HeadFields[K];
};

/** The values of a run's head fields when it has done nothing. */
export const emptyHead: FullHead = Object.fromEntries(
  Object.entries(runFields).flatMap(([key, spec]) =>
    spec.part === 'head' && 'empty' in spec ? [[key, spec.empty]] : [],
  ),
) as unknown as FullHead;

/** A row, with the name of its field. */
interface FieldRow {
  readonly key: keyof RunFields;
  readonly spec: FieldSpec<unknown>;
}

const allRows: readonly FieldRow[] = Object.entries(runFields).map(([key, spec]) => ({
  key: key as keyof RunFields,
  spec: spec as FieldSpec<unknown>,
}));

/** Returns the rows of the table of run fields that belong to some parts (start, head, messages), in their order. */
export function rowsOf(...parts: readonly FieldPart[]): readonly FieldRow[] {
  return allRows.filter(({ spec }) => parts.includes(spec.part));
}

/** The fields that a host gives, and how each is read. */
export const givenFields: readonly (readonly [key: keyof GivenFields, given: GivenSpec<unknown>])[] = Object.entries(
  runFields,
).flatMap(([key, row]) => ('given' in row ? [[key as keyof GivenFields, row.given] as const] : []));

/** The identity of a run, without its meta. */
export type Identity = Omit<IdentityFields, 'meta'>;

const identityKeys = rowsOf('identity').flatMap(({ key }) => (key === 'meta' ? [] : [key as keyof Identity]));

/** Returns the identity fields of a request, a head or a progress. */
export function identityOf(of: Identity): Identity {
  const given = identityKeys.filter((key) => of[key] !== undefined).map((key) => [key, of[key]]);
  return Object.fromEntries(given) as Identity;
}

const givenKeys: ReadonlySet<string> = new Set(givenFields.map(([key]) => key));

/** Returns the identity fields that Pawl sets: those of a request, a head or a progress without what the host gives. */
export function ownIdentityOf(of: Identity): Omit<Identity, keyof GivenFields> {
  return Object.fromEntries(Object.entries(identityOf(of)).filter(([key]) => !givenKeys.has(key)));
}
