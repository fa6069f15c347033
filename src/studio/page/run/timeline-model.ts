import type { JournalEvent, JsonValue, Person } from '../../wire.ts';
import { eventWords, stateWords } from '../chart/machine-model.ts';
import { fewWords, fewWordsOf } from './few-words.ts';
import {
  type CallWait,
  endingOfTimeline,
  type Timeline,
  type TimelineCall,
  type TimelinePhase,
  type TimelineStep,
  workedMs,
} from './timeline.ts';
import { ownerChange, type TimelineMark, type Unplaced } from './timeline-marks.ts';

/** Adds events of a run, in their order. */
export function folded(timeline: Timeline, events: readonly JournalEvent[]): Timeline {
  const fold = new Fold(timeline);
  for (const event of events) fold.take(event);
  return fold.result;
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };
type Of<Type extends JournalEvent['type']> = Extract<JournalEvent, { type: Type }>;

/** One batch: lists are copied once, steps when they change. */
class Fold {
  readonly result: Mutable<Timeline>;
  readonly #steps: TimelineStep[];
  readonly #marks: TimelineMark[];
  readonly #phases: TimelinePhase[];
  #at = 0;

  constructor(before: Timeline) {
    this.#steps = [...before.steps];
    this.#marks = [...before.marks];
    this.#phases = [...before.phases];
    this.result = { ...before, steps: this.#steps, marks: this.#marks, phases: this.#phases };
  }

  take(event: JournalEvent): void {
    const { result } = this;
    if (result.begin === 0) this.#begin(event);
    // A clock that was set back takes no time back.
    this.#at = Math.max(event.at, result.now);
    if (event.type === 'run.resumed') this.#onResumed(event);
    else if (event.type === 'run.woken') this.#wakes();
    this.#apply(event);
    result.now = this.#at;
  }

  #begin({ type, at }: JournalEvent): void {
    Object.assign(this.result, { begin: at, now: at });
    if (type !== 'run.started') this.result.begins = type === 'run.resumed' ? 'after' : 'inside';
  }

