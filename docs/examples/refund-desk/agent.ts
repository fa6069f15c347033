import { defineAgent, defineTool } from 'pawl';
import type { Bank } from './bank.ts';

/** Who may decide, and up to which sum, in cents. */
export type Team = { readonly [person: string]: number };

/** Smaller refunds need no person. */
const SMALL_CENTS = 2_000;

const DAY_MS = 86_400_000;

/**
 * An agent that refunds orders. A refund of more than 20 € needs two persons of the team, and each must be allowed to decide
 * about its sum. Money moves once for each approved call: `once` calls are never repeated.
 */
export function refundDesk(bank: Bank, team: Team) {
  const refund = defineTool({
    name: 'refund',
    description: 'Refunds an order, in cents.',
    input: {
      type: 'object',
      properties: { order: { type: 'string' }, cents: { type: 'integer', minimum: 1 } },
      required: ['order', 'cents'],
      additionalProperties: false,
    },
    effect: 'once',
    needsApproval: ({ cents }) => Number(cents) > SMALL_CENTS,
    approval: {
      prompt: ({ order, cents }) => `Refund ${(Number(cents) / 100).toFixed(2)} € for order ${order}?`,
      quorum: 2,
      expiresInMs: 3 * DAY_MS,
      approvers: ({ by, input }) => {
        const most = Object.hasOwn(team, by.id) ? team[by.id] : undefined;
        if (most === undefined) return { refused: `${by.id} is not of the team` };
        const { cents } = input as { readonly cents: number };
        return cents <= most || { refused: `${by.id} decides about ${most / 100} € at most` };
      },
    },
    execute: ({ order, cents }, { idempotencyKey }) => {
      bank.transfer({ reference: idempotencyKey, order: String(order), cents: Number(cents) });
      return `refunded ${cents} cents for ${order}`;
    },
  });
  return defineAgent({ id: 'refund-desk', instructions: 'You refund orders of our shop.', tools: [refund] });
}
