import type { RunEvent, Wait } from '../../index.ts';
import type { ShownCall, StepContent } from './step-content.ts';
import type { UiChunk, WaitDataPart } from './ui-chunk.ts';
import { approvalDescriptor, isForChat, waitPart } from './wait-parts.ts';

type EventOf<Type extends RunEvent['type']> = Extract<RunEvent, { type: Type }>;
type Approval = Extract<Wait, { kind: 'approval' }>;

/** The steps of a message. */
export interface Steps {
  /** The content of a step; undefined for one that is over. */
  at(step: number): StepContent | undefined;
  /** The content of the newest step. */
  now(): StepContent | undefined;
}

interface OpenWait {
  wait: Wait;
  part: WaitDataPart;
  /** A run below this one waits. */
  readonly isBelow: boolean;
}

/** The open waits of a run, and of the runs below it, as a page shows them: one approval at a time for each call. */
export class WaitChunks {
  readonly #steps: Steps;
  readonly #emit: (chunk: UiChunk) => void;
  readonly #open = new Map<string, OpenWait>();
  readonly #seen = new Set<string>();

  constructor(steps: Steps, emit: (chunk: UiChunk) => void) {
    this.#steps = steps;
    this.#emit = emit;
  }

  /** Whether a wait is open, and only persons can end the waits that are. A child counts by the waits below it. */
  get needsPerson(): boolean {
    const waits = [...this.#open.values()];
    const below = new Set(waits.flatMap(({ wait, isBelow }) => (isBelow ? (wait.callId ?? []) : [])));
    const isPersons = ({ wait }: OpenWait) =>
      isForChat(wait) || (wait.kind === 'child' && below.has(wait.callId ?? ''));
    return waits.length > 0 && waits.every(isPersons);
  }

  /** The ids of the open waits for persons. */
  get persons(): readonly string[] {
    return [...this.#open].flatMap(([id, { wait }]) => (isForChat(wait) ? id : []));
  }

  /** Whether a wait was ever opened here. */
  knows(waitId: string): boolean {
    return this.#seen.has(waitId);
  }

  /** Maps an event about a wait of a call. */
  map(event: RunEvent, isBelow: boolean): void {
    switch (event.type) {
      case 'wait.opened':
        this.#onOpened(event, isBelow);
        break;
      case 'wait.answered':
        this.#onAnswered(event);
        break;
      case 'wait.refused':
        this.#onRefused(event);
        break;
      case 'wait.expired':
        this.#onSettled(event.waitId, { state: 'expired' });
        break;
      case 'wait.withdrawn':
        this.#onSettled(event.waitId, { state: 'withdrawn' });
        break;
    }
  }

  /** The calls of a step are over, and with them their waits: a process may have died before it could say how. */
  over(state: 'answered' | 'withdrawn'): void {
    for (const waitId of this.#open.keys()) this.#change(waitId, { state });
    this.#open.clear();
  }

  /** A call that has run was approved, although the news of it may still be on its way. */
  onApproved(content: StepContent, { approval }: ShownCall): void {
    if (!approval || approval.isSettled) return;
    approval.isSettled = true;
    content.send({ type: 'tool-approval-response', approvalId: approval.waitId, approved: true });
  }

  /** A rule that denied a call never asked: the page gets question and answer at once. */
  onDenied(content: StepContent, call: ShownCall, reason?: string): void {
    const toolCallId = call.callId;
    const approvalId = call.approval?.waitId ?? `${toolCallId}:rule`;
    if (!call.approval) content.send({ type: 'tool-approval-request', approvalId, toolCallId, isAutomatic: true });
    call.approval = { waitId: approvalId, isSettled: true };
    const why = reason === undefined ? {} : { reason };
    content.send({ type: 'tool-approval-response', approvalId, approved: false, ...why });
    content.send({ type: 'tool-output-denied', toolCallId });
  }

  #onOpened({ wait, input }: EventOf<'wait.opened'>, isBelow: boolean): void {
    const content = this.#steps.at(wait.step);
    const part = waitPart(wait);
    this.#open.set(wait.id, { wait, part, isBelow });
    this.#seen.add(wait.id);
    if (!content) return;
    const { callId, tool = '' } = wait;
    const call = callId === undefined ? undefined : content.call({ callId, name: tool, input: input ?? {} });
    if (call?.isPreliminary && wait.kind !== 'approval') content.send(inputChunk(call));
    // The last chunk of a question that is no approval: a page that has it has the question.
    content.send({ type: 'data-pawl-wait', id: wait.id, data: part });
    if (!call) return;
    if (wait.kind === 'approval') this.#askNext(call);
    delete call.isPreliminary;
  }

  /** A part of a message holds one approval: the next one is asked when the one that it has is over. */
  #askNext(call: ShownCall): void {
    if (call.isDone || this.#open.has(call.approval?.waitId ?? '')) return;
    for (const { wait, part } of this.#open.values()) {
      if (wait.kind !== 'approval' || wait.callId !== call.callId) continue;
      call.approval = { waitId: wait.id, isSettled: false };
      this.#ask(call, wait, votesIn(part, wait));
      return;
    }
  }

  #ask(call: ShownCall, wait: Approval, votes: number): void {
    const { prompt, id: approvalId } = wait;
    const asked = { type: 'tool-approval-request', approvalId, toolCallId: call.callId } as const;
    const reason = prompt === undefined ? {} : { reason: prompt };
    this.#emit({ ...asked, ...reason, approvalDescriptor: { ...approvalDescriptor(wait), votes } });
  }

  #onAnswered({ waitId, how, by, votes, wait }: EventOf<'wait.answered'>): void {
    const open = this.#open.get(waitId);
    const call = this.#callOf(open);
    if (votes !== undefined) {
      // A person put another input in place of the one that the page shows.
      if (open && wait) [open.wait, open.part] = [wait, waitPart(wait)];
      this.#change(waitId, { votes });
      if (open?.wait.kind === 'approval' && call?.approval?.waitId === waitId) this.#ask(call, open.wait, votes);
      return;
    }
    const content = this.#steps.now();
    if (content && call?.approval?.waitId === waitId && !call.isDone) {
      if (how === 'approve') this.onApproved(content, call);
      // A denied call of a run below ends there: the page's call continues.
      if (how === 'deny' && open?.isBelow) {
        call.approval.isSettled = true;
        content.send({ type: 'tool-approval-response', approvalId: waitId, approved: false });
      }
    }
    this.#onSettled(waitId, { state: 'answered', how, ...(by === undefined ? {} : { by: { ...by } }) });
  }

