import type { RunCheckpoint, RunOutcome } from 'pawl';
import type { TestClock } from 'pawl/testing';
import { outcomeUnknown } from '../../src/run/open-step.ts';
import { type BegunCall, EffectLedger, runIdOfKey } from '../../src/testing/crash-test/ledger.ts';
import type { NotingBudget } from '../fixtures/noting-ports.ts';

/** Something that a run did in one process: a tool call, or a turn of its model. */
export interface Work {
  readonly life: number;
  readonly runId: string;
  /** The same each time that it is done. */
  readonly id: string;
  /** The number of its step in the run, from 0. */
  readonly step: number;
  readonly isRead: boolean;
  readonly at: number;
}

/** How a process was ended, and when. */
export interface Death {
  readonly how: 'crash' | 'shutdown';
  readonly at: number;
  /** How much had been done by then, over all processes. */
  readonly works: number;
}

/** A ledger that knows when everything happened, and keeps the runs of a family apart. */
export class TimedLedger extends EffectLedger {
  readonly works: Work[] = [];
  readonly deaths: Map<number, Death> = new Map();
  /** What was told of each run, in order. */
  readonly told: Map<string, RunOutcome[]> = new Map();
  /** The newest record of each run that was acknowledged. */
  readonly lasts: Map<string, RunCheckpoint> = new Map();
  /** Nothing is left of its children either, but for those that were set aside and those below them. */
  override get isOver(): boolean {
    return (
      super.isOver &&
      [...this.stored()].every(({ runId, certain, unclear }) => {
        const isGone = certain === null && unclear.length === 0;
        return isGone || this.#parked.some((top) => runId === top || runId.startsWith(`${top}~`));
      })
    );
  }

  /** Whether a run was set aside because it had killed its process too often. */
  get isParked(): boolean {
    return this.#parked.length > 0;
  }

  get #parked(): string[] {
    return [...this.lasts.values()].flatMap(({ parked, meta }) => (parked ? [meta.runId] : []));
  }

  /** Children that the storage held when a process ended. */
  childrenLeft = 0;
  readonly #clock: TestClock;

  constructor(runId: string, clock: TestClock) {
    super(runId);
    this.#clock = clock;
  }

  dies(how: Death['how']): void {
    this.deaths.set(this.life, { how, at: this.#clock.monotonic(), works: this.works.length });
  }

  override began(call: Omit<BegunCall, 'life' | 'id'> & { runId: string; callId: string }): BegunCall {
    const { runId, callId, step, effect } = call;
    const id = this.idOf(runId, callId);
    this.#noteWork({ runId, id, step, isRead: effect === 'read' });
    return super.began(call);
  }

  /** A turn of a run's model, by its name in the budget. */
  turns(key: string): void {
    const turn = key
      .slice(key.lastIndexOf(':') + 1)
      .split('.')
      .at(-1);
    const born = key.slice(0, key.lastIndexOf(':'));
    // Its birth is in the key, and in no id of a run.
    const runId = born.slice(0, born.lastIndexOf(':'));
    const step = Number(turn) - 1;
    const id = this.idOf(runId, `turn ${step}`);
    const done = this.recordOf(runId)?.iteration ?? 0;
    if (step < done) this.complain('b', `${id} was asked for again although ${done} turns were recorded`);
    this.#noteWork({ runId, id, step, isRead: true });
  }

  override onEnded(outcome: RunOutcome): void {
    super.onEnded(outcome);
    this.told.set(outcome.runId, [...(this.told.get(outcome.runId) ?? []), outcome]);
  }

  override wrote(method: string, args: readonly unknown[], isClear: boolean): void {
    super.wrote(method, args, isClear);
    const runId = runIdOfKey(args);
    const record = isClear ? this.recordOf(runId) : undefined;
    if (!record) return;
    this.lasts.set(runId, record);
    for (const callId of unknownIn(record)) this.unknown.add(this.idOf(runId, callId));
  }

  override noteFault(runId: string, record: RunCheckpoint | null): void {
    super.noteFault(runId, record);
    if (record && runId !== this.runId) this.childrenLeft += 1;
  }

  #noteWork(work: Pick<Work, 'runId' | 'id' | 'step' | 'isRead'>): void {
    if (this.told.has(work.runId)) this.complain('e', `run ${work.runId} had ended, and was at work again: ${work.id}`);
    this.works.push({ ...work, life: this.life, at: this.#clock.monotonic() });
  }
}

/** Calls whose model was told so: a child may lose its lease during a call, and be begun again by the same process. */
function unknownIn({ messages, openStep }: RunCheckpoint): string[] {
  const told = messages.flatMap(({ role, content }) =>
    role === 'tool' ? content.flatMap((part) => (part.type === 'tool-result' ? [part] : [])) : [],
  );
  const open = openStep?.calls.flatMap(({ callId, result }) =>
    result ? [{ toolCallId: callId, output: result }] : [],
  );
  const all = [...told, ...(open ?? [])];
  return all
    .filter(({ output }) => 'value' in output && output.value === outcomeUnknown)
    .map(({ toolCallId }) => toolCallId);
}

/** The same books, and each turn that is asked for stands in the ledger too. */
export function telling(budget: NotingBudget, ledger: () => TimedLedger): NotingBudget {
  const reserve: NotingBudget['reserve'] = (callerId, estimate) => {
    ledger().turns(estimate.key);
    return budget.reserve(callerId, estimate);
  };
  return { ...budget, reserve };
}
