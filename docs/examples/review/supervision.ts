import { createBudget, createCritic, createEscalator } from 'pawl';
import { sqliteBudget } from 'pawl/stores/sqlite';
import { outputRoot } from './run-folder.ts';

/** US dollars per million tokens. The planner costs nothing; its price is made up, so that there is something to count. */
const prices = { 'pawl-example/planner': { inputPerMillion: 1, outputPerMillion: 5 } };
const model = process.env.PAWL_MODEL || 'pawl-example/planner';

/** What all reviews of a week may use, sub-agents included, over all processes. */
export const budget = createBudget({
  tokens: 5_000_000,
  seconds: 7_200,
  prices,
  // A limit in US dollars can be kept for models with a price only: add yours above.
  ...(Object.hasOwn(prices, model) ? { usd: 10 } : {}),
  store: sqliteBudget({ path: `${outputRoot()}/budget.db` }),
});

/** Silence gets a nudge, and at the third alarm an end; who turns in circles is ended, and who gets on has more steps. */
export const critic = createCritic({
  escalator: createEscalator({ idleNudges: 2, killAfterAlarms: 3, noProgress: { steps: 3 }, raiseStepsBy: 10 }),
  idleMs: 60_000,
});
