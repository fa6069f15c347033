// A refund desk: an agent that looks orders up and pays money back. desk.test.ts shows how it is tested,
// and play.ts plays it through in Studio.
import { type Agent, defineAgent, defineTool } from 'pawl';

/** The service that moves the money. */
export interface Payments {
  /** @param reference is printed on the customer's statement */
  refund(order: string, reference: string): Promise<string>;
}

const prices: { readonly [order: string]: number } = { A1: 1_999, B2: 450, C3: 12_000 };
const order = { type: 'object', properties: { order: { type: 'string' } }, required: ['order'] } as const;

/** The desk. Money moves in one tool only, and that one says `once`. */
export function refundDesk(payments: Payments): Agent {
  const lookUp = defineTool({
    name: 'look_up',
    description: 'What an order cost, in cents.',
    effect: 'read',
    input: order,
    execute: async ({ order: id }: { order: string }) => {
      const cents = prices[id];
      if (cents === undefined) throw new Error(`there is no order ${id}`);
      return { order: id, cents };
    },
  });
  const refund = defineTool({
    name: 'refund',
    description: 'Pays an order back, in full.',
    effect: 'once', // never repeated, not even after a crash
    concurrency: 1, // one after the other: at most one refund is ever in doubt
    input: order,
    approval: { prompt: ({ order: id }) => `Refund order ${id}?`, editable: true }, // where the host's policy asks: play.ts
    execute: async ({ order: id }: { order: string }, { idempotencyKey }) => {
      if (!Object.hasOwn(prices, id)) throw new Error(`there is no order ${id}`);
      return payments.refund(id, idempotencyKey);
    },
  });
  return defineAgent({ id: 'refund-desk', instructions: 'Refund what is asked for.', tools: [lookUp, refund] });
}
