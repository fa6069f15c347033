import { hiddenField } from '../values/hidden.ts';
import { isCount, isObject, type JsonValue } from '../values/json.ts';
import type { AssistantMessage, ToolOutput } from '../values/message.ts';
import { type Allowed, isAllowed, isOptional } from './waits/wait.ts';

/**
 * The effect of a repeated call. `read`: none; `idempotent`: the receiver recognises the idempotency key; `once`: the effect
 * would happen twice, so an unrecorded call is never repeated.
 */
export type ToolEffect = 'read' | 'idempotent' | 'once';

/** One line of the ledger: a call of the open step. */
export interface OpenCall {
  readonly callId: string;
  readonly name: string;
  readonly input: JsonValue;
  readonly effect: ToolEffect;
  /** `waiting`: the call has an open wait. It occupies no place among the running calls. */
  readonly state: 'planned' | 'waiting' | 'started' | 'done';
  /** How many times the call was started, over all processes. */
  readonly attempt: number;
  readonly result?: ToolOutput;
  /** It was running when an older version wrote its record: its idempotency key stays `runId:callId`. */
  readonly hasOldKey?: true;
  /** The persons or the rule that allowed its start; absent = no approval was required. */
  readonly allowed?: Allowed;
  /** The answers to its own waits, in order: a repeated `execute` gets them again. */
  readonly answers?: readonly WaitEnd[];
  /** A question or a signal of a workflow: it does nothing but wait, and its answer is its result. */
  readonly isWait?: true;
  /** An action of a workflow's machine has begun it, and no state: leaving a state does not stop it. */
  readonly isSpawned?: true;
}

/** The recorded end of a wait inside a call. */
export type WaitEnd = {
  readonly kind: 'question' | 'event' | 'timer';
  /** The name of the event. */
  readonly name?: string;
  /** `expire`: no answer came in time; the normal end of a timer. */
  readonly how: 'answer' | 'signal' | 'expire' | 'wake';
  readonly value?: JsonValue;
  /** When it was sent, wall clock, ms; only of a call that does nothing but wait. */
  readonly at?: number;
};

/** Returns whether a stored value is a call of an open step. */
export function isOpenCall(value: unknown): boolean {
  if (!isObject(value) || typeof value.callId !== 'string' || typeof value.name !== 'string') return false;
  const isKnown = ['read', 'idempotent', 'once'].includes(String(value.effect)) && isCount(value.attempt);
  const isAnswered =
    value.state === 'done' ? isObject(value.result) : ['planned', 'waiting', 'started'].includes(String(value.state));
  const isWaited = isOptional(isAllowed)(value.allowed) && isOptional(Array.isArray)(value.answers);
  const isMark = (mark: unknown) => mark === undefined || mark === true;
  return isKnown && isAnswered && isWaited && [value.hasOldKey, value.isWait, value.isSpawned].every(isMark);
}

type Calls = readonly OpenCall[];

/** How many calls may run at the same time, in all and for one tool. */
export interface PlaceLimits {
  readonly all: number;
  readonly ofTool: (name: string) => number;
}

/** The ledger of a list of calls, and its version. */
interface Moment {
  readonly ledger: Ledger;
  readonly version: number;
}

const moments = hiddenField<Moment>();

/**
 * Returns the ledger behind a step; none if the ledger has changed since, because later changes are not part of the step. A
 * new ledger can be made of the calls then, and for a step without one.
 */
export function ledgerOf(step: object): Ledger | undefined {
  const moment = moments.get(step);
  return moment && moment.version === moment.ledger.version ? moment.ledger : undefined;
}

/**
 * The calls of a step, shared by all versions of the step. A message may have thousands of calls: a copy of their list for
 * each start and each answer would cost more than the calls. So there is one list, which changes. Its earlier versions are
 * computed from the changes.
 */
export class Ledger {
  readonly #lines: OpenCall[];
  readonly #changes: { readonly position: number; readonly before: OpenCall }[] = [];
  readonly #positions: Map<string, number> = new Map();
  /** The number of running calls of each tool. */
  readonly #atWork: Map<string, number> = new Map();
  #started = 0;
  #waiting = 0;
  #done = 0;
  #queues: Queue[] | undefined;
  /** The list that was returned last, and its version. */
  #given: { readonly version: number; readonly calls: Calls } | undefined;

  constructor(calls: Calls) {
    this.#lines = [...calls];
    for (const [position, call] of calls.entries()) {
      this.#positions.set(call.callId, position);
      this.#count(call, 1);
    }
  }

  get version(): number {
    return this.#changes.length;
  }

  /** Returns the step with its present calls; later changes do not affect it. */
  showIn(message: AssistantMessage): { readonly message: AssistantMessage; readonly calls: Calls } {
    const moment = { ledger: this, version: this.version };
    const step = {
      message,
      get calls(): Calls {
        return moment.ledger.at(moment.version);
      },
    };
    moments.put(step, moment);
    return step;
  }

