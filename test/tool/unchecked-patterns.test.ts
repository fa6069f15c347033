import { once } from 'node:events';
import { defineAgent, defineTool, memoryStore } from 'pawl';
import { callTool, reply, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { readSchema } from '../../src/tool/schema.ts';
import { hostOf, toolOf } from '../fixtures/host.ts';

const url = { type: 'object', properties: { url: { type: 'string', pattern: '^https\\:\\/\\/' } } };
const fits = async (schema: object, value: unknown) => (await readSchema(schema, 'quiet').validate(value)).ok;
const aiSdkTool = (inputSchema: unknown, rest: object = {}) => ({
  description: 'x',
  inputSchema,
  execute: async () => 'ran',
  ...rest,
});

describe('a pattern that does not compile with the flag u', () => {
  test('is one warning at the definition of its tool, and no other at the next definition (edges 12)', async () => {
    const warning = once(process, 'warning');
    const define = () => defineTool({ name: 'fetch_once', description: 'x', input: url, execute: () => 'ran' });
    define();
    const [told] = (await warning) as [Error & { code: string }];
    expect(told).toMatchObject({ name: 'PawlWarning', code: 'PAWL_PATTERN_NOT_CHECKED' });
    expect(told.message).toContain('tool "fetch_once": the pattern "^https\\\\:\\\\/\\\\/" is not checked');
    const more: unknown[] = [];
    const note = (each: unknown) => more.push(each);
    process.on('warning', note);
    define();
    await new Promise((resolve) => setImmediate(resolve));
    process.off('warning', note);
    expect(more).toEqual([]);
  });

  test.for(['^https\\:\\/\\/', '[', '(?i)abc', '^\\p{Foo}$', '(?P<name>x)', '\\Z'])(
    '%j is not checked, and the rest of its schema is (edges 12)',
    async (pattern) => {
      const schema = { type: 'object', properties: { a: { type: 'string', pattern, maxLength: 3 } } };
      expect(await fits(schema, { a: 'abc' })).toBe(true);
      expect(await fits(schema, { a: 'abcd' })).toBe(false);
      expect(await fits(schema, { a: 1 })).toBe(false);
      expect(readSchema(schema, 'quiet').jsonSchema).toEqual(schema);
    },
  );

  test('as a key of patternProperties allows what it might have named, and the other keys are checked (edges 12)', async () => {
    const patternProperties = { '[': { type: 'string' }, '^n': { type: 'number' } };
    const schema = { type: 'object', patternProperties, additionalProperties: false };
    expect(await fits(schema, { '[x': 'y', n: 1 })).toBe(true);
    expect(await fits(schema, { n: 'y' })).toBe(false);
  });

  test('of a property with the name pattern is no pattern (edges 12)', async () => {
    const schema = { type: 'object', properties: { pattern: { type: 'string' } }, required: ['pattern'] };
    expect(await fits(schema, { pattern: '(' })).toBe(true);
    expect(await fits(schema, {})).toBe(false);
  });

  test('does not end a run that rests, after a deploy that brought it (edges 12)', async () => {
    const store = memoryStore();
    const agentWith = (schema: object) =>
      defineAgent({
        id: 'x',
        instructions: 'x',
        tools: { t: { tool: aiSdkTool(schema, { needsApproval: true }), effect: 'once' } } as never,
      });
    const first = hostOf({
      models: { fast: scriptedModel([callTool('t', { url: 'https://x' })]) },
      store,
    });
    await first.executor.run(agentWith({ type: 'object', properties: { url: { type: 'string' } } }), {
      runId: 'q',
      prompt: 'x',
    });
    await first.executor.shutdown();
    const changed = agentWith(url);
    const next = hostOf({ models: { fast: scriptedModel([reply('done')]) }, agents: [changed], store });
    await next.executor.recover();
    expect(await store.outcomes.find('q')).toBeNull();
    await next.executor.shutdown();
  });
});

describe('a tool of the AI SDK', () => {
  test.for([
    ['a schema that is none', aiSdkTool({ type: 'text' }), /input is not a JSON Schema: type/],
    [
      'a schema that throws',
      aiSdkTool({
        [Symbol.for('vercel.ai.schema')]: true,
        get jsonSchema() {
          throw new Error('no schema today');
        },
      }),
      /no schema today/,
    ],
    [
      'a JSON Schema that is a promise',
      aiSdkTool({ [Symbol.for('vercel.ai.schema')]: true, jsonSchema: Promise.resolve({}) }),
      /is a promise/,
    ],
    ['no execute', { description: 'x', inputSchema: {} }, /has no execute/],
  ] as const)('with %s is refused by defineAgent (edges 12)', ([, tool, message]) => {
    const define = (entry: unknown) => () => defineAgent({ id: 'x', instructions: 'x', tools: { t: entry } as never });
    expect(define(tool)).toThrow(message);
    expect(define({ tool, effect: 'read' })).toThrow(message);
  });

  test('with a lazy schema is read by the first run, which then is refused (edges 12)', async () => {
    let reads = 0;
    const lazy = () => {
      reads += 1;
      throw new Error('no schema today');
    };
    const agent = defineAgent({ id: 'x', instructions: 'x', tools: { t: aiSdkTool(lazy) } as never });
    expect(reads).toBe(0);
    expect(await hostOf().executor.run(agent, { prompt: 'x' })).toMatchObject({ status: 'error' });
    expect(reads).toBeGreaterThan(0);
  });

  test('is made once, at the definition: a run reads its schema no more (edges 12)', async () => {
    let reads = 0;
    const schema = {
      [Symbol.for('vercel.ai.schema')]: true,
      get jsonSchema() {
        reads += 1;
        return { type: 'object' };
      },
    };
    const agent = defineAgent({ id: 'x', instructions: 'x', tools: { t: aiSdkTool(schema) } as never });
    const before = reads;
    const { executor } = hostOf({ tools: [toolOf('other')] });
    expect(await executor.run(agent, { prompt: 'x' })).toMatchObject({ status: 'ok' });
    expect(reads).toBe(before);
  });
});
