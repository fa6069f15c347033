import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalJson, charsIn, frozenJson, jsonText } from '../../src/values/json.ts';
import { torture } from '../crash/random.ts';

class Point {
  x = 1;
}
const cyclic: Record<string, unknown> = {};
cyclic.self = { again: cyclic };
const deep = (levels: number): unknown => (levels === 0 ? 1 : { in: deep(levels - 1) });

describe('what JSON cannot hold is refused with the path to it (checkpoint 11)', () => {
  test.for<[string, unknown, RegExp]>([
    ['a Date', { a: { when: new Date() } }, /^value\.a\.when is a Date/],
    ['a Map', { a: [1, new Map()] }, /^value\.a\[1\] is a Map/],
    ['a Set', [new Set()], /^value\[0\] is a Set/],
    ['an instance of a class', { p: new Point() }, /^value\.p is a Point/],
    ['bytes', { data: new Uint8Array(2) }, /^value\.data is a Uint8Array/],
    ['a Buffer', { data: Buffer.from('x') }, /^value\.data/],
    ['an URL', new URL('http://x.y'), /^value is a URL/],
    ['an Error', { e: new Error('x') }, /^value\.e is a Error/],
    ['a function', { f: () => 1 }, /^value\.f is function/],
    ['a toJSON of its own', { toJSON: () => 'x' }, /^value\.toJSON is function/],
    ['a symbol', { s: Symbol('x') }, /^value\.s is symbol/],
    ['a bigint', { n: 1n }, /^value\.n is bigint/],
    ['NaN', { n: [Number.NaN] }, /^value\.n\[0\] is NaN/],
    ['Infinity', { n: Number.POSITIVE_INFINITY }, /^value\.n is Infinity/],
    ['undefined in an array', { a: [1, undefined] }, /^value\.a\[1\] is undefined/],
    ['a hole in an array', { a: new Array(2) }, /^value\.a\[0\] is undefined/],
    ['undefined itself', undefined, /^value is undefined/],
    ['a boxed string', { s: Object('x') }, /^value\.s is a String/],
    ['a cycle', cyclic, /nested deeper|refers to itself/],
    ['a value nested too deep', deep(300), /nested deeper/],
    ['a promise', { p: Promise.resolve() }, /^value\.p is a Promise/],
  ])('%s', ([, value, message]) => {
    for (const take of [frozenJson, jsonText]) {
      expect(() => take(value)).toThrow(
        expect.objectContaining({ code: 'NOT_JSON', message: expect.stringMatching(message) }),
      );
    }
  });

  test('a value that says something else when it is asked again is refused as a whole', () => {
    let asked = 0;
    const fickle = {
      get when() {
        asked += 1;
        return asked === 1 ? new Date() : 'now';
      },
    };
    expect(() => frozenJson(fickle, 'input')).toThrow(/^input has a getter whose value changes/);
  });

  test('the path begins with the name that was given', () => {
    expect(() => frozenJson({ a: [new Date()] }, 'inputs')).toThrow(/^inputs\.a\[0\]/);
  });
});

describe('what JSON can hold is kept', () => {
  test('any JSON value comes out equal, as text too, deep-frozen, and sharing nothing with what was given (checkpoint 2, 9)', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const copy = frozenJson(value);
        expect(JSON.stringify(copy)).toBe(JSON.stringify(value));
        const walk = (one: unknown, other: unknown): void => {
          if (typeof one !== 'object' || one === null) return;
          expect(Object.isFrozen(one)).toBe(true);
          expect(one).not.toBe(other);
          for (const key of Object.keys(one)) walk((one as never)[key], (other as never)[key]);
        };
        walk(copy, value);
      }),
      { numRuns: 150 * torture },
    );
  });

  test('a property that is undefined counts as absent', () => {
    expect(frozenJson({ a: undefined, b: 1 })).toEqual({ b: 1 });
    expect(Object.keys(frozenJson({ a: undefined, b: 1 }) as object)).toEqual(['b']);
  });

  test('a key named __proto__ is data: kept as its own, and no prototype is touched (checkpoint 12)', () => {
    const hostile = JSON.parse('{"__proto__":{"polluted":true},"constructor":{"prototype":1}}');
    const copy = frozenJson(hostile) as object;
    expect(JSON.stringify(copy)).toBe('{"__proto__":{"polluted":true},"constructor":{"prototype":1}}');
    expect(Object.getPrototypeOf(copy)).toBe(Object.prototype);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });

  test('-0 becomes 0, as it would in the store: what runs and what is stored are equal', () => {
    expect(Object.is(frozenJson(-0), 0)).toBe(true);
    expect(frozenJson([-0])).toEqual(JSON.parse(JSON.stringify([-0])));
  });

  test('lone surrogates survive the way through text (checkpoint 2)', () => {
    const text = 'a\ud800b\udc00';
    expect(JSON.parse(JSON.stringify(frozenJson({ [text]: text })))).toEqual({ [text]: text });
  });

  test('objects without a prototype and of another realm are plain', () => {
    expect(frozenJson(Object.assign(Object.create(null), { a: 1 }))).toEqual({ a: 1 });
    expect(frozenJson(runInNewContext('({ a: [1, { b: 2 }] })'))).toEqual({ a: [1, { b: 2 }] });
  });

  test('one object in two places is no cycle', () => {
    const shared = { x: 1 };
    expect(frozenJson({ a: shared, b: [shared] })).toEqual({ a: { x: 1 }, b: [{ x: 1 }] });
  });

  test('nesting up to 200 levels is fine', () => {
    expect(JSON.stringify(frozenJson(deep(200)))).toBe(JSON.stringify(deep(200)));
  });
});

test('canonical text is equal for equal values, in any order of their keys, and different for others', () => {
  const shuffled = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(shuffled);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value)
        .reverse()
        .map(([key, item]) => [key, shuffled(item)]),
    );
  };
  const safe = fc.jsonValue().filter((value) => !JSON.stringify(value).includes('__proto__'));
  fc.assert(
    fc.property(safe, safe, (one, other) => {
      const [a, b] = [frozenJson(one), frozenJson(other)];
      expect(canonicalJson(frozenJson(shuffled(one)))).toBe(canonicalJson(a));
      expect(JSON.parse(canonicalJson(a))).toEqual(a);
      if (canonicalJson(a) === canonicalJson(b)) expect(a).toEqual(b);
    }),
  );
});

describe('the characters of a value', () => {
  test('are counted up to a limit, in one text or in many parts (edges 26)', () => {
    const event = { type: 'tool.done', seq: 1, output: { type: 'text', value: 'x'.repeat(900) } };
    expect(charsIn(event, 1_000)).toBeLessThanOrEqual(1_000);
    expect(charsIn({ ...event, name: 'x'.repeat(100) }, 1_000)).toBeGreaterThan(1_000);
    expect(charsIn({ list: Array.from({ length: 300 }, () => ({})) }, 1_000)).toBeGreaterThan(1_000);
    expect(charsIn(Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`name-${i}`, i])), 1_000)).toBeGreaterThan(
      1_000,
    );
    expect(charsIn({ none: null, missing: undefined }, 1_000)).toBeLessThan(30);
    // A list of millions is not walked through.
    expect(charsIn(new Array(10_000_000).fill(1), 1_000)).toBeGreaterThan(1_000);
  });

  test('are at most four times those of its JSON text, and not below its texts (edges 26)', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 4 }), (text) => {
        const value: unknown = JSON.parse(text);
        const { length } = JSON.stringify(value);
        expect(charsIn(value, 1_000_000)).toBeLessThanOrEqual(4 * length);
      }),
    );
  });
});
