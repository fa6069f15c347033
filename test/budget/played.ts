import fc from 'fast-check';
import { type BudgetStore, createBudget } from 'pawl';
import { testClock } from 'pawl/testing';
import { expect } from 'vitest';
import { ModelBooks } from './model.ts';
import { call, use } from './stores.ts';

const limits = { limit: 100, windowMs: 10_000, reservationMs: 3_000 };
const expected = { outputTokens: 0, seconds: 0 };

const caller = fc.constantFrom('ada', 'grace');
const turn = fc.record({ caller, run: fc.constantFrom('r1', 'r2', 'r:3'), turn: fc.integer({ min: 1, max: 3 }) });
const tokens = fc.integer({ min: 0, max: 60 });

/** What may happen to a budget. */
export const event = fc.oneof(
  { weight: 4, arbitrary: fc.record({ type: fc.constant('reserve' as const), turn, tokens }) },
  { weight: 4, arbitrary: fc.record({ type: fc.constant('commit' as const), turn, tokens }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('refund' as const), turn }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 6_000 }) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('restore' as const), turn, tokens }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('crash' as const) }) },
);
type Event = typeof event extends fc.Arbitrary<infer T> ? T : never;

/** Both do the same, and must answer the same. A crash is one of the process: `reopen` gives its successor's books. */
export async function play(
  events: readonly Event[],
  store: BudgetStore,
  reopen: (store: BudgetStore) => Promise<BudgetStore>,
) {
  const clock = testClock(1_000_000);
  const model = new ModelBooks(limits);
  const { limit: tokens, ...times } = limits;
  const open = (books: BudgetStore) => createBudget({ tokens, ...times, expected, clock, store: books });
  let books = store;
  let budget = open(books);
  for (const event of events) {
    if (event.type === 'wait') {
      await clock.advance(event.ms);
      model.now += event.ms;
    } else if (event.type === 'crash') {
      books = await reopen(books);
      budget = open(books);
    } else {
      const { run, turn: n, caller: callerId } = event.turn;
      const wish = call(run, n, { inputTokens: 'tokens' in event ? event.tokens : 0 });
      const reservation = { key: wish.key, callerId, modelTier: wish.modelTier, model: wish.model };
      if (event.type === 'refund') {
        await budget.refund(reservation);
        model.refund(callerId, wish.key);
      } else if (event.type === 'restore') {
        await budget.restore(callerId, { runId: run, spend: { tokens: event.tokens, usd: 0, seconds: 0 } });
        model.restore(callerId, run, event.tokens);
      } else if (event.type === 'commit') {
        expect((await budget.commit(reservation, use(event.tokens))).tokens).toBe(event.tokens);
        model.commit(callerId, wish.key, event.tokens);
      } else {
        const isGranted = await budget.reserve(callerId, wish).then(
          () => true,
          () => false,
        );
        expect(isGranted).toBe(model.reserve(callerId, wish.key, event.tokens));
      }
    }
    for (const name of ['ada', 'grace']) {
      const { spent, reserved } = await budget.standing(name);
      expect([spent.tokens, reserved.tokens]).toEqual([model.spent(name), model.reserved(name)]);
      const isUsedUp = await budget.check(name).then(
        () => false,
        () => true,
      );
      expect(isUsedUp).toBe(model.isUsedUp(name));
    }
  }
  return books;
}
