import { defineTool } from 'pawl';
import { reply } from 'pawl/testing';
import { expect, test } from 'vitest';
import { asked } from './asking.ts';

test.for([
  ['always', true],
  ['by its rule', () => false],
] as const)(
  'a fan-out refuses a tool that needs an approval, %s, before it asks a model (waiting 25)',
  async ([, needsApproval]) => {
    const pay = defineTool({
      name: 'pay',
      description: 'Pays.',
      input: { type: 'object' },
      needsApproval,
      execute: async () => 'paid',
    });
    const call = asked({ models: { a: [reply('x')], b: [reply('y')] }, tools: [pay as never] });
    await expect(async () => call.start()).rejects.toThrow(
      new TypeError('tools[0]: pay needs an approval, and the runs of a fan-out wait for no person'),
    );
    expect(call.calls()).toEqual([0, 0]);
  },
);
