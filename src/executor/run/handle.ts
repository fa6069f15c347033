import type { RunEvent } from '../../run/events/body.ts';
import type { OkOutput, RunOutput, RunResult } from '../../run/result.ts';
import { okOrThrow } from '../../run/result.ts';
import type { Person } from '../../run/waits/wait.ts';
import type { ErrorData } from '../../values/error-data.ts';
import { checkKeys } from '../../values/known-options.ts';
import type { Registry } from '../services/registry.ts';
import type { ActiveRun } from './active-run.ts';
import type { RunActor } from './run-actor.ts';
import { checkedSteering } from './steering.ts';
import { cancelResting } from './waits/left-run.ts';

/**
 * How a start found its run. `started`: it is new. `resumed`: it continues from its record. `joined`: it is live, here or in
 * another process; in the latter case `result` settles with RUN_OWNED_ELSEWHERE. `ended`: it ended before, and `result` is its
 * kept answer. `refused`: no run began, and `error` says why.
 */
export type Accepted = 'started' | 'resumed' | 'joined' | 'ended' | 'refused';

/**
 * The host's handle of a run. One of a start with `drive: 'later'` follows the store: `result` resolves when the run has ended in any
 * process (looked for from its first reading on), or `interrupted` at a shutdown; `events` reads the journal, and the iterator throws
 * {UNSUPPORTED} without one; `actor` is that of the admission; `cancel` rejects if the store does not answer.
 */
export interface Run<Data = unknown> {
  /** The id of the run. */
  readonly runId: string;
  /** The id of its agent, or of its workflow. */
  readonly agentId: string;
  /** How the start found the run: enough for a server to answer at once, for example with 202, 200 or 409. */
  readonly accepted: Accepted;
  /** Why the start was refused; absent otherwise. The same error as in `result`. */
  readonly error?: ErrorData;
  /** The XState actor of the run; its snapshot says where the run is. */
  readonly actor: RunActor;
  /** How the run ended. Never rejects. */
  readonly result: Promise<RunResult<Data>>;
  /**
   * The result of a run that succeeds; for jobs that must fail if their run does.
   * @throws {RunFailedError} for any other status: `code` is that of the run's error, `cause` that error, `result` the result
   * @example
   * const run = await executor.start(agent, { prompt: 'Write the report.' });
   * const { output } = await run.orThrow();
   */
  orThrow(): Promise<OkOutput<Data> & Pick<RunResult, 'messages'>>;
  /**
   * The events of the run, in order, from the oldest that is still kept (the last 1,000) to its end. A slow consumer loses
   * pieces of text first, and gets the number of lost events.
   * @param options.after the `seq` of the consumer's last event
   */
  events(options?: { readonly after?: number }): AsyncIterableIterator<RunEvent>;
  /**
   * Sends a message to the model before its next turn. Resolves when the message is stored (`durable`), or kept in memory
   * (`queued`: the run is not durable, or its store fails just now). The result lists messages that were not delivered.
   * @param options.children whether running child runs get the message as well
   * @param options.by the person who says it: the transcript names it, the model does not read it
   * @throws {UNDELIVERED} if the run is over, or 1,000 messages wait already
   */
  steer(text: string, options?: { readonly children?: boolean; readonly by?: Person }): Promise<'durable' | 'queued'>;
  /**
   * Ends the run for good and deletes its record. A run that is being left for the next process (a shutdown, a lost lease)
   * still ends `interrupted`. A run whose store does not answer keeps its record: call `executor.control(runId).cancel()`
   * later.
   * @returns the result
   */
  cancel(reason?: string): Promise<RunResult<Data>>;
}

/** A run that ended some time ago: its result, without messages. */
export interface EndedRun {
  readonly runId: string;
  readonly accepted: 'ended';
  readonly actor?: undefined;
  readonly result: Promise<RunResult>;
  /** As for a live run. @throws {RunFailedError} if it did not succeed */
  orThrow(): Promise<OkOutput & Pick<RunResult, 'messages'>>;
}

/**
 * Makes the handle of a live run, as `executor.start` returns it.
 * @param met `joined` for the handle of a run that is live already
 */
export function handleOf(run: ActiveRun, met?: 'joined'): Run {
  const result = run.life.ended.promise;
  const { isAnswered, isRefused } = run.life;
  const accepted = met && !isAnswered && !isRefused ? met : acceptedOf(run);
  return {
    runId: run.runId,
    agentId: run.agent.id,
    accepted,
    ...(accepted === 'refused' && run.life.refusal ? { error: run.life.refusal } : {}),
    actor: run.actor,
    result,
    orThrow: () => okOrThrow(result),
    steer: async (text, options = {}) => {
      const { children = false, by } = checkedSteering(options);
      return run.steerAll(text, { children, by });
    },
    events: (options = {}) => {
      checkKeys(options, { after: true }, { of: 'events' });
      return run.events.consume(options.after ?? 0);
    },
    async cancel(reason) {
      run.send({ type: 'run.cancel', ...(reason === undefined ? {} : { reason }) });
      const ended = await result;
      return ended.status === 'waiting' ? cancelResting(run, ended, reason) : ended;
    },
  };
}

function acceptedOf({ life, startFacts, seed }: ActiveRun): Accepted {
  if (life.admitted) return life.admitted;
  if (life.isResting) return 'resumed';
  if (life.hasBegun) return startFacts.resumedFrom && !seed.forked ? 'resumed' : 'started';
  if (life.isAnswered) return 'ended';
  return startFacts.isElsewhere ? 'joined' : 'refused';
}

/** Makes the handle of a run that had ended before this start, from its kept outcome. */
export function endedHandle(output: RunOutput): EndedRun {
  const result = Promise.resolve<RunResult>({ ...output, messages: [] });
  return { runId: output.runId, accepted: 'ended', result, orThrow: () => okOrThrow(result) };
}

/** Returns the handle of a live run, or of one that ended lately; undefined for any other id. */
export function handleIn(registry: Registry<ActiveRun>, runId: string): Run | EndedRun | undefined {
  const live = registry.live(runId);
  if (live) return handleOf(live, 'joined');
  const output = registry.ended(runId);
  return output && endedHandle(output);
}
