import {
  type FieldPart,
  type FieldSpec,
  type GivenFields,
  type HeadFields,
  type IdentityFields,
  type RunFields,
  runFields,
} from './fields.ts';
import type { GivenSpec } from './request.ts';

/* What follows from the table of run fields: its rows by parts, and the values of a run that has done nothing. */

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
