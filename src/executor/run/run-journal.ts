import type { JournalPart } from '../../record/state.ts';
import { keepOf, type RunEvent, type RunEventBody } from '../../run/events.ts';
import { withoutContent } from '../../run/journal/content.ts';
import {
  type ContentPlace,
  firstPlace,
  type JournalEntry,
  type JournalWrite,
  type TextPlace,
} from '../../run/journal/entry.ts';
import { callOf } from '../../run/open-step.ts';
import { recordable } from '../../run/pipeline.ts';
import { ownFrom, type Progress } from '../../run/progress.ts';
import type { RunOutcome } from '../../run/result.ts';
import { type Claim, isJournal, type JournalStore } from '../../store/port.ts';
import type { Clock } from '../../values/clock.ts';
import { hasCode, toErrorData } from '../../values/error-data.ts';
import type { Warn } from '../host/guard.ts';
import type { JournalOptions } from '../host/journal-options.ts';
import type { ActiveRun } from './active-run.ts';

interface Parts {
  readonly runId: string;
  readonly store: JournalStore;
  /** Undefined: another process has the run. */
  readonly claim: () => Claim | undefined;
  readonly options: JournalOptions;
  readonly clock: Clock;
  readonly warn: Warn;
  /** Whether the pieces of a text are redacted alone. */
  readonly isRedacted: boolean;
  /** Places of entries are higher than this. */
  readonly after: number;
  /** Called when readers of this process can read more. */
  readonly onNews: () => void;
}

/** An event on its way to the journal. */
interface Waiting {
  readonly event: RunEvent;
  readonly keep: 'kept' | 'passing';
  readonly attempt?: number | undefined;
  /** The step that it belongs to; undefined = none. */
  readonly step?: number | undefined;
  /** It belongs to a model call, and is void if that is repeated. */
  readonly isOfCall?: true;
  readonly end?: TextPlace | undefined;
  /** It was given to a save, or is being published, at this place. */
  place?: number;
}

/** The model call in progress. */
interface Call extends TextPlace {
  readonly step: number;
  readonly attempt: number;
  /** Its snapshot waits for its record. */
  isRead: boolean;
}

/** The kept events that report what a save records, and wait for it. Every other kept event is published after its save. */
const recorded = new Set<RunEventBody['type']>([
  'model.source',
  'step.snapshot',
  'tool.done',
  'step.done',
  'phase.started',
  'phase.done',
  'steer.applied',
  'run.ended',
]);

/** Events of a step after its model call. */
const isOfStep = new Set<RunEventBody['type']>([
  'tool.started',
  'tool.done',
  'tool.progress',
  'wait.opened',
  'step.done',
]);

/**
 * Brings the events of a live run into its journal: kept ones with the save that records what they report, passing ones each
 * `flushMs`. No run waits for it, and its failures are only logged.
 *
 * Nothing of a step is published before the step before it is recorded: a crash can void one step at most.
 */
