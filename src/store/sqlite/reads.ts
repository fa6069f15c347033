import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { CheckpointCorruptError } from '../../values/errors.ts';
import { isFree } from '../cursor.ts';
import { ON_COMMAND } from '../due.ts';
import type { ListDueOptions } from '../due-port.ts';
import { isIntact } from '../encoding/checksum.ts';
import type { Lease } from '../rules/lease.ts';
import type { DueHeads, ListedHead, ListPage, MessageRange, MessageReader, PartReader } from '../store-driver.ts';
import type { LeaseTable } from './leases.ts';
import { type HeadRow, headChecksum, KEYS_PER_RUN, MAX_MESSAGES } from './records.ts';
import { GIVEN_BACK } from './schema.ts';

interface RunRow extends HeadRow {
  readonly no: number;
  readonly run_id: string;
  readonly meta: string;
  readonly meta_checksum: number;
  /** The head's; null when its row is missing. */
  readonly checksum: number | null;
  readonly attempts: number | null;
}

export interface LoadedRow extends RunRow {
  readonly extras: string | null;
  readonly extras_checksum: number;
}

interface ListedRow extends RunRow {
  /** The time of its last write; 0 if the row of its head is missing. */
  readonly at: number;
  readonly owner: string | null;
  readonly epoch: number | null;
  readonly expires_at: number;
  readonly boot: string;
  readonly deployment: number | null;
  readonly due_at: number | null;
  readonly fair: string | null;
  readonly agent: string | null;
}

/** A record that may be due, with the claim of its run. */
type DueRow = Pick<
  ListedRow,
  'no' | 'run_id' | 'due_at' | 'owner' | 'epoch' | 'attempts' | 'expires_at' | 'boot' | 'deployment'
>;

interface MessageRow {
  readonly id: number;
  readonly checksum: number;
  readonly messages: string;
}

/** About how many characters of a transcript are read and parsed before the event loop gets its turn. */
const CHARS_PER_TURN = 2 ** 22;

const columns = `r.no, r.run_id, r.meta, r.meta_checksum, c.attempts, h.generation, h.version, h.revision,
  h.updated_at, h.message_count, h.checksum, h.head`;

const claimColumns = 'c.owner, c.epoch, c.expires_at, c.boot, c.deployment, d.due_at, d.fair, d.agent';
/** The tables of a list. @param first has the numbers of the records */
const joined = (first: 'r' | 'p') =>
  `${first === 'r' ? 'runs r' : 'page p JOIN runs r ON r.no = p.no'} LEFT JOIN heads h ON h.no = r.no
   LEFT JOIN due d ON d.no = r.no LEFT JOIN claims c ON c.run_id = r.run_id`;

/** A page of the list of some runs. It sorts only keys, and reads only the texts of the page. */
const pageOf = (runs: string) =>
  `WITH page AS (
     SELECT s.no, coalesce(h.updated_at, 0) AS at, s.run_id FROM (${runs}) s LEFT JOIN heads h ON h.no = s.no
     WHERE (coalesce(h.updated_at, 0), s.run_id) > ($at, $id) ORDER BY 2, 3 LIMIT $limit
   ) SELECT ${columns}, p.at, ${claimColumns} FROM ${joined('p')} ORDER BY p.at, p.run_id`;

interface PageStatements {
  readonly all: StatementSync;
  readonly resting: StatementSync;
  readonly others: StatementSync;
}

/** Prepares the lists of some runs. @param runs selects them, with a condition on `due_at` */
function pagesOf(db: DatabaseSync, runs: (time: string) => string): PageStatements {
  const page = (of: string) => db.prepare(pageOf(of));
  return {
    all: page(runs('$now IS NOT NULL')),
    resting: page(runs(`due_at > $now AND NOT ${GIVEN_BACK}`)),
    // Parked runs have no time.
    others: page(
      [`due_at <= $now`, `due_at > $now AND due_at < ${ON_COMMAND} AND ${GIVEN_BACK}`, 'due_at IS NULL']
        .map(runs)
        .join(' UNION ALL '),
    ),
  };
}

/** Reads records and lists from SQLite: the queries of `load` and of lists. */
export class Reads {
  readonly #leases: LeaseTable;
  readonly #run: StatementSync;
  readonly #ended: StatementSync;
  readonly #generation: StatementSync;
  readonly #messages: StatementSync;
  readonly #number: StatementSync;
  readonly #rowBefore: StatementSync;
  readonly #now: () => number;
  readonly #page: PageStatements;
  readonly #pageOfCaller: PageStatements;
  readonly #due: StatementSync;
  readonly #byNo: StatementSync;
  readonly #nextDue: StatementSync;
  readonly #countDue: StatementSync;
  readonly #changes: StatementSync;
  /** Counts begin again with each connection. */
  readonly #opening = crypto.randomUUID();

