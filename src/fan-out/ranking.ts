/** The judge's ranking of the answers of a fan-out. */
export interface Ranking {
  /** Ids of models, the best first. */
  readonly order: readonly string[];
  /** Why; '' if the judge gave no reason. */
  readonly reason: string;
}

/** The usage of a judging model. */
export interface JudgeUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** US dollars, by the prices of the fan-out; 0 without prices. */
  readonly costUsd: number;
}
