import type { RunEvent } from '../../index.ts';
import { isForModel } from '../../run/waits/wait.ts';
import type { ErrorData } from '../../values/error-data.ts';
import type { ToolOutput } from '../../values/message.ts';
import type { Usage } from '../../values/usage.ts';
import { publicError } from '../problem.ts';
import { publicParking } from '../runs/run-line.ts';
import { type ShownCall, StepContent, textOfPart } from './step-content.ts';
import type { RunDataPart, StepChunk, UiChunk } from './ui-chunk.ts';
import { WaitChunks } from './wait-chunks.ts';
import { modelWaitPart } from './wait-parts.ts';

type EventOf<Type extends RunEvent['type']> = Extract<RunEvent, { type: Type }>;

/** The id of the message that shows a run in a page. */
export function messageIdOfChunk(runId: string): string {
  return `${runId}:m`;
}

/**
 * Maps the events of one run to the chunks of one message of `useChat`. It reads nothing and waits for nothing: the same
 * events give the same message, however they are cut into pieces.
 */
export class RunChunks {
  readonly #runId: string;
  #out: StepChunk[] = [];
  #isStarted = false;
  #run: RunDataPart;
  #content: StepContent | undefined;
  #step = 0;
  readonly #waits: WaitChunks;
  /** The runs below this one that work. */
  readonly #busyBelow = new Set<string>();
  /** The waits for its model: it is away, or a limit gives its request a later turn. */
  readonly #modelWaits = new Map<string, 'retry' | 'limit'>();
  #usage: Usage | undefined;
  /** How the newest answer ended. */
  #finishReason: Extract<RunEvent, { type: 'step.done' }>['finishReason'];
  #steered = 0;
  /** The run is over, or its stream is. */
  isOver = false;
  /** Nothing is left to do in the run before one of its waits is over. */
  isWaiting = false;
  /** Why the run is parked until a person unparks it, as clients may see it; undefined = it is not. */
  parking: ReturnType<typeof publicParking> | undefined;

  constructor(runId: string) {
    this.#runId = runId;
    this.#run = { runId, status: 'running' };
    this.#waits = new WaitChunks({ at: (step) => this.#at(step), now: () => this.#content }, this.#emit);
  }

  /** The step of the message in which the last chunk arrived; 0 = before the first. */
  get step(): number {
    return this.#step;
  }

  /** The ids of the open waits for persons. */
  get personWaits(): readonly string[] {
    return this.#waits.persons;
  }

  /** Whether the page has a wait, or has had it. */
  knows(waitId: string): boolean {
    return this.#modelWaits.has(waitId) || this.#waits.knows(waitId);
  }

  /** Whether the run waits, and only persons can end its waits. */
  get needsPerson(): boolean {
    const isIdle = this.isWaiting && this.#busyBelow.size === 0 && this.#modelWaits.size === 0;
    return isIdle && this.#waits.needsPerson;
  }

  /**
   * Returns the chunks of one event.
   * @param isBelow of a run below this one: its waits name the call of this run
   */
  map(event: RunEvent, isBelow = false): readonly StepChunk[] {
    if (this.isOver) return [];
    if (isBelow && event.type.startsWith('run.')) {
      this.#below(event);
      return [];
    }
    this.#start();
    if (event.type.startsWith('tool.') || event.type.startsWith('model.')) this.#ofStep(event);
    else if (event.type.startsWith('wait.')) this.#ofWait(event, isBelow);
    else this.#ofRun(event);
    return this.#taken();
  }

  /** Ends the stream of a run that is not over, and that only a person can continue: `parked`, or by an answer to its calls. */
  pause(why: 'tool-calls' | 'parked'): readonly StepChunk[] {
    if (this.isOver) return [];
    this.isOver = true;
    this.#content?.close();
    if (why === 'parked' && this.parking)
      this.#emit({ type: 'error', errorText: `${this.parking.code}: ${this.parking.why}` });
    else this.#emit({ type: 'finish', finishReason: 'tool-calls' });
    return this.#taken();
  }

