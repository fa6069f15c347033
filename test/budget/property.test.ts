import fc from 'fast-check';
import { type BudgetStore, createBudget } from 'pawl';
import { sqliteBudget } from 'pawl/stores/sqlite';
import { testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { memoryBudget } from '../../src/budget/memory.ts';
import { event, play } from './played.ts';
import { call, freshPath, use } from './stores.ts';

describe('with any amounts reserved, counted, given back and waited for, in any order', () => {
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
