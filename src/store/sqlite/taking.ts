import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { compareCursors } from '../cursor.ts';
import { ON_COMMAND } from '../due.ts';
import { isDeadProcess } from '../owner.ts';
import type { IsDead } from '../rules/lease.ts';
import type { ListedHead, TakeDue, TakenHead, TakenHeads } from '../store-driver.ts';
import { inTurns, isOfThisRun, isWished } from '../taking/in-turns.ts';
import { type DueRow, type Finder, type Finders, findersOf } from './due-finder.ts';
import type { LeaseTable } from './leases.ts';
import type { Reads } from './reads.ts';
import { make, type Tables } from './writes.ts';

/** How many keys one call looks at, and of how many of them it takes runs. The next call continues there. */
const MAX_KEYS = 10_000;
const MAX_LINES = 64;

/** A run that may be taken: its head has no texts yet. */
interface Candidate extends ListedHead {
  readonly no: number;
}

interface Sources {
  readonly leases: LeaseTable;
  readonly reads: Reads;
  /** Wall clock, ms. */
  readonly now: () => number;
}

/** The runs that may be taken now. */
interface Candidates {
  readonly found: readonly Candidate[];
  /** Not all keys were looked at: the last one that was. */
  readonly stoppedAt?: string | undefined;
}

/** Finds due runs in SQLite by their fair keys. Callers hold the transaction. */
export class TakingTables {
  readonly #leases: LeaseTable;
  readonly #reads: Reads;
  readonly #now: () => number;
  readonly #finders: Finders;
  readonly #nextDue: StatementSync;
  readonly #lastTurn: StatementSync;
  readonly #putTurn: StatementSync;

  constructor(db: DatabaseSync, { leases, reads, now }: Sources) {
    this.#leases = leases;
    this.#reads = reads;
    this.#now = now;
    this.#finders = findersOf(db);
    this.#nextDue = db.prepare('SELECT min(due_at) AS at FROM due WHERE due_at > ?');
    this.#lastTurn = db.prepare('SELECT fair FROM turns WHERE no = 1');
    this.#putTurn = db.prepare('INSERT OR REPLACE INTO turns (no, fair) VALUES (1, ?)');
  }

  now(): number {
    return this.#now();
  }

  /** The head of the record with a number, with its texts. */
  head(no: number): ListedHead {
    return this.#reads.head(no);
  }

