import type { CheckpointOutcome } from '../src/run/finalize.ts';
import { type ErrorData, toErrorData } from '../src/values/error-data.ts';
import { CancelledError } from '../src/values/errors.ts';
import { unresolved } from './context.ts';
import { loop } from './loop.ts';
import { pieces } from './setup.ts';

/** The input of a run's chart: the agent's phases, by name. */
export interface ChartedAgent {
  readonly id: string;
  readonly phases?: readonly { readonly name: string }[];
}

const cancelCause = ({ event }: { event: { readonly reason?: string } }): ErrorData =>
  toErrorData(new CancelledError(event.reason || 'the run was cancelled'));
const givenCause = ({ event }: { event: { readonly cause: ErrorData } }): ErrorData => event.cause;

/** The events that a working run handles, in each of its loops. */
export const work = pieces.createStateConfig({
  description: 'An agent at work.',
  on: {
    'run.steer': { actions: { type: 'queueSteering', params: ({ event }) => event } },
    'run.nudge': { actions: { type: 'queueNudge', params: ({ event }) => event.message } },
    'run.raise': { actions: { type: 'raiseSteps', params: ({ event }) => event.by } },
    'run.progressed': { actions: 'countProgress' },
    'run.forget': { actions: { type: 'forgetCommands', params: ({ event }) => event.commands } },
    'wait.answer': { actions: { type: 'answerWait', params: ({ event }) => event } },
    'run.yield': { actions: { type: 'yieldSlice', params: givenCause } },
    'run.cancel': { target: 'ending', actions: { type: 'stop', params: cancelCause } },
    'run.stop': { target: 'ending', actions: { type: 'stop', params: givenCause } },
    'run.leave': [
      { guard: 'hasEffectUnderWay', actions: { type: 'keepCause', params: givenCause } },
      { target: 'ending', actions: { type: 'stop', params: givenCause } },
    ],
  },
});

/** An agent without phases: one loop. */
const running = pieces.createStateConfig({
  ...loop,
  ...work,
  description: 'The only loop of an agent without phases: model, tools, model, … until an answer or a limit.',
  entry: 'announceWork',
  onDone: { target: 'ending' },
});

/** One phase of a pipeline: the same loop, with its own conversation. */
function phase(index: number, { name, count }: { readonly name: string; readonly count: number }) {
  return pieces.createStateConfig({
    ...loop,
    ...work,
    description: `Phase ${index + 1} of ${count}: ${name}.`,
    entry: 'beginPhase',
    onDone: [{ guard: 'isPhasePassable', target: 'between-phases', actions: 'closePhase' }, { target: 'ending' }],
  });
}

/** Only for the types: the states of a chart depend on its agent. */
export type Stages = { readonly running: typeof running } & {
  readonly [Name in 'between-phases' | 'phase(0)']: typeof work;
};

/** The work of a run: one `running` for an agent without phases; else one state for each phase. */
function stagesOf({ phases = [] }: ChartedAgent): Stages {
  if (phases.length === 0) return { running } as Stages;
  const count = phases.length;
  const betweenPhases = pieces.createStateConfig({
    description: 'Selects the next phase: the first that is not complete; none = the pipeline is done.',
    meta: { resumesAt: 'here' },
    always: [
      ...phases.map((_, index) => ({
        guard: { type: 'isNextPhase' as const, params: { index } },
        target: `phase(${index})`,
      })),
      { target: 'ending' },
    ],
  });
  const states = phases.map(({ name }, index) => [`phase(${index})`, phase(index, { name, count })]);
  return { 'between-phases': betweenPhases, ...Object.fromEntries(states) } as Stages;
}

/** A way out: one effect, then the end. Which of the three it is, is a literal here, not a value of the context. */
function settling(outcome: CheckpointOutcome, description: string) {
  return pieces.createStateConfig({
    description,
    invoke: {
      id: 'settle',
      src: 'settle',
      input: ({ context: { progress, error, cause, data } }) => ({
        outcome,
        progress,
        ...(error ? { error } : {}),
        ...(cause ? { cause } : {}),
        ...(data === undefined ? {} : { data }),
      }),
      onDone: [
        {
          guard: { type: 'isOnlyLeft', params: ({ event }) => event.output },
          target: 'left',
          actions: { type: 'keepOutput', params: ({ event }) => event.output },
        },
        { target: 'settled', actions: { type: 'keepOutput', params: ({ event }) => event.output } },
      ],
    },
  });
}

