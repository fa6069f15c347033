import fc from 'fast-check';

export const TICK_MS = 5_000;

/** What the persons do with one wait. */
export interface Decision {
  readonly afterMs: number;
  readonly ada: 'yes' | 'no' | 'none';
  readonly bob: 'yes' | 'no' | 'none';
  readonly isTwice: boolean;
  /** In the process that has the run, if one has it; else through the store. */
  readonly isHere: boolean;
}

/** A run that waits, and its misfortunes. */
export interface WaitingStory {
  /** The calls of each turn. */
  readonly steps: readonly (readonly string[])[];
  readonly childSteps: readonly (readonly string[])[];
  readonly decisions: readonly Decision[];
  /** The boundary at which each process dies, in the order of their beginnings; later ones live. */
  readonly deaths: readonly number[];
  readonly restartMs: readonly number[];
  /** When the model does not answer. */
  readonly away: { readonly fromMs: number; readonly ms: number } | undefined;
}

const tool = fc.constantFrom('pay', 'pay', 'book', 'look', 'send', 'ask', 'nap', 'parcel');
const said = fc.constantFrom('yes' as const, 'yes' as const, 'no' as const, 'none' as const);
const stepsOf = (name: fc.Arbitrary<string>, maxLength: number) =>
  fc.array(fc.array(name, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength });

/** Random runs that wait, with answers, deaths of processes and a model that is away. */
export const waitingStories: fc.Arbitrary<WaitingStory> = fc.record({
  steps: stepsOf(fc.oneof(tool, tool, tool, fc.constant('agent__helper')), 3),
  childSteps: stepsOf(tool, 2),
  decisions: fc.array(
    fc.record({
      afterMs: fc.constantFrom(0, 0, 6_000, 60_000, 118_000),
      ada: said,
      bob: said,
      isTwice: fc.boolean(),
      isHere: fc.boolean(),
    }),
    { minLength: 1, maxLength: 6 },
  ),
  deaths: fc.array(fc.oneof(fc.nat(12), fc.nat(40)), { maxLength: 7 }),
  restartMs: fc.array(fc.constantFrom(0, 10_000, 40_000), { minLength: 1, maxLength: 3 }),
  away: fc.option(fc.record({ fromMs: fc.nat(120_000), ms: fc.constantFrom(20_000, 300_000) }), {
    nil: undefined,
    freq: 3,
  }),
});
