import { pieces } from './setup.ts';
import { judgeInputOf } from './waiting.ts';

/** The run acts on a reply when everything before it is stored: at once, or when the store confirms it. */
const whenPersisted = [
  { guard: 'isLandedToJudge', target: 'judging-calls' },
  { guard: 'isLandedWithCalls', target: 'calling-tools' },
  { guard: 'isLandedToCheck', target: 'checking-output', actions: 'recordAnswer' },
  { guard: 'isLanded', target: 'answered', actions: 'recordAnswer' },
] as const;

/**
 * One agent loop, as a state. The `running` of a single-loop run and each phase of a pipeline are this state, with different
 * targets. It ends `answered`, `exhausted` (a limit was reached) or `failed` (the model call failed for good).
 */
export const loop = pieces.createStateConfig({
  description: 'The agent works: model, tools, model, … until it answers or a limit is reached.',
  initial: 'entering',
  states: {
    entering: {
      description: 'Between two steps. Everything before this point is in the transcript.',
      meta: { resumesAt: 'here' },
      always: [
        // Nearly every step takes this: one guard in place of all others.
        { guard: 'isFreeToAsk', target: 'calling-model', actions: 'applySteering' },
        { guard: 'hasCause', target: 'left', actions: 'announceStop' },
        { guard: 'hasUnjudgedStep', target: 'judging-calls' },
        { guard: 'hasOpenStep', target: 'calling-tools' },
        { guard: 'isSliceOver', target: 'left', actions: 'stopSlice' },
        { guard: 'isModelDue', target: 'calling-model', actions: 'applySteering' },
        { guard: 'isModelAway', target: 'waiting' },
        { guard: 'isAnsweredToCheck', target: 'checking-output' },
        { guard: 'isToolLoop', target: 'exhausted', actions: 'blameToolLoop' },
        { guard: 'isOutOfStepsWatched', target: 'asking-critic' },
        { guard: 'isOutOfStepsToCheck', target: 'checking-output' },
        { target: 'exhausted', actions: 'blameStepLimit' },
      ],
    },
    'asking-critic': {
      description: 'The step limit is reached; the critic may raise it.',
      invoke: {
        id: 'ask-critic',
        src: 'ask-critic',
        onDone: [
          { guard: 'isOutOfSteps', target: 'exhausted', actions: 'blameStepLimit' },
          { guard: 'isSliceOver', target: 'left', actions: 'stopSlice' },
          { target: 'calling-model', actions: 'applySteering' },
        ],
      },
    },
    'calling-model': {
      description: 'The model is asked for the next turn. The save of the step before may still be running.',
      entry: 'startModelCall',
      on: {
        'xstate.done.actor.model.*': [
          {
            guard: { type: 'isReply', params: ({ event }) => event.output },
            target: 'landing',
            actions: { type: 'keepReply', params: ({ event }) => event.output },
          },
          {
            guard: { type: 'isOutage', params: ({ event }) => event.output },
            target: 'waiting',
            actions: { type: 'keepOutage', params: ({ event }) => event.output },
          },
          {
            guard: { type: 'isOutageOver', params: ({ event }) => event.output },
            target: 'left',
            actions: [
              { type: 'keepReply', params: ({ event }) => event.output },
              { type: 'park', params: ({ event }) => event.output },
            ],
          },
          {
            guard: { type: 'isGivenBack', params: ({ event }) => event.output },
            target: 'left',
            actions: [
              { type: 'keepReply', params: ({ event }) => event.output },
              { type: 'giveBack', params: ({ event }) => event.output },
            ],
          },
          { target: 'failed', actions: { type: 'keepReply', params: ({ event }) => event.output } },
        ],
      },
    },
    landing: {
      description: 'The reply is here; it waits until the step before it is stored.',
      always: whenPersisted,
      on: { 'boundary.persisted': whenPersisted },
    },
    'judging-calls': {
      description:
        'Each call is judged once, by its tool and by the executor: it runs, is denied, or waits for a person.',
      invoke: {
        id: 'judge-calls',
        src: 'judge-calls',
        input: ({ context: { progress, reply, tools } }) => judgeInputOf(progress, reply, tools),
        onDone: { target: 'calling-tools', actions: { type: 'keepJudgements', params: ({ event }) => event.output } },
      },
    },
    'calling-tools': {
      description: 'The tool calls of one message run in parallel; those with effects once their intent is stored.',
      meta: { resumesAt: 'here' },
      entry: 'startTools',
      always: [
        { guard: 'isStepAnswered', target: 'entering', actions: { type: 'closeStep', params: undefined } },
        { guard: 'isFreeToLeave', target: 'left', actions: 'announceStop' },
        { guard: 'isIdle', target: 'waiting' },
        { guard: 'isFreeToYield', target: 'left', actions: 'stopSlice' },
      ],
      on: {
        'xstate.done.actor.tool.*': [
          {
            guard: { type: 'isLastResult', params: ({ event }) => event.output },
            target: 'entering',
            actions: { type: 'closeStep', params: ({ event }) => event.output },
          },
          { actions: { type: 'takeResult', params: ({ event }) => event.output } },
        ],
        'boundary.persisted': { actions: 'startIntended' },
      },
    },
    waiting: {
      description:
        'Each open call has answered or waits for something from outside, or the model is away, or has a later turn.',
      tags: 'waiting',
      meta: { resumesAt: 'here' },
      entry: 'announceWaiting',
      exit: 'announceWoken',
      always: [
        { guard: 'isStepAnswered', target: 'entering', actions: { type: 'closeStep', params: undefined } },
        { guard: 'hasCause', target: 'left', actions: 'announceStop' },
        { guard: 'hasCallsToRun', target: 'calling-tools' },
        { guard: 'isModelDueTooLate', target: 'left', actions: 'stopSlice' },
        { guard: 'isModelDue', target: 'calling-model', actions: 'applySteering' },
      ],
      invoke: {
        id: 'rest',
        src: 'rest',
        onDone: { target: 'left', actions: { type: 'stop', params: ({ event }) => event.output.cause } },
      },
    },
    'checking-output': {
      description: 'The answer is checked against the output schema; one that does not fit gets one repair turn.',
      invoke: {
        id: 'check-output',
        src: 'check-output',
        input: ({ context }) => ({ progress: context.progress }),
        onDone: [
          {
            guard: { type: 'isFit', params: ({ event }) => event.output },
            target: 'answered',
            actions: { type: 'keepData', params: ({ event }) => event.output },
          },
          {
            guard: 'canRepair',
            target: 'entering',
            actions: { type: 'askForRepair', params: ({ event }) => event.output },
          },
          { target: 'failed', actions: { type: 'blameOutput', params: ({ event }) => event.output } },
        ],
      },
    },
    answered: { type: 'final', description: 'The model answered without asking for tools.' },
    exhausted: { type: 'final', description: 'A limit was reached: steps, failing tools, or one repeated call.' },
    left: {
      type: 'final',
      description: 'The host is shutting down, or the slice is over: no call that must end is running.',
    },
    failed: { type: 'final', description: 'The model call failed for good, or its answer does not fit the schema.' },
  },
});
