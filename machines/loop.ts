import { pieces } from './setup.ts';

/** A reply is acted upon when everything before it is recorded, be that as it comes or with the word that it is now. */
const whenPersisted = [
  { guard: 'isLandedWithCalls', target: 'calling-tools' },
  { guard: 'isLandedToCheck', target: 'checking-output', actions: 'recordAnswer' },
  { guard: 'isLanded', target: 'answered', actions: 'recordAnswer' },
] as const;

/**
 * One agent loop, as a state: the `running` of a single-loop run and each phase of a pipeline are this state with
 * different ways out. It ends `answered`, `exhausted` (a limit was reached) or `failed` (the model gave up).
 */
export const loop = pieces.createStateConfig({
  description: 'The agent works: model, tools, model, … until it answers or a limit is reached.',
  initial: 'entering',
  states: {
    entering: {
      description: 'Between two steps. Everything before this point is in the transcript.',
      meta: { resumesAt: 'here' },
      always: [
        { guard: 'hasCause', target: 'left', actions: 'announceStop' },
        { guard: 'hasOpenStep', target: 'calling-tools' },
        { guard: 'isAnsweredToCheck', target: 'checking-output' },
        { guard: 'isToolLoop', target: 'exhausted', actions: 'blameToolLoop' },
        { guard: 'isOutOfStepsWatched', target: 'asking-critic' },
        { guard: 'isOutOfStepsToCheck', target: 'checking-output' },
        { guard: 'isOutOfSteps', target: 'exhausted', actions: 'blameStepLimit' },
        { target: 'calling-model', actions: 'applySteering' },
      ],
    },
    'asking-critic': {
      description: 'The step limit is reached; the critic may raise it.',
      invoke: {
        id: 'ask-critic',
        src: 'ask-critic',
        onDone: [
          { guard: 'isOutOfSteps', target: 'exhausted', actions: 'blameStepLimit' },
          { target: 'calling-model', actions: 'applySteering' },
        ],
      },
    },
    'calling-model': {
      description: 'The model is asked for the next turn. The save of the step before may still be under way.',
      entry: 'startModelCall',
      on: {
        'xstate.done.actor.model.*': [
          {
            guard: { type: 'isModelError', params: ({ event }) => event.output },
            target: 'failed',
            actions: { type: 'keepReply', params: ({ event }) => event.output },
          },
          { target: 'landing', actions: { type: 'keepReply', params: ({ event }) => event.output } },
        ],
      },
    },
    landing: {
      description: 'The reply is here; it is not acted upon before the step before it is recorded.',
      always: whenPersisted,
      on: { 'boundary.persisted': whenPersisted },
    },
    'calling-tools': {
      description: 'The tool calls of one message run side by side; those with effects once their intent is recorded.',
      meta: { resumesAt: 'here' },
      entry: 'startTools',
      always: [
        { guard: 'isStepAnswered', target: 'entering', actions: { type: 'closeStep', params: undefined } },
        { guard: 'isFreeToLeave', target: 'left', actions: 'announceStop' },
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
    'checking-output': {
      description: 'The answer is held against the output schema; one that does not fit gets one turn of repair.',
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
    exhausted: { type: 'final', description: 'A limit was reached: steps, failing tools, or one call over and over.' },
    left: { type: 'final', description: 'The host is shutting down, and no call with effects is under way any more.' },
    failed: { type: 'final', description: 'The model call failed for good, or its answer does not fit the schema.' },
  },
});
