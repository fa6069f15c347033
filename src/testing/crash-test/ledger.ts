import type { RunCheckpoint } from '../../record/checkpoint.ts';
import type { RunDelta } from '../../record/delta.ts';
import { outcomeUnknown, type ToolEffect } from '../../run/open-step.ts';
import type { ParentCall } from '../../run/request.ts';
import type { RunOutcome } from '../../run/result.ts';
import { isToolError, type Message, type ToolOutput } from '../../values/message.ts';

/** The letter of a promise; docs/testing.md says what each means. */
export type CrashTestPromise = 'a' | 'b' | 'c' | 'd' | 'e' | 'f' | 'g';

export interface Complaint {
  readonly promise: CrashTestPromise;
  readonly detail: string;
}

/** A tool call that began. */
export interface BegunCall {
  readonly life: number;
  /** The same in all histories of one agent: the part of the key that does not name the run. */
  readonly id: string;
  readonly name: string;
  readonly effect: ToolEffect;
  readonly key: string;
  readonly attempt: number;
  /** Finished turns of its run when it began. */
  readonly step: number;
  /** Aborted when it was ended from outside. */
  readonly signal?: AbortSignal;
}

/** What the store has acknowledged of one run. */
interface Stored {
  /** Null = deleted. */
  certain: RunCheckpoint | null;
  /** Writes that were refused since then: each may have landed all the same. */
  readonly unclear: { readonly record: RunCheckpoint | null; readonly at: number }[];
  /** When the write that made it certain was begun; 0 = nothing was certain yet. */
  readonly since: number;
}

/** What came back of a write, and when the write was begun. */
interface Answer {
  readonly isClear: boolean;
  readonly at: number;
}

/** All that the processes of one history did to the world outside, seen from outside. */
export class Ledger {
  readonly runId: string;
  readonly calls: BegunCall[] = [];
  readonly asked: { readonly life: number; readonly turn: number }[] = [];
  readonly outcomes: { readonly life: number; readonly outcome: RunOutcome }[] = [];
  readonly complaints: Complaint[] = [];
  /** `once` calls that a crash found under way: nobody knows whether they took effect. */
  readonly unknown: Set<string> = new Set();
  /** Calls whose tools came to their end, well, while their process was alive. */
  readonly finished: Set<string> = new Set();
  /** What calls came back to the model as, as far as it was recorded. */
  readonly answers: Map<string, CallAnswer> = new Map();
  /** Whether a tool call came back to the model as failed. */
  hasFailures = false;
  /** Messages that were handed to the store, those that the runs said in all, and the most that one record had. */
  readonly written = { messages: 0, said: 0, largest: 0 };
  /** The newest record of the run that was acknowledged. */
  last: RunCheckpoint | undefined;
  /** The process at work. */
  life = 0;
  readonly #stored = new Map<string, Stored>();
  /** The calls that began the children. */
  readonly #parents = new Map<string, ParentCall>();
  /** When each write was begun, by its arguments: a count. */
  readonly #begun = new WeakMap<readonly unknown[], number>();
  #moment = 0;

  constructor(runId: string) {
    this.runId = runId;
  }

  complain(promise: CrashTestPromise, detail: string): void {
    this.complaints.push({ promise, detail });
  }

  began({ runId, callId, ...call }: Omit<BegunCall, 'life' | 'id'> & { runId: string; callId: string }): void {
    const id = this.idOf(runId, callId);
    if (this.answers.has(id)) {
      this.complain('b', `call ${id} of tool ${call.name} began again although its result was recorded`);
    }
    this.calls.push({ life: this.life, id, ...call });
  }

  /** The tool of a call has answered, and nobody has died meanwhile. */
  succeeded({ runId, callId }: { runId: string; callId: string }): void {
    this.finished.add(this.idOf(runId, callId));
  }

  /**
   * Notes that the model was asked for a turn.
   * @param turn its number in the run without a crash; undefined = it was not asked there
   */
  asks(turn: number | undefined, isWatched: boolean): void {
    if (turn === undefined) return;
    const done = this.recordOf(this.runId)?.iteration ?? 0;
    if (isWatched && turn < done) {
      this.complain('b', `the model was asked for turn ${turn + 1} again although ${done} turns were recorded`);
    }
    this.asked.push({ life: this.life, turn });
  }

  ended(outcome: RunOutcome): void {
    if (outcome.runId === this.runId) this.outcomes.push({ life: this.life, outcome });
  }

  /** A call to the store is on its way, with these very arguments. */
  writes(args: readonly unknown[]): void {
    this.#moment += 1;
    this.#begun.set(args, this.#moment);
    const [record] = args as Partial<RunCheckpoint>[];
    // Whoever waits no longer for its answer goes on from it, with what is new.
    if (record?.meta && record.messages) {
      this.#note(record.meta.runId, record as RunCheckpoint, { isClear: false, at: this.#moment });
    }
  }

