import type { RecordFacts } from '../rules/decision.ts';
import type { ThreadChange, ThreadFacts, ThreadRow, TurnQuery, TurnRow } from '../rules/thread-rows.ts';
import { begunTurnsIn, factsOfTurns, queueOf, turnsAmong } from '../rules/turn-lists.ts';
import type { ForkWrite, ListedThread, StoreWrite, ThreadDriver, ThreadPage, ThreadWrite } from '../store-driver.ts';

/** What threads need of the runs of a memory store. Each call takes effect at once. */
interface RunsOfThreads {
  /** Decides a write. @returns what makes it, and the record that it ends; undefined if it changes nothing */
  decide(write: StoreWrite<unknown>): { readonly ended: RecordFacts; make(): void } | undefined;
  hasRecord(runId: string): boolean;
  /** Whether there is a record, an outcome, or the record of a run that ended. */
  isKnown(runId: string): boolean;
}

interface Thread {
  row: ThreadRow;
  readonly turns: Map<string, TurnRow>;
}

/** The threads of a memory store. No other call comes between the parts of one, because none of them waits. */
export class MemoryThreads implements ThreadDriver {
  readonly #runs: RunsOfThreads;
  readonly #threads = new Map<string, Thread>();

  constructor(runs: RunsOfThreads) {
    this.#runs = runs;
  }

  async write<T>({ threads, messages, end, decide }: ThreadWrite<T>): Promise<T> {
    const thread = this.#find(threads);
    const ending = end && this.#runs.decide(end);
    const { value, change } = decide(this.#facts(thread, messages), ending?.ended);
    const writes = [...(change?.writes ?? []), ...this.#toErase(thread, change)];
    const made = writes.map((write) => this.#runs.decide(write));
    for (const each of [ending, ...made]) each?.make();
    if (change) this.#change(thread, change);
    return value;
  }

  async fork({ threads, newThreads, decide }: ForkWrite): Promise<void> {
    const source = this.#find(threads);
    const row = decide(source?.row ?? null, this.#find(newThreads)?.row ?? null);
    if (!row || !source) return;
    const shared = [...source.turns.values()].filter((turn) => isShared(turn) && turn.order < row.turns);
    this.#threads.set(row.thread, { row, turns: new Map(shared.map((turn) => [turn.message, turn])) });
  }

  async turns(threads: readonly string[], query: TurnQuery): Promise<TurnRow[] | null> {
    const thread = this.#find(threads);
    return thread ? turnsAmong([...thread.turns.values()], query) : null;
  }

  async findQueued(runId: string): Promise<TurnRow | null> {
    for (const { turns } of this.#threads.values()) {
      const found = [...turns.values()].find((turn) => turn.state === 'queued' && turn.runId === runId);
      if (found) return found;
    }
    return null;
  }

  async list({ callers, after, heldUp, limit }: ThreadPage): Promise<ListedThread[]> {
    const isAfter = ({ updatedAt, thread }: ThreadRow) =>
      !after || updatedAt < after.updatedAt || (updatedAt === after.updatedAt && thread < after.thread);
    const found = [...this.#threads.values()].filter(
      ({ row, turns }) =>
        isAfter(row) &&
        (!callers || callers.includes(row.caller)) &&
        (!heldUp || queueOf([...turns.values()]).count > 0),
    );
    const byTime = found.sort((a, b) => b.row.updatedAt - a.row.updatedAt || (a.row.thread < b.row.thread ? 1 : -1));
    return byTime.slice(0, limit).map(({ row, turns }) => {
      const all = [...turns.values()];
      const live = all.find(({ state }) => state === 'live')?.runId;
      return { ...row, live, queued: queueOf(all).count };
    });
  }

  #find(threads: readonly string[]): Thread | undefined {
    for (const key of threads) {
      const found = this.#threads.get(key);
      if (found) return found;
    }
    return undefined;
  }

  #facts(thread: Thread | undefined, messages: readonly string[]): ThreadFacts {
    const turns = [...(thread?.turns.values() ?? [])];
    return {
      ...factsOfTurns(turns, messages),
      thread: thread?.row ?? null,
      hasRecord: (runId) => this.#runs.hasRecord(runId),
      isKnown: (runId) => this.#runs.isKnown(runId) || this.#uses(runId).length > 0,
    };
  }

  #toErase(thread: Thread | undefined, { erase = [] }: ThreadChange<StoreWrite<unknown>> = {}): StoreWrite<unknown>[] {
    return erase.filter(({ runId }) => this.#uses(runId).every((user) => user === thread));
  }

  /** The threads that have the run as a turn. */
  #uses(runId: string): Thread[] {
    return [...this.#threads.values()].filter(({ turns }) => begunTurnsIn(turns.values(), runId).length > 0);
  }

  #change(thread: Thread | undefined, { thread: row, turns = [], remove = [] }: ThreadChange): void {
    if (row === 'remove') {
      if (thread) this.#threads.delete(thread.row.thread);
      return;
    }
    const changed = thread ?? (row && { row, turns: new Map<string, TurnRow>() });
    if (!changed) return;
    if (row) changed.row = row;
    for (const message of remove) changed.turns.delete(message);
    for (const turn of turns) changed.turns.set(turn.message, turn);
    this.#threads.set(changed.row.thread, changed);
  }
}

/** A fork shares what has ended, and the messages that its runs have taken. */
const isShared = ({ state }: TurnRow) => state === 'ended' || state === 'taken';
