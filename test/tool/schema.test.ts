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
    ['a Standard Schema without a JSON Schema', { '~standard': standard }, /\(of old\) gives no JSON Schema/],
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
    expect(await messageOf(plain, { id: 'x', extra: 1 })).toMatch(/extra/);
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
