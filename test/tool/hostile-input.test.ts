import { Validator } from '@cfworker/json-schema';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { jsonSchemaValidator } from '../../src/tool/json-schema.ts';
import { readSchema } from '../../src/tool/schema.ts';
import { torture } from '../crash/random.ts';

const messageOf = async (schema: object, value: unknown) => {
  const result = await readSchema(schema, 'probe').validate(value);
  return result.ok ? 'ok' : result.message;
};

/** Much more than a linear check takes on a slow machine, much less than one that is not linear. */
const timely = async <T>(work: () => Promise<T>): Promise<T> => {
  await messageOf({}, 1);
  const begun = performance.now();
  const result = await work();
  expect(performance.now() - begun).toBeLessThan(20_000);
  return result;
};

describe('the check against a JSON Schema does not block on hostile input', () => {
  test.for(['url', 'uri', 'uri-reference'])('of the format %s', async (format) => {
    const texts = [`http://${'a'.repeat(100_000)}`, `http://${'a-'.repeat(50_000)}!`, `a:${'/a'.repeat(50_000)} `];
    for (const text of texts) await timely(() => messageOf({ format }, text));
    // An expression for `url` that tries every way to split the host takes years for this one.
    await timely(() => messageOf({ format }, `http://${'a'.repeat(60)}!!`));
  });

  test('of 100,000 items that must be unique', async () => {
    const items = Array.from({ length: 100_000 }, (_, i) => ({ id: i }));
    const schema = { properties: { list: { uniqueItems: true } } };
    expect(await timely(() => messageOf(schema, { list: items }))).toBe('ok');
    expect(await timely(() => messageOf(schema, { list: [...items, { id: 99_999 }] }))).not.toBe('ok');
  });

  test('of a value in which each of 100,000 items is wrong: the message stays short', async () => {
    const schema = { items: { type: 'object', properties: { a: { type: 'string' } } } };
    const message = await timely(() => messageOf(schema, Array(100_000).fill({ a: 1 })));
    expect(message).toMatch(/^\[0\]\.a: Instance type "number" is invalid/);
    expect(message.length).toBeLessThanOrEqual(1_000);
  });

  test('of a value of less than 20,000 characters with all its faults', async () => {
    const schema = { items: { allOf: [{ type: 'string' }, { const: 'a' }] } };
    const message = await timely(() => messageOf(schema, Array(9_900).fill(1)));
    // Of the first 200 faults those that only repeat another are left out; the others are counted as they are.
    expect(message).toMatch(/; and 39492 more$/);
  });

  test('of a value with many levels, at each of which an honest schema has two alternatives', async () => {
    const node = { type: 'object', properties: { next: { $ref: '#/$defs/node' } } };
    const alternatives = ['a', 'b'].map((kind) => ({
      ...node,
      properties: { ...node.properties, kind: { const: kind } },
    }));
    const schema = { $defs: { node: { anyOf: alternatives } }, $ref: '#/$defs/node' };
    const chain = (levels: number, kind: string) => {
      let value: object = { kind };
      for (let i = 0; i < levels; i++) value = { kind: 'b', next: value };
      return value;
    };
    expect(await timely(() => messageOf(schema, chain(8, 'a')))).toBe('ok');
    expect(await timely(() => messageOf(schema, chain(40, 'c')))).toMatch(/too many steps to check/);
    expect(await timely(() => messageOf(schema, chain(8, 'a')))).toBe('ok');
    // Both parts hold here, so that no fault ends the check.
    const both = { $defs: { node: { allOf: [node, { required: ['kind'], ...node }] } }, $ref: '#/$defs/node' };
    expect(await timely(() => messageOf(both, chain(8, 'a')))).toBe('ok');
    expect(await timely(() => messageOf(both, chain(40, 'a')))).toMatch(/too many steps to check/);
  });

  test.for([
    ['refers to itself', { $ref: '#' }],
    [
      'refers to itself through another one',
      { $defs: { a: { allOf: [{ $ref: '#' }] } }, anyOf: [{ $ref: '#/$defs/a' }] },
    ],
    [
      'doubles with each definition',
      {
        $defs: Object.fromEntries(
          Array.from({ length: 40 }, (_, i) => [`d${i}`, { allOf: Array(2).fill({ $ref: `#/$defs/d${i + 1}` }) }]),
        ),
        $ref: '#/$defs/d0',
      },
    ],
  ] as const)('of a schema that %s', async ([, schema]) => {
    const $defs = { ...('$defs' in schema ? schema.$defs : {}), d40: { type: 'object' } };
    expect(await timely(() => messageOf({ ...schema, $defs }, {}))).toMatch(/too many steps to check/);
  });

  test('of a pattern that takes quadratic time', async () => {
    const schema = { properties: { name: { pattern: '\\s+$' } } };
    expect(await timely(() => messageOf(schema, { name: ' '.repeat(9_999) }))).toBe('ok');
    expect(await timely(() => messageOf(schema, { name: `${' '.repeat(400_000)}x` }))).toBe(
      'a text of more than 10000 characters cannot be checked against a pattern',
    );
  });
});

describe('what is too large to be checked is an error that says so', () => {
  const nested = (depth: number) => JSON.parse('['.repeat(depth) + ']'.repeat(depth));
  test.for([
    ['a text', () => 'x'.repeat(2_000_001), /more than 2000000 characters/],
    ['many small parts', () => Array(2_000_001).fill(0), /more than 2000000 characters/],
    ['depth', () => nested(100_000), /nested deeper than 256 levels/],
    ['a key', () => ({ ['k'.repeat(10_001)]: 1 }), /a key of more than 10000 characters/],
  ] as const)('%s', async ([, value, message]) => {
    expect(await timely(() => messageOf({}, value()))).toMatch(message);
  });

  test('and what is just below is checked', async () => {
    expect(await messageOf({}, 'x'.repeat(1_999_999))).toBe('ok');
    expect(await messageOf({}, nested(256))).toBe('ok');
  });
});

