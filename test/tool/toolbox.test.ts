import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineTool } from '../../src/tool/define-tool.ts';
import { toolboxOf } from '../../src/tool/toolbox.ts';
import { UnknownToolError } from '../../src/values/errors.ts';

const named = (name: string, effect: 'read' | 'once' = 'once') =>
  defineTool({ name, description: `The ${name}.`, input: z.object({ id: z.string() }), effect, execute: () => name });
const [lookup, pay] = [named('lookup', 'read'), named('pay')];

describe('a toolbox', () => {
  test('holds tools, and registered ones by name, in the order in which they were given', () => {
    const { tools, definitions, facts } = toolboxOf([pay, 'lookup'], [lookup]);
    expect([...tools]).toEqual([
      ['pay', pay],
      ['lookup', lookup],
    ]);
    expect(facts).toEqual({ pay: { effect: 'once' }, lookup: { effect: 'read' } });
    expect(definitions).toEqual([
      { type: 'function', name: 'pay', description: 'The pay.', inputSchema: pay.input.jsonSchema },
      { type: 'function', name: 'lookup', description: 'The lookup.', inputSchema: lookup.input.jsonSchema },
    ]);
  });

  test.for([[undefined], [[]], [{}]] as const)(
    'of %j is empty: registered tools are not given unasked',
    ([entries]) => {
      const { tools, definitions } = toolboxOf(entries, [lookup]);
      expect([tools.size, definitions.length]).toEqual([0, 0]);
    },
  );

  test('shows a model the very same definition in each run', () => {
    expect(toolboxOf([pay], []).definitions[0]).toBe(toolboxOf(['pay'], [pay]).definitions[0]);
  });

  test('a tool named __proto__ has its facts like any other', () => {
    const { facts } = toolboxOf([named('__proto__', 'read')], []);
    expect(Object.hasOwn(facts, '__proto__')).toBe(true);
  });

  test('a name that is not registered is an UnknownToolError which lists those that are', () => {
    expect(() => toolboxOf(['nope'], [lookup, pay])).toThrow(UnknownToolError);
    expect(() => toolboxOf(['nope'], [lookup, pay])).toThrow(
      'no tool named "nope" is registered; registered: lookup, pay',
    );
    expect(() => toolboxOf(['nope'], [])).toThrow(/none is/);
  });

  test('two tools of one name are a TypeError', () => {
    expect(() => toolboxOf([pay, named('pay')], [])).toThrow(new TypeError('there are two tools named "pay"'));
    expect(() => toolboxOf([pay, 'pay'], [pay])).toThrow(TypeError);
  });

  test.for(['', 'a b', 'x'.repeat(129), 'a\n::error::b'])(
    'a tool made by hand whose name cannot be called is a TypeError: %j',
    (name) => {
      expect(() => toolboxOf([{ ...pay, name }], [])).toThrow(TypeError);
      expect(() => toolboxOf([{ ...pay, name }], [])).toThrow(/^"[\x20-\x7e]{0,80}" is not a tool name/);
    },
  );

  test.for([[{ description: 'no name', execute() {} }], [null], [7], [{ name: 'x', execute() {} }]])(
    'an entry that is no tool is a TypeError: %j',
    (entries) => {
      expect(() => toolboxOf(entries as never, [])).toThrow(/tools\[0\] is neither/);
    },
  );

  test('a record may hold tools of ours under their own names', () => {
    expect(toolboxOf({ pay } as never, []).tools.get('pay')).toBe(pay);
    expect(() => toolboxOf({ other: pay } as never, [])).toThrow(/tools.other is a tool named "pay"/);
    expect(() => toolboxOf({ other: 7 } as never, [])).toThrow(/tools.other is not a tool/);
  });
});
