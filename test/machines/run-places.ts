import type { RunOutcome, Wait } from 'pawl';
import { type RunMachineEvent, runMachine } from 'pawl/machines';
import type { PhaseFacts } from 'pawl/stores/kit';
import { freshProgress, runEvents } from 'pawl/testing';
import { initialTransition, transition } from 'xstate';
import { CriticKillError, ModelError, ShutdownError } from '../../src/values/errors.ts';

export type Machine = ReturnType<typeof runMachine>;
export type Snapshot = ReturnType<typeof initialTransition<Machine>>[0];

/** A place at which a run waits, and the events that bring a new run there. */
export interface Place {
  readonly title: string;
  /** The state that the run waits in, for example `running.calling-model`. */
  readonly state: string;
  readonly machine: Machine;
  readonly events: readonly RunMachineEvent[];
  /** A call with effects is under way: a run that has to leave waits for this answer. */
  readonly effect?: RunMachineEvent;
}

export const machines = {
  single: runMachine({ id: 'worker' }),
  pipeline: runMachine({ id: 'worker', phases: [{ name: 'first' }, { name: 'second' }] }),
} as const;

const { accepted, replied, toolAnswered, landed, judged, modelAway } = runEvents;

const phase = (name: string, isOptional: boolean): PhaseFacts => ({
  name,
  hash: name,
  maxSteps: 4,
  isBare: false,
  isOptional,
  fallback: 'none',
  recovery: 'step',
});
const phases = [phase('first', true), phase('second', false)];
const limits = {
  maxSteps: 1,
  maxRuntimeMs: 60_000,
  maxConsecutiveToolErrors: 3,
  maxSameToolCallRepeats: 3,
  toolConcurrency: 8,
};
const once = { isDurable: true, tools: { look: { effect: 'once' } } } as const;

const asks = replied({ calls: [{ callId: 'c1', name: 'look' }] });
const found = toolAnswered(0, 'c1', 'found');
const answer = replied({ text: 'the answer' });

const asked = { isDurable: true, tools: { look: { effect: 'once', asks: true } } } as const;
const approval: Wait = {
  ...{ id: 'w', createdAt: 1, step: 1, callId: 'c1', tool: 'look', kind: 'approval' },
  ...{ digest: 'd', quorum: 1, votes: [], editable: false, onExpiry: 'deny' },
};
const retry: Wait = {
  ...{ id: 'w', createdAt: 1, dueAt: 2, step: 1, kind: 'retry' },
  ...{ error: { name: 'ModelError', code: 'MODEL', message: 'away' }, failures: 1, since: 1, needsPerson: false },
};

/** Each state in which a run can be met by an event, in each of the situations that the charts tell apart. */
export const places: readonly Place[] = [
  place('while it resolves', 'resolving', []),
  place('during its first model call', 'running.calling-model', [accepted()]),
  place('during a later model call', 'running.calling-model', [accepted(), asks, found]),
  place('during a model call while its last step is being saved', 'running.calling-model', [
    accepted({ isDurable: true }),
    asks,
    found,
  ]),
  place('with its answer while its last step is being saved', 'running.landing', [
    accepted({ isDurable: true }),
    asks,
    found,
    answer,
  ]),
  place('during a call that reads', 'running.calling-tools', [accepted(), asks]),
  place('while the intent of a call with effects is being saved', 'running.calling-tools', [accepted(once), asks]),
  {
    ...place('during a call with effects', 'running.calling-tools', [accepted(once), asks, landed(1)]),
    effect: found,
  },
  place('while its calls are judged', 'running.judging-calls', [accepted(asked), asks]),
  place('while its call waits for a person', 'running.waiting', [
    accepted(asked),
    asks,
    judged([{ callId: 'c1', verdict: 'ask', wait: approval }]),
  ]),
  place('while its model is away', 'running.waiting', [
    accepted({ isDurable: true }),
    modelAway(new Error('503'), retry),
  ]),
  place('while its answer is checked', 'running.checking-output', [accepted({ hasOutputSchema: true }), answer]),
  place('while its critic is asked for more steps', 'running.asking-critic', [
    accepted({ isWatched: true, limits }),
    asks,
    found,
  ]),
  inPipeline('in an optional phase', 'phase(0).calling-model', []),
  inPipeline('in a tool call of an optional phase', 'phase(0).calling-tools', [asks]),
  {
    ...place('during a call with effects of an optional phase', 'phase(0).calling-tools', [
      accepted({ ...once, phases }),
      ...[asks, landed(1)],
    ]),
    machine: machines.pipeline,
    effect: found,
  },
  inPipeline('in its last phase', 'phase(1).calling-model', [answer]),
];

