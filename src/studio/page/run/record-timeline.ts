import type { CallView, MessageView, RecordView } from '../../wire.ts';
import { fewWords, fewWordsOf } from './few-words.ts';
import { emptyTimeline, endingOfTimeline, type Timeline, type TimelineCall, type TimelineStep } from './timeline.ts';

/** Most messages of which a timeline without a journal is made: one page of the server. */
const MESSAGES = 100;

/** The query for the last messages of a run. */
export function lastMessages({ record }: Pick<RecordView, 'record'>): string {
  return `limit=${MESSAGES}&after=${Math.max(0, (record?.messages ?? 0) - MESSAGES)}`;
}

/** Makes a timeline of a record and its last messages: a store without a journal has no times. */
export function timelineOfRecord({ record }: RecordView, messages: readonly MessageView[]): Timeline {
  if (!record) return emptyTimeline;
  const turns = messages.filter(({ role }) => role === 'assistant');
  const results = new Map(messages.flatMap(({ results: own = [] }) => own.map((result) => [result.callId, result])));
  const first = record.iteration - turns.length + 1;
  const steps = turns.map(
    (turn, i): TimelineStep => ({
      ...untimed(first + i),
      words: fewWords(turn.texts.map(({ text }) => text).join(' ')),
      calls: (turn.calls ?? []).map(({ callId, name, input }) => {
        const state = results.get(callId)?.isError ? 'failed' : 'done';
        return { ...uncalled(callId, name), words: fewWordsOf(input.value), state, attempts: 1, end: { ms: 0 } };
      }),
      isDone: true,
    }),
  );
  const { openStep, finishReason } = record;
  const last = steps.at(-1);
  if (last) steps[steps.length - 1] = { ...last, ...endingOfTimeline(finishReason) };
  if (openStep) steps.push({ ...untimed(openStep.step), calls: openStep.calls.map(openCall) });
  return { ...emptyTimeline, steps, resumes: record.attempts };
}

function untimed(step: number): TimelineStep {
  return { step, from: 0, words: '', calls: [], isDone: false, retries: 0 };
}

function uncalled(callId: string, name: string): TimelineCall {
  return { callId, name, state: 'planned', words: '', starts: [], attempts: 0, from: 0 };
}

const states = { planned: 'planned', allowed: 'planned', started: 'started', waiting: 'waits', done: 'done' } as const;

function openCall({ callId, name, effect, state, attempt, input }: CallView): TimelineCall {
  return { ...uncalled(callId, name), effect, words: fewWordsOf(input.value), state: states[state], attempts: attempt };
}

/** Adds what only the record says of the calls of the open step: the effect of one that has not begun. */
export function withEffects(timeline: Timeline, record: RecordView['record']): Timeline {
  const { steps } = timeline;
  const last = steps.at(-1);
  const open = record?.openStep;
  if (!last || !open || last.step !== open.step) return timeline;
  const effects = new Map(open.calls.map(({ callId, effect }) => [callId, effect]));
  const calls = last.calls.map((call): TimelineCall => {
    const effect = call.effect ?? effects.get(call.callId);
    return effect === undefined ? call : { ...call, effect };
  });
  return { ...timeline, steps: steps.with(-1, { ...last, calls }) };
}
