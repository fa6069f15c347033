import type { Agent } from '../../agent/agent.ts';
import { isShutdown } from '../../run/finalize.ts';
import type { JournalEvent } from '../../run/journal/reader.ts';
import { okOrThrow, type RunResult } from '../../run/result.ts';
import { hasCode, readProperty } from '../../values/error-data.ts';
import { UndeliveredError } from '../../values/errors.ts';
import { checkKeys } from '../../values/known-options.ts';
import type { Workflow } from '../../workflow/workflow.ts';
import { controlOf } from '../lifecycle/control.ts';
import { readEvents } from '../lifecycle/read-events.ts';
import { type StartCall, startRun } from '../lifecycle/start.ts';
import type { ExecutorServices } from '../run/active-run.ts';
import type { Run } from '../run/handle.ts';
import type { FollowedRuns } from './followed-runs.ts';

/** What an admission needs. */
interface Admitting {
  readonly services: ExecutorServices;
  readonly followed: FollowedRuns;
}

/**
 * Admits a run: its first record is stored, and it is due. No part of it is worked on here. A repeated admission finds its record,
 * and reports again that it is due.
 * @throws {TypeError} for a wrong call, and nothing else
 */
export async function admitRun(admitting: Admitting, agent: Agent | Workflow, call: StartCall): Promise<Run> {
  const first = await startRun(admitting.services, agent, call);
  if (first.accepted === 'refused' || first.accepted === 'ended') return first;
  await report(admitting.services, first);
  const ended = Promise.withResolvers<void>();
  const run = followedRun(admitting, first, ended.resolve);
  followSignal(admitting.services, run, { signal: call.options.signal, ended: ended.promise });
  return run;
}

/** Reports when the run is due. One that is live here is not; nor is one that rests until it has an answer. */
async function report(services: ExecutorServices, { runId, actor, result }: Run): Promise<void> {
  const { hints } = services.config;
  const run = services.runBehind(actor);
  const { admitted, isResting } = run?.life ?? {};
  // It has not ended.
  if (admitted) services.registry.forget(runId);
  if (admitted || run?.startFacts.isElsewhere) return hints.tell(runId);
  if (!isResting) return;
  const rested = await result;
  if (rested.status === 'waiting' && rested.wakeAt !== undefined) hints.tell(runId, rested.wakeAt);
}

/** The handle of a run that any process may work on. @param onEnd called when its end is known */
function followedRun({ services, followed }: Admitting, first: Run, onEnd: () => void): Run {
  const { runId, agentId, accepted, actor } = first;
  const control = controlOf(services, runId);
  let end: Promise<RunResult> | undefined;
  // A host that answers its request and reads no result keeps nothing here.
  const result = () => {
    if (end) return end;
    end = followed.follow(runId);
    void end.then(onEnd);
    return end;
  };
  return {
    ...{ runId, agentId, accepted, actor },
    get result() {
      return result();
    },
    orThrow: () => okOrThrow(result()),
    events: (options = {}) => {
      checkKeys(options, { after: true }, { of: 'events' });
      return eventsAfter(readEvents(services, runId, {}), options.after ?? 0);
    },
    async steer(text, options) {
      try {
        const state = await control.steer(text, options);
        return state === 'sent' ? 'durable' : state;
      } catch (error) {
        if (!hasCode(error, 'RUN_NOT_FOUND')) throw error;
        throw new UndeliveredError(`run ${runId} is over`, { cause: error });
      }
    },
    async cancel(reason) {
      try {
        await control.cancel(reason);
      } catch (error) {
        // It is over.
        if (!hasCode(error, 'RUN_NOT_FOUND')) throw error;
      }
      const ended = result();
      followed.look(runId);
      return ended;
    },
  };
}

/** Skips the events that the reader has. */
function eventsAfter(events: AsyncIterableIterator<JournalEvent>, after: number): AsyncIterableIterator<JournalEvent> {
  return {
    async next() {
      for (;;) {
        const next = await events.next();
        if (next.done || next.value.seq > after) return next;
      }
    },
    return: async () => (await events.return?.()) ?? { done: true, value: undefined },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

interface Caller {
  readonly signal: AbortSignal | undefined;
  /** Resolves when the end of the run is known here, which it is only if `result` is read. */
  readonly ended: Promise<void>;
}

/** A caller's abort cancels the run, wherever it is, unless the host shuts down. */
function followSignal({ config }: ExecutorServices, run: Run, { signal, ended }: Caller): void {
  if (!signal) return;
  const cancel = () => {
    if (isShutdown(readProperty(signal, 'reason'))) return;
    run.cancel('the caller aborted the run').catch((error: unknown) => {
      config.warn('run.cancel.failed', { runId: run.runId, error });
    });
  };
  if (signal.aborted) {
    cancel();
    return;
  }
  signal.addEventListener('abort', cancel, { once: true });
  // A signal of a host's own may have no such method.
  ended.then(() => signal.removeEventListener('abort', cancel)).catch(() => {});
}
