import type { Warn } from '../../log/log.ts';
import type { PreviousAttempt } from '../../run/attempt.ts';
import type { RunEvent } from '../../run/events/body.ts';
import type { RunInfo } from '../../run/request.ts';
import { isObject } from '../../values/json.ts';
import { checkKeys, type KnownKeys, kindOf } from '../../values/known-options.ts';
import { guarded } from './guard.ts';

/**
 * How a run came to this process. `started`: by `executor.start`, also if it continues from its record. `recovered`: by
 * `executor.recover`, or a person parked it there. `hosted`: by a host's machine, through `executor.logic`. `child`: by a call of
 * another run.
 */
export type RunOrigin = 'started' | 'recovered' | 'hosted' | 'child';

/** A run as its observers see it. All its events in this process carry the same frozen object. */
export interface ObservedRun {
  /** The info that every port gets of the run, after `redact`. */
  readonly info: RunInfo;
  readonly origin: RunOrigin;
  /**
   * Starts since the run last recorded something new, this one included: 1 is the first. 0: the start was refused before it
   * was counted.
   */
  readonly starts: number;
  /**
   * Which process at work on the run this is: 1 is the first one that recorded something. It rises with each process that
   * continues the run, after a crash, a wait or a slice. Absent: no process worked on the run at this start.
   */
  readonly attempt?: number;
  /** The process at work before this one. `how: 'lost'`: it died, and `calls` had begun. Absent: this is the first. */
  readonly previous?: PreviousAttempt;
  /** The call of another run that began this one; absent = a host did. */
  readonly parent?: {
    readonly runId: string;
    readonly callId: string;
    /** The attempt of that run; absent if it is not at work in this process. */
    readonly attempt?: number;
    /** Which start of the call it is: 1 is the first. Absent as `attempt` is. */
    readonly callAttempt?: number;
  };
  /** What the record keeps of the run's trace; absent without `tracing`. */
  readonly trace?: string;
  /** The run at the top of the tree: the run's own id, unless another run began it. */
  readonly rootRunId: string;
}

/**
 * Gets the events of every run of an executor, in order, after `redact`. The event is frozen.
 *
 * `onEvent` is called synchronously, and the run does not wait for its return value: put slow work into a queue. An error that
 * it throws, or rejects with, is logged and changes nothing.
 * @example
 * const counter: RunObserver = {
 *   onEvent(event, run) {
 *     if (event.type === 'tool.done') metrics.timing(`${run.info.subjectId}.${event.name}`, event.ms);
 *   },
 * };
 * const executor = createExecutor({ models, observers: [counter] });
 */
export interface RunObserver {
  onEvent?(event: RunEvent, run: ObservedRun): void;
}

/** An observer with all methods, which cannot throw. */
export interface Observer extends Required<RunObserver> {
  /** Whether it wants no events now. Absent = it always wants them. */
  isIdle?(): boolean;
}

const observerKeys: KnownKeys<RunObserver> = { onEvent: true };

/** Checks the option `observers`. @throws {TypeError} for a list, an entry or a function of the wrong type */
export function checkObservers(given: unknown, of: string): void {
  if (given === undefined) return;
  if (!Array.isArray(given)) throw new TypeError(`${of}: observers must be a list, not ${kindOf(given)}`);
  for (const [i, each] of given.entries()) {
    const at = `observers[${i}]`;
    // An instance of a class may have other fields.
    if (!isObject(each) || Object.getPrototypeOf(each) === Object.prototype) checkKeys(each, observerKeys, { of, at });
    const { onEvent } = each as { readonly onEvent?: unknown };
    if (onEvent !== undefined && typeof onEvent !== 'function')
      throw new TypeError(`${of}: ${at}.onEvent must be a function, not ${kindOf(onEvent)}`);
  }
}

/**
 * Reads the option `observers` into functions that get each event of a run. The methods are read once, and keep their
 * object as `this`.
 */
export function observersOf(observers: readonly RunObserver[] = [], warn: Warn): readonly Observer[] {
  return observers.flatMap((observer) => {
    const onEvent = guarded('an observer', observer.onEvent?.bind(observer), warn);
    return onEvent ? [{ onEvent }] : [];
  });
}

/** Writes an `info` line for each run that this process takes, ends, or leaves. */
export function runLines(write: Warn): RunObserver {
  return {
    onEvent(event, { info }) {
      const about = { runId: event.runId, agentId: info.subjectId };
      if (event.type === 'run.started' || event.type === 'run.resumed') write('run.taken', about);
      else if (event.type === 'run.waiting') write('run.waiting', { ...about, waits: event.waits });
      else if (event.type === 'run.ended') {
        const { status, error } = event;
        const isLeft = status === 'interrupted' || status === 'waiting';
        write(isLeft ? 'run.left' : 'run.ended', { ...about, status, ...(error ? { code: error.code } : {}) });
      }
    },
  };
}
