import type { LogFields, Warn } from '../../log/log.ts';
import { callModel } from '../../model/call.ts';
import type { CallModel } from '../../model/given-calls.ts';
import { TRACE_CHARS } from '../../run/attempt.ts';
import type { RunEvent } from '../../run/events/body.ts';
import type { ToolEffect } from '../../run/ledger.ts';
import type { RunStats } from '../../store/counting/port.ts';
import { isObject } from '../../values/json.ts';
import { kindOf } from '../../values/known-options.ts';
import { letGo } from '../../values/thenable.ts';
import type { ObservedRun } from './observers.ts';

/** A run whose trace begins. */
export interface TracedRun {
  readonly runId: string;
  readonly agentId: string;
  readonly agentName: string;
  /** Random, made with the run; '' for a run of an earlier version. */
  readonly birth: string;
  /** The call of another run that begins this one; absent = a host does. */
  readonly parent?: {
    /** The text that the record of that run keeps. */
    readonly trace: string;
    readonly runId: string;
    /** The number of that run's attempt. */
    readonly attempt: number;
    readonly callId: string;
    /** Which start of the call it is: 1 is the first. */
    readonly callAttempt: number;
  };
}

/** A call that is about to be made. */
export type TracedCall =
  | {
      readonly kind: 'model';
      readonly run: ObservedRun;
      readonly step: number;
      readonly provider: string;
      readonly modelId: string;
      /** Who asks, where it is not the agent. */
      readonly purpose?: 'critic' | 'compactor';
    }
  | {
      readonly kind: 'tool';
      readonly run: ObservedRun;
      readonly step: number;
      readonly callId: string;
      readonly name: string;
      readonly effect: ToolEffect;
    };

/** How many runs the workers of a process could take besides, and how many they work on. */
export interface Places {
  readonly free: number;
  readonly busy: number;
}

/** What can be read of an executor at any time. */
export interface WatchedExecutor {
  /** The agents and workflows that it was made with. */
  readonly agentIds: readonly string[];
  /**
   * Reads the store at most each 5 s, and answers within a second.
   * @returns whether it answers, and its counts if it can count; undefined without a store, and after the shutdown
   */
  store(): Promise<{ readonly isUp: boolean; readonly stats?: RunStats } | undefined>;
  /** Undefined: no worker works. */
  places(): Places | undefined;
  /** Calls a function with the fields of each log line of level `warn` or `error`, also of lines that are repeated and not written. */
  onWarning(listener: (fields: LogFields) => void): void;
  /** Writes a line to the logger of the executor. */
  warn(event: 'tracing.ids.missing' | 'callback.threw', fields?: LogFields): void;
}

/**
 * Where traces go: a run is one trace over all its processes. `pawl/otel` makes one of OpenTelemetry. It cannot change a call, and an
 * error that it throws is logged.
 */
export interface Tracing {
  /**
   * Begins the trace of a run, before its first record is written.
   * @returns the text that the record keeps for later processes, at most 1,024 characters; undefined = none
   */
  begin(run: TracedRun): string | undefined;
  /** Calls `next` at once, and once, in the context of the call's span. Its result is that of the call. */
  enter(call: TracedCall, next: () => Promise<unknown>): void;
  /** Gets each event of each run, as an observer does. */
  event(event: RunEvent, run: ObservedRun): void;
  /** Returns whether nothing listens now: then no event and no call is given to it. Absent = it always listens. */
  isIdle?(): boolean;
  /** Gets what can be read of an executor: when it is made, and again each time that its health is asked. */
  watch?(executor: WatchedExecutor): void;
}

/** Checks the option `tracing`. @throws {TypeError} */
export function checkTracing(given: unknown, of: string): void {
  if (given === undefined) return;
  const methods = ['begin', 'enter', 'event'] as const;
  if (isObject(given) && methods.every((name) => typeof given[name] === 'function')) return;
  throw new TypeError(`${of}: tracing must be what openTelemetry() of pawl/otel returns, not ${kindOf(given)}`);
}

/** A tracing that cannot throw, and whose calls are always made. */
export interface GuardedTracing {
  isIdle(): boolean;
  begin(run: TracedRun): string | undefined;
  enter<Answer>(call: TracedCall, next: () => Promise<Answer>): Promise<Answer>;
  watch(executor: WatchedExecutor): void;
}

/** What makes the requests of a run. */
interface Asking {
  readonly services: { readonly config: { readonly tracing: GuardedTracing | undefined } };
  readonly observed: ObservedRun;
}

/** Makes a request of a run: one of a traced run has a span. Nothing of it is kept before, for a thousand runs wait for a model. */
export function callTraced(
  run: Asking,
  of: { readonly step: number; readonly purpose?: 'critic' | 'compactor' },
  [model, request]: Parameters<CallModel>,
): ReturnType<CallModel> {
  const { tracing } = run.services.config;
  if (!tracing || tracing.isIdle()) return callModel(model, request);
  const { provider, modelId } = model;
  const call = { kind: 'model', run: run.observed, provider, modelId, ...of } as const;
  return tracing.enter(call, () => callModel(model, request));
}

/** Guards a host's tracing: it changes no call, and its errors are logged. */
export function guardedTracing(tracing: Tracing | undefined, warn: Warn): GuardedTracing | undefined {
  if (!tracing) return undefined;
  const failed = (error: unknown) => warn('callback.threw', { what: 'tracing', error });
  return {
    isIdle() {
      try {
        return tracing.isIdle?.() === true;
      } catch (error) {
        failed(error);
        return true;
      }
    },
    begin(run) {
      try {
        const text: unknown = tracing.begin(run);
        letGo(text);
        return typeof text === 'string' && text !== '' && text.length <= TRACE_CHARS ? text : undefined;
      } catch (error) {
        failed(error);
        return undefined;
      }
    },
    watch(executor) {
      try {
        letGo(tracing.watch?.(executor) as unknown);
      } catch (error) {
        failed(error);
      }
    },
    enter<Answer>(call: TracedCall, next: () => Promise<Answer>) {
      let made: Promise<Answer> | undefined;
      // Also if a tracing calls it later: a call is made once.
      const make = () => {
        made ??= next();
        return made;
      };
      try {
        letGo(tracing.enter(call, make) as unknown);
      } catch (error) {
        failed(error);
      }
      return make();
    },
  };
}
