import type { RunEvent } from '../../run/events.ts';
import type { OkOutput, RunOutput, RunResult } from '../../run/result.ts';
import { okOrThrow } from '../../run/result.ts';
import type { ErrorData } from '../../values/error-data.ts';
import { checkKeys } from '../../values/known-options.ts';
import type { ActiveRun } from './active-run.ts';
import type { RunActor } from './run-actor.ts';

/**
 * How a start met its run. `started`: it is new. `resumed`: its record goes on here. `joined`: it is live, here or in another
 * process; of the latter `result` settles with RUN_OWNED_ELSEWHERE. `ended`: it ended before, and `result` is its kept answer.
 * `refused`: nothing was begun, and `error` says why.
 */
export type Accepted = 'started' | 'resumed' | 'joined' | 'ended' | 'refused';

/** A run in the hands of its host. */
export interface Run<Data = unknown> {
  readonly runId: string;
  readonly agentId: string;
  /** How the start met the run: enough for a server to answer at once, for example with 202, 200 or 409. */
  readonly accepted: Accepted;
  /** Why the start was refused; absent otherwise. The same error as in `result`. */
  readonly error?: ErrorData;
  /** The XState actor of the run; its snapshot says where the run is. */
  readonly actor: RunActor;
  /** How the run ended. Never rejects. */
  readonly result: Promise<RunResult<Data>>;
  /**
   * The result of a run that succeeds; for jobs that have to fail when their run does.
   * @throws {RunFailedError} for any other status: `code` is that of the run's error, `cause` that error, `result` the result
   * @example
   * const run = await executor.start(agent, { prompt: 'Write the report.' });
   * const { output } = await run.orThrow();
   */
  orThrow(): Promise<OkOutput<Data> & Pick<RunResult, 'messages'>>;
  /**
   * What happens in the run, in order, from the oldest event that is still kept (the last 1,000) to its end. A consumer that
   * falls behind loses pieces of text first, and is told how many.
   * @param options.after the `seq` of the last event that the consumer has
   */
  events(options?: { readonly after?: number }): AsyncIterableIterator<RunEvent>;
  /**
   * Says something to the model before its next turn. Resolves when the message is stored (`durable`), or kept in memory
   * (`queued`: the run is not durable, or its store fails just now). What the run could not deliver is in its result.
   * @param options.children says it to the agents as well that this one has put to work and that still are at it
   * @throws {UndeliveredError} when the run is over, or 1,000 messages wait already
   */
  steer(text: string, options?: { readonly children?: boolean }): Promise<'durable' | 'queued'>;
  /**
   * Ends the run for good; its record goes. A run that is being left for the next process (a shutdown, a lost lease) is
   * `interrupted` all the same, and one whose store is away keeps its record: `executor.control(runId).cancel()` follows it.
   * @returns the result
   */
  cancel(reason?: string): Promise<RunResult<Data>>;
}

/** A run that ended a while ago: its result, without messages. */
export interface EndedRun {
  readonly runId: string;
  readonly accepted: 'ended';
  readonly actor?: undefined;
  readonly result: Promise<RunResult>;
  /** As of a live run. @throws {RunFailedError} when it did not succeed */
  orThrow(): Promise<OkOutput & Pick<RunResult, 'messages'>>;
}

/** @param met `joined` for the handle of a run that is live already */
export function handleOf(run: ActiveRun, met?: 'joined'): Run {
  const result = run.life.ended.promise;
  const isOver = run.life.resolution === 'answered' || run.life.resolution === 'refused';
  const accepted = met && !isOver ? met : acceptedOf(run);
  return {
    runId: run.runId,
    agentId: run.agent.id,
    accepted,
    ...(accepted === 'refused' && run.life.refusal ? { error: run.life.refusal } : {}),
    actor: run.actor,
    result,
    orThrow: () => okOrThrow(result),
    steer: async (text, options = {}) => {
      checkKeys(options, { children: true }, { of: 'steer' });
      return run.steerAll(text, { children: options.children ?? false });
    },
    events: (options = {}) => {
      checkKeys(options, { after: true }, { of: 'events' });
      return run.events.consume(options.after ?? 0);
    },
    cancel(reason) {
      run.send({ type: 'run.cancel', ...(reason === undefined ? {} : { reason }) });
      return result;
    },
  };
}

function acceptedOf({ life: { resolution, resumedFrom, isElsewhere } }: ActiveRun): Accepted {
  if (resolution === 'accepted') return resumedFrom ? 'resumed' : 'started';
  if (resolution === 'answered') return 'ended';
  return isElsewhere ? 'joined' : 'refused';
}

export function endedHandle(output: RunOutput): EndedRun {
  const result = Promise.resolve<RunResult>({ ...output, messages: [] });
  return { runId: output.runId, accepted: 'ended', result, orThrow: () => okOrThrow(result) };
}
