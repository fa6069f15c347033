// Importing it starts nothing: commands such as `pawl work` read it too.
import { defineAgent, defineTool } from 'pawl';
import { model } from './model.ts';

const lookUpOrder = defineTool({
  name: 'look_up_order',
  description: 'Looks an order up by its number.',
  effect: 'read', // may be made again after a crash
  input: { type: 'object', properties: { order: { type: 'string' } }, required: ['order'] },
  execute: async ({ order }: { order: string }) => ({ order, cents: 4_200, paidBy: 'card' }),
});

const refund = defineTool({
  name: 'refund',
  description: 'Pays an order back.',
  effect: 'once', // never made again, not even after a crash
  input: {
    type: 'object',
    properties: { order: { type: 'string' }, cents: { type: 'integer' } },
    required: ['order', 'cents'],
  },
  needsApproval: true, // a person decides
  approval: {
    prompt: ({ order, cents }: { order: string; cents: number }) =>
      `Refund ${(cents / 100).toFixed(2)} EUR for order ${order}?`,
  },
  execute: async ({ order, cents }: { order: string; cents: number }, { idempotencyKey }) => {
    // Call your payment provider here, with the key: it then knows a repeated call.
    console.log(`paying ${cents} cents for order ${order} (${idempotencyKey.slice(0, 8)})`);
    return `paid ${cents} cents`;
  },
});

export const models = { fast: model };

export default defineAgent({
  id: 'refund-desk',
  model: 'fast',
  instructions: 'You refund orders. Look an order up before you refund it, and refund what was paid.',
  tools: [lookUpOrder, refund],
});
