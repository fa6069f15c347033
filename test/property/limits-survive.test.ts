import fc from 'fast-check';
import type { RunOutput } from 'pawl';
import { expect, test } from 'vitest';
import { seed, torture } from '../crash/random.ts';
import { mortalProcess } from '../fixtures/mortal-process.ts';
import { budgetOf, type Life, live, type Plan, plans } from './limited-lives.ts';

const PLANS = torture > 1 ? 400 : 14;
/** Each plan dies after each third write, counted from another one. */
const STRIDE = torture > 1 ? 1 : 3;

/** What must not depend on how often the run was interrupted. */
function limitsOf({ result, last }: Life) {
  // An answer that is given again says so.
  const { messages, kept: _, endedAt: __, ...rest } = result ?? { messages: [] };
  const { raisedSteps = 0, counters, critic, usage, spend, iteration } = last ?? {};
  return {
    result: rest,
    record: { raisedSteps, counters, critic, usage, spend, iteration },
    messages: messages.length,
  };
}

/** The run, in one process for each write after which one dies, and a last one. */
async function interrupted(plan: Plan, deaths: readonly number[]) {
  const budget = budgetOf(plan);
  let left: Parameters<typeof mortalProcess>[0];
  let last: Life['last'];
  let died = 0;
  for (const diesAfter of [...deaths, Number.POSITIVE_INFINITY]) {
    const process = mortalProcess(left, diesAfter);
    const life = await live(plan, process, budget);
    // A process that only delivers an outcome decides nothing any more.
    if (!last?.outcome) last = life.last ?? last;
    if (life.result) return { life: { result: life.result, last }, budget, died, writes: process.writes };
    left = await process.left();
    died += 1;
    // A store of four methods forgets a run with its record: whoever starts it again begins a new one.
    const { outcomeId: _, ...told } = last?.outcome ?? { outcomeId: '' };
    if (plan.isPlain && left.records.length === 0 && last?.outcome) {
      return { life: { result: { ...(told as RunOutput), messages: [] }, last }, budget, died, writes: process.writes };
    }
  }
  throw new Error('the last process cannot die');
}

test(`usage, spend, ceilings, counters and grants of a run that was killed after any write are those of one that was not, in ${PLANS} random plans (seed ${seed}) (executor 13, supervision 3, 4)`, {
  timeout: 180_000 * torture,
}, async () => {
  const seen = { deaths: 0, raised: 0, ok: 0, STEP_LIMIT: 0, TOOL_LOOP: 0, BUDGET_EXCEEDED: 0, lost: 0 };
  let plansMet = 0;
  await fc.assert(
    fc.asyncProperty(plans, fc.array(fc.integer({ min: 1, max: 12 }), { maxLength: 1 }), async (plan, more) => {
      const whole = await interrupted(plan, []);
      const expected = limitsOf(whole.life);
      const code = whole.life.result.error?.code ?? 'ok';
      seen[code as keyof typeof seen] += 1;
      if (expected.record.raisedSteps > 0) seen.raised += 1;
      if (plan.steps.some(({ broken }) => broken > 0)) seen.lost += 1;
      for (let first = 1 + (plansMet++ % STRIDE); first < whole.writes; first += STRIDE) {
        const { life, budget, died } = await interrupted(plan, [first, ...more]);
        seen.deaths += died;
        const at = `died after ${[first, ...more]}`;
        const found = limitsOf(life);
        expect(found.result, at).toEqual(expected.result);
        expect(found.record, at).toEqual(expected.record);
        // Of an answer that is given again, the messages are not.
        expect([0, expected.messages], at).toContain(found.messages);
        expect(Object.fromEntries(budget.counted), at).toEqual(Object.fromEntries(whole.budget.counted));
        expect(budget.total(), at).toEqual(whole.life.result.spend ?? { tokens: 0, usd: 0, seconds: 0 });
        expect(budget.open.size, at).toBe(0);
      }
    }),
    { numRuns: PLANS, seed },
  );
  console.log(JSON.stringify(seen));
  for (const [what, count] of Object.entries(seen)) expect(count, what).toBeGreaterThan(0);
});