describe('a pattern beyond its bound', () => {
  const long = 'a'.repeat(10_001);
  test.for([
    ['not', { not: { pattern: '^a' } }],
    ['if', { if: { pattern: '^b' }, else: {} }],
    ['anyOf', { anyOf: [{ type: 'string' }, { pattern: '^a' }] }],
    ['a reference', { $defs: { name: { pattern: '^a' } }, $ref: '#/$defs/name' }],
    ['an unknown keyword that is referred to', { parts: { name: { pattern: '^a' } }, $ref: '#/parts/name' }],
  ] as const)('below %s refuses the value', async ([, schema]) => {
    expect(await messageOf(schema, long)).toMatch(/cannot be checked against a pattern/);
  });

  test.for(['const', 'enum', 'default', 'properties', 'required'])(
    'holds for a property that has the name of the keyword %s',
    async (name) => {
      const schema = { properties: { [name]: { pattern: '^a' } } };
      expect(await messageOf(schema, { [name]: long })).toMatch(/cannot be checked against a pattern/);
    },
  );

  test('says nothing of texts without a pattern, nor of properties and values that look like keywords', async () => {
    const schema = {
      properties: { pattern: { type: 'string' }, uniqueItems: { type: 'array' }, kind: { const: { pattern: 'x' } } },
    };
    const value = { pattern: long, uniqueItems: Array(300).fill(1), kind: { pattern: 'x' }, other: long };
    expect(await messageOf(schema, value)).toBe('ok');
  });
});

describe('unique items', () => {
  const unique = Array.from({ length: 300 }, (_, i) => i);
  const twice = [...unique, 7];
  const schema = (own: object = {}) => ({ properties: { list: { ...own, uniqueItems: true } } });

  test('count beyond 256 items as below: in any order of keys, at any depth', async () => {
    for (const items of [[1], unique]) {
      expect(await messageOf(schema(), { list: items })).toBe('ok');
      expect(await messageOf(schema(), { list: [...items, { a: 1, b: [2] }, { b: [2], a: 1 }] })).not.toBe('ok');
      expect(await messageOf({ not: { uniqueItems: true } }, items)).not.toBe('ok');
      expect(await messageOf({ not: { uniqueItems: true } }, [...items, 1])).toBe('ok');
    }
  });

  test('are asked for only where the schema says so', async () => {
    expect(await messageOf(schema(), { list: [1, 2], other: [1, 1] })).toBe('ok');
    expect(await messageOf(schema(), { list: [1, 2], other: twice })).toBe('ok');
    expect(await messageOf(schema(), { list: [1, 1], other: unique })).not.toBe('ok');
  });

  test('cannot be judged where one long array has duplicates and another has none, and the message says so', async () => {
    expect(await messageOf(schema(), { list: unique, other: twice })).toMatch(
      /cannot be checked for unique items if only some/,
    );
  });
});

describe('the formats that are checked here', () => {
  test.for([
    [
      'url',
      ['https://example.com/a?b#c', 'ftp://x.org', 'http://[::1]:80/', 'https://münchen.de/ü'],
      ['x', 'mailto:a@b.c', 'http://a b', '/a'],
    ],
    [
      'uri',
      ['urn:isbn:1', 'https://example.com', 'mailto:a@b.c'],
      ['/a', 'a b:c', 'https://münchen.de', 'http://a/\\', ' http://a'],
    ],
    ['uri-reference', ['/a/b', '#c', '', 'https://example.com'], ['a b', 'a\\b', '<a>']],
  ] as const)('%s', async ([format, good, bad]) => {
    for (const text of good) expect([text, await messageOf({ format }, text)]).toEqual([text, 'ok']);
    for (const text of bad) {
      expect([text, await messageOf({ format }, text)]).toEqual([text, `String does not match format "${format}".`]);
    }
  });
});

test('a schema with bounds judges as the validator does without them', async () => {
  const { schema, value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom(null, true, 0, 1, 'a', 'bb', ''),
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(fc.constantFrom('a', 'pattern', 'list'), tie('value'), { maxKeys: 3 }),
    ),
    schema: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom(
        { pattern: '^a' },
        { uniqueItems: true },
        { type: 'array' },
        { const: [1, 1] },
        { pattern: 'b', minLength: 2 },
      ),
      fc.record({ not: tie('schema') }),
      fc.record({ allOf: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }), pattern: fc.constant('a|b') }),
      fc.record({ anyOf: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }) }),
      fc.record({ items: tie('schema'), uniqueItems: fc.boolean() }),
      fc.record({ properties: fc.dictionary(fc.constantFrom('a', 'pattern', 'list'), tie('schema'), { maxKeys: 2 }) }),
      fc.record({ if: tie('schema'), else: tie('schema') }),
    ),
  }));
  await fc.assert(
    fc.asyncProperty(schema, value, async (given, said) => {
      const judge = jsonSchemaValidator(given as never);
      const plain = new Validator(structuredClone(given) as never, '2020-12', false);
      expect((await judge(said)).length === 0).toBe(plain.validate(said).valid);
    }),
    { seed: 13, numRuns: 500 * torture },
  );
});
