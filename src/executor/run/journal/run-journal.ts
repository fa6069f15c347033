import type { Warn } from '../../../log/log.ts';
import type { JournalPart } from '../../../record/state.ts';
import type { RunEvent, RunEventBody } from '../../../run/events/body.ts';
import { keepOf, specOf } from '../../../run/events/table.ts';
import { withoutContent } from '../../../run/journal/content.ts';
import {
  type ContentPlace,
  firstPlace,
  type JournalEntry,
  type JournalWrite,
  type TextPlace,
} from '../../../run/journal/entry.ts';
import { recordable } from '../../../run/pipeline.ts';
import { ownFrom, type Progress } from '../../../run/progress.ts';
import type { JournalStore } from '../../../store/journal-port.ts';
import type { Claim } from '../../../store/port.ts';
import type { Clock } from '../../../values/clock.ts';
import { hasCode } from '../../../values/error-data.ts';
import type { Journaling } from '../../host/journal-options.ts';
import type { ActiveRun } from '../active-run.ts';
import type { RunJournaling } from '../run-state.ts';
import { EventQueue } from './event-queue.ts';
import { asJournaled, hasContent, isIn, saveOf, stepOfEvent, type WaitingEvent } from './journal-events.ts';
import { type ToldPart, ToldState } from './told-state.ts';

