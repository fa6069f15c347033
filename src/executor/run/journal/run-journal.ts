import type { JournalPart } from '../../../record/state.ts';
import { keepOf, type RunEvent, type RunEventBody } from '../../../run/events.ts';
import { withoutContent } from '../../../run/journal/content.ts';
import {
  type ContentPlace,
  firstPlace,
  type JournalEntry,
  type JournalWrite,
  type TextPlace,
} from '../../../run/journal/entry.ts';
import { callOf } from '../../../run/open-step.ts';
import { recordable } from '../../../run/pipeline.ts';
import { ownFrom, type Progress } from '../../../run/progress.ts';
import type { Wait } from '../../../run/waits/wait.ts';
import { type Claim, isJournal, type JournalStore } from '../../../store/port.ts';
import type { Clock } from '../../../values/clock.ts';
import { hasCode, toErrorData } from '../../../values/error-data.ts';
import type { Warn } from '../../host/guard.ts';
import type { JournalOptions } from '../../host/journal-options.ts';
import type { ActiveRun } from '../active-run.ts';
import type { RunJournaling } from '../run-state.ts';
import {
  hasContent,
  isIn,
  isOfState,
  isOfStep,
  joinedDelta,
  ofCall,
  recorded,
  sizeOf,
  stepOf,
  stored,
  type Waiting,
} from './journal-events.ts';

interface Parts {
  readonly runId: string;
  readonly store: JournalStore;
  /** Undefined: another process has the run. */
  readonly claim: () => Claim | undefined;
  readonly options: JournalOptions;
  readonly clock: Clock;
  readonly warn: Warn;
  /** Redacts events that the journal makes itself; undefined = everything is passed on unchanged. */
  readonly redact: (<Body extends RunEventBody>(body: Body) => Body) | undefined;
  /** The open waits of the record that the run continues: its journal has them. */
  readonly waits: readonly Wait[];
  /** Places of entries are higher than this. */
  readonly after: number;
  /** Called when readers of this process can read more. */
  readonly onNews: () => void;
}

/** While so many events wait, because the store is away, no progress of tools is added: they may report without end. */
const MAX_PROGRESS = 1_000;

/** The model call in progress. */
interface Call extends TextPlace {
  readonly step: number;
  readonly attempt: number;
  /** Its snapshot waits for its record. */
  isRead: boolean;
}

/**
 * Brings the events of a live run into its journal: kept ones with the save that records what they report, passing ones each
 * `flushMs`. No run waits for it, and its failures are only logged.
 *
 * Nothing of a step is published before the step before it is recorded: a crash can void one step at most.
 */
export class RunJournal implements RunJournaling {
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
  /** The waits that the journal has, or gets with a save. */
  readonly #waits: Set<string>;
  #isParked = false;
  #timer: unknown;
  #publishing: Promise<void> | undefined;
  #isOver = false;
  #hasFailed = false;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#place = parts.after;
    this.#passingTo = parts.after;
    this.#waits = new Set(parts.waits.map(({ id }) => id));
  }

  add(event: RunEvent): void {
    const keep = this.#isOver ? 'none' : keepOf(event);
    // The end of a run is written by the save that ends it.
    if (keep === 'none' || isOfState.has(event.type)) return;
    if (event.type === 'tool.progress' && this.#outbox.length + this.#later.length >= MAX_PROGRESS) return;
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
    this.#noteState(state, upTo);
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

  /** A process may die right after a save: what its state says to readers must be in the journal with it. */
  #noteState({ waiting, openStep, parked, outcome }: Progress, seq: number): void {
    for (const wait of waiting?.waits ?? []) {
      if (this.#waits.has(wait.id)) continue;
      this.#waits.add(wait.id);
      const call = openStep && wait.callId !== undefined ? callOf(openStep, wait.callId) : undefined;
      this.#note({ type: 'wait.opened', wait, ...(call ? { input: call.input } : {}) }, seq);
    }
    if (parked && !this.#isParked) this.#note({ type: 'run.parked', ...parked }, seq);
    this.#isParked = parked !== undefined;
    if (!outcome || this.#pending.some(({ event }) => event.type === 'run.ended')) return;
    const { status, output, error } = outcome;
    this.#note({ type: 'run.ended', status, output, ...(error ? { error } : {}) }, seq);
  }

  #note(body: RunEventBody, seq: number): void {
    const { runId, clock, redact } = this.#parts;
    const event: RunEvent = { ...(redact?.(body) ?? body), runId, seq, at: clock.now() };
    this.#pending.push({ event, keep: 'kept', step: stepOf(event) });
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
    const end = this.#parts.redact ? { end: { block, offset } } : {};
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
    // A save may have recorded their step too.
    for (const each of later) if (!this.#isStale(each)) this.#put(each);
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
    redact: run.redaction && ((body) => run.redaction?.event(body) ?? body),
    waits: run.resources.record?.waiting?.waits ?? [],
    after,
    onNews,
  });
  run.onEnd(() => journal.close());
  return journal;
}
