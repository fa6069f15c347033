import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { compareCursors } from '../cursor.ts';
import { ON_COMMAND } from '../due.ts';
import { isDeadProcess } from '../owner.ts';
import type { IsDead } from '../rules/lease.ts';
import type { ListedHead, TakeDue, TakenHead, TakenHeads } from '../store-driver.ts';
import { inTurns, isOfThisRun, isWished } from '../taking/in-turns.ts';
import type { LeaseTable } from './leases.ts';
import type { Reads } from './reads.ts';
import { GIVEN_BACK } from './schema.ts';
import { make, type Tables } from './writes.ts';

/** Up to this many due runs are compared with each other; of more only some of each key are read. */
const FEW = 512;

/** How many keys one call looks at, and of how many of them it takes runs. The next call continues there. */
const MAX_KEYS = 10_000;
const MAX_LINES = 64;

interface DueRow {
  readonly no: number;
  readonly run_id: string;
  readonly due_at: number;
  readonly fair: string;
  readonly agent: string;
  readonly owner: string | null;
  readonly epoch: number | null;
  readonly attempts: number | null;
  readonly expires_at: number;
  readonly boot: string;
  readonly deployment: number | null;
}

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

const columns = `d.no, d.run_id, d.due_at, d.fair, d.agent, c.owner, c.epoch, c.attempts, c.expires_at, c.boot, c.deployment
  FROM due d LEFT JOIN claims c ON c.run_id = d.run_id`;

/** Finds due runs in SQLite by their fair keys. Callers hold the transaction. */
export class TakingTables {
  readonly #leases: LeaseTable;
  readonly #reads: Reads;
  readonly #now: () => number;
  readonly #isMany: StatementSync;
  readonly #oldest: StatementSync;
  readonly #named: StatementSync;
  readonly #nextKey: StatementSync;
  readonly #firstKey: StatementSync;
  readonly #ofKey: StatementSync;
  readonly #ofAgents: StatementSync;
  readonly #nextDue: StatementSync;
  readonly #lastTurn: StatementSync;
  readonly #putTurn: StatementSync;

  constructor(db: DatabaseSync, { leases, reads, now }: Sources) {
    this.#leases = leases;
    this.#reads = reads;
    this.#now = now;
    this.#isMany = db.prepare(`SELECT 1 FROM due WHERE due_at <= ? ORDER BY due_at, run_id LIMIT 1 OFFSET ${FEW}`);
    this.#oldest = db.prepare(`SELECT ${columns} WHERE d.due_at <= ? ORDER BY d.due_at, d.run_id`);
    this.#named = db.prepare(
      `SELECT ${columns} WHERE d.no IN (SELECT no FROM runs WHERE run_id IN (SELECT value FROM json_each(?)))
         AND (d.due_at <= ? OR (d.due_at < ${ON_COMMAND} AND ${GIVEN_BACK})) ORDER BY d.due_at, d.run_id`,
    );
    // An index on keys is used only where its condition is repeated.
    const hasTurn = `due_at < ${ON_COMMAND}`;
    const key = (which: string) =>
      db.prepare(`SELECT fair, due_at FROM due WHERE fair ${which} ? AND ${hasTurn} ORDER BY fair, due_at LIMIT 1`);
    this.#nextKey = key('>');
    this.#firstKey = key('>=');
    const ofKey = (agents: string) =>
      db.prepare(
        `SELECT ${columns} WHERE d.fair = $key AND d.due_at <= $now AND d.${hasTurn} ${agents} ORDER BY d.due_at, d.run_id`,
      );
    this.#ofKey = ofKey('');
    this.#ofAgents = ofKey("AND (d.agent = '' OR d.agent IN (SELECT value FROM json_each($agents)))");
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
    const { runIds } = take;
    if (!runIds && this.#isMany.get(now)) return this.#ofLines(take, { now, wished });
    const rows = runIds ? this.#named.iterate(JSON.stringify([...runIds]), now) : this.#oldest.iterate(now);
    const found: Candidate[] = [];
    for (const row of rows) found.push(...wished(row as unknown as DueRow));
    return { found };
  }

  /** Jumps from key to key: the runs between them are not read. */
  #ofLines(take: TakeDue, { now, wished }: Looking): Candidates {
    const lines: { readonly key: string; readonly first: Candidate }[] = [];
    let stoppedAt: string | undefined;
    let keys = 0;
    for (const { fair: key, due_at } of this.#keysAfter(this.lastTurn())) {
      const isOpen = due_at <= now && !take.fullKeys.includes(key);
      const [first] = isOpen ? this.#line(key, take, { now, wished, most: 1 }) : [];
      if (first) lines.push({ key, first });
      if (lines.length === MAX_LINES || ++keys === MAX_KEYS) {
        stoppedAt = key;
        break;
      }
    }
    const most = take.limit + 1;
    if (lines.length >= most) return { found: lines.map((line) => line.first), stoppedAt };
    return { found: lines.flatMap(({ key }) => this.#line(key, take, { now, wished, most })), stoppedAt };
  }

  /** The keys, each with the time of its first run, from the one after `last` on, and around. */
  *#keysAfter(last: string): Generator<KeyRow> {
    let row = this.#nextKey.get(last) as unknown as KeyRow | undefined;
    let isAround = row === undefined;
    row ??= this.#firstKey.get('') as unknown as KeyRow | undefined;
    while (row) {
      if (isAround && isAfter(row.fair, last)) return;
      yield row;
      const { fair } = row;
      row = this.#nextKey.get(fair) as unknown as KeyRow | undefined;
      if (row || isAround) continue;
      isAround = true;
      row = this.#firstKey.get('') as unknown as KeyRow | undefined;
    }
  }

  #line(key: string, { agents }: TakeDue, { now, wished, most }: Looking & { readonly most: number }): Candidate[] {
    const at = { $key: key, $now: now };
    const rows = agents ? this.#ofAgents.iterate({ ...at, $agents: JSON.stringify(agents) }) : this.#ofKey.iterate(at);
    const found: Candidate[] = [];
    for (const row of rows) {
      found.push(...wished(row as unknown as DueRow));
      if (found.length === most) break;
    }
    return found;
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

interface KeyRow {
  readonly fair: string;
  readonly due_at: number;
}

interface Looking {
  readonly now: number;
  /** The run of a row, if it is wished. */
  wished(row: DueRow): Candidate[];
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
  for (const { no, runId } of inTurns(found, taking.lastTurn()) as Iterable<Candidate>) {
    const head = taking.head(no);
    if (!take.isTakeable(head)) continue;
    if (taken.length >= take.limit) {
      taking.putTurn(taken.at(-1)?.head.fair ?? taking.lastTurn());
      return { now, taken, nextAt: now };
    }
    const claim = claimIn(tables, runId, { take, now });
    if (claim) taken.push({ head, claim });
  }
  taking.putTurn(stoppedAt ?? taken.at(-1)?.head.fair ?? taking.lastTurn());
  // A call that looked at many keys for nothing must not be followed by the next one at once.
  return { now, taken, nextAt: stoppedAt !== undefined && taken.length > 0 ? now : taking.nextDue(now) };
}

function claimIn(tables: Tables, runId: string, { take, now }: { readonly take: TakeDue; readonly now: number }) {
  try {
    return make(tables, { runId, decide: take.decide(runId, now) }).value;
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
