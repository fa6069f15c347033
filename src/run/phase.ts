/** What a finished phase of a multi-phase agent left behind. */
export interface PhaseOutput {
  readonly name: string;
  readonly output: string;
  readonly index?: number;
  /** Hash of the phase's definition, to see on resume whether it is still the same. */
  readonly hash?: string;
}