  #taken(): readonly StepChunk[] {
    const out = this.#out;
    this.#out = [];
    return out;
  }

  readonly #emit = (chunk: UiChunk): void => {
    if (chunk.type === 'start-step') this.#step = Math.max(this.#step + 1, this.#content?.step ?? 0);
    this.#out.push({ step: this.#step, chunk });
  };

  #start(): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    this.#emit({ type: 'start', messageId: messageIdOfChunk(this.#runId) });
    this.#showRun({});
  }

  #showRun(change: Partial<RunDataPart>): void {
    const { runId, status, retry, limit } = { ...this.#run, ...change };
    const { wakeAt, code } = change;
    const rest = { ...(wakeAt === undefined ? {} : { wakeAt }), ...(code === undefined ? {} : { code }) };
    this.#run = { runId, status, ...rest, ...(retry ? { retry } : {}), ...(limit ? { limit } : {}) };
    this.#emit({ type: 'data-pawl-run', id: runId, data: this.#run });
  }

  /** The content of a step; undefined for an event of an earlier step, which is over. */
  #at(step: number): StepContent | undefined {
    if (this.#content && this.#content.step > step) return undefined;
    if (this.#content?.step !== step) {
      this.#content?.finish();
      this.#waits.over('answered');
      this.#content = new StepContent(step, this.#emit);
    }
    return this.#content;
  }

  #ofStep(event: RunEvent): void {
    switch (event.type) {
      case 'model.delta':
        this.#at(event.step)?.text(event);
        break;
      case 'tool.input':
        this.#at(event.step)?.input(event);
        break;
      case 'model.source':
        this.#source(event);
        break;
      case 'tool.started':
        this.#at(event.step)?.call(event);
        break;
      case 'tool.progress':
        this.#progress(event);
        break;
      case 'tool.done':
        if (!event.isLate) this.#onDone(event);
        break;
    }
  }

  #ofRun(event: RunEvent): void {
    switch (event.type) {
      case 'step.snapshot':
        this.#at(event.step)?.record(event.content);
        break;
      case 'step.reset':
        if (this.#content && this.#content.step >= event.step && !this.#content.isRecorded) this.#content.reset();
        break;
      case 'step.done':
        this.#usage = event.usage;
        this.#finishReason = event.finishReason;
        this.#at(event.step)?.finish();
        break;
      case 'steer.applied':
        this.#steer(event);
        break;
      case 'run.waiting':
        this.isWaiting = true;
        this.#showRun({ status: 'waiting', ...(event.wakeAt === undefined ? {} : { wakeAt: event.wakeAt }) });
        break;
      case 'run.resumed':
      case 'run.woken':
        this.#works();
        break;
      case 'run.parked':
        this.parking = publicParking(event.code);
        this.#showRun({ status: 'parked', code: this.parking.code });
        break;
      case 'run.ended':
        this.#end(event);
        break;
    }
  }

  #below({ type, runId }: RunEvent): void {
    if (['run.started', 'run.resumed', 'run.woken'].includes(type)) this.#busyBelow.add(runId);
    else this.#busyBelow.delete(runId);
  }

  #works(): void {
    this.parking = undefined;
    this.isWaiting = false;
    if (this.#run.status !== 'running') this.#showRun({ status: 'running' });
  }

  /** A wait for the model has no call: the head of the message shows it. */
  #ofWait(event: RunEvent, isBelow: boolean): void {
    const ended = 'waitId' in event ? this.#modelWaits.get(event.waitId) : undefined;
    if (event.type === 'wait.opened' && isForModel(event.wait)) {
      if (isBelow) return;
      const { id, kind } = event.wait;
      this.#modelWaits.set(id, kind);
      this.#showRun({ status: 'waiting', ...modelWaitPart(event.wait) });
    } else if (ended && 'waitId' in event) {
      this.#modelWaits.delete(event.waitId);
      const { [ended]: _, ...rest } = this.#run;
      this.#run = rest;
    } else this.#waits.map(event, isBelow);
  }

  #source({ step, source }: EventOf<'model.source'>): void {
    const content = this.#at(step);
    if (source.sourceType === 'url') {
      const { id, url, title } = source;
      content?.source({ type: 'source-url', sourceId: id, url, ...(title === undefined ? {} : { title }) });
    } else {
      const { id, mediaType, title, filename } = source;
      const named = filename === undefined ? {} : { filename };
      content?.source({ type: 'source-document', sourceId: id, mediaType, title, ...named });
    }
  }

  #progress({ callId, progress }: EventOf<'tool.progress'>): void {
    const call = this.#content?.calls.get(callId);
    if (!call?.isWhole || call.isDone) return;
    call.isPreliminary = true;
    this.#content?.send({ type: 'tool-output-available', toolCallId: callId, output: progress, preliminary: true });
  }

  #onDone({ step, callId, name, output }: EventOf<'tool.done'>): void {
    const content = this.#at(step);
    if (!content) return;
    const call = content.call({ callId, name, input: {} });
    if (call.isDone) return;
    call.isDone = true;
    if (output.type === 'execution-denied') this.#waits.onDenied(content, call, output.reason);
    else {
      this.#waits.onApproved(content, call);
      content.send(outputChunk(call, output));
    }
  }

  #steer({ texts = [] }: EventOf<'steer.applied'>): void {
    for (const text of texts) {
      this.#steered += 1;
      const id = `${this.#runId}:s${this.#steered}`;
      this.#emit({ type: 'steering-message', id, parts: [{ type: 'text', text }] });
    }
  }

  #end({ status, error }: EventOf<'run.ended'>): void {
    if (status === 'interrupted' || status === 'waiting') return;
    const content = this.#content;
    content?.close();
    for (const call of content?.calls.values() ?? [])
      if (content && call.approval && !call.approval.isSettled && !call.isDone) this.#waits.onDenied(content, call);
    content?.finish();
    this.#waits.over(status === 'ok' ? 'answered' : 'withdrawn');
    this.#showRun({ status });
    this.isOver = true;
    if (status === 'ok') this.#onSucceeded();
    else this.#onFailed(status, error);
  }

  #onSucceeded(): void {
    // A page that sends by itself when all calls of the last step have results would never stop: the last step has none.
    if (this.#content && this.#content.calls.size > 0) {
      this.#emit({ type: 'start-step' });
      this.#emit({ type: 'finish-step' });
    }
    const usage = this.#usage;
    const reason = this.#finishReason ?? 'stop';
    // The protocol has one word for a provider that withholds, and for a model that does.
    const finishReason = reason === 'refusal' ? 'content-filter' : reason;
    this.#emit({ type: 'finish', finishReason, ...(usage ? { messageMetadata: { usage } } : {}) });
  }

  #onFailed(status: RunDataPart['status'], error: ErrorData | undefined): void {
    if (status === 'cancelled') {
      this.#emit({ type: 'abort' });
      this.#emit({ type: 'finish', finishReason: 'interrupted' });
    } else this.#emit({ type: 'error', errorText: publicError(error ?? { code: '' }).message });
  }
}

/** The output of a call as the page shows it; an error is the text that the model read. */
function outputChunk(
  { callId, name, input }: ShownCall,
  output: Exclude<ToolOutput, { type: 'execution-denied' }>,
): UiChunk {
  if (output.type !== 'error-text' && output.type !== 'error-json')
    return { type: 'tool-output-available', toolCallId: callId, output: output.value };
  const errorText = textOfPart(output.value);
  if (typeof input === 'string')
    return { type: 'tool-input-error', toolCallId: callId, toolName: name, input, errorText };
  return { type: 'tool-output-error', toolCallId: callId, errorText };
}
