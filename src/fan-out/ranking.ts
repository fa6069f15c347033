/** The answers of a fan-out from the best to the worst, as its judge sees them. */
export interface Ranking {
  /** Ids of models, the best first. */
  readonly order: readonly string[];
  /** Why; '' when the judge gave no reason. */
  readonly reason: string;
}

/** What a judging model has taken. */
export interface JudgeUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** US dollars, by the prices that the fan-out was given; 0 without. */
  readonly costUsd: number;
}
