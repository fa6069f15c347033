import type { RunCheckpoint } from '../../record/checkpoint.ts';
import type { RunDelta } from '../../record/delta.ts';
import { outcomeUnknown, type ToolEffect } from '../../run/open-step.ts';
import type { ParentCall } from '../../run/request.ts';
import type { RunOutcome } from '../../run/result.ts';
import type { Message, ToolOutput } from '../../values/message.ts';
import { isToolError } from '../../values/tool-output.ts';
import { MachineStory } from './machine-story.ts';

/** The letter of a promise; docs/crash-test.md explains each. */
export type CrashTestPromise = 'a' | 'b' | 'c' | 'd' | 'e' | 'f' | 'g' | 'h' | 'i' | 'w1' | 'w2' | 'w3';

export interface Complaint {
  readonly promise: CrashTestPromise;
  readonly detail: string;
  /** Nothing but the output differs: many histories say so for one reason. */
  readonly isOfOutput?: true;
}

/** A tool call that started. */
export interface BegunCall {
  readonly life: number;
  /** The same in all histories of one agent: the part of the key that does not contain the run. */
  readonly id: string;
  readonly name: string;
  readonly effect: ToolEffect;
  readonly key: string;
  readonly attempt: number;
  /** Completed turns of its run when it started. */
  readonly step: number;
  /** Aborted when the call was stopped from outside. */
  readonly signal?: AbortSignal;
  /** It ended by waiting, and runs again from its beginning when the wait is over: that is no repeat. */
  hasWaited?: boolean;
}

/** An outcome that was delivered. */
interface ToldOutcome {
  readonly life: number;
  readonly outcome: RunOutcome;
  /** What was wrong with the setup of the process that delivered it; undefined = nothing. */
  readonly badSetup: string | undefined;
}

/** What the store has acknowledged of one run. */
interface Stored {
  /** Null = deleted. */
  certain: RunCheckpoint | null;
  /** Writes that were refused since then: each may have taken effect nevertheless. */
  readonly unclear: { readonly record: RunCheckpoint | null; readonly at: number }[];
  /** When the write of `certain` started; 0 = nothing was certain yet. */
  readonly since: number;
}

/** The result of a write, and when the write started. */
interface Answer {
  readonly isClear: boolean;
  readonly at: number;
}

/**
 * Records what the processes of one crash test history did, seen from outside: tool calls, model calls, writes, outcomes.
 */
export class EffectLedger {
  readonly runId: string;
  readonly calls: BegunCall[] = [];
  readonly asked: { readonly life: number; readonly turn: number }[] = [];
  readonly outcomes: ToldOutcome[] = [];
  readonly complaints: Complaint[] = [];
  /** `once` calls that were running at a crash: it is not known whether they took effect. */
  readonly unknown: Set<string> = new Set();
  /** Calls whose tools succeeded while their process was alive. */
  readonly finished: Set<string> = new Set();
  /** The results that the model got of calls, as far as they were recorded. */
  readonly answers: Map<string, CallAnswer> = new Map();
  /** Calls that wait for approvals, and how many each needs. */
  readonly held: Map<string, number> = new Map();
  /** How many persons approved each call. */
  readonly approvals: Map<string, number> = new Map();
  /** The calls of a workflow that its record had open at the beginning of each process: a crash may repeat each of them. */
  readonly open: Map<number, Set<string>> = new Map();
  /** Waits whose answer the run refused: they stay open. */
  readonly refused: Set<string> = new Set();
  /** Whether the model got a failed tool call. */
  hasFailures = false;
  /** Messages that the store got, messages of all runs, and the most of one record. */
  readonly written = { messages: 0, said: 0, largest: 0 };
  /** What the machine of a workflow did. */
  readonly machine: MachineStory = new MachineStory();
  /** The newest record of the run that was acknowledged. */
  last: RunCheckpoint | undefined;
  /** The number of the current process. One with a broken setup has the number of the process after it. */
  life = 0;
  /** What is wrong with the setup of the current process; undefined = nothing. */
  badSetup: string | undefined;
  /** Processes with a broken setup that booted on a stored run. */
  badSetups = 0;
  readonly #stored = new Map<string, Stored>();
  /** The calls that started the children. */
  readonly #parents = new Map<string, ParentCall>();
  /** When each write started, by its arguments: a count. */
  readonly #begun = new WeakMap<readonly unknown[], number>();
  #moment = 0;

  constructor(runId: string) {
    this.runId = runId;
  }

  complain(promise: CrashTestPromise, detail: string): void {
    this.complaints.push({ promise, detail });
  }

  began({ runId, callId, ...call }: Omit<BegunCall, 'life' | 'id'> & { runId: string; callId: string }): BegunCall {
    const id = this.idOf(runId, callId);
    const [needed = 0, given = 0] = [this.held.get(id), this.approvals.get(id)];
    if (given < needed)
      this.complain('h', `call ${id} of tool ${call.name} started with ${given} of ${needed} approvals`);
    if (this.answers.has(id)) {
      this.complain('b', `call ${id} of tool ${call.name} started again although its result was recorded`);
    }
    const begun = { life: this.life, id, ...call };
    this.calls.push(begun);
    return begun;
  }

