import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { memoryStore } from 'pawl';
import { reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { answerFormat } from '../../src/model/answer-format.ts';
import { callModel } from '../../src/model/call.ts';
import { vendorOf } from '../../src/model/vendor.ts';
import { readSchema } from '../../src/tool/schema.ts';
import { systemClock } from '../../src/values/clock.ts';
import type { JsonObject } from '../../src/values/json.ts';
import { hostOf } from '../fixtures/host.ts';

type Node = { readonly [key: string]: unknown } & { readonly properties?: { readonly [key: string]: Node } };
const gpt = vendorOf('openai.responses/gpt-5');
const schemaOf = (schema: unknown) => readSchema(schema, 'answer').jsonSchema;
const sent = (schema: unknown, vendor = gpt) => {
  const { responseFormat, providerOptions } = answerFormat(schemaOf(schema), vendor, undefined);
  return { schema: responseFormat.schema as Node, providerOptions };
};

/** Why OpenAI's strict mode would refuse a schema, by its documentation. */
function refusal(node: Node, at = '#'): string | undefined {
  if (at === '#' && (node.type !== 'object' || node.anyOf)) return 'the root is no object';
  const keys = Object.keys(node.properties ?? {});
  if (node.type === 'object' && node.additionalProperties !== false) return `${at} is open`;
  if (!keys.every((key) => (node.required as string[]).includes(key))) return `${at} has optional keys`;
  const inner = [node.properties, node.$defs].flatMap((named) => Object.entries((named ?? {}) as Record<string, Node>));
  const lists = (node.anyOf ?? []) as Node[];
  const all = [...inner, ...lists.entries(), ...(node.items ? [['items', node.items as Node] as const] : [])];
  return all.map(([key, each]) => refusal(each as Node, `${at}/${key}`)).find(Boolean);
}

const deep = z.object({
  city: z.string(),
  tags: z.array(z.object({ name: z.enum(['a', 'b']), weight: z.number().nullable() })),
  place: z.union([z.object({ id: z.string() }), z.null()]),
});
const both = { allOf: ['a', 'b'].map((key) => ({ type: 'object', properties: { [key]: { type: 'string' } } })) };
const tree: JsonObject = {
  type: 'object',
  properties: { name: { type: 'string' }, children: { type: 'array', items: { $ref: '#' } } },
  required: ['name', 'children'],
};

describe('the schema of an answer', () => {
  test.for([
    ['a zod object', z.object({ city: z.string(), n: z.number() })],
    ['a strict zod object', z.strictObject({ city: z.string() })],
    ['a plain JSON Schema', { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }],
    ['an object of objects, in lists and alternatives', deep],
    ['a list', z.array(z.object({ city: z.string() }))],
    ['a text', z.string()],
    ['a choice', z.enum(['yes', 'no'])],
    ['alternatives', { anyOf: [{ type: 'string' }, { type: 'number' }] }],
    ['a tree', tree],
    ['a list of a tree', { type: 'array', items: { $ref: '#/$defs/t' }, $defs: { t: tree } }],
  ] as const)('of %s fits a strict mode: closed at every depth, an object at the root (edges 9)', ([, schema]) => {
    const { schema: root, providerOptions } = sent(schema);
    expect(refusal(root)).toBeUndefined();
    expect(providerOptions).toBeUndefined();
  });

  test.for([
    ['optional keys', z.object({ city: z.string().optional() })],
    ['a record', z.object({ by: z.record(z.string(), z.number()) })],
    ['an object of any keys', { type: 'object', properties: { more: { type: 'object' } }, required: ['more'] }],
    ['a loose object', z.looseObject({ city: z.string() })],
    ['a length', z.object({ city: z.string().min(2) })],
    ['a tuple', z.object({ at: z.tuple([z.number(), z.number()]) })],
    ['an intersection', both],
    ['oneOf', z.object({ of: z.discriminatedUnion('kind', [z.object({ kind: z.literal('a') })]) })],
    ['any value', z.object({ any: z.unknown() })],
    [
      'a format that strict modes do not know',
      { type: 'object', properties: { a: { type: 'string', format: 'uri' } }, required: ['a'] },
    ],
  ] as const)('with %s is sent without strict, to those who would ask for it (edges 9)', ([, schema]) => {
    expect(sent(schema).providerOptions).toEqual({ openai: { strictJsonSchema: false } });
    expect(sent(schema, vendorOf('azure.responses/gpt')).providerOptions).toEqual({
      azure: { strictJsonSchema: false },
    });
    expect(sent(schema, vendorOf('gateway/openai/gpt-5')).providerOptions).toEqual({
      openai: { strictJsonSchema: false },
    });
    expect(sent(schema, vendorOf('srv.chat/m')).providerOptions).toEqual({
      openaiCompatible: { strictJsonSchema: false },
    });
    for (const model of ['anthropic.messages/claude', 'google.generative-ai/gemini', 'mistral.chat/large'])
      expect(sent(schema, vendorOf(model)).providerOptions).toBeUndefined();
  });

  test('leaves a host its own choice of strict, and its other options (edges 9)', () => {
    const optional = schemaOf(z.object({ a: z.string().optional() }));
    const options = (given: object) => answerFormat(optional, gpt, given as never).providerOptions;
    expect(options({ openai: { strictJsonSchema: true } })).toBeUndefined();
    expect(options({ openai: { user: 'u' } })).toEqual({ openai: { user: 'u', strictJsonSchema: false } });
  });

  test('keeps parts of an intersection open, and references to its root in place (edges 9)', () => {
    const { schema } = sent(both);
    expect(JSON.stringify(schema.properties)).not.toContain('additionalProperties');
    const list = sent({ type: 'array', items: { anyOf: [{ type: 'string' }, { $ref: '#' }] } }).schema;
    expect(JSON.stringify(list)).toContain('"$ref":"#/properties/result"');
  });

  test('reaches a real provider package in the form that its server takes (edges 9)', async () => {
    const bodies: { response_format: { json_schema: { strict: boolean; schema: Node } } }[] = [];
    const fetch: typeof globalThis.fetch = async (_, init) => {
      bodies.push(JSON.parse(String(init?.body)));
      return new Response('{}', { status: 400 });
    };
    const options = {
      name: 'srv',
      baseURL: 'http://127.0.0.1/v1',
      apiKey: 'k',
      supportsStructuredOutputs: true,
      fetch,
    };
    const model = createOpenAICompatible(options)('m');
    const request = {
      tools: [],
      signal: new AbortController().signal,
      clock: systemClock,
      firstChunkMs: 9e5,
      chunkGapMs: 9e5,
    };
    for (const schema of [deep, z.object({ a: z.string().optional() })]) {
      const outputSchema = schemaOf(schema);
      await callModel(model, { system: 's', messages: [], ...request, outputSchema }).catch(() => {});
    }
    const [strict, loose] = bodies.map(({ response_format }) => response_format.json_schema);
    expect([strict?.strict, strict && refusal(strict.schema)]).toEqual([true, undefined]);
    expect(loose?.strict).toBe(false);
  });
});

describe('an answer to a schema that is no object', () => {
  test.for([
    [z.array(z.number()), '{"result":[1,2]}', [1, 2]],
    [z.array(z.number()), '[1,2]', [1, 2]],
    [z.string(), '{"result":"Ann"}', 'Ann'],
    [z.string(), 'Ann', 'Ann'],
    [z.string(), '{"a":1}', '{"a":1}'],
    [z.enum(['yes', 'no']), '```json\n{"result":"yes"}\n```', 'yes'],
    [z.union([z.object({ result: z.string() }), z.string()]), '{"result":"x"}', 'x'],
    [z.union([z.object({ result: z.string() }), z.number()]), '{"result":"x"}', { result: 'x' }],
  ] as const)('is read with and without its wrapper: %# (edges 9)', async ([output, text, data]) => {
    const host = hostOf({ agent: { output }, script: [reply(text)], store: memoryStore() });
    expect(await host.run()).toMatchObject({ status: 'ok', data, output: text });
  });
});
