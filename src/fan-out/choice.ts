import type { Clock, ErrorData } from '../index.ts';
import type { Warn } from '../log/log.ts';
import { toErrorData } from '../values/error-data.ts';
import { addDecimals } from '../values/usage.ts';
import { costsBy, type Paid } from './cost-budget.ts';
import { rankWithin } from './judge.ts';
import { DEADLINE_MS, type FanOutOptions, type FanOutResult } from './options.ts';
import type { JudgeUsage, Ranking } from './ranking.ts';
import type { ModelResponse } from './snapshot.ts';

/** Asks the judge of a fan-out to rank the answers, and keeps its ranking, usage or error. */
export class Choice {
  readonly #options: FanOutOptions;
  readonly #host: { readonly clock: Clock; readonly warn: Warn };
  #ranking: Ranking | undefined;
  #error: ErrorData | undefined;
  #usage: JudgeUsage | undefined;

  constructor(options: FanOutOptions, host: { readonly clock: Clock; readonly warn: Warn }) {
    this.#options = options;
    this.#host = host;
  }

  get ranking(): Ranking | undefined {
    return this.#ranking;
  }

  /** Uses a ranking from an earlier call, or why there was none. */
  keep({ ranking, judgeError, judgeUsage }: ReturnType<Choice['result']>): void {
    this.#ranking = ranking;
    this.#error = judgeError;
    this.#usage = judgeUsage;
  }

  /**
   * Asks the judge. If it fails, no answer is lost.
   * @param all the responses, including those without an answer
   * @param birth names the fan-out: a judge that is asked again after a crash counts once in a budget
   */
  async make(all: readonly ModelResponse[], birth: string, signal: AbortSignal): Promise<void> {
    const { judge, prompt, logger, defaults, deadlineMs = DEADLINE_MS } = this.#options;
    // The store may have interrupted a model too: then not all answers are there yet.
    if (!judge || all.some(({ interrupted }) => interrupted)) return;
    const { clock, warn } = this.#host;
    const responses = all.filter(({ error }) => error === undefined);
    const keyOf = (key: string) => `fan-out:${birth}:${responses.length}${key.slice(key.lastIndexOf(':'))}`;
    const budget = costsBy(this.#options, (_, call) => this.#paid(call), keyOf);
    const ports = { clock, ports: { budget }, ...(logger ? { logger } : {}), ...(defaults ? { defaults } : {}) };
    try {
      this.#ranking = await rankWithin(judge, { prompt, responses, signal }, { ms: deadlineMs, ports });
    } catch (error) {
      this.#error = toErrorData(error);
      warn('fan-out.judge.failed', { error: this.#error });
    }
  }

  result(): Pick<FanOutResult, 'ranking' | 'judgeError' | 'judgeUsage'> {
    return {
      ...(this.#ranking ? { ranking: this.#ranking } : {}),
      ...(this.#error ? { judgeError: this.#error } : {}),
      ...(this.#usage ? { judgeUsage: this.#usage } : {}),
    };
  }

  #paid({ usage, usd }: Paid): void {
    const { inputTokens, outputTokens, costUsd } = this.#usage ?? { inputTokens: 0, outputTokens: 0, costUsd: 0 };
    this.#usage = {
      inputTokens: inputTokens + usage.inputTokens,
      outputTokens: outputTokens + usage.outputTokens,
      costUsd: addDecimals(costUsd, usd),
    };
  }
}
