import { type ErrorData, toErrorData } from '../src/run/error-data.ts';
import { CancelledError, UnsupportedError } from '../src/run/errors.ts';
import type { CheckpointOutcome } from '../src/run/finalize.ts';
import { unresolvedLimits } from '../src/run/limits.ts';
import { loop } from './loop.ts';
import { pieces } from './setup.ts';

/** What the chart of a run depends on: the agent's phases, by name. */
export interface ChartedAgent {
  readonly id: string;
  readonly phases?: readonly { readonly name: string }[];
}

const cancelCause = ({ event }: { event: { readonly reason?: string } }): ErrorData =>
  toErrorData(new CancelledError(event.reason || 'the run was cancelled'));
const givenCause = ({ event }: { event: { readonly cause: ErrorData } }): ErrorData => event.cause;

/** The work of a run. One `running` for an agent without phases; an agent's phases become one state each, here. */
function stagesOf(agent: ChartedAgent) {
  if (agent.phases && agent.phases.length > 0) {
    throw new UnsupportedError(`agent ${agent.id} has phases; this version runs agents with a single loop`);
  }
  const running = pieces.createStateConfig({
    ...loop,
    description: 'The one loop of an agent without phases: model, tools, model, … until an answer or a limit.',
    entry: 'announceWork',
    onDone: { target: 'ending' },
    on: {
      'run.steer': { actions: { type: 'queueSteering', params: ({ event }) => event } },
      'run.cancel': { target: 'ending', actions: { type: 'stop', params: cancelCause } },
      'run.stop': { target: 'ending', actions: { type: 'stop', params: givenCause } },
    },
  });
  return { running };
}

/** A way out: one effect, then the end. Which of the three it is stands here as a literal, not in the context. */
function settling(outcome: CheckpointOutcome, description: string) {
  return pieces.createStateConfig({
    description,
    invoke: {
      id: 'settle',
      src: 'settle',
      input: ({ context: { progress, error, cause } }) => ({
        outcome,
        progress,
        ...(error ? { error } : {}),
        ...(cause ? { cause } : {}),
      }),
      onDone: { target: 'settled', actions: { type: 'keepOutput', params: ({ event }) => event.output } },
    },
  });
}

/**
 * The statechart of one run of an agent. It decides; whatever has effects is an actor that the executor provides.
 * @throws {UnsupportedError} for an agent with phases
 */
export function runMachine(agent: ChartedAgent) {
  return pieces.createMachine({
    id: 'run',
    context: ({ input }) => ({
      ...input,
      limits: unresolvedLimits,
      tools: {},
      isDurable: false,
      announced: 0,
      landed: 0,
      intents: [],
    }),
    output: ({ context }) => context.output as NonNullable<typeof context.output>,
    on: { 'boundary.landed': { actions: { type: 'markLanded', params: ({ event }) => event.boundary } } },
    initial: 'resolving',
    states: {
      resolving: {
        description:
          'Claims the run, reads its record, gets its model, tools and checkpointer, stores the first record.',
        exit: 'announceAccepted',
        invoke: {
          id: 'resolve',
          src: 'resolve',
          input: ({ context }) => ({ progress: context.progress }),
          onDone: { target: 'resolved', actions: { type: 'adopt', params: ({ event }) => event.output } },
        },
        on: {
          'run.cancel': { actions: { type: 'stop', params: cancelCause } },
          'run.stop': { actions: { type: 'stop', params: givenCause } },
        },
      },
      resolved: {
        description: 'Looks at what was found: an answer, an outcome to deliver, a refusal, or work to do.',
        always: [
          { guard: 'hasOutput', target: 'settled' },
          { guard: 'hasOutcome', target: 'ending' },
          { guard: 'hasEnded', target: 'ending' },
          { target: 'running' },
        ],
      },
      ...stagesOf(agent),
      ending: {
        description: 'The finalize matrix: success completes, a shutdown leaves the record, everything else fails it.',
        always: [
          { guard: 'isComplete', target: 'completing' },
          { guard: 'isLeaveRunning', target: 'leaving-running' },
          { target: 'failing' },
        ],
      },
      completing: settling('complete', 'The outcome is made durable and delivered, then the record goes.'),
      failing: settling('fail', 'The error is made durable and delivered, then the record goes.'),
      'leaving-running': settling('leave-running', 'The newest state is flushed; another process goes on from here.'),
      settled: { type: 'final', description: 'The run is over; its output is the result.' },
    },
  });
}

/** The machine of a run. */
export type RunMachine = ReturnType<typeof runMachine>;