export class RunJournal {
  readonly #parts: Parts;
  /** Kept events whose save is not stored yet. */
  #pending: Waiting[] = [];
  /** Events that the next flush publishes. */
  #outbox: Waiting[] = [];
  /** Events after a step that is not stored yet. */
  #later: Waiting[] = [];
  #chars = 0;
  #place: number;
  #call: Call | undefined;
  /** The place of each open step's message in the record, by step. */
  readonly #messages = new Map<number, ContentPlace>();
  /** The last published place that a step may delete; 0 = none. An earlier process may have left some. */
  #passingTo: number;
  /** What the save in progress deletes. */
  #dropTo = 0;
  /** The message of this step, and of all before it, is in the record, or on its way there. */
  #recordedTo = 0;
  /** This step, and all before it, are over. */
  #doneTo = 0;
  #timer: unknown;
  #publishing: Promise<void> | undefined;
  #isOver = false;
  #hasFailed = false;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#place = parts.after;
    this.#passingTo = parts.after;
  }

  add(event: RunEvent): void {
    const keep = this.#isOver ? 'none' : keepOf(event);
    // The end of a run is written by the save that ends it.
    if (keep === 'none' || event.type === 'run.ended') return;
    const step = stepOf(event) ?? this.#call?.step;
    if (event.type === 'step.started') this.#begin(event);
    else if (event.type === 'step.reset') this.#reset(event);
    const isOfCall = ofCall.has(event.type);
    if (!isOfCall && isOfStep.has(event.type)) this.#snapshot(event.seq);
    const attempt = isOfCall ? this.#call?.attempt : undefined;
    const waiting: Waiting = { event, keep, step, attempt, ...(isOfCall ? { isOfCall: true } : {}) };
    if (event.type === 'model.delta') this.#read(event);
    if (keep === 'kept' && recorded.has(event.type)) this.#pending.push(waiting);
    else this.#put(waiting);
  }

  /** What a save of this state adds. @param upTo the `seq` of the last event before the state was taken */
  part(progress: Progress, upTo: number): JournalPart {
    const state = recordable(progress);
    const { iteration, openStep } = state;
    const isRecorded = this.#call && this.#call.step <= (openStep ? iteration + 1 : iteration);
    if (isRecorded) this.#snapshot(upTo);
    let written: readonly Waiting[] = [];
    return {
      write: () => {
        const waiting = [...this.#outbox.filter(({ keep }) => keep === 'kept'), ...this.#pending];
        written = waiting.filter((each) => each.event.seq <= upTo && isIn(each, state));
        return this.#write(written, state);
      },
      landed: () => this.#landed(written),
    };
  }

  /** The save that holds the outcome of the run adds its last event. */
  end(seq: number, { status, output, error }: Pick<RunOutcome, 'status' | 'output' | 'error'>): void {
    if (this.#pending.some(({ event }) => event.type === 'run.ended')) return;
    const { runId, clock } = this.#parts;
    const ended = { type: 'run.ended', status, output, ...(error ? { error } : {}) } as const;
    this.#pending.push({ event: { ...ended, runId, seq, at: clock.now() }, keep: 'kept' });
  }

  /** Publishes what may be read now. Never rejects. */
  async flush(): Promise<void> {
    this.#stopTimer();
    await this.#publishing;
    const batch = this.#outbox;
    const claim = this.#parts.claim();
    if (batch.length === 0 || this.#isOver || !claim) return;
    this.#outbox = [];
    this.#chars = 0;
    this.#publishing = this.#publish(batch, claim);
    await this.#publishing;
  }

  close(): void {
    this.#isOver = true;
    this.#stopTimer();
    this.#parts.onNews();
  }

  #begin({ step, seq }: Extract<RunEvent, { type: 'step.started' }>): void {
    this.#call = { step, attempt: seq, block: 0, offset: 0, isRead: false };
  }

  /** The pieces of an earlier attempt that are not published yet never are. */
  #reset({ step, seq }: Extract<RunEvent, { type: 'step.reset' }>): void {
    const isVoid = (each: Waiting) => each.isOfCall === true && (each.step ?? 0) >= step && each.place === undefined;
    this.#outbox = this.#outbox.filter((each) => !isVoid(each));
    this.#later = this.#later.filter((each) => !isVoid(each));
    this.#pending = this.#pending.filter((each) => !isVoid(each));
    this.#call &&= { ...this.#call, attempt: seq, block: 0, offset: 0, isRead: false };
  }

  #read({ block, offset, text }: Extract<RunEvent, { type: 'model.delta' }>): void {
    if (this.#call) this.#call = { ...this.#call, block, offset: offset + text.length };
  }

  /** The first event of a step after its model call: the message of the step is complete. */
  #snapshot(seq: number): void {
    const { runId, clock } = this.#parts;
    const call = this.#call;
    if (!call || call.isRead) return;
    call.isRead = true;
    const { step, attempt, block, offset } = call;
    const event: RunEvent = { type: 'step.snapshot', step, content: [], runId, seq, at: clock.now() };
    const end = this.#parts.isRedacted ? { end: { block, offset } } : {};
    this.#pending.push({ event, keep: 'kept', step, attempt, ...end });
  }

  #put(waiting: Waiting): void {
    const isHeld = this.#pending.some(({ event, step }) => event.type === 'step.done' && step !== waiting.step);
    if (isHeld) this.#later.push(waiting);
    else this.#send(waiting);
  }

  #send(waiting: Waiting): void {
    const { clock, options } = this.#parts;
    const last = this.#outbox.at(-1);
    const joined = last && joinedDelta(last, waiting);
    if (joined) this.#outbox[this.#outbox.length - 1] = joined;
    else this.#outbox.push(waiting);
    this.#chars += sizeOf(waiting.event);
    if (this.#chars >= options.flushBytes) void this.flush();
    else this.#timer ??= clock.setTimeout(() => void this.flush(), options.flushMs);
  }

  async #publish(batch: readonly Waiting[], claim: Claim): Promise<void> {
    const { store, runId, warn, onNews } = this.#parts;
    const entries = batch.map((each) => this.#entry(each));
    if (batch.some(({ keep }) => keep === 'passing')) this.#passingTo = this.#place;
    try {
      await store.publish(runId, entries, { claim });
      onNews();
    } catch (error) {
      if (hasCode(error, 'LEASE_LOST')) return this.close();
      if (!this.#hasFailed) warn('run: a journal write failed', { runId, error: toErrorData(error) });
      this.#hasFailed = true;
      // They keep their places: if the store has them all the same, it replaces them.
      this.#outbox = [...batch.filter((each) => !this.#isStale(each)), ...this.#outbox];
      this.#timer ??= this.#parts.clock.setTimeout(() => void this.flush(), 10 * this.#parts.options.flushMs);
    } finally {
      this.#publishing = undefined;
    }
  }

  #write(written: readonly Waiting[], state: Progress): JournalWrite | undefined {
    let isStepRecorded = false;
    for (const { event, step } of written) {
      if (step !== undefined) this.#notePlace(step, state);
      if (event.type === 'step.snapshot') this.#recordedTo = Math.max(this.#recordedTo, event.step);
      if (event.type === 'step.done') this.#doneTo = Math.max(this.#doneTo, event.step);
      isStepRecorded ||= event.type === 'step.snapshot' || event.type === 'step.done';
    }
    // Pieces that are not published yet need not be: the record has their message.
    this.#outbox = this.#outbox.filter((each) => !this.#isStale(each));
    const entries = written.filter((each) => this.#isReadable(each)).map((each) => this.#entry(each));
    this.#dropTo = isStepRecorded ? this.#passingTo : 0;
    if (entries.length === 0 && this.#dropTo === 0) return undefined;
    return { entries, ...(this.#dropTo > 0 ? { dropTo: this.#dropTo } : {}) };
  }

  #landed(written: readonly Waiting[]): void {
    if (written.length === 0) return;
    const isWritten = new Set(written);
    this.#pending = this.#pending.filter((each) => !isWritten.has(each));
    this.#outbox = this.#outbox.filter((each) => !isWritten.has(each));
    // What was published meanwhile is deleted with the next step.
    if (this.#dropTo === this.#passingTo) this.#passingTo = 0;
    const later = this.#later;
    this.#later = [];
    for (const each of later) this.#put(each);
    for (const step of this.#messages.keys()) if (step < this.#recordedTo - 1) this.#messages.delete(step);
    this.#parts.onNews();
  }

  /** Pieces of a message that the record has, and what passed in a step that is over. */
  #isStale({ isOfCall, step = 0, keep }: Waiting): boolean {
    return keep === 'passing' && step <= (isOfCall ? this.#recordedTo : this.#doneTo);
  }

  #entry(waiting: Waiting): JournalEntry {
    const { event, keep, attempt, step, end } = waiting;
    waiting.place ??= ++this.#place;
    const content = step !== undefined && hasContent.has(event.type) ? this.#messages.get(step) : undefined;
    return {
      place: waiting.place,
      keep,
      event: stored(content || !hasContent.has(event.type) ? withoutContent(event) : event),
      ...(attempt === undefined ? {} : { attempt }),
      ...(content ? { content } : {}),
      ...(end ? { end } : {}),
    };
  }

  /** A snapshot of a message that no record holds, in a phase that is recorded at its end, cannot be read. */
  #isReadable({ event, step }: Waiting): boolean {
    return event.type !== 'step.snapshot' || (step !== undefined && this.#messages.has(step));
  }

  /** Notes where the record has the message of a step, while it is the last one. */
  #notePlace(step: number, progress: Progress): void {
    const { iteration, openStep, openPhase, transcript } = progress;
    if (this.#messages.has(step)) return;
    // The record of a turn of a thread begins behind the earlier turns.
    const first = ownFrom(progress);
    let message = -1;
    if (step === iteration + 1 && openStep) message = transcript.length;
    // A save may record several steps: each has one message of the model.
    let later = iteration - step;
    for (let i = transcript.length - 1; step <= iteration && message < 0 && i >= first; i--)
      if (transcript.at(i)?.role === 'assistant' && later-- === 0) message = i;
    if (message < 0) return;
    this.#messages.set(step, { message: message - first, ...(openPhase ? { phase: openPhase.index } : {}) });
  }

  #stopTimer(): void {
    if (this.#timer !== undefined) this.#parts.clock.clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}

/** The events of a model call: a second attempt voids them. */
const ofCall = new Set<RunEventBody['type']>([
  'step.started',
  'model.delta',
  'model.file',
  'model.source',
  'model.retry',
  'tool.input',
  'step.reset',
]);

/** The events whose content the message of their step has. */
const hasContent = new Set<RunEventBody['type']>([
  'step.snapshot',
  'tool.started',
  'tool.done',
  'wait.opened',
  'step.done',
]);

function stepOf(event: RunEvent): number | undefined {
  if (event.type === 'wait.opened') return event.wait.step;
  return 'step' in event ? event.step : undefined;
}

/** Returns whether a recorded state has what an event reports. */
function isIn({ event, step = 0 }: Waiting, { iteration, openStep, completedPhases, outcome }: Progress): boolean {
  if (event.type === 'run.ended') return outcome !== undefined;
  if (event.type === 'phase.done') return completedPhases.length > event.index;
  if (!recorded.has(event.type) || event.type === 'phase.started' || event.type === 'steer.applied') return true;
  if (step <= iteration) return true;
  if (step !== iteration + 1 || !openStep || event.type === 'step.done') return false;
  return event.type !== 'tool.done' || callOf(openStep, event.callId)?.state === 'done';
}

/** The owner of a call is that of the last start: the journal does not repeat it. A microsecond is exact enough. */
function stored(event: RunEvent): RunEvent {
  if (event.type !== 'tool.started' && event.type !== 'tool.done') return event;
  const { owner: _, ...rest } = event;
  return rest.type === 'tool.done' ? { ...rest, ms: Math.round(rest.ms * 1_000) / 1_000 } : rest;
}

/** Two pieces of one text are one entry. */
function joinedDelta(last: Waiting, next: Waiting): Waiting | undefined {
  const [a, b] = [last.event, next.event];
  if (a.type !== 'model.delta' || b.type !== 'model.delta' || last.place !== undefined) return undefined;
  const isNext = a.block === b.block && a.offset + a.text.length === b.offset && last.attempt === next.attempt;
  return isNext ? { ...last, event: { ...b, offset: a.offset, text: a.text + b.text } } : undefined;
}

function sizeOf(event: RunEvent): number {
  if (event.type === 'model.delta' || event.type === 'tool.input') return event.text.length + 100;
  return 200;
}

/**
 * Makes the journal of a run that is recorded; undefined without the option, or without a claim.
 * @param seq of the record that it continues; 0 = a new run
 */
export function journalOf(run: ActiveRun, seq: number): RunJournal | undefined {
  const { config, feeds } = run.services;
  const { journal: options, store, clock, warn } = config;
  if (!options || !store || !isJournal(store) || !run.claim) return undefined;
  const { runId } = run;
  const after = firstPlace(seq, run.claim.epoch);
  const onNews = () => feeds.wake(runId);
  const claim = () => run.claim;
  const journal = new RunJournal({
    runId,
    store,
    claim,
    options,
    clock,
    warn,
    isRedacted: run.redaction !== undefined,
    after,
    onNews,
  });
  run.onEnd(() => journal.close());
  return journal;
}
