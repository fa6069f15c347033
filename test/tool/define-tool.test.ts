import { jsonSchema } from '@ai-sdk/provider-utils';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { defineTool, type Tool } from '../../src/tool/define-tool.ts';
import type { JsonObject } from '../../src/values/json.ts';

const definition = {
  name: 'lookup',
  description: 'Looks up.',
  input: z.object({ id: z.string() }),
  execute: () => 'x',
};
const define = (extra: object) => () => defineTool({ ...definition, ...extra } as typeof definition);

describe('a tool', () => {
  test('has once-only effects unless it says otherwise', () => {
    expect(defineTool(definition).effect).toBe('once');
    expect(defineTool({ ...definition, effect: 'read' }).effect).toBe('read');
  });

  test('is frozen, keeps its limits, and has none that it was not given', () => {
    const tool = defineTool({ ...definition, timeoutMs: 5, concurrency: 2, needsApproval: false });
    expect(tool).toMatchObject({ name: 'lookup', description: 'Looks up.', timeoutMs: 5, concurrency: 2 });
    expect(Object.isFrozen(tool)).toBe(true);
    expect(Object.keys(defineTool(definition)).sort()).toEqual(['description', 'effect', 'execute', 'input', 'name']);
  });

  test('keeps the `this` of its definition', async () => {
    const tool = defineTool({
      ...definition,
      execute() {
        return this.name;
      },
    });
    expect(tool.execute({ id: '1' }, {} as never)).toBe('lookup');
  });

  test.for(['', 'a b', 'x'.repeat(65), 'é', 'a.b', 7, undefined])('cannot be named %j', (name) => {
    expect(define({ name })).toThrow(TypeError);
  });

  test.for(['a', 'x'.repeat(64), '__proto__', 'A-b_9'])('can be named %j', (name) => {
    expect(define({ name })().name).toBe(name);
  });

  test.for([
    ['an unknown effect', { effect: 'write' }, /effect must be .*"write"/],
    ['no description', { description: undefined }, /description/],
    ['no execute', { execute: 'x' }, /execute must be a function/],
    ['half a call', { concurrency: 1.5 }, /concurrency must be a whole number above 0, not 1.5/],
    ['a time limit of 0', { timeoutMs: 0 }, /timeoutMs must be a number above 0/],
    ['a time limit that is text', { timeoutMs: '5' }, /timeoutMs/],
    ['a concurrency of NaN', { concurrency: Number.NaN }, /concurrency/],
    ['no input schema', { input: undefined }, /tool "lookup": input must be/],
  ] as const)('with %s is a TypeError', ([, extra, message]) => {
    expect(define(extra)).toThrow(TypeError);
    expect(define(extra)).toThrow(message);
  });

  test.for([
    ['a needsApproval that is text', { needsApproval: 'yes' }, /needsApproval must be true, false or a function/],
    ['a needsApproval of null', { needsApproval: null }, /needsApproval must be true, false or a function/],
    ['an approval that is no object', { approval: true }, /approval must be an object/],
    ['an unknown rule', { approval: { quorums: 2 } }, /approval.quorum/],
    ['a quorum of 0', { approval: { quorum: 0 } }, /approval.quorum must be a whole number from 1 to 100/],
    ['a quorum of 101', { approval: { quorum: 101 } }, /approval.quorum must be a whole number from 1 to 100/],
    ['a time of 0', { approval: { expiresInMs: 0 } }, /approval.expiresInMs must be a number above 0/],
    ['a time of NaN', { approval: { expiresInMs: Number.NaN } }, /approval.expiresInMs must be a number above 0/],
    ['an unknown onExpiry', { approval: { onExpiry: 'run' } }, /approval.onExpiry/],
    ['approvers that are a list', { approval: { approvers: ['ada'] } }, /approval.approvers must be a function/],
    ['an editable that is text', { approval: { editable: 'no' } }, /approval.editable must be true or false/],
  ] as const)('with %s is a TypeError', ([, extra, message]) => {
    expect(define(extra)).toThrow(TypeError);
    expect(define(extra)).toThrow(message);
  });
});

describe('the type of the input', () => {
  const base = { name: 't', description: '' };
  test('comes from a Standard Schema, after its conversions', () => {
    defineTool({
      ...base,
      input: z.object({ n: z.coerce.number().default(1) }),
      execute: (input) => expectTypeOf(input).toEqualTypeOf<{ n: number }>(),
    });
  });
  test("comes from an AI SDK schema's type parameter", () => {
    defineTool({
      ...base,
      input: jsonSchema<{ id: string }>({ type: 'object' }),
      execute: (input) => expectTypeOf(input).toEqualTypeOf<{ id: string }>(),
    });
  });
  test('is any JSON object for a plain JSON Schema', () => {
    defineTool({
      ...base,
      input: { type: 'object' },
      execute: (input) => expectTypeOf(input).toEqualTypeOf<JsonObject>(),
    });
  });
  test('fits into a list of tools', () => {
    const tools: readonly Tool[] = [
      defineTool(definition),
      defineTool({ ...base, input: { type: 'object' }, execute: async () => 1 }),
    ];
    expect(tools).toHaveLength(2);
  });
});