  /** The page may show the answer that was refused: it gets the question again. */
  #onRefused({ waitId, code }: EventOf<'wait.refused'>): void {
    const open = this.#open.get(waitId);
    this.#change(waitId, { refused: code });
    const call = this.#callOf(open);
    if (!open || !call) return;
    if (open.wait.kind !== 'approval') this.#emit(inputChunk(call));
    else if (call.approval?.waitId === waitId) this.#ask(call, open.wait, votesIn(open.part, open.wait));
  }

  #onSettled(waitId: string, change: Partial<WaitDataPart>): void {
    const call = this.#callOf(this.#open.get(waitId));
    this.#change(waitId, change);
    this.#open.delete(waitId);
    if (call) this.#askNext(call);
  }

  #change(waitId: string, change: { readonly [field: string]: WaitDataPart[string] | undefined }): void {
    const open = this.#open.get(waitId);
    if (!open) return;
    open.part = { ...open.part, ...change } as WaitDataPart;
    this.#emit({ type: 'data-pawl-wait', id: waitId, data: open.part });
  }

  #callOf(open: OpenWait | undefined): ShownCall | undefined {
    const callId = open?.wait.callId;
    return callId === undefined ? undefined : this.#steps.now()?.calls.get(callId);
  }
}

function votesIn({ votes }: WaitDataPart, wait: Approval): number {
  return typeof votes === 'number' ? votes : wait.votes.length;
}

function inputChunk({ callId, name, input }: ShownCall): UiChunk {
  return { type: 'tool-input-available', toolCallId: callId, toolName: name, input };
}
