// The part of fast-check that is used, with types of our own: neither the code nor the published types name the package,
// which hosts may not have.

/** An arbitrary of fast-check, for its `property`, `record`, `sample` and so on. */
export interface Arbitrary<T> {
  /** For fast-check itself. */
  generate(random: never, biasFactor: number | undefined): never;
  canShrinkWithoutContext(value: unknown): value is T;
  /** For fast-check itself. */
  shrink(value: T, context: unknown): never;
  filter<U extends T>(refinement: (value: T) => value is U): Arbitrary<U>;
  filter(predicate: (value: T) => boolean): Arbitrary<T>;
  map<U>(mapper: (value: T) => U, unmapper?: (possibly: unknown) => T): Arbitrary<U>;
  chain<U>(chainer: (value: T) => { canShrinkWithoutContext(value: unknown): value is U }): Arbitrary<U>;
}

/** An arbitrary of fast-check that a host gives. */
export interface GivenArbitrary<T> {
  canShrinkWithoutContext(value: unknown): value is T;
}

const used = [
  'array',
  'boolean',
  'constantFrom',
  'dictionary',
  'jsonValue',
  'nat',
  'option',
  'record',
  'string',
] as const;

/** The module `fast-check` (3.22 or newer), as `import fc from 'fast-check'` or `import * as fc from 'fast-check'` gives it. */
export type FastCheck = { readonly [Name in (typeof used)[number]]: (...args: never[]) => unknown };

/** The same, with the types of its functions. */
export interface Generators {
  array<T>(item: Arbitrary<T>, bounds: { minLength?: number; maxLength: number }): Arbitrary<T[]>;
  boolean(): Arbitrary<boolean>;
  constantFrom<const T>(...values: readonly T[]): Arbitrary<T>;
  dictionary<T>(key: Arbitrary<string>, value: Arbitrary<T>, bounds: { maxKeys: number }): Arbitrary<Record<string, T>>;
  jsonValue(bounds: { maxDepth: number }): Arbitrary<unknown>;
  nat(max: number): Arbitrary<number>;
  option<T>(value: Arbitrary<T>, absent: { nil: undefined }): Arbitrary<T | undefined>;
  record<T extends object>(members: { [Key in keyof T]: Arbitrary<T[Key]> }): Arbitrary<T>;
  string(bounds: { unit: 'binary' | 'grapheme'; minLength?: number; maxLength: number }): Arbitrary<string>;
}

/** Checks that a value is fast-check, and returns its generators. @throws {TypeError} if it is not */
export function generatorsOf(fc: FastCheck): Generators {
  for (const name of used) {
    if (typeof fc?.[name] !== 'function') {
      throw new TypeError(
        `arbitraries needs fast-check, and this has no ${name}: import fc from 'fast-check'; arbitraries(fc)`,
      );
    }
  }
  return fc as unknown as Generators;
}
