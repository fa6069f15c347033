import type { RunEvent, Wait } from '../../index.ts';
import type { ErrorData } from '../../values/error-data.ts';
import type { ToolOutput } from '../../values/message.ts';
import type { Usage } from '../../values/usage.ts';
import { publicError } from '../problem.ts';
import { type ShownCall, StepContent, textOf } from './step-content.ts';
import type { RunPart, StepChunk, UiChunk, WaitPart } from './ui-chunk.ts';
import { approvalDescriptor, needsPerson, retryPart, waitPart } from './wait-parts.ts';

type EventOf<Type extends RunEvent['type']> = Extract<RunEvent, { type: Type }>;
type Approval = Extract<Wait, { kind: 'approval' }>;

/** The id of the message that shows a run in a page. */
export function messageIdOf(runId: string): string {
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
  #run: RunPart;
  #content: StepContent | undefined;
  #step = 0;
  /** The open waits that the page shows, by id. */
  readonly #waits = new Map<string, { readonly wait: Wait; part: WaitPart }>();
  #usage: Usage | undefined;
  #steered = 0;
  /** The run is over, or its stream is. */
  isOver = false;
  /** Nothing is left to do in the run before one of its waits is over. */
  isWaiting = false;
  /** The run is parked until a person unparks it. */
  isParked = false;

  constructor(runId: string) {
    this.#runId = runId;
    this.#run = { runId, status: 'running' };
  }

  /** The step of the message in which the last chunk arrived; 0 = before the first. */
  get step(): number {
    return this.#step;
  }

  /** The open waits, by id. */
  get waits(): ReadonlyMap<string, { readonly wait: Wait }> {
    return this.#waits;
  }

  /** Returns whether the run waits, and only persons can end its waits. */
  get needsPerson(): boolean {
    return this.isWaiting && this.#waits.size > 0 && [...this.#waits.values()].every(({ wait }) => needsPerson(wait));
  }

  /** Returns the chunks of one event. */
  map(event: RunEvent): readonly StepChunk[] {
    if (this.isOver) return [];
    this.#start();
    if (event.type.startsWith('tool.') || event.type.startsWith('model.')) this.#ofStep(event);
    else if (event.type.startsWith('wait.')) this.#ofWait(event);
    else this.#ofRun(event);
    return this.#taken();
  }

  /** Ends the stream of a run that is not over: only a person can continue it, or the page must ask again. */
  pause(finishReason: 'tool-calls' | 'interrupted'): readonly StepChunk[] {
    if (this.isOver) return [];
    this.isOver = true;
    this.#content?.close();
    this.#emit({ type: 'finish', finishReason });
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
    this.#emit({ type: 'start', messageId: messageIdOf(this.#runId) });
    this.#showRun({});
  }

  #showRun(change: Partial<RunPart>): void {
    const { runId, status, retry } = { ...this.#run, ...change };
    const { wakeAt } = change;
    this.#run = { runId, status, ...(wakeAt === undefined ? {} : { wakeAt }), ...(retry ? { retry } : {}) };
    this.#emit({ type: 'data-pawl-run', id: runId, data: this.#run });
  }

  /** The content of a step; undefined for an event of an earlier step, which is over. */
  #at(step: number): StepContent | undefined {
    if (this.#content && this.#content.step > step) return undefined;
    if (this.#content?.step !== step) {
      this.#content?.finish();
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
        if (!event.isLate) this.#done(event);
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
        this.isParked = true;
        this.#showRun({ status: 'parked' });
        break;
      case 'run.ended':
        this.#end(event);
        break;
    }
  }

  #works(): void {
    this.isParked = false;
    this.isWaiting = false;
    if (this.#run.status !== 'running') this.#showRun({ status: 'running' });
  }

  #ofWait(event: RunEvent): void {
    switch (event.type) {
      case 'wait.opened':
        this.#opened(event);
        break;
      case 'wait.answered':
        this.#answered(event);
        break;
      case 'wait.refused':
        this.#refused(event);
        break;
      case 'wait.expired':
        this.#settled(event.waitId, { state: 'expired' });
        break;
      case 'wait.withdrawn':
        this.#settled(event.waitId, { state: 'withdrawn' });
        break;
    }
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

  #done({ step, callId, name, output }: EventOf<'tool.done'>): void {
    const content = this.#at(step);
    if (!content) return;
    const call = content.call({ callId, name, input: {} });
    if (call.isDone) return;
    call.isDone = true;
    if (output.type === 'execution-denied') this.#denied(content, call, output.reason);
    else {
      this.#approved(content, call);
      content.send(outputChunk(call, output));
    }
  }

  /** A call that has run was approved, although the news of it may still be on its way. */
  #approved(content: StepContent, { approval }: ShownCall): void {
    if (!approval || approval.isSettled) return;
    approval.isSettled = true;
    content.send({ type: 'tool-approval-response', approvalId: approval.waitId, approved: true });
  }

  /** A rule that denied a call never asked: the page gets question and answer at once. */
  #denied(content: StepContent, call: ShownCall, reason: string | undefined): void {
    const toolCallId = call.callId;
    const approvalId = call.approval?.waitId ?? `${toolCallId}:rule`;
    if (!call.approval) content.send({ type: 'tool-approval-request', approvalId, toolCallId, isAutomatic: true });
    call.approval = { waitId: approvalId, isSettled: true };
    const why = reason === undefined ? {} : { reason };
    content.send({ type: 'tool-approval-response', approvalId, approved: false, ...why });
    content.send({ type: 'tool-output-denied', toolCallId });
  }

  #opened({ wait, input }: EventOf<'wait.opened'>): void {
    const part = waitPart(wait);
    this.#waits.set(wait.id, { wait, part });
    if (wait.kind === 'retry') this.#showRun({ status: 'waiting', retry: retryPart(wait) });
    const content = wait.kind === 'retry' ? undefined : this.#at(wait.step);
    if (!content) return;
    const { callId, tool = '' } = wait;
    const call = callId === undefined ? undefined : content.call({ callId, name: tool, input: input ?? {} });
    content.send({ type: 'data-pawl-wait', id: wait.id, data: part });
    if (!call) return;
    if (wait.kind === 'approval') this.#ask(content, call, wait);
    else if (call.isPreliminary) content.send(inputChunk(call));
    delete call.isPreliminary;
  }

  #ask(content: StepContent, call: ShownCall, wait: Approval): void {
    call.approval = { waitId: wait.id, isSettled: false };
    content.send({
      type: 'tool-approval-request',
      approvalId: wait.id,
      toolCallId: call.callId,
      ...(wait.prompt === undefined ? {} : { reason: wait.prompt }),
      approvalDescriptor: approvalDescriptor(wait),
    });
  }

  #answered({ waitId, how, by, votes, callId }: EventOf<'wait.answered'>): void {
    const open = this.#waits.get(waitId);
    const call = callId === undefined ? undefined : this.#content?.calls.get(callId);
    if (votes !== undefined) {
      if (open) this.#changeWait(waitId, { votes });
      if (open?.wait.kind === 'approval' && call && this.#content) this.#askAgain(call, open.wait, votes);
      return;
    }
    if (how === 'approve' && call?.approval?.waitId === waitId && this.#content) this.#approved(this.#content, call);
    const person = by === undefined ? {} : { by: { ...by } };
    this.#settled(waitId, { state: 'answered', how, ...person });
  }

  #askAgain(call: ShownCall, wait: Approval, votes: number): void {
    const { prompt, id: approvalId } = wait;
    const descriptor = { ...approvalDescriptor(wait), votes };
    const asked = { approvalId, toolCallId: call.callId, approvalDescriptor: descriptor };
    this.#emit({ type: 'tool-approval-request', ...asked, ...(prompt === undefined ? {} : { reason: prompt }) });
  }

  /** The page may show the answer that was refused: it gets the question again. */
  #refused({ waitId, code }: EventOf<'wait.refused'>): void {
    const open = this.#waits.get(waitId);
    if (!open) return;
    this.#changeWait(waitId, { refused: code });
    const { wait } = open;
    const call = wait.callId === undefined ? undefined : this.#content?.calls.get(wait.callId);
    if (!call || !this.#content) return;
    if (wait.kind === 'approval') this.#askAgain(call, wait, votesIn(open.part, wait));
    else this.#content.send(inputChunk(call));
  }

  #settled(waitId: string, change: Partial<WaitPart>): void {
    const isRetry = this.#waits.get(waitId)?.wait.kind === 'retry';
    if (isRetry) {
      const { retry: _, ...rest } = this.#run;
      this.#run = rest;
    } else this.#changeWait(waitId, change);
    this.#waits.delete(waitId);
  }

  #changeWait(waitId: string, change: { readonly [field: string]: WaitPart[string] | undefined }): void {
    const open = this.#waits.get(waitId);
    if (!open || open.wait.kind === 'retry') return;
    open.part = { ...open.part, ...change } as WaitPart;
    this.#emit({ type: 'data-pawl-wait', id: waitId, data: open.part });
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
      if (content && call.approval && !call.isDone) this.#denied(content, call, undefined);
    content?.finish();
    this.#showRun({ status });
    this.isOver = true;
    if (status === 'ok') this.#succeeded();
    else this.#failed(status, error);
  }

  #succeeded(): void {
    // A page that sends by itself when all calls of the last step have results would never stop: the last step has none.
    if (this.#content && this.#content.calls.size > 0) {
      this.#emit({ type: 'start-step' });
      this.#emit({ type: 'finish-step' });
    }
    const usage = this.#usage;
    this.#emit({ type: 'finish', finishReason: 'stop', ...(usage ? { messageMetadata: { usage } } : {}) });
  }

  #failed(status: RunPart['status'], error: ErrorData | undefined): void {
    if (status === 'cancelled') {
      this.#emit({ type: 'abort' });
      this.#emit({ type: 'finish', finishReason: 'interrupted' });
    } else this.#emit({ type: 'error', errorText: publicError(error ?? { code: '' }).message });
  }
}

function votesIn({ votes }: WaitPart, wait: Approval): number {
  return typeof votes === 'number' ? votes : wait.votes.length;
}

function inputChunk({ callId, name, input }: ShownCall): UiChunk {
  return { type: 'tool-input-available', toolCallId: callId, toolName: name, input };
}

/** The output of a call as the page shows it; an error is the text that the model read. */
function outputChunk(
  { callId, name, input }: ShownCall,
  output: Exclude<ToolOutput, { type: 'execution-denied' }>,
): UiChunk {
  if (output.type !== 'error-text' && output.type !== 'error-json')
    return { type: 'tool-output-available', toolCallId: callId, output: output.value };
  const errorText = textOf(output.value);
  if (typeof input === 'string')
    return { type: 'tool-input-error', toolCallId: callId, toolName: name, input, errorText };
  return { type: 'tool-output-error', toolCallId: callId, errorText };
}