  at(version: number): Calls {
    if (this.#given?.version === version) return this.#given.calls;
    const calls = [...this.#lines];
    for (let i = this.#changes.length - 1; i >= version; i--) {
      const change = this.#changes[i];
      if (change) calls[change.position] = change.before;
    }
    this.#given = { version, calls };
    return calls;
  }

  get isAllDone(): boolean {
    return this.#done === this.#lines.length;
  }

  /** Whether no call runs, and none may start. */
  get isIdle(): boolean {
    return this.#waiting + this.#done === this.#lines.length;
  }

  /** Whether all calls but this one are done, and this one is running. */
  isLast(callId: string): boolean {
    return this.#done === this.#lines.length - 1 && this.call(callId)?.state === 'started';
  }

  /** The place of a call in its message; -1 for an unknown call. */
  positionOf(callId: string): number {
    return this.#positions.get(callId) ?? -1;
  }

  call(callId: string): OpenCall | undefined {
    return this.#lines[this.positionOf(callId)];
  }

  change(call: OpenCall): void {
    const position = this.positionOf(call.callId);
    const before = this.#lines[position];
    if (!before) return;
    this.#changes.push({ position, before });
    this.#lines[position] = call;
    this.#count(before, -1);
    this.#count(call, 1);
    // It waits again, in front of others.
    if (call.state === 'planned') this.#queues = undefined;
  }

  /** The calls that may start now, in call order. */
  startable(limits: PlaceLimits): OpenCall[] {
    const starting: OpenCall[] = [];
    if (this.#started >= limits.all || this.#started + this.#done === this.#lines.length) return starting;
    this.#queues ??= queuesOf(this.#lines, limits);
    const looks = this.#queues.map((queue) => new Look(queue, this.#lines, this.#atWork));
    for (let room = limits.all - this.#started; room > 0; room -= 1) {
      const first = Math.min(...looks.map(({ position }) => position));
      const call = looks.find(({ position }) => position === first)?.take();
      if (!call) break;
      starting.push(call);
    }
    return starting;
  }

  #count({ state, name }: OpenCall, more: 1 | -1): void {
    if (state === 'done') this.#done += more;
    if (state === 'waiting') this.#waiting += more;
    if (state !== 'started') return;
    this.#started += more;
    this.#atWork.set(name, (this.#atWork.get(name) ?? 0) + more);
  }
}

/** Positions of planned calls that wait for the same place, in call order; those before `next` have started. */
interface Queue {
  readonly positions: number[];
  readonly limit: number;
  next: number;
}

/** One queue for each tool with a limit of its own, and one for the calls of all others. */
function queuesOf(calls: Calls, { all, ofTool }: PlaceLimits): Queue[] {
  const queues = new Map<string, Queue>();
  for (const [position, { name, state }] of calls.entries()) {
    if (state !== 'planned') continue;
    const limit = ofTool(name);
    const key = limit < all ? name : '';
    const queue = queues.get(key) ?? { positions: [], limit, next: 0 };
    queues.set(key, queue);
    queue.positions.push(position);
  }
  return [...queues.values()];
}

/** One look at a queue: its next call, and whether there is room for it. */
class Look {
  readonly #queue: Queue;
  readonly #calls: Calls;
  readonly #atWork: ReadonlyMap<string, number>;
  readonly #taken: Map<string, number> = new Map();
  #at: number;

  constructor(queue: Queue, calls: Calls, atWork: ReadonlyMap<string, number>) {
    this.#queue = queue;
    this.#calls = calls;
    this.#atWork = atWork;
    queue.next = this.#plannedFrom(queue.next);
    this.#at = queue.next;
  }

  /** The place of the next call in its message; infinite if none may start. */
  get position(): number {
    const position = this.#queue.positions[this.#at];
    const name = position === undefined ? undefined : this.#calls[position]?.name;
    if (position === undefined || name === undefined) return Number.POSITIVE_INFINITY;
    const count = (this.#atWork.get(name) ?? 0) + (this.#taken.get(name) ?? 0);
    return count < this.#queue.limit ? position : Number.POSITIVE_INFINITY;
  }

  take(): OpenCall | undefined {
    const call = this.#calls[this.position];
    if (!call) return undefined;
    this.#taken.set(call.name, (this.#taken.get(call.name) ?? 0) + 1);
    this.#at = this.#plannedFrom(this.#at + 1);
    return call;
  }

  #plannedFrom(start: number): number {
    const { positions } = this.#queue;
    let at = start;
    while (at < positions.length && this.#calls[positions[at] ?? -1]?.state !== 'planned') at += 1;
    return at;
  }
}
