import type { Reservation } from '../../budget/port.ts';
import { bornRunOf, budgetKeyOf } from '../../run/identity.ts';
import type { Progress } from '../../run/progress.ts';
import { withDeadline } from '../../values/deadline.ts';
import { hasTrait, readProperty, toErrorData } from '../../values/error-data.ts';
import { BudgetExceededError } from '../../values/errors.ts';
import type { Spend, Usage } from '../../values/usage.ts';
import { asError } from '../host/guard.ts';
import type { ActiveRun } from './active-run.ts';

/** A model call of a run, as its budget gets it. */
export interface BudgetedCall {
  /** Counts from 1 over the whole life of the run. */
  readonly turn: number;
  /** In a pipeline. A failed turn is not counted, and the next phase may have the same number. */
  readonly phase?: number | undefined;
  /** The place of the model in the list of its tier, from 0: a further one is another call. */
  readonly place?: number;
  readonly modelTier: string;
  readonly model: string;
  readonly inputTokens: number;
}

/** Asks the budget whether this caller may begin a run. @returns why not */
export async function askBudget(run: ActiveRun): Promise<Error | undefined> {
  const { services } = run;
  const { budget, warn } = services.config;
  if (!budget) return undefined;
  const callerId = callerOf(run);
  if (callerId === '' && !services.hasWarnedOfCaller) {
    services.hasWarnedOfCaller = true;
    warn('budget.shared', { runId: run.runId });
  }
  try {
    await askWhileAway(run, 'budget.check', () => budget.check(callerId));
    return undefined;
  } catch (error) {
    return asError(error);
  }
}

/** Tells the budget what a resumed run spent earlier, for a budget without a memory of its own. */
export async function restoreSpend(run: ActiveRun, progress: Progress): Promise<void> {
  const { budget, warn } = run.services.config;
  const { spend } = progress;
  if (!budget || !spend) return;
  try {
    await askBounded(run, 'budget.restore', async () =>
      budget.restore?.(callerOf(run), { ...bornRunOf(progress), spend }),
    );
  } catch (error) {
    warn('budget.restore.failed', fields(run, error));
  }
}

/** Reserves budget for one model call, and commits or returns the reservation. */
export class Spending {
  readonly #run: ActiveRun;
  readonly #reservation: Reservation;
  readonly #startedAt: number;

  private constructor(run: ActiveRun, reservation: Reservation) {
    this.#run = run;
    this.#reservation = reservation;
    this.#startedAt = run.services.config.clock.monotonic();
  }

  /**
   * Reserves a model call at the budget.
   * @throws {BUDGET_EXCEEDED} or another error of the budget: then the call must not be made
   */
  static async reserve(
    run: ActiveRun,
    { turn, phase, place = 0, ...call }: BudgetedCall,
  ): Promise<Spending | undefined> {
    const { budget } = run.services.config;
    if (!budget) return undefined;
    const estimate = { key: budgetKeyOf(run.born, { turn, phase, place }), runId: run.runId, ...call };
    const reservation = await askWhileAway(run, 'budget.reserve', () => budget.reserve(callerOf(run), estimate));
    return reservation && new Spending(run, reservation);
  }

  /** Pays for the usage, even if the budget fails: the error is logged. */
  async commit(usage: Usage): Promise<Spend | undefined> {
    const { clock, budget, warn } = this.#run.services.config;
    const reservation = this.#reservation;
    if (!budget) return undefined;
    const seconds = (clock.monotonic() - this.#startedAt) / 1_000;
    try {
      return spendOf(
        await askBounded(this.#run, 'budget.commit', () => budget.commit(reservation, { usage, seconds })),
      );
    } catch (error) {
      warn('budget.commit.failed', fields(this.#run, error));
      return undefined;
    }
  }

  async refund(): Promise<void> {
    const { budget, warn } = this.#run.services.config;
    const reservation = this.#reservation;
    if (!budget) return;
    try {
      await askBounded(this.#run, 'budget.refund', () => budget.refund(reservation));
    } catch (error) {
      warn('budget.refund.failed', fields(this.#run, error));
    }
  }
}

/** A host's budget may return any value: one that is not a spend must not enter a record. */
function spendOf(answer: unknown): Spend | undefined {
  const [tokens, usd, seconds] = ['tokens', 'usd', 'seconds'].map((key) => readProperty(answer, key));
  if (!isAmount(tokens) || !isAmount(usd) || !isAmount(seconds)) return undefined;
  return { tokens, usd, seconds };
}

function isAmount(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}

function callerOf(run: ActiveRun): string {
  return run.info?.callerId ?? run.resources.record?.meta.callerId ?? run.seed.request.callerId;
}

function fields(run: ActiveRun, error: unknown) {
  return { runId: run.runId, error };
}

/** Bounds a call of the budget in time; an error without a code of its own counts as a refusal. */
/**
 * Asks the budget before something may happen. A call that gets the error of one that is away waits as for its model.
 * @returns undefined: it is away, and that allows it
 * @throws {BUDGET_EXCEEDED} it is away, and that refuses it
 */
async function askWhileAway<T>(run: ActiveRun, what: string, ask: () => Promise<T>): Promise<T | undefined> {
  const { onBudgetAway, warn } = run.services.config;
  try {
    return await askBounded(run, what, ask);
  } catch (error) {
    if (!hasTrait(error, 'isStoreAway')) throw error;
    warn('budget.away', { runId: run.runId, error });
    if (onBudgetAway === 'allow') return undefined;
    if (onBudgetAway === 'wait') throw error;
    throw new BudgetExceededError(`the budget is away: ${toErrorData(error).message}`, { cause: error });
  }
}

async function askBounded<T>(run: ActiveRun, what: string, ask: () => Promise<T>): Promise<T> {
  const { clock, defaults } = run.services.config;
  try {
    return await withDeadline(Promise.resolve(ask()), { ms: defaults.portMs, clock, what });
  } catch (error) {
    if (toErrorData(error).code !== 'RUN_PANIC') throw error;
    throw new BudgetExceededError(`${what} threw: ${toErrorData(error).message}`, { cause: error });
  }
}
