import type { Progress } from '../src/run/progress.ts';
import type { WorkflowAdvance } from '../src/run/workflow/advanced.ts';
import { chartOf, type Stages, work } from './run.ts';
import { pieces } from './setup.ts';

/** The machine of a workflow has ended, and events for other runs are on their way. */
const sending = pieces.createStateConfig({
  description: 'The machine has ended: what it sent to other runs arrives before its end is recorded.',
  meta: { resumesAt: 'here' },
  // A machine that has ended takes no event: its sender need not wait for the end of the run.
  on: { 'workflow.event': { actions: { type: 'ignoreEvent', params: ({ event }) => event.entered } } },
  always: [
    { guard: 'isAllSent', target: 'working' },
    { guard: 'isFreeToLeave', target: 'left', actions: 'announceStop' },
    { guard: 'isFreeToYield', target: 'left', actions: 'stopSlice' },
  ],
});

/** Calls begin after their transition is stored, and after their judgement. */
const judging = pieces.createStateConfig({
  description: 'Calls whose tool or executor has a rule are judged: each runs, is denied, or waits for a person.',
  meta: { resumesAt: 'here' },
  invoke: {
    id: 'judge-calls',
    src: 'judge-calls',
    input: ({ context: { progress } }) => ({ progress }),
    onDone: { target: 'working', actions: { type: 'startJudgedCalls', params: ({ event }) => event.output } },
  },
});

/**
 * The statechart of one run of a workflow. The machine of the workflow is data of its progress; this chart says when it takes what
 * is there, and what is stored before its calls begin.
 * @param advance lets the machine take what is there: see `src/workflow/advance.ts`
 */
export function workflowMachine(advance: (progress: Progress) => WorkflowAdvance) {
  const running = pieces.createStateConfig({
    ...work,
    description: 'A workflow at work: its machine takes events, and its calls run.',
    entry: 'announceWork',
    initial: 'advancing',
    on: {
      ...work.on,
      'workflow.event': { actions: { type: 'enterEvent', params: ({ event }) => event } },
      'workflow.sent': { actions: { type: 'forgetMessage', params: ({ event }) => event.id } },
      'xstate.done.actor.tool.*': { actions: { type: 'keepCallResult', params: ({ event }) => event.output } },
      'boundary.persisted': { actions: 'startIntended' },
    },
    states: {
      advancing: {
        description: 'The machine takes all that is there, one after the other; one save has what comes of it.',
        meta: { resumesAt: 'here' },
        invoke: {
          id: 'take-turn',
          src: 'take-turn',
          onDone: {
            target: 'working',
            actions: { type: 'applyAdvance', params: ({ context }) => advance(context.progress) },
          },
        },
      },
      working: {
        description: 'Calls run, each once the transition that asked for it is stored.',
        meta: { resumesAt: 'here' },
        always: [
          { guard: 'isEndUnsent', target: 'sending' },
          { guard: 'hasEnded', target: 'failed' },
          { guard: 'isMachineDone', target: 'done' },
          { guard: 'hasNews', target: 'advancing' },
          { guard: 'isFreeToLeave', target: 'left', actions: 'announceStop' },
          { guard: 'isFreeToYield', target: 'left', actions: 'stopSlice' },
          { guard: 'hasCallsToJudge', target: 'judging-calls' },
          { guard: 'isStill', target: 'waiting' },
        ],
      },
      'judging-calls': judging,
      waiting: {
        description: 'The machine waits for an answer, an event, a time or a child run.',
        tags: 'waiting',
        meta: { resumesAt: 'here' },
        entry: 'announceWaiting',
        exit: 'announceWoken',
        always: [
          { guard: 'hasNews', target: 'advancing' },
          { guard: 'hasCause', target: 'left', actions: 'announceStop' },
          { guard: 'hasCallsToRun', target: 'working' },
        ],
        invoke: {
          id: 'rest',
          src: 'rest',
          onDone: { target: 'left', actions: { type: 'stop', params: ({ event }) => event.output.cause } },
        },
      },
      sending,
      done: { type: 'final', description: 'The machine is in a final state.' },
      failed: { type: 'final', description: 'The machine threw, or an error came that no state of it takes.' },
      left: {
        type: 'final',
        description: 'The host is shutting down, or the slice is over: no call that must end runs.',
      },
    },
    onDone: { target: 'ending' },
  });
  return chartOf('workflow', { running } as unknown as Stages, 'running');
}
