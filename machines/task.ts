import type { ActorRefFromLogic, AnyActorRef, AnyEventObject, PromiseActorLogic } from 'xstate';

/** The arguments of a task. */
interface TaskArgs<Output, Input> {
  readonly input: Input;
  /** The task's own actor. */
  readonly self: ActorRefFromLogic<PromiseActorLogic<Output, Input>>;
}

const DONE = 'task.done';
const FAILED = 'task.failed';
const STOP = 'xstate.stop';

/**
 * Makes the actor logic of an asynchronous function: it does one thing and ends with its result. Unlike XState's
 * `fromPromise` it has no signal of its own: tasks of a run watch the run's signal. For a thousand runs at once, an
 * AbortController for each model and tool call costs measurable time.
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

/** XState warns about events to an actor that was stopped meanwhile. */
function tell(self: AnyActorRef, event: AnyEventObject): void {
  if (self.getSnapshot().status === 'active') self.send(event);
}
