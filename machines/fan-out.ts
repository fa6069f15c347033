import {
  type ActorLogic,
  assign,
  type DoneActorEvent,
  enqueueActions,
  fromPromise,
  type Snapshot,
  setup,
} from 'xstate';
import type { Invocation } from '../src/run/request.ts';
import type { RunOutput } from '../src/run/result.ts';
import type { ErrorData } from '../src/values/error-data.ts';
import type { RunMachineEvent } from './context.ts';

/** A model of a fan-out, as its chart shows it. */
export interface ChartedModel {
  readonly id: string;
}

/** The result of opening: the request for each model, null for one that answered in an earlier process. */
export interface FanOutOpening {
  readonly invocations: readonly (Invocation | null)[];
}

export interface FanOutContext extends FanOutOpening {
  readonly hasJudge: boolean;
  /** How the run of each model ended, by its place; absent = it was not asked, or is running. */
  readonly outputs: { readonly [place: number]: RunOutput };
  /** Why a model had to stop, by its place. */
  readonly causes: { readonly [place: number]: ErrorData };
  /** Why all models had to stop before they were asked. */
  readonly cause?: ErrorData;
  /** Why no model was asked. */
  readonly error?: ErrorData;
}

export type FanOutEvent =
  /** All models stop, so that a later call continues them. */
  | { readonly type: 'fan-out.leave'; readonly cause: ErrorData }
  /** The time limit of one model is over. */
  | { readonly type: 'model.overdue'; readonly place: number; readonly cause: ErrorData }
  /** A model that should stop is still running because of a call with effects; the fan-out waits no longer. */
  | { readonly type: 'leave.overdue'; readonly place: number };

export type FanOutEmitted =
  | { readonly type: 'model.asked'; readonly place: number; readonly invocation: Invocation }
  | { readonly type: 'model.leaving'; readonly place: number }
  | { readonly type: 'model.ended'; readonly place: number; readonly output: RunOutput; readonly cause?: ErrorData };

/** What is seen of the run of one model. */
export type FanOutModelSnapshot = Snapshot<unknown> & {
  output: RunOutput;
  context?: { readonly output?: RunOutput | undefined };
};
type Shown = { readonly event: { readonly snapshot: FanOutModelSnapshot } };

/** The run of one model, as actor logic. */
export type FanOutModelRun = ActorLogic<FanOutModelSnapshot, RunMachineEvent, Invocation | undefined>;

/** One of the models, by its place in the list. */
export type FanOutPlace = { readonly place: number };
type Left = FanOutPlace & { readonly cause: ErrorData };

function notProvided(): never {
  throw new Error('this actor is provided by fanOut');
}

/** Statuses of a run that is not asked again: the next call continues a run of any other status. */
const ended: readonly RunOutput['status'][] = ['ok', 'error', 'killed'];

const runOf = (place: number) => `model(${place})` as const;

const pieces = setup({
  types: {
    context: {} as FanOutContext,
    input: {} as { readonly hasJudge: boolean },
    events: {} as
      | FanOutEvent
      | DoneActorEvent<FanOutOpening | { readonly error: ErrorData }, 'open'>
      | DoneActorEvent<void, 'judge'>
      | DoneActorEvent<void, 'close'>,
    emitted: {} as FanOutEmitted,
  },
  actors: {
    open: fromPromise<FanOutOpening | { readonly error: ErrorData }>(notProvided),
    model: fromPromise<RunOutput, Invocation | undefined>(notProvided) as unknown as FanOutModelRun,
    judge: fromPromise<void>(notProvided),
    close: fromPromise<void, FanOutContext>(notProvided),
  },
  guards: {
    isRefused: (_, found: FanOutOpening | { readonly error: ErrorData }) => 'error' in found,
    hasAnswered: ({ context }, { place }: FanOutPlace) => context.invocations[place] === null,
    isCalledOff: ({ context }) => context.cause !== undefined,
    isMine: ({ event }, { place }: FanOutPlace) => 'place' in event && event.place === place,
    isLeft: (_, { status }: RunOutput) => status === 'interrupted',
    hasOutput: (_, output: RunOutput | undefined) => output !== undefined,
    isOk: (_, { status }: RunOutput) => status === 'ok',
    /** A choice needs two answers, and an unfinished race is not judged. */
    isToJudge: ({ context: { hasJudge, invocations, outputs, causes, cause } }) => {
      const isAnswered = (place: number) => invocations[place] === null || outputs[place]?.status === 'ok';
      const answered = invocations.filter((_, place) => isAnswered(place));
      const isOver = Object.values<RunOutput>(outputs).every(({ status }) => ended.includes(status));
      return hasJudge && !cause && Object.keys(causes).length === 0 && isOver && answered.length > 1;
    },
  },
  actions: {
    takeUp: assign((_, found: FanOutOpening | { readonly error: ErrorData }) => found),
    callOff: assign((_, cause: ErrorData) => ({ cause })),
    announceAsked: enqueueActions(({ context, enqueue }, { place }: FanOutPlace) => {
      const invocation = context.invocations[place];
      if (invocation) enqueue.emit({ type: 'model.asked', place, invocation });
    }),
    /** Stops the run, so that its recorded progress is there for the next call. */
    leave: enqueueActions(({ context, enqueue }, { place, cause }: Left) => {
      enqueue.assign({ causes: { ...context.causes, [place]: cause } });
      enqueue.sendTo(runOf(place), { type: 'run.leave', cause });
      enqueue.emit({ type: 'model.leaving', place });
    }),
    stop: enqueueActions(({ context, enqueue }, { place }: FanOutPlace) => {
      const cause = context.causes[place];
      if (cause) enqueue.sendTo(runOf(place), { type: 'run.stop', cause });
    }),
    keepOutput: enqueueActions(
      ({ context, enqueue }, { place, output }: FanOutPlace & { readonly output: RunOutput }) => {
        enqueue.assign({ outputs: { ...context.outputs, [place]: output } });
        const cause = context.causes[place];
        enqueue.emit({ type: 'model.ended', place, output, ...(cause ? { cause } : {}) });
      },
    ),
  },
});

