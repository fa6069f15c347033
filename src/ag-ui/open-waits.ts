import type { Executor, RunEvent, Wait } from '../index.ts';
import { type Interrupt, interruptOf, isInterrupt, type PersonWait } from './interrupts.ts';
import { callIdOfMessage } from './messages.ts';

/** The waits of a run, as the store has them now. */
export interface OpenWaits {
  /** Those that a person ends, of the run and of those below it. */
  readonly persons: readonly AgUiWait[];
  /** Whether the run waits for runs below it: their waits are in no event of this run. */
  readonly hasChildren: boolean;
}

/** A wait, and the call of the reader's run that it holds up. */
export interface AgUiWait {
  readonly wait: PersonWait;
  readonly toolCallId: string | undefined;
  /** Whether the run itself waits, and not one below it. */
  readonly isOwn: boolean;
  /** The code of the answer that the run has refused. */
  readonly refused?: string;
}

/** Most runs between a run and one below it that waits. */
const DEEPEST = 8;
const PAGE = 1_000;

/** Reads the open waits of a run and of the runs below it. */
export async function readWaits(executor: Executor, runId: string): Promise<OpenWaits> {
  const persons: AgUiWait[] = [];
  let hasChildren = false;
  const read = async (of: string, depth: number, above?: string) => {
    for (const wait of await executor.waiting({ runId: of, limit: PAGE })) {
      const own = wait.callId === undefined ? undefined : callIdOfMessage({ runId, step: wait.step }, wait.callId);
      const toolCallId = depth === 0 ? own : above;
      if (isInterrupt(wait)) persons.push({ wait, toolCallId, isOwn: depth === 0 });
      if (wait.kind !== 'child' || depth >= DEEPEST) continue;
      hasChildren = true;
      await read(wait.childRunId, depth + 1, toolCallId);
    }
  };
  await read(runId, 0);
  return { persons, hasChildren };
}

/** Returns the interrupts of open waits. */
export function interruptsOf(shown: readonly AgUiWait[]): Interrupt[] {
  return shown.map(({ wait, toolCallId, refused }) => interruptOf(wait, { toolCallId, refused }));
}

/** How long an answer may take to its run before its wait counts as open again, ms. */
const ANSWER_MS = 5_000;

/** The waits that one request has answered: the run may not have read the answers yet. */
export type AnsweredInterrupts = ReadonlyMap<string, { readonly votes: number; readonly at: number }>;

/**
 * Follows the waits of a run through its events. A run that rests needs a person if the events and the store agree about it: the
 * events may be old, and the store may be ahead of them.
 */
export class WaitWatch {
  readonly #open = new Set<string>();
  /** The waits whose last answer the run has refused, with the codes. */
  readonly #refused = new Map<string, string>();
  readonly #answered: AnsweredInterrupts;
  /** Nothing is left to do before a wait is over, as far as the events show. */
  isResting = false;

  constructor(answered: AnsweredInterrupts = new Map()) {
    this.#answered = answered;
  }

  see(event: RunEvent): void {
    if (event.type === 'run.waiting') this.isResting = true;
    if (event.type === 'run.woken' || event.type === 'run.resumed' || event.type === 'step.started')
      this.isResting = false;
    if (event.type === 'wait.opened' && isInterrupt(event.wait as Wait)) this.#open.add(event.wait.id);
    // The refusal of an earlier answer says nothing of the one that this request gave.
    if (event.type === 'wait.refused' && event.at >= (this.#answered.get(event.waitId)?.at ?? 0))
      this.#refused.set(event.waitId, event.code);
    const isOver = event.type === 'wait.expired' || event.type === 'wait.withdrawn';
    if (isOver || (event.type === 'wait.answered' && event.votes === undefined)) this.#open.delete(event.waitId);
  }

  /** Returns whether persons must act now before the run does anything else. @param now wall clock, ms */
  needsPerson({ persons }: OpenWaits, now: number): boolean {
    const own = persons.filter(({ isOwn }) => isOwn);
    const isSame = own.length === this.#open.size && own.every(({ wait }) => this.#open.has(wait.id));
    return isSame && persons.length > 0 && !this.isOnItsWay({ persons }, now);
  }

  /** Returns the waits with what the run said of the answers to them. */
  shown(persons: readonly AgUiWait[]): readonly AgUiWait[] {
    return persons.map((each) => {
      const refused = this.#refused.get(each.wait.id);
      return refused === undefined ? each : { ...each, refused };
    });
  }

  /** Returns whether the run may not have read an answer of the request yet. */
  isOnItsWay({ persons }: Pick<OpenWaits, 'persons'>, now: number): boolean {
    return persons.some(({ wait }) => this.#isUnread(wait, now));
  }

  #isUnread(wait: PersonWait, now: number): boolean {
    const answered = this.#answered.get(wait.id);
    if (!answered || now - answered.at > ANSWER_MS || this.#refused.has(wait.id)) return false;
    return agUiVotesOf(wait) === answered.votes;
  }
}

/** How many persons have approved a call so far. */
export function agUiVotesOf(wait: PersonWait): number {
  return wait.votes?.length ?? 0;
}
