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

/** Pays money back. */
type Pay = (order: string, cents: number, key: string) => Promise<void>;

const pay: Pay = async (order, cents, key) => {
  // Call your payment provider here, with the key: it then knows a repeated call.
  console.log(`paying ${cents} cents for order ${order} (${key.slice(0, 8)})`);
};

const refundWith = (pay: Pay) =>
  defineTool({
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
      await pay(order, cents, idempotencyKey);
      return `paid ${cents} cents`;
    },
  });

export const models = { fast: model };

/** Tests give a double of the payment: they let the agent run hundreds of times. */
export const deskWith = (pay: Pay) =>
  defineAgent({
    id: 'refund-desk',
    model: 'fast',
    instructions: 'You refund orders. Look an order up before you refund it, and refund what was paid.',
    tools: [lookUpOrder, refundWith(pay)],
  });

export default deskWith(pay);