  /** A person approves a call. */
  onApproved({ runId, callId = '' }: { readonly runId: string; readonly callId?: string }): void {
    const id = this.idOf(runId, callId);
    this.approvals.set(id, (this.approvals.get(id) ?? 0) + 1);
  }

  /** The tool of a call has succeeded in a living process. */
  onSucceeded({ runId, callId }: { runId: string; callId: string }): void {
    this.finished.add(this.idOf(runId, callId));
  }

  /**
   * Notes that the model was asked for a turn.
   * @param turn its number in the run without a crash; undefined = that run has no such turn
   */
  asks(turn: number | undefined, isWatched: boolean): void {
    if (turn === undefined) return;
    const done = this.recordOf(this.runId)?.iteration ?? 0;
    if (isWatched && turn < done) {
      this.complain('b', `the model was asked for turn ${turn + 1} again although ${done} turns were recorded`);
    }
    this.asked.push({ life: this.life, turn });
  }

  onEnded(outcome: RunOutcome): void {
    if (outcome.runId === this.runId) this.outcomes.push({ life: this.life, outcome, badSetup: this.badSetup });
  }

  /** A call to the store starts, with these arguments. */
  writes(args: readonly unknown[]): void {
    this.#moment += 1;
    this.#begun.set(args, this.#moment);
    const [record] = args as Partial<RunCheckpoint>[];
    // A process that no longer waits for the result continues from it.
    if (record?.meta && record.messages) {
      this.#note(record.meta.runId, record as RunCheckpoint, { isClear: false, at: this.#moment });
    }
  }

  /** A call to the store that changes records. @param isClear it was acknowledged, not refused */
  wrote(method: string, args: readonly unknown[], isClear: boolean): void {
    // Writes of a run are ordered: an earlier write that is answered later has already taken effect, or never will.
    const at = this.#begun.get(args) ?? this.#moment;
    if (at < (this.#stored.get(runIdOfKey(args))?.since ?? 0)) return;
    if (method === 'delete') this.#note(args[0] as string, null, { isClear, at });
    // The record of a run that ended is none to recover.
    if (method === 'history.end') this.#note(runIdOfKey(args), null, { isClear, at });
    if (method === 'save') {
      this.#noteParent(args[0] as RunCheckpoint);
      this.#onSaved(args[0] as RunCheckpoint, { isClear, at });
    }
    if (method === 'append') this.#onAppended(args[0] as RunDelta, { isClear, at });
  }

  /** The runs that the store knows, and the states that it may have of each. */
  *stored(): Iterable<{ runId: string; certain: RunCheckpoint | null; unclear: readonly (RunCheckpoint | null)[] }> {
    for (const [runId, { certain, unclear }] of this.#stored) {
      yield { runId, certain, unclear: unclear.map(({ record }) => record) };
    }
  }

  /** The certain state of a run in the store. */
  recordOf(runId: string): RunCheckpoint | null | undefined {
    return this.#stored.get(runId)?.certain;
  }

  /** A state that was found in the store makes unclear writes certain. */
  noteFault(runId: string, record: RunCheckpoint | null): void {
    this.#stored.set(runId, { certain: record, unclear: [], since: this.#moment + 1 });
    this.#moment += 1;
    if (record) {
      this.#noteParent(record);
      this.#noteResults(record);
      if (runId === this.runId) this.machine.onRecorded(record);
      if (record.workflow) this.#noteOpen(record);
    }
    for (const { callId, effect, state } of record?.openStep?.calls ?? []) {
      if (effect === 'once' && state === 'started') this.unknown.add(this.idOf(runId, callId));
    }
  }

  /** The parked runs that the store certainly has. */
  *aside(): Iterable<RunCheckpoint> {
    for (const { certain } of this.#stored.values()) if (certain?.parked) yield certain;
  }

  /** Whether the run has ended: its outcome was delivered, and its record is gone. */
  get isOver(): boolean {
    const stored = this.#stored.get(this.runId);
    return this.outcomes.length > 0 && stored?.certain === null && stored.unclear.length === 0;
  }

  #onSaved(record: RunCheckpoint, answer: Answer): void {
    this.#count(record.messages.length, record, answer);
    this.#note(record.meta.runId, record, answer);
  }

  #onAppended(delta: RunDelta, answer: Answer): void {
    const base = this.#baseOf(delta);
    // An existing revision is not written again.
    if (base && base.revision >= delta.revision) return;
    const messages = [...(base?.messages ?? []).slice(0, delta.from), ...delta.messages];
    const { inputs, images, earlier } = base ?? {};
    const extras = { ...(inputs ? { inputs } : {}), ...(images ? { images } : {}), ...(earlier ? { earlier } : {}) };
    const record = { ...delta.head, messages, ...extras };
    this.#count(delta.messages.length, record, answer);
    this.#note(delta.runId, record, answer);
  }

  #note(runId: string, record: RunCheckpoint | null, { isClear, at }: Answer): void {
    const stored = this.#stored.get(runId);
    if (isClear) {
      // A later write that was refused may have taken effect nevertheless.
      const later = stored?.unclear.filter((other) => other.at > at) ?? [];
      this.#stored.set(runId, { certain: record, unclear: later, since: at });
      if (record) this.#noteResults(record);
      if (record && runId === this.runId) {
        this.last = record;
        this.machine.onRecorded(record);
      }
    } else if (stored) stored.unclear.push({ record, at });
    else this.#stored.set(runId, { certain: null, unclear: [{ record, at }], since: 0 });
  }

