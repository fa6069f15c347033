import type { RunCheckpoint } from '../../record/checkpoint.ts';
import type { Progress } from '../../run/progress.ts';
import type { Invocation } from '../../run/request.ts';
import type { Message } from '../../values/message.ts';
import { causesWith } from './causes.ts';
import { type Arbitrary, type FastCheck, generatorsOf } from './fast-check.ts';
import { checkpointsWith, invocationsWith, progressesWith } from './runs.ts';
import { type RunStory, storiesWith } from './stories.ts';

/** What Pawl's words may look like, for property tests. */
export interface Arbitraries {
  /** Anything a run can end with: errors of Pawl, of providers, of hosts, and what is no Error at all. Never nothing. */
  readonly runError: Arbitrary<unknown>;
  /** Why a run may be stopped from outside: a `shutdownCause` or an `otherCause`. */
  readonly cancelCause: Arbitrary<unknown>;
  /** A cause with a shutdown in it, which leaves the run for the next process, wrapped in whatever came around it. */
  readonly shutdownCause: Arbitrary<unknown>;
  /** A cause without one, wrapped likewise. */
  readonly otherCause: Arbitrary<unknown>;
  /** A valid transcript, as plain JSON: each tool call has its one result, right after it and in its order. */
  readonly transcript: Arbitrary<Message[]>;
  /** What a run may be asked for: every executor takes it. */
  readonly invocation: Arbitrary<Invocation>;
  /** How far a run has come, as its machine carries it; open steps included. */
  readonly progress: Arbitrary<Progress>;
  /** The events of a whole run, for a walk of `runMachine` with XState's `transition`, and how the run must end. */
  readonly runStory: Arbitrary<RunStory>;
  /** A record as stores hold it, as plain JSON, open steps, parked runs and undelivered outcomes included. */
  readonly checkpoint: Arbitrary<RunCheckpoint>;
}

/**
 * Arbitraries for property tests. The kit has no dependency on fast-check: hand yours over.
 *
 * @param fc the module `fast-check`, 3.22 or newer
 * @throws {TypeError} when it is something else
 * @example
 * import fc from 'fast-check';
 * const { checkpoint } = arbitraries(fc);
 * await fc.assert(fc.asyncProperty(checkpoint, async (record) => {
 *   await store.save(record);
 *   assert.deepEqual(await store.load(record.meta.runId), record);
 * }));
 */
export function arbitraries(fc: FastCheck): Arbitraries {
  const generators = generatorsOf(fc);
  const causes = causesWith(generators);
  return {
    ...causes,
    cancelCause: generators
      .record({ isShutdown: generators.boolean(), shutdown: causes.shutdownCause, other: causes.otherCause })
      .map(({ isShutdown, shutdown, other }) => (isShutdown ? shutdown : other)),
    transcript: progressesWith(generators, { beOpen: false }).map(
      ({ transcript }) => JSON.parse(JSON.stringify(transcript.slice())) as Message[],
    ),
    invocation: invocationsWith(generators),
    progress: progressesWith(generators, { beOpen: true }),
    runStory: storiesWith(generators, causes),
    checkpoint: checkpointsWith(generators),
  };
}