interface Parts {
  readonly runId: string;
  readonly store: JournalStore;
  /** Undefined: another process has the run. */
  readonly claim: () => Claim | undefined;
  readonly options: Journaling;
  readonly clock: Clock;
  readonly warn: Warn;
  /** Redacts events that the journal makes itself; undefined = everything is passed on unchanged. */
  readonly redact: (<Body extends RunEventBody>(body: Body) => Body) | undefined;
  /** What its journal says of the run: the state of the record that it continues. */
  readonly told: ToldState;
  /** Places of entries are higher than this. */
  readonly after: number;
  /** It continues the journal of an earlier process. */
  readonly isContinued: boolean;
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
  readonly #pending = new EventQueue();
  /** Events that the next flush publishes. */
  readonly #outbox = new EventQueue();
  /** Events after a step that is not stored yet. */
  readonly #later = new EventQueue();
  #place: number;
  #call: Call | undefined;
  /** The place of each open step's message in the record, by step. */
  readonly #messages = new Map<number, ContentPlace>();
  /** The last published place that a step may delete; 0 = none. An earlier process may have left some. */
  #passingTo: number;
  /** What passed in earlier processes is void, and goes with the first save: a day of failed model calls is no more than two. */
  #voidTo: number;
  /** What the save in progress deletes. */
  #dropTo = 0;
  /** The message of this step, and of all before it, is in the record, or on its way there. */
  #recordedTo = 0;
  /** This step, and all before it, are over. */
  #doneTo = 0;
  /** What a save says that is not stored yet, by its name: the next try has the same. */
  readonly #said = new Map<string, WaitingEvent>();
  #timer: unknown;
  #publishing: Promise<void> | undefined;
  #isOver = false;
  #hasFailed = false;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#place = parts.after;
    this.#passingTo = parts.after;
    this.#voidTo = parts.isContinued ? parts.after : 0;
  }

  /** How many events wait for their save, or for the next flush. */
  get waiting(): number {
    return this.#pending.size + this.#outbox.size + this.#later.size;
  }

  add(event: RunEvent): void {
    const keep = this.#isOver ? 'none' : keepOf(event);
    if (keep === 'none' || this.#parts.told.take(event)) return;
    if (event.type === 'tool.progress' && this.waiting >= MAX_PROGRESS) return;
    const step = stepOfEvent(event) ?? this.#call?.step;
    if (event.type === 'step.started') this.#begin(event);
    else if (event.type === 'step.reset') this.#reset(event);
    // What has not been published of it yet need not be: a save that waits has the whole step.
    else if (event.type === 'step.done') this.#later.drop((each) => each.keep === 'passing' && each.step === step);
    // Its readers wait for the next process now: what was under way is void, and comes again.
    else if (event.type === 'run.left')
      for (const queue of [this.#outbox, this.#later]) queue.drop((each) => each.keep === 'passing');
    const { of } = specOf(event);
    if (of === 'step') this.#snapshot(event.seq);
    const ofCall = of === 'call' ? ({ isOfCall: true, attempt: this.#call?.attempt } as const) : {};
    const save = saveOf(keep);
    const waiting: WaitingEvent = { event, keep: keep === 'passing' ? keep : 'kept', save, step, ...ofCall };
    if (event.type === 'model.delta') this.#read(event);
    if (keep === 'passing' && this.#parts.options.isDurableOnly) return;
    if (save) this.#pending.push(waiting);
    else this.#put(waiting);
  }

  /** What a save of this state adds. @param upTo the `seq` of the last event before the state was taken */
  part(progress: Progress, upTo: number): JournalPart {
    const state = recordable(progress);
    const { iteration, openStep } = state;
    const isRecorded = this.#call && this.#call.step <= (openStep ? iteration + 1 : iteration);
    if (isRecorded) this.#snapshot(upTo);
    let written: readonly WaitingEvent[] = [];
    return {
      write: () => {
        const { first, last } = this.#parts.told.news(state);
        const isReady = (each: WaitingEvent) => each.event.seq <= upTo && isIn(each, state);
        written = [
          ...this.#outbox.those((each) => each.keep === 'kept' && isReady(each)),
          ...first.map((said) => this.#saidBy(said, upTo)),
          ...this.#pending.those(isReady),
          ...last.map((said) => this.#saidBy(said, upTo)),
        ];
        return this.#write(written, state);
      },
      landed: () => {
        this.#parts.told.onLanded(state);
        this.#said.clear();
        this.#onLanded(written);
      },
    };
  }

  /** Publishes what may be read now. Never rejects. */
  async flush(): Promise<void> {
    this.#stopTimer();
    await this.#publishing;
    const claim = this.#parts.claim();
    if (this.#outbox.size === 0 || this.#isOver || !claim) return;
    this.#publishing = this.#publish(this.#outbox.take(), claim);
    await this.#publishing;
  }

  close(): void {
    this.#isOver = true;
    this.#stopTimer();
    this.#parts.onNews();
  }

  #saidBy({ name, body }: ToldPart, seq: number): WaitingEvent {
    const { runId, clock, redact } = this.#parts;
    const event: RunEvent = { ...(redact?.(body) ?? body), runId, seq, at: clock.now() };
    const before = this.#said.get(name);
    const waiting: WaitingEvent = {
      event,
      keep: 'kept',
      step: stepOfEvent(event),
      ...(before?.place ? { place: before.place } : {}),
    };
    this.#said.set(name, waiting);
    return waiting;
  }

  #begin({ step, seq }: Extract<RunEvent, { type: 'step.started' }>): void {
    this.#call = { step, attempt: seq, block: 0, offset: 0, isRead: false };
  }

  /** The pieces of an earlier attempt that are not published yet never are. */
  #reset({ step, seq }: Extract<RunEvent, { type: 'step.reset' }>): void {
    const isVoid = (each: WaitingEvent) =>
      each.isOfCall === true && (each.step ?? 0) >= step && each.place === undefined;
    for (const queue of [this.#outbox, this.#later, this.#pending]) queue.drop(isVoid);
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
    this.#pending.push({ event, keep: 'kept', save: 'step', step, attempt, ...end });
  }

  #put(waiting: WaitingEvent): void {
    const isOther = ({ event, step }: WaitingEvent) => event.type === 'step.done' && step !== waiting.step;
    if (this.#pending.has(isOther)) this.#later.push(waiting);
    else this.#send(waiting);
  }

  #send(waiting: WaitingEvent): void {
    const { clock, options } = this.#parts;
    this.#outbox.push(waiting);
    if (this.#outbox.bytes >= options.flushBytes) void this.flush();
    else this.#timer ??= clock.setTimeout(() => void this.flush(), options.flushMs);
  }

  async #publish(batch: readonly WaitingEvent[], claim: Claim): Promise<void> {
    const { store, runId, warn, onNews } = this.#parts;
    const entries = batch.map((each) => this.#entry(each));
    if (batch.some(({ keep }) => keep === 'passing')) this.#passingTo = this.#place;
    try {
      await store.publish(runId, entries, { claim });
      onNews();
    } catch (error) {
      if (hasCode(error, 'LEASE_LOST')) return this.close();
      if (!this.#hasFailed) warn('journal.write.failed', { runId, error });
      this.#hasFailed = true;
      // They keep their places: if the store has them all the same, it replaces them.
      this.#outbox.putBack(batch.filter((each) => !this.#isStale(each)));
      this.#timer ??= this.#parts.clock.setTimeout(() => void this.flush(), 10 * this.#parts.options.flushMs);
    } finally {
      this.#publishing = undefined;
    }
  }

  #write(written: readonly WaitingEvent[], state: Progress): JournalWrite | undefined {
    let isStepRecorded = false;
    for (const { event, step } of written) {
      if (step !== undefined) this.#notePlace(step, state);
      if (event.type === 'step.snapshot') this.#recordedTo = Math.max(this.#recordedTo, event.step);
      if (event.type === 'step.done') this.#doneTo = Math.max(this.#doneTo, event.step);
      isStepRecorded ||= event.type === 'step.snapshot' || event.type === 'step.done';
    }
    // Pieces that are not published yet need not be: the record has their message.
    this.#outbox.drop((each) => this.#isStale(each));
    const entries = written.filter((each) => this.#isReadable(each)).map((each) => this.#entry(each));
    this.#dropTo = isStepRecorded ? this.#passingTo : this.#voidTo;
    if (entries.length === 0 && this.#dropTo === 0) return undefined;
    return { entries, ...(this.#dropTo > 0 ? { dropTo: this.#dropTo } : {}) };
  }

  #onLanded(written: readonly WaitingEvent[]): void {
    if (this.#dropTo > 0) this.#voidTo = 0;
    if (written.length === 0) return;
    const isWritten = new Set(written);
    for (const queue of [this.#pending, this.#outbox]) queue.drop((each) => isWritten.has(each));
    // What was published meanwhile is deleted with the next step.
    if (this.#dropTo === this.#passingTo) this.#passingTo = 0;
    // A save may have recorded their step too.
    for (const each of this.#later.take()) if (!this.#isStale(each)) this.#put(each);
    for (const step of this.#messages.keys()) if (step < this.#recordedTo - 1) this.#messages.delete(step);
    this.#parts.onNews();
  }

  /** Pieces of a message that the record has, and what passed in a step that is over. */
  #isStale({ isOfCall, step = 0, keep }: WaitingEvent): boolean {
    return keep === 'passing' && step <= (isOfCall ? this.#recordedTo : this.#doneTo);
  }

  #entry(waiting: WaitingEvent): JournalEntry {
    const { event, keep, attempt, step, end } = waiting;
    waiting.place ??= ++this.#place;
    const content = step !== undefined && hasContent.has(event.type) ? this.#messages.get(step) : undefined;
    return {
      place: waiting.place,
      keep,
      event: asJournaled(content || !hasContent.has(event.type) ? withoutContent(event) : event),
      ...(attempt === undefined ? {} : { attempt }),
      ...(content ? { content } : {}),
      ...(end ? { end } : {}),
    };
  }

  /** A snapshot of a message that no record holds, in a phase that is recorded at its end, cannot be read. */
  #isReadable({ event, step }: WaitingEvent): boolean {
    return event.type !== 'step.snapshot' || (step !== undefined && this.#messages.has(step));
  }

  /** Notes where the record has the message of a step, while it is the last one. */
  #notePlace(step: number, progress: Progress): void {
    const { iteration, openStep, transcript } = progress;
    // The record of a workflow has no messages: its events hold their own content.
    if (this.#messages.has(step) || progress.workflow) return;
    // The record of a turn of a thread begins behind the earlier turns.
    const first = ownFrom(progress);
    let message = -1;
    if (step === iteration + 1 && openStep) message = transcript.length;
    // A save may record several steps: each has one message of the model.
    let later = iteration - step;
    for (let i = transcript.length - 1; step <= iteration && message < 0 && i >= first; i--)
      if (transcript.at(i)?.role === 'assistant' && later-- === 0) message = i;
    if (message < 0) return;
    this.#messages.set(step, { message: message - first });
  }

  #stopTimer(): void {
    if (this.#timer !== undefined) this.#parts.clock.clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}

/**
 * Makes the journal of a run that is recorded; undefined without the options `journal` and `audit`, or without a claim.
 * @param seq of the record that it continues; 0 = a new run
 */
export function journalOf(run: ActiveRun, seq: number): RunJournal | undefined {
  const { config, feeds } = run.services;
  const { journaling: options, store, clock, warn } = config;
  if (!options || !store?.journal || !run.claim) return undefined;
  const { runId } = run;
  const after = firstPlace(seq, run.claim.epoch);
  const onNews = () => feeds.wake(runId);
  const claim = () => run.claim;
  const journal = new RunJournal({
    runId,
    store: store.journal,
    claim,
    options,
    clock,
    warn,
    redact: run.redaction && ((body) => run.redaction?.event(body) ?? body),
    told: new ToldState(run.resources.record),
    after,
    isContinued: seq > 0,
    onNews,
  });
  run.onEnd(() => journal.close());
  return journal;
}