/** A run of a host's machine that this process has left, and that is not over. `executor.start` has no such state: it answers. */
const left = pieces.createStateConfig({
  description:
    'A host’s machine has the run, and this process has left it: its child stays active, and tries the run again when it may.',
  meta: { resumesAt: 'here' },
  invoke: {
    id: 'await-retry',
    src: 'await-retry',
    input: ({ context: { output, cancel } }) => ({
      output: output as NonNullable<typeof output>,
      ...(cancel ? { cancel } : {}),
    }),
    onDone: { target: 'resolving', actions: { type: 'beginAgain', params: ({ event }) => event.output } },
  },
  on: { 'run.cancel': { actions: { type: 'keepCancel', params: cancelCause } } },
  initial: 'interrupted',
  states: {
    interrupted: {
      description:
        'Another process has the run, its store is away, its setup is missing here, or the executor is shut down.',
      always: { guard: 'isParked', target: 'parked' },
    },
    parked: {
      description: 'The run is parked: it is tried again when it is unparked, or has ended.',
      tags: 'parked',
    },
  },
});

/** The statechart of one run of an agent. It decides; every effect is an actor that the executor provides. */
export function runMachine(agent: ChartedAgent) {
  return chartOf('run', stagesOf(agent), agent.phases?.length ? 'between-phases' : 'running');
}

/** What each run has around its work: its start, and its ways out. @param first the stage in which the work begins */
export function chartOf(id: string, stages: Stages, first: 'between-phases' | 'running') {
  return pieces.createMachine({
    id,
    context: ({ input }) => ({ ...unresolved, ...input }),
    output: ({ context }) => context.output as NonNullable<typeof context.output>,
    on: { 'boundary.persisted': { actions: { type: 'markPersisted', params: ({ event }) => event.boundary } } },
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
          'run.steer': { actions: { type: 'holdSteering', params: ({ event }) => event } },
          'run.nudge': { actions: { type: 'holdNudge', params: ({ event }) => event.message } },
          'run.raise': { actions: { type: 'holdRaise', params: ({ event }) => event.by } },
          'run.yield': { actions: { type: 'yieldSlice', params: givenCause } },
          'run.cancel': { actions: { type: 'stop', params: cancelCause } },
          'run.stop': { actions: { type: 'stop', params: givenCause } },
          'run.leave': { actions: { type: 'stop', params: givenCause } },
        },
      },
      resolved: {
        description: 'Checks what was found: an answer, an outcome to deliver, a refusal, or work to do.',
        entry: 'queueHeld',
        always: [
          { guard: { type: 'isOnlyLeft', params: ({ context }) => context.output }, target: 'left' },
          { guard: 'hasOutput', target: 'settled' },
          { guard: 'hasOutcome', target: 'ending' },
          { guard: 'hasAllPhases', target: 'ending', actions: 'forgetError' },
          { guard: 'hasEnded', target: 'ending' },
          { target: first },
        ],
      },
      ...stages,
      ending: {
        description: 'The finalize matrix: success completes, a shutdown leaves the record, everything else fails it.',
        entry: 'stopWork',
        always: [
          { guard: 'isComplete', target: 'completing' },
          { guard: 'isLeaveRunning', target: 'leaving-running' },
          { target: 'failing' },
        ],
      },
      completing: settling('complete', 'The outcome is stored and delivered, then the record is deleted.'),
      failing: settling('fail', 'The error is stored and delivered, then the record is deleted.'),
      'leaving-running': settling('leave-running', 'The newest state is saved; another process continues from here.'),
      left,
      settled: { type: 'final', description: 'The run is over; its output is the result.' },
    },
  });
}

/** The machine of a run. */
export type RunMachine = ReturnType<typeof runMachine>;
