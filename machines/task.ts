import type { ActorRefFromLogic, AnyActorRef, AnyEventObject, PromiseActorLogic } from 'xstate';

/** What a task is told. */
export interface TaskArgs<Output, Input> {
  readonly input: Input;
  /** The task's own actor. */
  readonly self: ActorRefFromLogic<PromiseActorLogic<Output, Input>>;
}

const DONE = 'task.done';
const FAILED = 'task.failed';
const STOP = 'xstate.stop';

/**
 * An actor that does one thing and ends with what came of it, like XState's `fromPromise`, but for a signal of its own: what
 * works for a run watches the run's. A thousand runs at once feel an AbortController for each call of a model and a tool.
 */
export function task<Output, Input = unknown>(
  work: (args: TaskArgs<Output, Input>) => PromiseLike<Output>,
): PromiseActorLogic<Output, Input> {
  return {
    getInitialSnapshot: (_, input) => ({ status: 'active', output: undefined, error: undefined, input }),
    start: ({ status, input }, { self }) => {
      if (status !== 'active') return;
      work({ input: input as Input, self: self as never }).then(
        (output) => tell(self, { type: DONE, output }),
        (error: unknown) => tell(self, { type: FAILED, error }),
      );
    },
    transition: (snapshot, event) => {
      if (snapshot.status !== 'active') return snapshot;
      const { error } = snapshot;
      if (event.type === DONE)
        return { status: 'done', output: event.output as Output, error: undefined, input: undefined };
      if (event.type === FAILED) return { status: 'error', output: undefined, error: event.error, input: undefined };
      if (event.type === STOP) return { status: 'stopped', output: undefined, error, input: undefined };
      return snapshot;
    },
    getPersistedSnapshot: (snapshot) => snapshot,
    restoreSnapshot: (snapshot) => snapshot as never,
  };
}

/** XState complains of events to an actor that was stopped meanwhile. */
function tell(self: AnyActorRef, event: AnyEventObject): void {
  if (self.getSnapshot().status === 'active') self.send(event);
}
