import { BudgetExceededError } from '../values/errors.ts';
import { noUsage } from '../values/usage.ts';
import { amountsOf, type BudgetAmounts, nothing, toSpend } from './amounts.ts';
import { checkAmount } from './check-use.ts';
import type { BudgetLimits } from './limits.ts';
import type { CallEstimate, Spend } from './port.ts';
import { type PriceOf, reasonOf } from './prices.ts';

/** What a call is likely to use besides its input. */
export interface ExpectedUse {
  readonly outputTokens?: number | undefined;
  readonly seconds?: number | undefined;
}

const usual = { outputTokens: 1_000, seconds: 10 };

/** Without `expected`, a call is expected to use at most this part of a limit besides its input. */
const MOST = 1 / 20;

/** Estimates the tokens, US dollars and seconds that a call reserves while it runs. */
export class Estimator {
  readonly #limits: BudgetLimits;
  readonly #priceOf: PriceOf;
  readonly #outputTokens: number;
  readonly #seconds: number;
  /** The largest expectation beyond the input. */
  readonly #most: Spend;

  /** @throws {TypeError} if an expectation is not a number >= 0 */
  constructor(limits: BudgetLimits, priceOf: PriceOf, expected: ExpectedUse = {}) {
    this.#limits = limits;
    this.#priceOf = priceOf;
    this.#outputTokens = checkAmount(
      'createBudget: expected.outputTokens',
      expected.outputTokens ?? usual.outputTokens,
    );
    this.#seconds = checkAmount('createBudget: expected.seconds', expected.seconds ?? usual.seconds);
    const { tokens, usd, seconds } = toSpend({ ...nothing, ...limits });
    const most = (limit: number, isSaid: boolean) => (isSaid || limit === 0 ? Number.POSITIVE_INFINITY : limit * MOST);
    this.#most = {
      tokens: most(tokens, expected.outputTokens !== undefined),
      usd: most(usd, expected.outputTokens !== undefined),
      seconds: most(seconds, expected.seconds !== undefined),
    };
  }

  /**
   * The amounts that a budget reserves for a call before it is made.
   * @throws {BUDGET_EXCEEDED} if there is a limit in USD and no price
   */
  estimate(call: CallEstimate): BudgetAmounts {
    const inputTokens = checkAmount('estimate.inputTokens', call.inputTokens);
    return amountsOf({
      tokens: inputTokens + Math.floor(Math.min(this.#outputTokens, this.#most.tokens)),
      usd: this.#limits.usd === undefined ? 0 : this.#usd(call),
      seconds: Math.min(this.#seconds, this.#most.seconds),
    });
  }

  #usd(call: CallEstimate): number {
    const input = this.#price(call, 0);
    const both = this.#price(call, this.#outputTokens);
    return input + Math.min(Math.max(0, both - input), this.#most.usd);
  }

  #price({ model, modelTier, inputTokens }: CallEstimate, outputTokens: number): number {
    const because = (reason: string, cause?: unknown) =>
      new BudgetExceededError(
        `the limit in USD cannot be enforced for ${model}: ${reason}; add its price to createBudget`,
        cause === undefined ? {} : { cause },
      );
    let usd: number | undefined;
    try {
      usd = this.#priceOf({ model, modelTier, usage: { ...noUsage, inputTokens, outputTokens } });
    } catch (error) {
      throw because(reasonOf(error), error);
    }
    if (usd === undefined) throw because('its price is not known');
    return usd;
  }
}
