import { defineAgent } from 'pawl';
import { describe, expect, test } from 'vitest';
import type { Models } from '../../src/model/port.ts';
import { scriptedModel } from '../../src/testing/index.ts';
import { UnknownTierError, UnsupportedError } from '../../src/values/errors.ts';
import { modelFor } from './model-for.ts';

const model = scriptedModel([]);
const errorOf = (models: unknown, tier = 'fast') => {
  try {
    modelFor(models as Models, tier);
  } catch (error) {
    return error as Error;
  }
  return expect.unreachable();
};

describe('the model of a tier', () => {
  test('comes from a record or a function', () => {
    expect(modelFor({ fast: model }, 'fast')).toBe(model);
    expect(modelFor((tier) => (tier === 'fast' ? model : undefined), 'fast')).toBe(model);
  });

  test('that is not there is an UnknownTierError which lists the tiers there are', () => {
    const error = errorOf({ fast: model, deep: model }, 'slow');
    expect(error).toBeInstanceOf(UnknownTierError);
    expect(error.message).toBe('no model serves tier "slow"; known tiers: fast, deep');
    expect(errorOf({}).message).toMatch(/the executor has no models: give the agent one, defineAgent\(\{ model \}\)/);
    expect(errorOf(() => undefined).message).toMatch(/the models function returned none/);
  });

  test('whose entry is undefined is an UnknownTierError that says so and does not list the tier as known', () => {
    const error = errorOf({ fast: undefined as never });
    expect(error).toBeInstanceOf(UnknownTierError);
    expect(error.message).toBe('no model serves tier "fast": its entry in models is undefined');
  });

  test('is not a list in the place of a model: the list belongs to a tier', () => {
    const message = /model must be .*not a list; give it a tier, createExecutor\(\{ models: \{ fast: \[ … \] \} \}\)/;
    expect(() => defineAgent({ id: 'a', instructions: 'Work.', model: [model, model] as never })).toThrow(message);
  });

  test.for(['constructor', 'toString', '__proto__'])('is no inherited property: %s', (tier) => {
    expect(errorOf({ fast: model }, tier)).toBeInstanceOf(UnknownTierError);
  });

  test('whose look-up throws is an UnknownTierError with that as its cause', () => {
    const thrown = new Error('no key');
    const error = errorOf(() => {
      throw thrown;
    });
    expect(error).toBeInstanceOf(UnknownTierError);
    expect(error.cause).toBe(thrown);
    expect(
      errorOf({
        get fast() {
          throw thrown;
        },
      }).cause,
    ).toBe(thrown);
  });

  test.for([
    [
      'a model of spec v1',
      { specificationVersion: 'v1', doStream() {} },
      /of spec v4, v3 or v2 but a model of spec v1/,
    ],
    [
      'a model of spec v5',
      { specificationVersion: 'v5', doStream() {} },
      /a model of spec v5; use .* AI SDK 5, 6 or 7/,
    ],
    ['a name', 'openai/gpt', /the string "openai\/gpt"/],
    ['a promise', Promise.resolve(model), /a promise/],
    ['a model without doStream', { specificationVersion: 'v4' }, /without doStream/],
    ['a model without a version', { doStream() {} }, /without specificationVersion/],
    ['a number', 7, /a value of type number/],
  ] as const)(
    'that is %s is an UnsupportedError which says so: a wrong configuration is no failed call',
    ([, found, message]) => {
      const error = errorOf({ fast: found });
      expect(error).toBeInstanceOf(UnsupportedError);
      expect(error.message).toMatch(message);
    },
  );
});
