import { assign, emit, enqueueActions, fromPromise, setup } from 'xstate';

/** The context of a run's critic: plain data. All times are working time of the run, over all processes, in ms. */
export interface CriticContext {
  /** After this time silence raises an alarm; extensions move it. */
  readonly softLimitMs: number;
  /** An idle period is this long without a sign of life. */
  readonly idleMs: number;
  /** The fixed end of the run. */
  readonly backstopMs: number;
  readonly lastActivityMs: number;
  /** The alarm of this idle period was raised; activity and extensions reset it. */
  readonly isAlarmGiven: boolean;
  /** Idle alarms so far, and those since the last finished step. */
  readonly alarms: number;
  readonly alarmsInStep: number;
  readonly nudges: number;
  /** The number of finished steps at the last nudge. */
  readonly nudgedAtStep?: number;
  /** The longest extension of the agent's soft limit; 0 = none. */
  readonly extendedToMs: number;
  readonly raisedSteps: number;
  /** Questions without a usable answer. */
  readonly failures: number;
  /** The step limit was reached, and the escalator has not been asked about it yet. */
  readonly isOutOfSteps: boolean;
  /** Why the run is to be killed. */
  readonly verdict?: string;
}

/** The question to the escalator: the run is idle, or out of steps. */
export type CriticQuestion = 'idle' | 'steps';

/** The input of the actor that asks the escalator. */
export type CriticAsked = { readonly question: CriticQuestion };

/** A checked decision of an escalator. */
export interface CriticDecision {
  readonly nudge?: string;
  readonly extendByMs?: number;
  readonly raiseStepsBy?: number;
  /** The reason for the run's end; the rest of the decision is ignored then. */
  readonly kill?: string;
}

/** The answer to a question, and where the run was when it arrived. */
export interface CriticAnswer {
  readonly at: number;
  /** Finished steps. */
  readonly step: number;
  readonly decision: CriticDecision;
  readonly hasFailed: boolean;
}

export type CriticEvent =
  /** Signs of life, the last one at `at`; `hasStepped`: they include a finished step. */
  | { readonly type: 'activity.seen'; readonly at: number; readonly hasStepped: boolean }
  | { readonly type: 'time.passed'; readonly at: number }
  | { readonly type: 'steps.exhausted' }
  | { readonly type: 'run.ended' };

export type CriticEmitted =
  | { readonly type: 'nudge.given'; readonly text: string }
  | { readonly type: 'steps.raised'; readonly by: number }
  /** The question about the step limit is answered, and granted steps are in effect. */
  | { readonly type: 'steps.settled' }
  | { readonly type: 'kill.decided'; readonly reason: string };

/**
 * Returns when a watching critic must check the clock next, in working time. An alarm is due when the run is past its soft
 * limit and idle for long enough. A run that was condemned before a crash does not wait.
 */
export function nextLook(context: CriticContext): number {
  const { softLimitMs, idleMs, backstopMs, lastActivityMs, isAlarmGiven, verdict } = context;
  if (verdict !== undefined) return 0;
  return isAlarmGiven ? backstopMs : Math.min(backstopMs, Math.max(softLimitMs, lastActivityMs + idleMs));
}

/**
 * Returns the critic's context after a sign of life of the run: the next idle period has its own alarm, and a finished step
 * resets the alarms.
 */
export function afterActivity(
  context: CriticContext,
  { at, hasStepped }: { readonly at: number; readonly hasStepped: boolean },
): CriticContext {
  return {
    ...context,
    lastActivityMs: Math.max(context.lastActivityMs, at),
    isAlarmGiven: false,
    alarmsInStep: hasStepped ? 0 : context.alarmsInStep,
  };
}

function afterAnswer(context: CriticContext, answer: CriticAnswer): Partial<CriticContext> {
  const { at, step, decision, hasFailed } = answer;
  const { nudge, extendByMs, raiseStepsBy = 0 } = decision;
  const extendedToMs = extendByMs === undefined ? 0 : at + extendByMs;
  return {
    failures: context.failures + (hasFailed ? 1 : 0),
    ...(nudge === undefined ? {} : { nudges: context.nudges + 1, nudgedAtStep: step }),
    raisedSteps: context.raisedSteps + raiseStepsBy,
    extendedToMs: Math.max(context.extendedToMs, extendedToMs),
    softLimitMs: Math.max(context.softLimitMs, extendedToMs),
    // Granted time is not an idle period beyond the limit: when it is over, the critic looks again.
    isAlarmGiven: context.isAlarmGiven && extendedToMs <= context.softLimitMs,
  };
}