function place(title: string, state: string, events: readonly RunMachineEvent[]): Place {
  return { title, state, machine: machines.single, events };
}

function inPipeline(title: string, state: string, events: readonly RunMachineEvent[]): Place {
  return { title, state, machine: machines.pipeline, events: [accepted({ phases }), ...events] };
}

/** A run that has ended: what it came to is found, and only delivered. */
export function delivered(end: 'ok' | 'error'): RunMachineEvent {
  const facts = { runId: 'run-1', output: '', iterations: 1, phases: [], undelivered: [], saveErrors: 0 };
  const usage = { inputTokens: 0, outputTokens: 0, reasoningTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };
  const kept = { ...facts, usage, durable: true, outcomeId: 'run-1:1' };
  const error = { name: 'ModelError', code: 'MODEL', message: 'it is gone' } as const;
  const outcome: RunOutcome = end === 'ok' ? { ...kept, status: 'ok' } : { ...kept, status: 'error', error };
  return accepted({ progress: { ...freshProgress(), outcome } });
}

/** The ways in which a run ends by itself: events from its beginning on, and the way out. */
export const ownEnds: readonly {
  readonly title: string;
  readonly events: readonly RunMachineEvent[];
  readonly way: Way;
}[] = [
  { title: 'answers', events: [accepted(), answer], way: 'completing' },
  {
    title: 'answers before its last step is saved',
    events: [accepted({ isDurable: true }), asks, found, answer, landed(1)],
    way: 'completing',
  },
  {
    title: 'gives an answer that fits its schema',
    events: [accepted({ hasOutputSchema: true }), answer, runEvents.checked({ data: 1 })],
    way: 'completing',
  },
  { title: 'had answered before', events: [delivered('ok')], way: 'completing' },
  { title: 'had failed before', events: [delivered('error')], way: 'failing' },
  {
    title: 'gives twice an answer that does not fit its schema',
    events: [
      accepted({ hasOutputSchema: true }),
      ...[answer, runEvents.checked({ problem: 'no number' }), answer, runEvents.checked({ problem: 'no number' })],
    ],
    way: 'failing',
  },
  { title: 'uses up its steps', events: [accepted({ limits }), asks, found], way: 'failing' },
  {
    title: 'calls the same failing tool over and over',
    events: [
      accepted(),
      ...[1, 2, 3].flatMap((step) => [
        replied({ calls: [{ callId: `c${step}`, name: 'look', input: { step } }] }),
        toolAnswered(0, `c${step}`, { type: 'error-text', value: 'broken' }),
      ]),
    ],
    way: 'failing',
  },
];

/** Each kind of event that a run can be sent, at the right time or not. */
export const everyEvent: readonly RunMachineEvent[] = [
  ...[accepted(), delivered('ok'), delivered('error'), runEvents.refused(new ModelError('refused'))],
  ...[asks, answer, found, runEvents.modelFailed(new ModelError('it is gone')), landed(1)],
  ...[runEvents.checked({ data: 1 }), runEvents.checked({ problem: 'no number' })],
  ...[runEvents.cancelled(), runEvents.stopped(new ShutdownError()), runEvents.stopped(new CriticKillError())],
  ...[runEvents.left(new ShutdownError()), runEvents.steered('Hurry.')],
];

export const ways = { complete: 'completing', fail: 'failing', 'leave-running': 'leaving-running' } as const;
export type Way = (typeof ways)[keyof typeof ways];

/** Where a run is after these events, and the ways out that it has taken on its way there. */
export function walk(events: readonly RunMachineEvent[], from: Snapshot, machine: Machine = machines.single) {
  let snapshot = from;
  const entered: Way[] = [];
  for (const event of events) {
    [snapshot] = transition(machine, snapshot, event);
    const way = Object.values(ways).find((name) => snapshot.value === name);
    if (way && entered.at(-1) !== way) entered.push(way);
  }
  return { snapshot, entered, machine };
}

export function begin(machine: Machine = machines.single): Snapshot {
  return initialTransition(machine, { progress: freshProgress() })[0];
}

/** The run at a place. */
export function arrive({ machine, events }: Place): Snapshot {
  return walk(events, begin(machine), machine).snapshot;
}
