import fc from 'fast-check';
import { type BudgetStore, createBudget } from 'pawl';
import { sqliteBudget } from 'pawl/stores/sqlite';
import { testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { memoryBudget } from '../../src/budget/memory.ts';
import { ModelBooks } from './model.ts';
import { call, freshPath, use } from './stores.ts';

const limits = { limit: 100, windowMs: 10_000, reservationMs: 3_000 };
const expected = { outputTokens: 0, seconds: 0 };

const caller = fc.constantFrom('ada', 'grace');
const turn = fc.record({ caller, run: fc.constantFrom('r1', 'r2', 'r:3'), turn: fc.integer({ min: 1, max: 3 }) });
const tokens = fc.integer({ min: 0, max: 60 });

const event = fc.oneof(
  { weight: 4, arbitrary: fc.record({ type: fc.constant('reserve' as const), turn, tokens }) },
  { weight: 4, arbitrary: fc.record({ type: fc.constant('commit' as const), turn, tokens }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('refund' as const), turn }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 6_000 }) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('restore' as const), turn, tokens }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('crash' as const) }) },
);
type Event = typeof event extends fc.Arbitrary<infer T> ? T : never;

/** Both do the same, and must answer the same. A crash is one of the process: `reopen` gives its successor's books. */
async function play(
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

describe('whatever is reserved, counted, given back and waited for, in whatever order', () => {
  test('the books in memory say what adding it all up says (supervision 4)', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(event, { maxLength: 40 }), async (events) => {
        // What is known of runs is forgotten with the window here, so no restore comes after that.
        for (const without of ['restore', 'wait']) {
          const some = events.filter(({ type }) => type !== without);
          await play(some, memoryBudget(), async (store) => store);
        }
      }),
    );
  });

  test('the books in SQLite say it too, whenever the process dies (supervision 4)', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(event, { maxLength: 30 }), async (events) => {
        const path = freshPath();
        const last = await play(events, sqliteBudget({ path }), async (store) => {
          await (store as ReturnType<typeof sqliteBudget>).close();
          return sqliteBudget({ path });
        });
        await (last as ReturnType<typeof sqliteBudget>).close();
      }),
      { numRuns: 60 },
    );
  });
});

describe('a run of five turns that is killed anywhere, any number of times', () => {
  const uses = [3, 5, 7, 11, 13];
  /** Where the process dies: before a call, after it was reserved, after it was counted, or after the step was recorded. */
  const kill = fc.record({ turn: fc.integer({ min: 0, max: 4 }), at: fc.constantFrom('reserve', 'call', 'commit') });

  async function run(kills: readonly { turn: number; at: string }[], reopen: (store: BudgetStore) => BudgetStore) {
    const clock = testClock(1_000_000);
    let store = reopen(memoryBudget());
    let budget = createBudget({ tokens: 1_000, clock, store });
    let recorded = 0;
    let spent = { tokens: 0, usd: 0, seconds: 0 };
    const left = [...kills];
    while (recorded < uses.length) {
      const isKilled = (at: string) => {
        const index = left.findIndex((each) => each.turn === recorded && each.at === at);
        return index !== -1 && left.splice(index, 1).length === 1;
      };
      const die = async () => {
        store = reopen(store);
        budget = createBudget({ tokens: 1_000, clock, store });
        await budget.restore('ada', { runId: 'run', spend: spent });
      };
      if (isKilled('reserve')) {
        await die();
        continue;
      }
      const reservation = await budget.reserve('ada', call('run', recorded + 1));
      if (isKilled('call')) {
        await die();
        continue;
      }
      const spend = await budget.commit(reservation, use(uses[recorded] ?? 0));
      if (isKilled('commit')) {
        await die();
        continue;
      }
      spent = { tokens: spent.tokens + spend.tokens, usd: 0, seconds: 0 };
      recorded += 1;
    }
    await clock.advance(900_000);
    return { recorded: spent.tokens, standing: await budget.standing('ada') };
  }

  test.for([
    ['in SQLite, which outlives it', () => sqliteBudget({ path: freshPath() }), (store: BudgetStore) => store],
    ['in memory, which dies with it', memoryBudget, () => memoryBudget()],
  ] as const)('has spent what an uninterrupted one has, with books %s (supervision 4)', async ([, first, next]) => {
    await fc.assert(
      fc.asyncProperty(fc.array(kill, { maxLength: 8 }), async (kills) => {
        let store: BudgetStore | undefined;
        const result = await run(kills, (last) => {
          store = store === undefined ? first() : next(last);
          return store;
        });
        expect(result).toMatchObject({
          recorded: 39,
          standing: { spent: { tokens: 39, usd: 0, seconds: 0 }, reserved: { tokens: 0, usd: 0, seconds: 0 } },
        });
        if (store && 'close' in store) await (store as ReturnType<typeof sqliteBudget>).close();
      }),
      { numRuns: 50 },
    );
  });
});
