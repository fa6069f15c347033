import { jsonSchema, lazySchema, zodSchema } from '@ai-sdk/provider-utils';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { readSchema } from '../../src/tool/schema.ts';

const plain = { type: 'object', properties: { id: { type: 'string' } }, required: ['id'], additionalProperties: false };
const good = { id: 'x' };

describe('a schema is taken in', () => {
  test.for([
    ['a Standard Schema with its JSON Schema', z.object({ id: z.string() })],
    ['a schema of the AI SDK without a check of its own', jsonSchema(plain as never)],
    ['a zod schema in the AI SDK', zodSchema(z.object({ id: z.string() }))],
    ['a lazy schema of the AI SDK', lazySchema(() => jsonSchema(plain as never))],
    ['a plain JSON Schema', plain],
  ] as const)('as %s: it gives a JSON Schema and a check', async ([, schema]) => {
    const input = readSchema(schema, 'probe');
    expect(input.jsonSchema).toMatchObject({
      type: 'object',
      properties: { id: { type: 'string' } },
      required: ['id'],
    });
    expect(Object.isFrozen(input.jsonSchema)).toBe(true);
    expect(await input.validate(good)).toEqual({ ok: true, value: good });
    expect(await input.validate({ id: 1 })).toMatchObject({ ok: false, message: expect.stringMatching(/^id: /) });
  });

  test('the JSON Schema of a Standard Schema is that of its input, in draft 2020-12', () => {
    const { jsonSchema } = readSchema(z.object({ n: z.coerce.number().default(1) }), 'probe');
    expect(jsonSchema.$schema).toBe('https://json-schema.org/draft/2020-12/schema');
    expect(jsonSchema.required).toBeUndefined();
  });

  test("the AI SDK's own check wins over its JSON Schema", async () => {
    const validate = (value: unknown) => ({ success: true as const, value: { made: value } });
    const input = readSchema(jsonSchema(plain as never, { validate }), 'probe');
    expect(await input.validate(1)).toEqual({ ok: true, value: { made: 1 } });
    const refusing = readSchema(
      jsonSchema({}, { validate: () => ({ success: false, error: new Error('never') }) }),
      'probe',
    );
    expect(await refusing.validate(1)).toEqual({ ok: false, message: 'never' });
  });

  test('synchronous schemas are checked synchronously, asynchronous ones are waited for', async () => {
    expect(readSchema(z.object({ id: z.string() }), 'probe').validate(good)).not.toBeInstanceOf(Promise);
    expect(readSchema(plain, 'probe').validate(good)).not.toBeInstanceOf(Promise);
    const slow = readSchema(z.object({ id: z.string().refine(async (id) => id === 'x', 'unknown id') }), 'probe');
    expect(await slow.validate({ id: 'y' })).toEqual({ ok: false, message: 'id: unknown id' });
    expect(await slow.validate(good)).toEqual({ ok: true, value: good });
  });
});

describe('a schema is refused, with the name of the tool', () => {
  const standard = { version: 1, vendor: 'old', validate: (value: unknown) => ({ value }) };
  test.for([
    ['a Standard Schema without a JSON Schema', { '~standard': standard }, /\(of old\) has no JSON Schema/],
    ['a Standard Schema that cannot be converted', z.object({ when: z.date() }), /has no JSON Schema: /],
    ['a shape of schemas', { id: z.string() }, /is not a JSON Schema: input\.id/],
    ['a JSON Schema that is a promise', jsonSchema(async () => plain as never), /is a promise/],
    ['nothing', undefined, /must be a Standard Schema/],
    ['a string', 'object', /must be a Standard Schema/],
    ['an array', [plain], /must be a Standard Schema/],
  ] as const)('%s', ([, schema, message]) => {
    const read = () => readSchema(schema, 'probe');
    expect(read).toThrow(TypeError);
    expect(read).toThrow(/tool "probe"/);
    expect(read).toThrow(message);
  });
});