/** A run that is only left stays active: it has a result, and no end. */
const leftOutputOf = ({ event }: Shown) => event.snapshot.context?.output as RunOutput;

/** One model: its run is a child of the region, and stops when the region leaves `asking`. */
function region(place: number, id: string) {
  const mine = { place };
  const keepOutput = {
    type: 'keepOutput' as const,
    params: ({ event }: { event: { readonly output: RunOutput } }) => ({ place, output: event.output }),
  };
  const outputOf = ({ event }: { event: { readonly output: RunOutput } }) => event.output;
  return pieces.createStateConfig({
    description: `The answer of ${id}.`,
    initial: 'entering',
    states: {
      entering: {
        description: 'A model that answered in an earlier process is not asked again.',
        always: [
          { guard: { type: 'hasAnswered', params: mine }, target: 'answered' },
          { guard: 'isCalledOff', target: 'left' },
          { target: 'asking' },
        ],
      },
      asking: {
        description: 'Its run is working, with the loop, the tools and the limits of any other run.',
        entry: { type: 'announceAsked', params: mine },
        invoke: {
          id: runOf(place),
          src: runOf(place) as 'model',
          input: ({ context }) => context.invocations[place] ?? undefined,
          onDone: [
            { guard: { type: 'isOk', params: outputOf }, target: 'answered', actions: keepOutput },
            { guard: { type: 'isLeft', params: outputOf }, target: 'left', actions: keepOutput },
            { target: 'failed', actions: keepOutput },
          ],
          onSnapshot: {
            guard: { type: 'hasOutput', params: leftOutputOf },
            target: 'left',
            actions: { type: 'keepOutput', params: (moment: Shown) => ({ place, output: leftOutputOf(moment) }) },
          },
        },
        initial: 'working',
        states: {
          working: {
            description: 'It has not been stopped.',
            on: {
              'fan-out.leave': {
                target: 'leaving',
                actions: { type: 'leave', params: ({ event }) => ({ place, cause: event.cause }) },
              },
              'model.overdue': {
                guard: { type: 'isMine', params: mine },
                target: 'leaving',
                actions: { type: 'leave', params: ({ event }) => ({ place, cause: event.cause }) },
              },
            },
          },
          leaving: {
            description: 'It stops as soon as no call with effects is running.',
            on: {
              'leave.overdue': {
                guard: { type: 'isMine', params: mine },
                actions: { type: 'stop', params: mine },
              },
            },
          },
        },
      },
      answered: { type: 'final', description: 'There is an answer: the model is never asked again.' },
      failed: { type: 'final', description: 'There will be no answer; the other models continue.' },
      left: { type: 'final', description: 'Cancelled, or out of time: the next call continues it.' },
    },
  });
}

/**
 * Makes the statechart of a fan-out: one prompt, a region for each model in parallel; then the judge's choice, then the
 * files.
 */
export function fanOutMachine(models: readonly ChartedModel[]) {
  const regions = Object.fromEntries(models.map(({ id }, place) => [runOf(place), region(place, id)]));
  return pieces.createMachine({
    id: 'fan-out',
    context: ({ input }) => ({ ...input, invocations: [], outputs: {}, causes: {} }),
    on: { 'fan-out.leave': { actions: { type: 'callOff', params: ({ event }) => event.cause } } },
    initial: 'opening',
    states: {
      opening: {
        description: 'Claims the checkpoint file, and reads the results of earlier processes.',
        invoke: {
          id: 'open',
          src: 'open',
          onDone: [
            {
              guard: { type: 'isRefused', params: ({ event }) => event.output },
              target: 'closing',
              actions: { type: 'takeUp', params: ({ event }) => event.output },
            },
            { target: 'asking', actions: { type: 'takeUp', params: ({ event }) => event.output } },
          ],
        },
      },
      asking: {
        description: 'All models work at the same time; none affects another.',
        type: 'parallel',
        states: regions,
        onDone: [{ guard: 'isToJudge', target: 'judging' }, { target: 'closing' }],
      },
      judging: {
        description: 'The answers are ranked.',
        invoke: { id: 'judge', src: 'judge', onDone: { target: 'closing' } },
        on: { 'fan-out.leave': { target: 'closing' } },
      },
      closing: {
        description: 'The answers are written to their destination, or stay in the checkpoint file for the next call.',
        invoke: { id: 'close', src: 'close', input: ({ context }) => context, onDone: { target: 'closed' } },
      },
      closed: { type: 'final', description: 'The checkpoint file is released.' },
    },
  });
}
