import type { JsonValue } from '../../wire.ts';
import type { Idle, TimelineMark } from './timeline-marks.ts';

/** A start of a call. */
interface CallStart {
  /** Wall clock, ms; absent if no journal has it. */
  readonly at?: number;
  /** The newest revision of the record that the process knew to be stored. */
  readonly revision?: number | undefined;
}

/** What a call waits for, or waited for. */
export interface CallWait {
  readonly id: string;
  readonly kind: string;
  /** Wall clock, ms. */
  readonly since: number;
  readonly dueAt?: number | undefined;
  /** How it ended, by whom, with which note, when; absent while it is open. */
  readonly end?: {
    readonly how: string;
    readonly by?: string | undefined;
    readonly note?: string | undefined;
    readonly at: number;
  };
}

/** A tool call. `unknown`: the process ended while it ran, and it is not repeated. */
export interface TimelineCall {
  readonly callId: string;
  readonly name: string;
  /** Absent until an event or the record says it. */
  readonly effect?: 'read' | 'idempotent' | 'once';
  readonly state: 'planned' | 'asks' | 'waits' | 'started' | 'done' | 'failed' | 'unknown';
  /** Its input in a few words. */
  readonly words: string;
  /** Its whole input, while its step is open: of a `read` that runs the record has none. */
  readonly input?: JsonValue;
  /** The last ones. */
  readonly starts: readonly CallStart[];
  /** How many times it was started. */
  readonly attempts: number;
  /** It has a result, and was never started: a person, or a rule, denied it. */
  readonly isRefused?: true;
  /** Wall clock at which it was planned, ms. */
  readonly plannedAt?: number;
  /** Its end: wall clock, revision, and how long the tool ran, ms. */
  readonly end?: { readonly at?: number; readonly revision?: number | undefined; readonly ms: number };
  /** Where its bar begins, ms of working time. */
  readonly from: number;
  readonly wait?: CallWait;
}

/** The tokens of a step; of several, if the events of earlier ones are not kept. */
export interface StepTokens {
  readonly input: number;
  readonly cached: number;
  readonly output: number;
}

/** A model turn and its calls; of a workflow the calls that ran, and then a transition. */
export interface TimelineStep {
  readonly step: number;
  /** Of a workflow: the event that the transition took, and the states to which it led; '' = none yet. Absent for an agent. */
  readonly took?: string;
  /** The index of its phase; absent without phases. */
  readonly phase?: number;
  /** Where its bar begins, ms of working time. */
  readonly from: number;
  /** How long the model took, ms; undefined while it works, or without times. */
  readonly ms?: number;
  /** Wall clock at which its message was recorded, ms. */
  readonly at?: number;
  readonly words: string;
  readonly calls: readonly TimelineCall[];
  readonly tokens?: StepTokens;
  /** How its answer ended, if that was not by itself. */
  readonly ending?: string;
  readonly isDone: boolean;
  /** How many times the model was asked again after an error. */
  readonly retries: number;
  /** The models of a list that failed when the step was asked last, why, and the model that was asked in their place. */
  readonly passed?: string;
}

/** A phase of a pipeline. */
export interface TimelinePhase {
  readonly index: number;
  readonly name: string;
  readonly from: number;
  /** How long it took, ms of working time; absent while it runs. */
  readonly ms?: number;
  readonly isDone: boolean;
  /** Its steps, first and last; 0 = none yet. */
  readonly first: number;
  readonly last: number;
}

/** What the events of a run say, folded. A tab keeps this, and no events. */
export interface Timeline {
  /** By number, rising. */
  readonly steps: readonly TimelineStep[];
  readonly phases: readonly TimelinePhase[];
  readonly marks: readonly TimelineMark[];
  /** Wall clock of the first and of the last event, ms. */
  readonly begin: number;
  readonly now: number;
  /** All waits and downtimes so far, ms. */
  readonly idle: number;
  /** How much of it was waiting. */
  readonly waited: number;
  /** The present wait or downtime. */
  readonly rest?: Idle;
  /** The process that has the run, or had it last. */
  readonly owner?: string;
  /** It has the run for a slice of time only. */
  readonly isSlice: boolean;
  /** It is a run of a workflow: its steps are transitions. */
  readonly isWorkflow?: boolean;
  readonly resumes: number;
  /** Working time at which the last thing ended, ms. */
  readonly edge: number;
  /** Tokens of the run so far. */
  readonly used: StepTokens;
  readonly isOver: boolean;
  /**
   * Where the events begin, if not with the run: `inside` a step, which is left out, or `after` a step. Times begin there, too.
   */
  readonly begins?: 'inside' | 'after';
}

const noTokens: StepTokens = { input: 0, cached: 0, output: 0 };

/** A run of which no event has come. */
export const emptyTimeline: Timeline = {
  steps: [],
  phases: [],
  marks: [],
  begin: 0,
  now: 0,
  idle: 0,
  waited: 0,
  isSlice: false,
  resumes: 0,
  edge: 0,
  used: noTokens,
  isOver: false,
};

/** Returns a timeline whose oldest steps are left out if it has too many. @param left how many steps it has then */
export function shortenedInput(timeline: Timeline, most: number, left: number): Timeline {
  if (timeline.steps.length <= most) return timeline;
  const steps = timeline.steps.slice(-left);
  const first = steps[0]?.step ?? 0;
  return { ...timeline, steps, marks: timeline.marks.filter(({ step }) => step >= first) };
}

/** Returns the working time of all that is folded, ms: waits and downtimes take none. */
export function workedMs({ begin, now, idle, rest }: Timeline): number {
  return Math.max(0, (rest ? rest.since : now) - begin - idle);
}

const endings: { readonly [reason: string]: string } = {
  length: 'cut at its length limit',
  'content-filter': 'the provider withheld its rest',
  refusal: 'the model refused',
  other: 'ended early',
};

/** Returns how an answer ended in words; nothing for one that ended by itself. */
export function endingOfTimeline(reason: string | undefined): Pick<TimelineStep, 'ending'> {
  const ending = reason === undefined ? undefined : endings[reason];
  return ending === undefined ? {} : { ending };
}