  constructor(db: DatabaseSync, leases: LeaseTable, now: () => number) {
    this.#leases = leases;
    this.#now = now;
    const run = (ended: string) =>
      db.prepare(
        `SELECT ${columns}, r.extras, r.extras_checksum FROM runs r LEFT JOIN heads h ON h.no = r.no
         LEFT JOIN claims c ON c.run_id = r.run_id WHERE r.run_id = ? AND ${ended}`,
      );
    this.#run = run('NOT EXISTS (SELECT 1 FROM ended e WHERE e.no = r.no)');
    this.#ended = run('EXISTS (SELECT 1 FROM ended e WHERE e.no = r.no AND e.keep_until > ?)');
    this.#generation = db.prepare(
      'SELECT h.generation FROM runs r JOIN heads h ON h.no = r.no WHERE r.no = ? AND r.run_id = ?',
    );
    this.#messages = db.prepare('SELECT id, checksum, messages FROM messages WHERE id >= ? AND id < ? ORDER BY id');
    this.#number = db.prepare(
      'SELECT r.no FROM runs r LEFT JOIN ended e ON e.no = r.no WHERE r.run_id = ? AND (e.no IS NULL OR e.keep_until > ?)',
    );
    this.#rowBefore = db.prepare('SELECT id FROM messages WHERE id >= ? AND id <= ? ORDER BY id DESC LIMIT 1');
    this.#page = pagesOf(db, (time) => `SELECT no, run_id FROM due WHERE ${time}`);
    // A plus keeps SQLite from using the index of the times: that of the callers has fewer rows.
    this.#pageOfCaller = pagesOf(
      db,
      (time) =>
        `SELECT no, run_id FROM due WHERE caller IN (SELECT value FROM json_each($callers)) AND +${time}
         UNION ALL SELECT no, run_id FROM due WHERE caller IS NULL AND +${time}`,
    );
    this.#due = db.prepare(
      `SELECT d.no, d.run_id, d.due_at, c.owner, c.epoch, c.attempts, c.expires_at, c.boot, c.deployment
       FROM due d LEFT JOIN claims c ON c.run_id = d.run_id
       WHERE d.due_at <= ? AND (d.due_at, d.run_id) > (?, ?) ORDER BY d.due_at, d.run_id`,
    );
    this.#byNo = db.prepare(
      `SELECT ${columns}, coalesce(h.updated_at, 0) AS at, ${claimColumns} FROM ${joined('r')} WHERE r.no = ?`,
    );
    this.#nextDue = db.prepare('SELECT min(due_at) AS at FROM due WHERE due_at > ?');
    this.#changes = db.prepare('SELECT data_version AS others, total_changes() AS own FROM pragma_data_version');
    this.#countDue = db.prepare(`SELECT count(*) AS count FROM due WHERE due_at > ? AND NOT ${GIVEN_BACK}`);
  }

  /** Reads the row of a run, without its messages. @param hasEnded of one that ended @throws {CHECKPOINT_CORRUPT} */
  run(runId: string, hasEnded = false): LoadedRow | undefined {
    const found = hasEnded ? this.#ended.get(runId, this.#now()) : this.#run.get(runId);
    const row = found as unknown as LoadedRow | undefined;
    if (!row) return undefined;
    checkTexts(row);
    checkText(row.extras ?? '', row.extras_checksum, 'extras');
    return row;
  }

  /** The texts of an open step that is stored beside its head. @throws {CHECKPOINT_CORRUPT} */
  step({ no }: LoadedRow): string[] {
    const first = no * KEYS_PER_RUN + MAX_MESSAGES;
    const rows = this.#messages.all(first, (no + 1) * KEYS_PER_RUN) as unknown as MessageRow[];
    return rows.map(({ id, checksum, messages: text }, place) => {
      checkText(text, checksum, 'open step');
      if (id !== first + place) throw damaged('open step');
      return text;
    });
  }

  /** Returns whether a record is still the one that was read: it may have grown, but was not replaced or deleted. */
  isSame(row: LoadedRow): boolean {
    const found = this.#generation.get(row.no, row.run_id) as { generation: number } | undefined;
    return found?.generation === row.generation;
  }

  /**
   * Adds messages of a record to `messages`, up to the bound of one turn.
   * @throws {CHECKPOINT_CORRUPT}
   */
  messages(row: LoadedRow, messages: MessageReader): void {
    const first = row.no * KEYS_PER_RUN;
    let size = 0;
    const rows = this.#messages.iterate(first + messages.count, first + row.message_count);
    for (const { id, checksum, messages: text } of rows as unknown as Iterable<MessageRow>) {
      if (id !== first + messages.count) break;
      checkText(text, checksum, `messages from ${messages.count} on`);
      messages.add(text);
      size += text.length;
      if (size > CHARS_PER_TURN) return;
    }
    if (messages.count !== row.message_count) {
      throw new CheckpointCorruptError(
        `this record is damaged: it has ${messages.count} of its ${row.message_count} messages`,
      );
    }
  }

  /** The number of a run's record, also of a kept one; undefined without one. */
  numberOf(runId: string): number | undefined {
    return this.#number.get(runId, this.#now())?.no as number | undefined;
  }

  /** Reads the rows that hold messages `from` to `to` (excluded). @throws {CHECKPOINT_CORRUPT} */
  part({ no, message_count }: LoadedRow, { from, to }: MessageRange, row: PartReader): void {
    const first = no * KEYS_PER_RUN;
    if (from >= Math.min(to, message_count)) return;
    // The row that holds message `from` may begin before it.
    const { id: start = first + from } = (this.#rowBefore.get(first, first + from) ?? {}) as { id?: number };
    const rows = this.#messages.iterate(start, first + Math.min(to, message_count));
    for (const { id, checksum, messages: text } of rows as unknown as Iterable<MessageRow>) {
      checkText(text, checksum, `messages from ${id - first} on`);
      if (!row(id - first, text)) return;
    }
  }

  page({ after, limit, resting, callers }: ListPage): ListedHead[] {
    const [at, id] = [after?.updatedAt ?? Number.NEGATIVE_INFINITY, after?.runId ?? ''];
    const pages = callers ? this.#pageOfCaller : this.#page;
    const statement = resting === undefined ? pages.all : resting ? pages.resting : pages.others;
    const asked = { $now: this.#now(), $at: at, $id: id, $limit: limit };
    const rows = statement.all(
      callers ? { ...asked, $callers: JSON.stringify(callers) } : asked,
    ) as unknown as ListedRow[];
    return rows.map((row) => this.#listed(row));
  }

  /** The page of due runs. Only keys are read of runs that have an owner. */
  due({ limit, after, now = this.#now() }: ListDueOptions): DueHeads {
    const heads: ListedHead[] = [];
    const from = [after?.dueAt ?? -1, after?.runId ?? ''] as const;
    for (const row of this.#due.iterate(now, ...from) as unknown as Iterable<DueRow>) {
      if (heads.length === limit) break;
      if (!isFree({ lease: this.#leaseOf(row), now: this.#leases.now() })) continue;
      heads.push(this.head(row.no));
    }
    const { at } = this.#nextDue.get(now) as { at: number | null };
    return { now, heads, ...(at === null || at >= ON_COMMAND ? {} : { nextAt: at }) };
  }

  /** The entry of the record with a number. */
  head(no: number): ListedHead {
    return this.#listed(this.#byNo.get(no) as unknown as ListedRow);
  }

  countResting(): number {
    return Number(this.#countDue.get(this.#now())?.count);
  }

  /** What other connections have committed, and what this one has changed since it was opened. */
  changeMark(): string {
    const { others, own } = this.#changes.get() as { others: number; own: number };
    return `${this.#opening} ${others} ${own}`;
  }

  #leaseOf({ owner, epoch, attempts, ...row }: Omit<DueRow, 'no'>): Lease | undefined {
    return epoch === null || attempts === null ? undefined : this.#leases.toLease({ ...row, owner, epoch, attempts });
  }

  #listed(row: ListedRow): ListedHead {
    const { run_id: runId, at: updatedAt, meta, head, due_at: due } = row;
    const place = { due, fair: row.fair ?? undefined, agent: row.agent ?? undefined };
    const now = this.#leases.now();
    try {
      checkTexts(row);
    } catch (error) {
      return { runId, updatedAt, meta: '', head: '', now, error };
    }
    return { runId, updatedAt, meta, head, now, ...place, lease: this.#leaseOf(row) };
  }
}

function checkTexts(row: RunRow): void {
  if (row.checksum === null) throw damaged('head');
  checkText(row.meta, row.meta_checksum, 'meta');
  if (typeof row.head !== 'string' || headChecksum(row) !== row.checksum)
    throw new CheckpointCorruptError(wrongChecksum('head'));
}

function checkText(text: string, checksum: number, what: string): void {
  if (!isIntact(text, checksum)) throw new CheckpointCorruptError(wrongChecksum(what));
}

function wrongChecksum(what: string): string {
  return `this record is damaged: the checksum of its ${what} is wrong`;
}

function damaged(what: string): CheckpointCorruptError {
  return new CheckpointCorruptError(`this record is damaged: its ${what} is missing or not what it should be`);
}
