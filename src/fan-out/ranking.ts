/** The answers of a fan-out from the best to the worst, as its judge sees them. */
export interface Ranking {
  /** Ids of models, the best first. */
  readonly order: readonly string[];
  /** Why; '' when the judge gave no reason. */
  readonly reason: string;
}