  /** Working time of the present event. */
  get #work(): number {
    return workedMs({ ...this.result, now: this.#at });
  }

  #apply(event: JournalEvent): void {
    switch (event.type) {
      case 'run.started':
        this.#onOwned(event);
        this.result.edge = this.#work;
        return;
      case 'run.left':
        this.result.rest ??= { since: this.#at, isWait: false, isLeft: true };
        return;
      case 'run.waiting':
        this.result.rest = { since: this.#at, isWait: true };
        return;
      case 'run.parked':
        this.#mark({ kind: 'parked', at: this.#at, code: event.code, text: event.reason });
        return;
      case 'run.unparked':
        this.#mark({ kind: 'unparked', at: this.#at, by: nameOf(event.by) });
        return;
      case 'run.retried':
      case 'run.ended':
        this.#onEnded(event);
        return;
      case 'steer.applied':
        this.#mark({ kind: 'steer', at: this.#at, count: event.count, texts: (event.texts ?? []).map(fewWords) });
        return;
      default:
        this.#ofStep(event);
    }
  }

  #ofStep(event: JournalEvent): void {
    switch (event.type) {
      case 'step.started':
        this.#edit(event.step, { from: this.#work });
        return;
      case 'step.reset':
        this.#reset(event.step);
        return;
      case 'step.snapshot':
        this.#snapshot(event);
        return;
      case 'step.done':
        this.#onDone(event);
        return;
      case 'model.fallback':
        // A step that is asked again, as after a wait, has its list from the beginning.
        this.#edit(event.step, {
          passed: `${event.attempt > 2 ? this.#edit(event.step).passed : event.from}: ${event.status ?? event.error.message} → ${event.to}`,
        });
        return;
      case 'model.retry':
        this.#edit(event.step, { retries: event.attempt - 1 });
        return;
      case 'tool.started':
        this.#onStarted(event);
        return;
      case 'workflow.transition':
        this.result.isWorkflow = true;
        this.#edit(event.step, { took: `${eventWords(event.event)} → ${stateWords(event.to)}`, isDone: true });
        return;
      case 'tool.done':
        this.#onAnswered(event);
        return;
      default:
        this.#ofPhase(event);
    }
  }

  #ofPhase(event: JournalEvent): void {
    const { result } = this;
    switch (event.type) {
      case 'phase.started':
        this.#phase(event.index, event.name);
        this.#enters(event.index);
        return;
      // A resumed run names the phases that were complete before: none of them works.
      case 'phase.skipped':
        if (!this.#phase(event.index, event.name).isDone) this.#editPhase(event.index, { isDone: true, ms: 0 });
        return;
      case 'phase.done': {
        const { from } = this.#phase(event.index, event.name);
        this.#editPhase(event.index, { isDone: true, ms: this.#work - from });
        result.edge = this.#work;
        return;
      }
      default:
        this.#ofWait(event);
    }
  }

  /** Its first turn may have begun before the save that announces the phase. */
  #enters(phase: number): void {
    const last = this.#steps.at(-1);
    if (last && !last.isDone) {
      this.#edit(last.step, { phase });
      this.#editPhase(phase, { from: last.from, first: last.step, last: last.step });
    } else this.result.edge = this.#work;
  }

  #ofWait(event: JournalEvent): void {
    if (event.type === 'wait.opened') {
      const { id, kind, step, callId, dueAt, tool: name } = event.wait;
      if (callId === undefined) return;
      const isAsked = kind === 'approval' || kind === 'question';
      const wait = { id, kind, since: this.#at, dueAt };
      // No message names the calls of a workflow.
      this.#editCall(step, callId, { state: isAsked ? 'asks' : 'waits', wait, ...(name ? { name } : {}) });
      return;
    }
    if (event.type === 'wait.refused')
      this.#mark({ kind: 'refused', at: this.#at, code: event.code, text: event.reason, by: nameOf(event.by) });
    else if (event.type === 'wait.answered' && event.votes !== undefined)
      this.#mark({
        kind: 'vote',
        of: event.kind,
        at: this.#at,
        votes: event.votes,
        by: nameOf(event.by),
        text: event.note,
      });
    const isEnd = event.type === 'wait.expired' || event.type === 'wait.withdrawn' || event.type === 'wait.answered';
    if (!isEnd || event.callId === undefined || ('votes' in event && event.votes !== undefined)) return;
    const how = event.type === 'wait.answered' ? event.how : event.type.slice('wait.'.length);
    const by = event.type === 'wait.answered' ? nameOf(event.by) : '';
    const note = event.type === 'wait.answered' ? event.note : undefined;
    this.#endWait(event.callId, event.waitId, { how, at: this.#at, note, ...(by === '' ? {} : { by }) });
  }

  #endWait(callId: string, waitId: string, end: NonNullable<CallWait['end']>): void {
    for (const step of this.#steps.slice(-2)) {
      const wait = step.calls.find((call) => call.callId === callId)?.wait;
      if (wait?.id === waitId) this.#editCall(step.step, callId, { state: 'planned', wait: { ...wait, end } });
    }
  }

  #onResumed(event: Of<'run.resumed'>): void {
    const { result } = this;
    // A run that was admitted, and begins now: no process had it before.
    if (result.begins === 'after' && result.begin === this.#at && event.iteration === 0 && event.attempts <= 1) {
      delete result.begins;
      this.#onOwned(event);
      result.edge = this.#work;
      return;
    }
    const open = this.#steps.at(-1);
    const change = ownerChange({ timeline: result, event, open });
    for (const callId of change.unknownIds) if (open) this.#editCall(open.step, callId, { state: 'unknown' });
    result.rest ??= { since: result.now, isWait: false };
    this.#mark(change.mark);
    this.#wakes();
    this.#onOwned(event);
    result.resumes += 1;
  }

  #onOwned({ owner, isSlice }: Of<'run.started' | 'run.resumed'>): void {
    this.result.isSlice = isSlice === true;
    if (owner !== undefined) this.result.owner = owner;
  }

  /** A wait or a downtime is over. */
  #wakes(): void {
    const { result } = this;
    if (!result.rest) return;
    const ms = this.#at - result.rest.since;
    result.idle += ms;
    if (result.rest.isWait) result.waited += ms;
    delete result.rest;
    result.now = this.#at;
    result.edge = this.#work;
  }

  #onEnded(event: Of<'run.ended' | 'run.retried'>): void {
    const { result } = this;
    const { status, error } = event;
    this.#wakes();
    // A page that was open has the end already.
    if (!result.isOver) this.#mark({ kind: 'ended', at: this.#at, status, code: error?.code, text: error?.message });
    result.isOver = event.type === 'run.ended';
    if (event.type === 'run.retried') result.rest = { since: result.now, isWait: false, retriedBy: nameOf(event.by) };
  }

  #mark(mark: Unplaced<TimelineMark>): void {
    const last = this.#steps.at(-1);
    const isInside = last !== undefined && !last.isDone;
    this.#marks.push({ ...mark, step: last ? last.step + (isInside ? 0 : 1) : 1, isInside } as TimelineMark);
  }

  #reset(step: number): void {
    const at = this.#steps.findIndex((known) => known.step >= step);
    if (at >= 0) this.#steps.splice(at);
  }

  #snapshot({ step, content }: Of<'step.snapshot'>): void {
    const work = this.#work;
    const { from, calls } = this.#edit(step);
    const planned: TimelineCall[] = [];
    const texts: string[] = [];
    for (const part of content) {
      if (part.type === 'text') texts.push(part.text);
      if (part.type !== 'tool-call') continue;
      const { toolCallId: callId, toolName: name } = part;
      const input = part.input as JsonValue;
      const known = calls.find((call) => call.callId === callId);
      planned.push(known ?? { ...newCall(callId, work), name, words: fewWordsOf(input), input, plannedAt: this.#at });
    }
    this.#edit(step, { calls: planned, ms: work - from, at: this.#at, words: fewWords(texts.join(' ')) });
    this.result.edge = work;
  }

  #onDone({ step, usage, finishReason }: Of<'step.done'>): void {
    const { used } = this.result;
    const { inputTokens: input, cacheReadTokens: cached, outputTokens: output } = usage;
    this.result.used = { input, cached, output };
    this.result.edge = this.#work;
    // Its beginning is not known: from here on, all is.
    if (this.result.begins === 'inside') {
      this.result.begins = 'after';
      this.#steps.length = 0;
      return;
    }
    const tokens = { input: input - used.input, cached: cached - used.cached, output: output - used.output };
    const calls = this.#edit(step).calls.map(({ input: _, ...call }) => call);
    const { ms, from } = this.#edit(step, { isDone: true, tokens, calls, ...endingOfTimeline(finishReason) });
    // The answer of a phase has no message: its end is that of the step.
    if (ms === undefined) this.#edit(step, { ms: this.#work - from, at: this.#at });
  }

  #onStarted({ step, callId, name, effect, input, attempt, revision }: Of<'tool.started'>): void {
    const call = this.#callOf(step, callId);
    // The result of a refused call is announced as that of others is, but it has no attempt.
    if (attempt === 0) {
      this.#editCall(step, callId, { isRefused: true });
      return;
    }
    const start = { at: this.#at, revision };
    this.#repeats(call, { callId, name, effect });
    const words = call.words || fewWordsOf(input);
    const starts = [...call.starts, start].slice(-MAX_STARTS);
    const change = { name, effect, words, input, starts, attempts: Math.max(attempt, call.attempts + 1) };
    this.#editCall(step, callId, { ...change, from: this.#work, state: 'started' });
    this.#hasCalls(step, this.#work);
  }

  /** The marks of changes of owner count what runs again. */
  #repeats(call: TimelineCall, { callId, name, effect }: Pick<TimelineCall, 'callId' | 'name' | 'effect'>): void {
    const at = this.#marks.findLastIndex(({ kind }) => kind === 'owner');
    const mark = this.#marks[at];
    if (mark?.kind !== 'owner') return;
    if (call.end) this.#marks[at] = { ...mark, repeated: mark.repeated + 1 };
    else if (mark.cut.includes(callId) && effect)
      this.#marks[at] = { ...mark, again: [...mark.again, { callId, name, effect }] };
  }

  #onAnswered({ step, callId, name, effect, output, ms, revision, isLate }: Of<'tool.done'>): void {
    if (isLate) return;
    const call = this.#callOf(step, callId);
    // Of a `read` the journal has only this event.
    const isRefused = output.type === 'execution-denied' && call.starts.length === 0;
    const state = output.type.startsWith('error') || output.type === 'execution-denied' ? 'failed' : 'done';
    const end = { at: this.#at, ms, revision };
    // The start of a recorded `read` is not kept.
    const from = call.state === 'started' ? call.from : Math.max(0, this.#work - ms);
    const refused = isRefused ? ({ isRefused } as const) : {};
    this.#hasCalls(step, from);
    this.#editCall(step, callId, { name: name || call.name, effect, state, end, from, ...refused });
    this.result.edge = this.#work;
  }

  /** The model's turn is over where its first call begins: of a phase no message says so. */
  #hasCalls(step: number, at: number): void {
    const { ms, from } = this.#edit(step);
    if (ms === undefined) this.#edit(step, { ms: Math.max(0, at - from) });
  }

  #edit(step: number, change?: Partial<TimelineStep>): TimelineStep {
    const at = this.#steps.findLastIndex((known) => known.step <= step);
    const known = this.#steps[at];
    const edited = { ...(known?.step === step ? known : this.#newStep(step)), ...change };
    this.#steps.splice(known?.step === step ? at : at + 1, known?.step === step ? 1 : 0, edited);
    return edited;
  }

  #newStep(step: number): TimelineStep {
    const phase = this.#phases.at(-1);
    const inPhase = phase && !phase.isDone ? { phase: phase.index } : {};
    if (phase && !phase.isDone)
      this.#editPhase(phase.index, { first: phase.first || step, last: Math.max(step, phase.last) });
    const took = this.result.isWorkflow ? { took: '' } : {};
    return { step, ...inPhase, ...took, from: this.result.edge, words: '', calls: [], isDone: false, retries: 0 };
  }

  #callOf(step: number, callId: string): TimelineCall {
    const { calls } = this.#edit(step);
    return calls.find((call) => call.callId === callId) ?? newCall(callId, this.#work);
  }

  #editCall(step: number, callId: string, change: Partial<TimelineCall>): void {
    const { calls } = this.#edit(step);
    const at = calls.findIndex((call) => call.callId === callId);
    const call = { ...(calls[at] ?? newCall(callId, this.#work)), ...change };
    this.#edit(step, { calls: calls.toSpliced(at < 0 ? calls.length : at, at < 0 ? 0 : 1, call) });
  }

  #phase(index: number, name: string): TimelinePhase {
    const known = this.#phases.find((phase) => phase.index === index);
    if (known) return known;
    const phase = { index, name, from: this.#work, isDone: false, first: 0, last: 0 };
    this.#phases.push(phase);
    return phase;
  }

  #editPhase(index: number, change: Partial<TimelinePhase>): void {
    const at = this.#phases.findIndex((phase) => phase.index === index);
    const phase = this.#phases[at];
    if (phase) this.#phases[at] = { ...phase, ...change };
  }
}

const MAX_STARTS = 8;

/** The person of an event; '' = not known. */
function nameOf(by: Person | undefined): string {
  return by?.name || by?.id || '';
}

function newCall(callId: string, from: number): TimelineCall {
  return { callId, name: '', state: 'planned', words: '', starts: [], attempts: 0, from };
}