  /** A call to the store that changes records. @param isClear it was acknowledged, and not refused */
  wrote(method: string, args: readonly unknown[], isClear: boolean): void {
    // Writes of a run come one after the other: what is answered after a later one has taken its effect before, or never.
    const at = this.#begun.get(args) ?? this.#moment;
    if (at < (this.#stored.get(runIdOf(args))?.since ?? 0)) return;
    if (method === 'delete') this.#note(args[0] as string, null, { isClear, at });
    if (method === 'save') {
      this.#noteParent(args[0] as RunCheckpoint);
      this.#saved(args[0] as RunCheckpoint, { isClear, at });
    }
    if (method === 'append') this.#appended(args[0] as RunDelta, { isClear, at });
  }

  /** The runs that the store was told of, and what it must hold of each: one of these. */
  *stored(): Iterable<{ runId: string; certain: RunCheckpoint | null; unclear: readonly (RunCheckpoint | null)[] }> {
    for (const [runId, { certain, unclear }] of this.#stored) {
      yield { runId, certain, unclear: unclear.map(({ record }) => record) };
    }
  }

  /** What the store surely holds of a run. */
  recordOf(runId: string): RunCheckpoint | null | undefined {
    return this.#stored.get(runId)?.certain;
  }

  /** What was found in the store settles what was unclear. */
  found(runId: string, record: RunCheckpoint | null): void {
    this.#stored.set(runId, { certain: record, unclear: [], since: this.#moment + 1 });
    this.#moment += 1;
    if (record) {
      this.#noteParent(record);
      this.#noteResults(record);
    }
    for (const { callId, effect, state } of record?.openStep?.calls ?? []) {
      if (effect === 'once' && state === 'started') this.unknown.add(this.idOf(runId, callId));
    }
  }

  /** The runs that were set aside, as the store surely holds them. */
  *aside(): Iterable<RunCheckpoint> {
    for (const { certain } of this.#stored.values()) if (certain?.parked) yield certain;
  }

  /** Whether the run has ended: its outcome was delivered, and its record is gone. */
  get isOver(): boolean {
    const stored = this.#stored.get(this.runId);
    return this.outcomes.length > 0 && stored?.certain === null && stored.unclear.length === 0;
  }

  #saved(record: RunCheckpoint, answer: Answer): void {
    this.#count(record.messages.length, record, answer);
    this.#note(record.meta.runId, record, answer);
  }

  #appended(delta: RunDelta, answer: Answer): void {
    const base = this.#baseOf(delta);
    // What is there already is not written again.
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
      // What was begun later, and refused, may have landed all the same.
      const later = stored?.unclear.filter((other) => other.at > at) ?? [];
      this.#stored.set(runId, { certain: record, unclear: later, since: at });
      if (record) this.#noteResults(record);
      if (record && runId === this.runId) this.last = record;
    } else if (stored) stored.unclear.push({ record, at });
    else this.#stored.set(runId, { certain: null, unclear: [{ record, at }], since: 0 });
  }

  #noteResults(record: RunCheckpoint): void {
    for (const result of resultsIn(record)) {
      const id = this.idOf(record.meta.runId, result.callId);
      if (!this.answers.has(id)) this.answers.set(id, answerOf(result));
      if (isToolError(result.output)) this.hasFailures = true;
    }
  }

  /** The newest state that has all messages which the delta goes on from. */
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
    // Not what was noted of this very write when it was asked for.
    const others = unclear.flatMap((each) => (each.at === at ? [] : [each.record]));
    const before = Math.max(0, ...[certain, ...others].map((known) => known?.messages.length ?? 0));
    // A phase of a pipeline begins a conversation of its own.
    const isAnother = record.messages.length < before;
    this.written.said += isAnother ? record.messages.length : record.messages.length - before;
    this.written.messages += messages;
    this.written.largest = Math.max(this.written.largest, record.messages.length);
  }

  #noteParent({ meta, parent }: RunCheckpoint): void {
    if (parent) this.#parents.set(meta.runId, parent);
  }

  /** What a call is known by in all histories: by the calls above it, since ids of runs differ. */
  protected idOf(runId: string, callId: string): string {
    return `${this.#pathOf(runId)}:${callId}`.replace(/^:/, '');
  }

  /** The calls that lead from the run at the top to this one. */
  #pathOf(runId: string): string {
    const parent = this.#parents.get(runId);
    if (parent) return `${this.#pathOf(parent.runId)}~${parent.callId}`;
    return runId === this.runId ? '' : runId;
  }
}

/** Which run a call to the store is about: its first argument is the run's id, a claim, a delta or a record. */
export function runIdOf([first]: readonly unknown[]): string {
  if (typeof first === 'string') return first;
  const { runId, meta } = (first ?? {}) as { runId?: string; meta?: { runId: string } };
  return runId ?? meta?.runId ?? '';
}

/** What a call came back to the model as. */
interface CallAnswer {
  readonly input: unknown;
  /** What the model read of what went wrong; undefined = it succeeded, or nobody knows. */
  readonly failure: string | undefined;
}

/** A result in a record, with the message that asked for it. */
interface Result {
  readonly callId: string;
  readonly output: ToolOutput;
  readonly asking: Message | undefined;
}

/** The results that a record holds: those of finished steps, and those of the open one. */
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
