import type { RunCheckpoint } from '../../record/checkpoint.ts';
import type { Progress } from '../../run/progress.ts';
import type { Invocation } from '../../run/request.ts';
import type { Message } from '../../values/message.ts';
import type { Workflow } from '../../workflow/workflow.ts';
import { causesWith } from './causes.ts';
import { type Arbitrary, type FastCheck, generatorsOf } from './fast-check.ts';
import { checkpointsWith, invocationsWith, progressesWith } from './runs.ts';
import { type RunStory, storiesWith } from './stories.ts';
import { type WorkflowStoryOptions, workflowsWith } from './workflows.ts';

/** Arbitrary values of Pawl's types, for property tests. */
export interface Arbitraries {
  /** Any error that can end a run: of Pawl, of providers, of hosts, and values that are not an Error. Never undefined. */
  readonly runError: Arbitrary<unknown>;
  /** Why a run may be stopped from outside: a `shutdownCause` or an `otherCause`. */
  readonly cancelCause: Arbitrary<unknown>;
  /** A cause that contains a shutdown, which leaves the run for the next process. It may be wrapped in other errors. */
  readonly shutdownCause: Arbitrary<unknown>;
  /** A cause without a shutdown, also wrapped. */
  readonly otherCause: Arbitrary<unknown>;
  /** A valid transcript, as plain JSON: the result of each tool call follows it, in the order of the calls. */
  readonly transcript: Arbitrary<Message[]>;
  /** A request that every executor accepts. */
  readonly invocation: Arbitrary<Invocation>;
  /** The progress of a run, as its machine has it; with open steps. */
  readonly progress: Arbitrary<Progress>;
  /** The events of a whole run, for a walk of `runMachine` with XState's `transition`, and how the run must end. */
  readonly runStory: Arbitrary<RunStory>;
  /** A record as stores have it, as plain JSON; with open steps, open waits, parked runs and undelivered outcomes. */
  readonly checkpoint: Arbitrary<RunCheckpoint>;
  /**
   * Makes an arbitrary of records of this workflow, on its way: after any results of its calls, timers and machine events, with calls
   * that have begun or not. For tests of a deployment: does each record of the last version continue in this one?
   * @throws {TypeError} for what is no workflow
   * @example workflowCheckpoint(refund, { input: fc.constant({ cents: 700 }), outputs: { manager: fc.constantFrom('yes', 'no') } })
   */
  workflowCheckpoint(workflow: Workflow, options?: WorkflowStoryOptions): Arbitrary<RunCheckpoint>;
}

/**
 * Arbitraries for property tests. The kit does not depend on fast-check: pass yours.
 *
 * @param fc the module `fast-check`, 3.22 or newer
 * @throws {TypeError} if it is not fast-check
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
    workflowCheckpoint: (workflow, options) => workflowsWith(generators, workflow, options),
  };
}