describe('a JSON Schema with a keyword of another kind is refused, with the name of the tool and the path', () => {
  const weird = [
    [{ enum: 5 }, 'enum must be an array, not the number 5'],
    [{ type: 7 }, 'type must be one or more of string, number, integer, boolean, object, array, null'],
    [{ type: [] }, 'type must be one or more of'],
    [{ type: 'any' }, 'type must be one or more of'],
    [{ properties: [] }, 'properties must be an object of schemas, not an array'],
    [{ properties: { a: { required: true } } }, 'properties.a.required must be an array of strings, not true'],
    [{ properties: { a: 'string' } }, 'properties must be an object of schemas'],
    [{ items: [{ type: 'array', items: 5 }] }, 'items[0].items must be a schema or a list of schemas'],
    [{ anyOf: {} }, 'anyOf must be a list of schemas, not an object'],
    [{ oneOf: [{ not: null }] }, 'oneOf[0].not must be a schema, not null'],
    [{ $defs: { x: { maxLength: -1 } } }, '$defs.x.maxLength must be a whole number of 0 or more'],
    [{ minimum: '3' }, 'minimum must be a number, not a string'],
    [{ multipleOf: 0 }, 'multipleOf must be a number above 0'],
    [{ uniqueItems: 'yes' }, 'uniqueItems must be true or false, not a string'],
    [{ additionalProperties: null }, 'additionalProperties must be a schema, not null'],
    [{ pattern: {} }, 'pattern must be a string, not an object'],
    [{ $ref: 5 }, '$ref must be a string, not the number 5'],
    [{ $id: {} }, '$id must be a string, not an object'],
    [{ dependentRequired: { a: 'b' } }, 'dependentRequired must be an object of arrays'],
  ] as const;

  test.for(weird)('%j', ([schema, message]) => {
    const read = () => readSchema(schema, 'probe');
    expect(read).toThrow(TypeError);
    expect(read).toThrow(`tool "probe": the input is not a JSON Schema: ${message}`);
    expect(() => readSchema(jsonSchema(schema as never), 'probe')).toThrow(message);
  });

  test.for([
    { $id: 'pawl:too-long' },
    { properties: { a: { $id: 'PAWL:too-long', type: 'string' } } },
    { $defs: { a: { $id: ' pawl:mixed' } } },
    { allOf: [{ $anchor: 'pawl:too-long' }] },
    { properties: { a: { $ref: 'pawl:\ttoo-long' } } },
    { 'x-more': { deep: [{ id: 'pawl:too-long' }] } },
    { examples: { $id: 'pawl:too-long' } },
  ])('%j names nothing that lifts the bound of a pattern', (schema) => {
    expect(() => readSchema({ type: 'object', ...schema }, 'probe')).toThrow(
      /^tool "probe": the input is not a JSON Schema: .+ must not begin with pawl:$/,
    );
  });

  test('keywords that are not known, names of properties and data are not taken for keywords', async () => {
    const schema = {
      type: 'object',
      'x-form': { type: 'banana', enum: 5, items: 7 },
      discriminator: { propertyName: 'type', mapping: { a: '#/a' } },
      properties: { type: { const: { type: 7 } }, enum: {}, pattern: true, constructor: { default: { enum: 5 } } },
      required: ['type'],
      dependencies: { a: ['b'], c: { minProperties: 2 } },
      exclusiveMinimum: true,
    };
    const read = readSchema(schema, 'probe');
    expect(await read.validate({ type: { type: 7 } })).toMatchObject({ ok: true });
  });
});

describe('a plain JSON Schema', () => {
  const messageOf = async (schema: object, value: unknown) => {
    const result = await readSchema(schema, 'probe').validate(value);
    return result.ok ? 'ok' : result.message;
  };

  test('says where and what, without the wrapping levels', async () => {
    const items = { type: 'array', items: plain, minItems: 1 };
    const schema = { type: 'object', properties: { list: items, n: { type: 'integer' } }, required: ['n'] };
    expect(await messageOf(schema, { list: [good, { id: 1 }], n: 1 })).toMatch(/^list\[1\]\.id: [^;]*type[^;]*$/);
    expect(await messageOf(schema, {})).toMatch(/^[^;]*"n"[^;]*$/);
    expect(await messageOf(schema, { n: 'x', list: [] })).toMatch(/list: .*; n: |n: .*; list: /);
  });

  test('refuses what it does not allow, and says which property', async () => {
    expect(await messageOf(plain, { id: 'x', extra: 1 })).toBe('extra: unknown field');
    expect(await messageOf({ prefixItems: [{}], items: false }, [1, 2])).toContain('no value is allowed here');
    expect(await messageOf({ enum: ['a', 'b'] }, 'c')).toMatch(/enum|"a"/);
  });

  test('follows references within itself', async () => {
    const schema = { $defs: { id: { type: 'string' } }, type: 'object', properties: { id: { $ref: '#/$defs/id' } } };
    expect(await messageOf(schema, { id: 'x' })).toBe('ok');
    expect(await messageOf(schema, { id: 1 })).toMatch(/^id: /);
  });

  test('of draft 7 is read as such: what stands beside a $ref does not count', async () => {
    const schema = { definitions: { id: { type: 'string' } }, $ref: '#/definitions/id', minLength: 5 };
    const draft7 = { $schema: 'http://json-schema.org/draft-07/schema#', ...schema };
    expect(await messageOf(draft7, 'x')).toBe('ok');
    expect(await messageOf(schema, 'x')).not.toBe('ok');
  });

  test('that is frozen can be used, and is not changed by its use', async () => {
    const schema = Object.freeze(structuredClone(plain));
    expect(await messageOf(schema, good)).toBe('ok');
    expect(schema).toEqual(plain);
  });

  test('a message stays short, however much is wrong', async () => {
    const schema = { type: 'array', items: { type: 'string', enum: ['x'.repeat(300)] } };
    const message = await messageOf(
      schema,
      Array.from({ length: 500 }, (_, i) => i),
    );
    expect(message.length).toBeLessThanOrEqual(1_000);
  });
});
