import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { hiddenField } from '../../src/values/hidden.ts';

describe('a hidden field', () => {
  test('is where it was put, also when the object has been frozen since', () => {
    const field = hiddenField<string>();
    const message = { role: 'user' };
    field.put(message, 'one');
    Object.freeze(message);
    field.put(message, 'two');
    expect([field.has(message), field.get(message)]).toEqual([true, 'two']);
  });

  test('is not in a copy, in JSON, among the keys, or in what is printed', () => {
    const field = hiddenField<string>();
    const message = { role: 'user' };
    field.put(message, 'secret');
    const seen = [field.has({ ...message }), JSON.stringify(message), Reflect.ownKeys(message), inspect(message)];
    expect(seen).toEqual([false, '{"role":"user"}', ['role'], "{ role: 'user' }"]);
    expect(field.has(structuredClone(message))).toBe(false);
  });

  test('is none of another field', () => {
    const [one, other] = [hiddenField<string>(), hiddenField<string>()];
    const message = {};
    one.put(message, 'one');
    expect([other.has(message), other.get(message)]).toEqual([false, undefined]);
  });

  test.for([null, undefined, 'text', 7, true])('may be asked for of %s, which is no object', (value) => {
    const field = hiddenField<string>();
    expect([field.has(value), field.get(value)]).toEqual([false, undefined]);
  });
});