  /** The fair key of the run that was taken last; empty at first. */
  lastTurn(): string {
    return (this.#lastTurn.get() as { fair: string } | undefined)?.fair ?? '';
  }

  putTurn(key: string): void {
    if (key !== this.lastTurn()) this.#putTurn.run(key);
  }

  /** When the first run after `now` is due. */
  nextDue(now: number): number | undefined {
    const { at } = this.#nextDue.get(now) as { at: number | null };
    return at === null || at >= ON_COMMAND ? undefined : at;
  }

  /** The runs among which a wish has its turns: all that are due, or of many those that come first, or those that it names. */
  candidates(take: TakeDue, now: number): Candidates {
    const isDead = lookOnce();
    const wished = (row: DueRow) => this.#candidate(row, take, isDead);
    const { runIds, agents, definitions = [], limit } = take;
    if (runIds) return { found: firstOf(this.#finders.named(runIds, now), wished) };
    // A run of an earlier version is filed under no agent.
    const finder = agents ? this.#finders.of(['', ...agents], now) : this.#finders.all;
    const { found, stoppedAt } = finder.isMany(now)
      ? this.#ofLines(take, { now, wished, finder })
      : { found: firstOf(finder.all(now), wished), stoppedAt: undefined };
    const parked = definitions.length > 0 ? firstOf(this.#finders.parkedFor(definitions), wished, limit + 1) : [];
    return { found: [...found, ...parked], stoppedAt };
  }

  /** Jumps from key to key: the runs between them are not read. */
  #ofLines({ fullKeys, limit }: TakeDue, looking: Looking): Candidates {
    const lines: { readonly key: string; readonly first: Candidate }[] = [];
    let stoppedAt: string | undefined;
    let keys = 0;
    for (const key of keysAfter(looking.finder, this.lastTurn())) {
      const [first] = fullKeys.includes(key) ? [] : line(key, looking, 1);
      if (first) lines.push({ key, first });
      if (lines.length === MAX_LINES || ++keys === MAX_KEYS) {
        stoppedAt = key;
        break;
      }
    }
    const most = limit + 1;
    if (lines.length >= most) return { found: lines.map(({ first }) => first), stoppedAt };
    return { found: lines.flatMap(({ key }) => line(key, looking, most)), stoppedAt };
  }

  #candidate(row: DueRow, take: TakeDue, isDead: IsDead): Candidate[] {
    const { no, run_id: runId, due_at: due, fair, agent, owner, epoch, attempts } = row;
    const lease =
      epoch === null || attempts === null ? undefined : this.#leases.toLease({ ...row, owner, epoch, attempts });
    const head = { no, runId, due, fair, agent, lease, now: this.#leases.now(), updatedAt: 0, meta: '', head: '' };
    return isWished(head, take, isDead) ? [head] : [];
  }
}

/** Whether a key comes after another one in the order of an index: that of their UTF-8 bytes. */
const isAfter = (key: string, other: string) =>
  compareCursors({ updatedAt: 0, runId: key }, { updatedAt: 0, runId: other }) > 0;

interface Looking {
  readonly finder: Finder;
  readonly now: number;
  /** The run of a row, if it is wished. */
  wished(row: DueRow): Candidate[];
}

/** The keys from the one after `last` on, and around. */
function* keysAfter(finder: Finder, last: string): Generator<string> {
  for (let key = finder.key('>', last); key !== undefined; key = finder.key('>', key)) yield key;
  for (let key = finder.key('>=', ''); key !== undefined && !isAfter(key, last); key = finder.key('>', key)) yield key;
}

/** The first wished runs of a key. */
function line(key: string, { finder, now, wished }: Looking, most: number): Candidate[] {
  const lists: Candidate[][] = [];
  for (const rows of finder.ofKey(key, now)) lists.push(firstOf(rows, wished, most));
  const [only = [], ...others] = lists;
  return others.length === 0 ? only : lists.flat().sort(byTime).slice(0, most);
}

const byTime = (a: Candidate, b: Candidate) =>
  compareCursors({ updatedAt: a.due ?? 0, runId: a.runId }, { updatedAt: b.due ?? 0, runId: b.runId });

function firstOf(rows: Iterable<DueRow>, wished: Looking['wished'], most = Number.POSITIVE_INFINITY): Candidate[] {
  const found: Candidate[] = [];
  for (const row of rows) {
    found.push(...wished(row));
    if (found.length >= most) break;
  }
  return found;
}

/** Reads whether a wish would get a run; `nextAt` is `now` if it would, or might. */
export function lookForDue({ taking }: Tables, take: TakeDue): TakenHeads {
  const now = take.now ?? taking.now();
  const { found, stoppedAt } = taking.candidates(take, now);
  const isAny = stoppedAt !== undefined || found.some(({ no }) => take.isTakeable(taking.head(no)));
  return { now, taken: [], nextAt: isAny ? now : taking.nextDue(now) };
}

/** Takes due runs, inside one transaction: each claim is a decision like any other. */
export function takeDueIn(tables: Tables, take: TakeDue): TakenHeads {
  const { taking } = tables;
  const now = take.now ?? taking.now();
  const { found, stoppedAt } = taking.candidates(take, now);
  const taken: TakenHead[] = [];
  for (const { no, runId, due } of inTurns(found, taking.lastTurn()) as Iterable<Candidate>) {
    const head = taking.head(no);
    if (!take.isTakeable(head)) continue;
    if (taken.length >= take.limit) {
      taking.putTurn(taken.at(-1)?.head.fair ?? taking.lastTurn());
      return { now, taken, nextAt: now };
    }
    const claim = claimIn(tables, runId, take.decide(runId, now, due === null));
    if (claim) taken.push({ head, claim });
  }
  taking.putTurn(stoppedAt ?? taken.at(-1)?.head.fair ?? taking.lastTurn());
  // A call that looked at many keys for nothing must not be followed by the next one at once.
  return { now, taken, nextAt: stoppedAt !== undefined && taken.length > 0 ? now : taking.nextDue(now) };
}

function claimIn(tables: Tables, runId: string, decide: ReturnType<TakeDue['decide']>) {
  try {
    return make(tables, { runId, decide }).value;
  } catch (error) {
    if (isOfThisRun(error)) return null;
    throw error;
  }
}

/** A system call finds out whether an owner is alive; once per owner is enough for a call. */
function lookOnce(): IsDead {
  const dead = new Map<string, boolean>();
  return (owner) => {
    const isDead = dead.get(owner) ?? isDeadProcess(owner);
    dead.set(owner, isDead);
    return isDead;
  };
}