  #noteResults(record: RunCheckpoint): void {
    for (const wait of record.waiting?.waits ?? []) {
      if (wait.kind === 'approval') this.held.set(this.idOf(record.meta.runId, wait.callId ?? ''), wait.quorum);
    }
    for (const result of resultsIn(record)) {
      const id = this.idOf(record.meta.runId, result.callId);
      if (!this.answers.has(id)) this.answers.set(id, answerOf(result));
      if (isToolError(result.output)) this.hasFailures = true;
    }
  }

  /** The newest state that has all messages before the delta. */
  #baseOf({ runId, from }: RunDelta): RunCheckpoint | undefined {
    const { certain = null, unclear = [] } = this.#stored.get(runId) ?? {};
    return (
      [certain, ...unclear.map(({ record }) => record)].findLast(
        (record) => record !== null && record.messages.length >= from,
      ) ?? undefined
    );
  }

  #count(messages: number, record: RunCheckpoint, { at }: Answer): void {
    const { certain = null, unclear = [] } = this.#stored.get(record.meta.runId) ?? {};
    // Without the entry of this same write.
    const others = unclear.flatMap((each) => (each.at === at ? [] : [each.record]));
    const before = Math.max(0, ...[certain, ...others].map((known) => known?.messages.length ?? 0));
    // A phase of a pipeline starts its own conversation.
    const isAnother = record.messages.length < before;
    this.written.said += isAnother ? record.messages.length : record.messages.length - before;
    this.written.messages += messages;
    this.written.largest = Math.max(this.written.largest, record.messages.length);
  }

  #noteOpen({ meta, openStep }: RunCheckpoint): void {
    const known = this.open.get(this.life) ?? [];
    const ids = openStep?.calls.map(({ callId }) => this.idOf(meta.runId, callId)) ?? [];
    this.open.set(this.life, new Set([...known, ...ids]));
  }

  #noteParent({ meta, parent }: RunCheckpoint): void {
    if (parent) this.#parents.set(meta.runId, parent);
  }

  /** Identifies a call in all histories by the calls above it, since ids of runs differ. */
  protected idOf(runId: string, callId: string): string {
    return `${this.#pathOf(runId)}:${callId}`.replace(/^:/, '');
  }

  /** The calls that lead from the top run to this one. */
  #pathOf(runId: string): string {
    const parent = this.#parents.get(runId);
    if (parent) return `${this.#pathOf(parent.runId)}~${parent.callId}`;
    return runId === this.runId ? '' : runId;
  }
}

/** Returns the run id in the arguments of a call to the store: an id, a claim, a delta or a record. */
export function runIdOfKey([first]: readonly unknown[]): string {
  if (typeof first === 'string') return first;
  const { runId, meta } = (first ?? {}) as { runId?: string; meta?: { runId: string } };
  return runId ?? meta?.runId ?? '';
}

/** The result that the model got of a call. */
interface CallAnswer {
  readonly input: unknown;
  /** The error that the model read; undefined = the call succeeded, or its outcome is unknown. */
  readonly failure: string | undefined;
}

/** A result in a record, with the message of its call. */
interface Result {
  readonly callId: string;
  readonly output: ToolOutput;
  readonly asking: Message | undefined;
}

/** The results in a record: those of completed steps, and those of the open one. */
function* resultsIn({ messages, openStep }: RunCheckpoint): Iterable<Result> {
  let asking: Message | undefined;
  for (const message of messages) {
    if (message.role === 'assistant') asking = message;
    if (message.role !== 'tool') continue;
    for (const part of message.content) {
      if (part.type === 'tool-result' && part.output) yield { callId: part.toolCallId, output: part.output, asking };
    }
  }
  for (const { callId, result } of openStep?.calls ?? []) {
    if (result) yield { callId, output: result, asking: openStep?.message };
  }
}

function answerOf({ callId, output, asking }: Result): CallAnswer {
  const parts = asking?.role === 'assistant' ? asking.content : [];
  const call = parts.find((part) => part.type === 'tool-call' && part.toolCallId === callId);
  return { input: call?.type === 'tool-call' ? call.input : undefined, failure: failureIn(output) };
}

function failureIn(output: ToolOutput): string | undefined {
  if (!isToolError(output)) return undefined;
  if (output.type === 'execution-denied') return output.reason ?? 'the tool call was denied';
  const text = output.type === 'error-json' ? JSON.stringify(output.value) : String(output.value);
  return text === outcomeUnknown ? undefined : text;
}
