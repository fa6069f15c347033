import type { RunMachineEvent } from '../../../machines/context.ts';
import type { CheckpointOutcome } from '../../run/finalize.ts';
import type { RunOutcome } from '../../run/result.ts';
import { ModelError } from '../../values/errors.ts';
import { noUsage } from '../../values/usage.ts';
import { type AcceptedRun, freshProgress, runEvents } from '../run-events.ts';
import type { Arbitrary, Generators } from './fast-check.ts';

/** A run as its machine sees it, and its end by the finalize matrix. */
export interface RunStory {
  /** For `runMachine` of an agent without phases, in this order, from `resolving` on. */
  readonly events: readonly RunMachineEvent[];
  /** `complete`, `fail` or `leave-running`; undefined = these events do not end the run. Computed from the plan, not by the machine. */
  readonly outcome: CheckpointOutcome | undefined;
}

const MAX_STEPS = 4;
const begins = ['accepted', 'accepted', 'accepted', 'refused', 'delivered ok', 'delivered error'] as const;
const ends = ['answer', 'model error', 'step limit', 'tool loop', 'never'] as const;

interface Stop {
  readonly after: number;
  readonly kind: 'shutdown' | 'other' | 'cancel';
  readonly shutdown: unknown;
  readonly other: unknown;
}

/** How a run would continue without stops, and which stops come after how many of its events. */
interface Plan {
  readonly begin: (typeof begins)[number];
  readonly isDurable: boolean;
  /** The save of the last step completes only after the answer. */
  readonly isSlow: boolean;
  readonly steps: number;
  readonly end: (typeof ends)[number];
  readonly stops: readonly Stop[];
}

interface Moment {
  readonly event: RunMachineEvent;
  readonly kind: 'begin' | 'work' | 'end' | 'stop';
  readonly isShutdown?: boolean;
}

type Causes = { readonly [Name in 'shutdownCause' | 'otherCause']: Arbitrary<unknown> };

/**
 * Makes an arbitrary of run stories for the machine: accepted or refused, steps that answer or fail, stops at any moment.
 */
export function storiesWith(fc: Generators, { shutdownCause, otherCause }: Causes): Arbitrary<RunStory> {
  const stop = fc.record<Stop>({
    after: fc.nat(12),
    kind: fc.constantFrom('shutdown', 'other', 'cancel'),
    shutdown: shutdownCause,
    other: otherCause,
  });
  return fc
    .record<Plan>({
      begin: fc.constantFrom(...begins),
      isDurable: fc.boolean(),
      isSlow: fc.boolean(),
      steps: fc.nat(MAX_STEPS - 1),
      end: fc.constantFrom(...ends),
      stops: fc.array(stop, { maxLength: 3 }),
    })
    .map((plan) => {
      const moments = stopped(workOf(plan), plan.stops);
      return { events: moments.map(({ event }) => event), outcome: outcomeOfPlan(plan, moments) };
    });
}

function workOf(plan: Plan): Moment[] {
  const { isDurable, isSlow, end } = plan;
  const isFailing = end === 'tool loop';
  const count = end === 'step limit' ? MAX_STEPS : isFailing ? 3 : plan.steps;
  const moments: Moment[] = [{ event: beginOf(plan), kind: 'begin' }];
  for (let step = 1; step <= count; step++) {
    const isLast = step === count && (isFailing || end === 'step limit');
    moments.push(...stepOf(step, isFailing, isLast ? 'end' : 'work'));
    if (isDurable) moments.push({ event: runEvents.landed(step), kind: 'work' });
  }
  if (end === 'model error') moments.push({ event: runEvents.modelFailed(new ModelError('it is gone')), kind: 'end' });
  if (end !== 'answer') return moments;
  const late = isSlow && isDurable && count > 0 ? moments.pop() : undefined;
  moments.push({ event: runEvents.replied({ text: 'the answer' }), kind: late ? 'work' : 'end' });
  return late ? [...moments, { ...late, kind: 'end' }] : moments;
}

/** One step with one call: the model asks for it, the tool answers. @param last what the tool's answer means to the run */
function stepOf(step: number, isFailing: boolean, last: Moment['kind']): Moment[] {
  const callId = `c${step}`;
  const result = isFailing ? ({ type: 'error-text', value: 'broken' } as const) : 'found';
  return [
    { event: runEvents.replied({ calls: [{ callId, name: 'look', input: { step } }] }), kind: 'work' },
    { event: runEvents.toolAnswered(0, callId, result), kind: last },
  ];
}

function beginOf({ begin, isDurable }: Plan): RunMachineEvent {
  if (begin === 'accepted') return runEvents.accepted({ isDurable });
  if (begin === 'refused') return runEvents.refused(new ModelError('refused'));
  const facts = {
    runId: 'run-1',
    output: '',
    usage: noUsage,
    iterations: 1,
    phases: [],
    undelivered: [],
    saveErrors: 0,
  };
  const error = { name: 'ModelError', code: 'MODEL', message: 'it is gone' };
  const end = begin === 'delivered ok' ? ({ status: 'ok' } as const) : ({ status: 'error', error } as const);
  const outcome: RunOutcome = { ...facts, durable: true, outcomeId: 'run-1:1', ...end };
  const found: Partial<AcceptedRun> = { isDurable, progress: { ...freshProgress(), outcome } };
  return runEvents.accepted(found);
}

function stopped(work: readonly Moment[], stops: readonly Stop[]): Moment[] {
  const moments = [...work];
  for (const { after, kind, shutdown, other } of stops.toSorted((a, b) => b.after - a.after)) {
    const cause = kind === 'shutdown' ? shutdown : other;
    const event = kind === 'cancel' ? runEvents.cancelled('enough') : runEvents.stopped(cause);
    moments.splice(Math.min(after, moments.length), 0, { event, kind: 'stop', isShutdown: kind === 'shutdown' });
  }
  return moments;
}

/** The finalize matrix again, computed from the plan alone: the first stop counts, and earlier results stay. */
function outcomeOfPlan({ begin, end }: Plan, moments: readonly Moment[]): CheckpointOutcome | undefined {
  let first: Moment | undefined;
  let hasBegun = false;
  const byCause = () => (first?.isShutdown ? 'leave-running' : 'fail');
  for (const moment of moments) {
    if (moment.kind === 'end') return end === 'answer' ? 'complete' : 'fail';
    if (moment.kind === 'stop') first ??= moment;
    if (moment.kind === 'stop' && hasBegun) return byCause();
    if (moment.kind !== 'begin') continue;
    if (begin === 'delivered ok') return 'complete';
    if (begin === 'delivered error') return 'fail';
    if (begin === 'refused' || first) return byCause();
    hasBegun = true;
  }
  return undefined;
}