const pieces = setup({
  types: {
    context: {} as CriticContext,
    input: {} as CriticContext,
    events: {} as CriticEvent,
    emitted: {} as CriticEmitted,
  },
  actors: {
    'ask-escalator': fromPromise<CriticAnswer, CriticAsked & { readonly context: CriticContext }>(() => {
      throw new Error('this actor is provided by createCritic');
    }),
  },
  guards: {
    isOutOfTime: ({ context }, at: number) => at >= context.backstopMs,
    isCondemned: ({ context }) => context.verdict !== undefined,
    isAlarmDue: ({ context }, at: number) => at >= nextLook(context),
    isOutOfSteps: ({ context }) => context.isOutOfSteps,
    isKill: (_, { decision }: CriticAnswer) => decision.kill !== undefined,
  },
  actions: {
    noteActivity: assign(({ context }, seen: { at: number; hasStepped: boolean }) => afterActivity(context, seen)),
    noteOutOfSteps: assign({ isOutOfSteps: true }),
    takeUpSteps: assign({ isOutOfSteps: false }),
    giveAlarm: assign(({ context }) => ({
      isAlarmGiven: true,
      alarms: context.alarms + 1,
      alarmsInStep: context.alarmsInStep + 1,
    })),
    /** Executes the escalator's decision. */
    carryOut: enqueueActions(({ context, enqueue }, { question, ...answer }: CriticAnswer & CriticAsked) => {
      const { nudge, raiseStepsBy } = answer.decision;
      enqueue.assign(afterAnswer(context, answer));
      if (raiseStepsBy !== undefined) enqueue.emit({ type: 'steps.raised', by: raiseStepsBy });
      if (nudge !== undefined) enqueue.emit({ type: 'nudge.given', text: nudge });
      if (question === 'steps') enqueue.emit({ type: 'steps.settled' });
    }),
    condemn: assign((_, { decision }: CriticAnswer) => ({ verdict: decision.kill ?? '' })),
    blameBackstop: assign(({ context: { backstopMs } }) => ({
      verdict: `${backstopMs} ms of working time are used up (backstopMs)`,
    })),
    kill: emit(({ context }) => ({ type: 'kill.decided' as const, reason: context.verdict ?? '' })),
  },
});

/** The escalator is asked. The question is a literal here, not a value of the context. */
function asking(question: CriticQuestion) {
  return pieces.createStateConfig({
    description: 'The host is asked; a deadline limits the wait.',
    invoke: {
      id: 'ask',
      src: 'ask-escalator',
      input: ({ context }) => ({ question, context }),
      onDone: [
        {
          guard: { type: 'isKill', params: ({ event }) => event.output },
          target: 'killed',
          actions: { type: 'condemn', params: ({ event }) => event.output },
        },
        { target: 'watching', actions: { type: 'carryOut', params: ({ event }) => ({ ...event.output, question }) } },
      ],
    },
    on: {
      'activity.seen': { actions: { type: 'noteActivity', params: ({ event }) => event } },
      'time.passed': {
        guard: { type: 'isOutOfTime', params: ({ event }) => event.at },
        target: 'killed',
        actions: 'blameBackstop',
      },
    },
  });
}

const alarmed = asking('idle');

/**
 * Makes the machine of a critic, when a critic first has to decide: most processes that import the package have no critic.
 */
export function makeCriticMachine() {
  return pieces.createMachine({
    id: 'critic',
    context: ({ input }) => input,
    on: { 'run.ended': { target: '.stopped' } },
    initial: 'watching',
    states: {
      watching: {
        description: 'Signs of life are recorded, and the host is not asked.',
        always: { guard: 'isOutOfSteps', target: 'out-of-steps' },
        on: {
          'activity.seen': { actions: { type: 'noteActivity', params: ({ event }) => event } },
          'steps.exhausted': { target: 'out-of-steps' },
          'time.passed': [
            { guard: 'isCondemned', target: 'killed' },
            {
              guard: { type: 'isOutOfTime', params: ({ event }) => event.at },
              target: 'killed',
              actions: 'blameBackstop',
            },
            { guard: { type: 'isAlarmDue', params: ({ event }) => event.at }, target: 'alarmed' },
          ],
        },
      },
      alarmed: {
        ...alarmed,
        description:
          'The run is past its soft limit and was silent for too long: the host is asked, once for each silence.',
        entry: 'giveAlarm',
        on: { ...alarmed.on, 'steps.exhausted': { actions: 'noteOutOfSteps' } },
      },
      'out-of-steps': {
        ...asking('steps'),
        description: 'The run has used up its steps: the host is asked whether it may have more.',
        entry: 'takeUpSteps',
      },
      killed: { type: 'final', entry: 'kill', description: 'The run is ended. No further action follows.' },
      stopped: { type: 'final', description: 'The run is over, or another process continues it.' },
    },
  });
}
