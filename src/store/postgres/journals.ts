import { setImmediate } from 'node:timers';
import { crc32 } from 'node:zlib';
import { CheckpointCorruptError, StoreUnavailableError } from '../../values/errors.ts';
import { isIntact } from '../encoding/checksum.ts';
import type { JournalRow } from '../encoding/stored-journal.ts';
import { GroupCommit, giveAnswers, type Job, type Settled } from '../group-commit.ts';
import type { Claim } from '../port.ts';
import { checkClaim } from '../rules/lease.ts';
import type { JournalDriver, MessageRange, PartReader, RowsPage, StoredPart } from '../store-driver.ts';
import { NoAnswer } from './errors.ts';
import { Parameters } from './parameters.ts';
import type { PoolSession, Row } from './pool.ts';
import type { Reader } from './reader.ts';
import { readEndedRun, readPart, readRunRow, textsOfRow } from './run-queries.ts';
import { hexOf, leaseOf, ownerText } from './run-row.ts';
import { REPLACES } from './schema.ts';
import { pauseServer, type Server } from './server.ts';
import type { WriteQueue } from './write-queue.ts';

/** Bounds of one statement: characters that it writes, runs whose journals it reads, and characters of each of these. */
const MAX_WRITE_CHARS = 2 ** 23;
const MAX_READS = 64;
const CHARS_PER_PAGE = 2 ** 19;

/** Bounds the reads of a record that is replaced during each read. */
const MAX_LOADS = 20;

interface Publish {
  readonly claim: Claim;
  readonly rows: readonly JournalRow[];
  /** Which try this is; 1 = the first. */
  readonly tries: number;
  /** On the clock of `performance.now()`. */
  readonly until: number;
}

interface Read {
  readonly runId: string;
  readonly after: number;
  readonly limit: number;
}

/**
 * The journals of runs in PostgreSQL. What is published in one turn of the event loop is one statement, which does not wait for
 * the disk. So are the reads of one turn: many readers make few queries.
 */
export class Journals implements JournalDriver {
  readonly #server: Server;
  readonly #queue: WriteQueue;
  readonly #reader: Reader;
  readonly #publishes: GroupCommit<Publish>;
  readonly #reads: GroupCommit<Read>;
  readonly #waitMs: number;
  /** The last publish of each run; never rejects. */
  readonly #publishing = new Map<string, Promise<void>>();
  /** What is published again after a pause. */
  readonly #later = new Set<Promise<void>>();

  /** @param waitMs how long a call is retried */
  constructor(server: Server, { queue, reader, waitMs }: { queue: WriteQueue; reader: Reader; waitMs: number }) {
    this.#server = server;
    this.#queue = queue;
    this.#reader = reader;
    this.#waitMs = waitMs;
    const begin = () => new Promise<void>((resolve) => setImmediate(resolve));
    this.#publishes = new GroupCommit({ begin, perform: (take) => this.#publishAll(take()) });
    this.#reads = new GroupCommit({ begin, perform: (take) => this.#readAll(take()) });
  }

  publish(write: Pick<Publish, 'claim' | 'rows'>, signal?: AbortSignal): Promise<void> {
    const { runId } = write.claim;
    const published = this.#publish(write, signal);
    const settled: Promise<void> = published
      .catch(() => {})
      .then(() => {
        if (this.#publishing.get(runId) === settled) this.#publishing.delete(runId);
      });
    this.#publishing.set(runId, settled);
    return published;
  }

  /** Readers go by places: no save that was requested before this call comes after it, and no later one before. */
  async #publish({ claim, rows }: Pick<Publish, 'claim' | 'rows'>, signal?: AbortSignal): Promise<void> {
    const until = performance.now() + this.#waitMs;
    let published = Promise.resolve();
    await this.#queue.inTurn(claim.runId, async () => {
      published = this.#publishes.add({ claim, rows, tries: 1, until }, { signal });
      await published.catch(() => {});
    });
    return published;
  }

  async read(runId: string, { after, limit, newest }: RowsPage) {
    await Promise.all([this.#queue.settle(runId), this.#publishing.get(runId)]);
    const before = newest === undefined ? 0 : await this.#placeBefore(runId, newest);
    return this.#reads.add<readonly JournalRow[] | null>({ runId, after: Math.max(after, before), limit });
  }

  /** The place before the newest kept rows; 0 if there are no others. */
  #placeBefore(runId: string, newest: number): Promise<number> {
    return this.#reader.insist(async (session) => {
      const [row] = await session.query(
        `SELECT place FROM ${this.#server.tables.journal} WHERE run_id = pg_catalog.decode($1, 'hex') ORDER BY place DESC LIMIT 1 OFFSET $2`,
        [hexOf(runId), newest],
      );
      return Number(row?.place ?? 0);
    });
  }

  async content(runId: string, range: MessageRange, row: PartReader): Promise<StoredPart | null> {
    await this.#queue.settle(runId);
    for (let loads = 0; loads < MAX_LOADS; loads++) {
      const found = await this.#reader.insist(async (session) => {
        const live = await readRunRow(session, this.#server, runId);
        const stored = live ?? (await readEndedRun(session, this.#server, runId));
        return (
          stored && {
            stored,
            hasEnded: live === null || live === undefined,
            rows: await readPart(session, this.#server, { stored, range }),
          }
        );
      });
      if (!found) return null;
      const { stored, rows, hasEnded } = found;
      if (!rows) continue;
      const { meta, head, pieces, attempts } = textsOfRow(stored);
      for (const each of rows) if (!row(each.first, each.text, each.pieces)) break;
      return { meta, head, pieces, attempts, hasEnded, messageCount: Number(stored.row.message_count) };
    }
    throw new StoreUnavailableError(
      `run ${runId}: its record was replaced each time while it was read; try again later`,
    );
  }

  /** Resolves when no call is running any more. */
  async end(): Promise<void> {
    await Promise.all([...this.#later, this.#publishes.end(), this.#reads.end()]);
  }

  async #publishAll(jobs: readonly Job<Publish>[]): Promise<void> {
    for (let left = jobs; left.length > 0; ) {
      const group = firstOf(left);
      left = left.slice(group.length);
      const open = group.filter(({ signal }) => !signal?.aborted);
      const answers: Settled<Publish>[] = group
        .filter((job) => !open.includes(job))
        .map((job) => ({ job, error: job.signal?.reason }));
      const insist = () => this.#reader.insist((session) => publish(session, this.#server, open));
      if (open.length > 0)
        answers.push(...(await insist().catch((error: unknown) => open.map((job) => ({ job, error })))));
      giveAnswers(answers);
      const answered = new Set(answers.map(({ job }) => job));
      for (const job of group) if (!answered.has(job)) this.#repeat(job);
    }
  }

  #repeat(job: Job<Publish>): void {
    const again = this.#again(job).finally(() => this.#later.delete(again));
    this.#later.add(again);
  }

  /** Publishes again what met a lock: the others do not wait for it. */
  async #again({ write, signal, resolve, reject }: Job<Publish>): Promise<void> {
    const { tries, until } = write;
    if (performance.now() >= until)
      return reject(this.#server.seen(new NoAnswer('other transactions keep the run locked')));
    await pauseServer(tries);
    await this.#publishes.add({ ...write, tries: tries + 1 }, { signal }).then(resolve, reject);
  }

  async #readAll(jobs: readonly Job<Read>[]): Promise<void> {
    for (let at = 0; at < jobs.length; at += MAX_READS) {
      const group = jobs.slice(at, at + MAX_READS);
      const answers = await this.#reader
        .insist((session) => readJournals(session, this.#server, group))
        .catch((error: unknown) => group.map((job) => ({ job, error })));
      giveAnswers(answers);
    }
  }
}

/** The first jobs that fit in a statement: at least one. */
function firstOf(jobs: readonly Job<Publish>[]): readonly Job<Publish>[] {
  let chars = 0;
  const end = jobs.findIndex(({ write }, i) => {
    for (const { text } of write.rows) chars += text.length;
    return i > 0 && chars > MAX_WRITE_CHARS;
  });
  return end < 0 ? jobs : jobs.slice(0, end);
}

/**
 * Adds rows to journals in one statement. The lock of each run keeps another claim away until the rows are there. A run that
 * another transaction has locked is left out.
 */
async function publish(
  session: PoolSession,
  { tables }: Server,
  jobs: readonly Job<Publish>[],
): Promise<readonly Settled<Publish>[]> {
  const parameters = new Parameters();
  const claims = jobs.map(({ write: { claim } }, no) => ({
    ...{ no, id: hexOf(claim.runId), owner: ownerText(claim.owner), epoch: claim.epoch },
  }));
  const input = parameters.table({ no: 'bigint', id: 'text', owner: 'text', epoch: 'bigint' }, claims);
  const rows = parameters.table(
    { no: 'bigint', place: 'bigint', kept: 'bigint', checksum: 'bigint', entries: 'long' },
    [...newestRows(jobs).values()],
  );
  const put = (table: string, kept: number) => `
    INSERT INTO ${table} AS j (run_id, place, checksum, entries)
    SELECT run_id, place, checksum, entries FROM rows WHERE kept = ${kept} ${REPLACES}`;
  const found = await session.query(
    `WITH quick AS MATERIALIZED (SELECT pg_catalog.set_config('synchronous_commit', 'off', true) AS quick),
      input AS (SELECT t.no, pg_catalog.decode(t.id, 'hex') AS run_id, t.owner, t.epoch FROM ${input}),
      held AS (SELECT i.no, i.run_id, r.body FROM input i JOIN ${tables.runs} r
        ON r.run_id = i.run_id AND r.owner = i.owner AND r.epoch = i.epoch
        ORDER BY i.run_id FOR KEY SHARE OF r SKIP LOCKED),
      rows AS (SELECT h.run_id, t.kept, t.place, t.checksum, t.entries FROM ${rows} JOIN held h USING (no)
        WHERE h.body IS NOT NULL),
      kept_put AS (${put(tables.journal, 1)}), passing_put AS (${put(tables.passing, 0)})
    SELECT i.no, h.no AS held, r.owner, r.epoch, r.attempts, r.expires_at
    FROM quick, input i LEFT JOIN held h USING (no) LEFT JOIN ${tables.runs} r ON r.run_id = i.run_id`,
    parameters.values,
  );
  return found.flatMap((row) => answerOf(row, jobs[Number(row.no)] as Job<Publish>));
}

/** One statement cannot write a row twice. */
function newestRows(jobs: readonly Job<Publish>[]) {
  const newest = new Map<string, { no: number; place: number; kept: number; checksum: number; entries: string }>();
  for (const [no, { write }] of jobs.entries()) {
    const { runId, owner, epoch } = write.claim;
    for (const { place, isKept, text } of write.rows) {
      const key = JSON.stringify([runId, owner, epoch, isKept, place]);
      newest.set(key, { no, place, kept: isKept ? 1 : 0, checksum: crc32(text), entries: text });
    }
  }
  return newest;
}

/** Nothing for a run that was locked: it is tried again. */
function answerOf(row: Row, job: Job<Publish>): readonly Settled<Publish>[] {
  if (row.held != null) return [{ job, value: undefined }];
  try {
    checkClaim(leaseOf(row), job.write.claim);
    return [];
  } catch (error) {
    return [{ job, error }];
  }
}

/** Reads pages of several journals in one statement. */
async function readJournals(
  session: PoolSession,
  { tables, times }: Server,
  jobs: readonly Job<Read>[],
): Promise<readonly Settled<Read>[]> {
  const parameters = new Parameters();
  const input = parameters.table(
    { no: 'bigint', id: 'text', after: 'bigint', most: 'bigint' },
    jobs.map(({ write: { runId, after, limit } }, no) => ({ no, id: hexOf(runId), after, most: limit })),
  );
  const part = (table: string, kept: number) => `
    (SELECT j.place, ${kept} AS kept, j.checksum, j.entries FROM ${table} j
     WHERE j.run_id = pg_catalog.decode(t.id, 'hex') AND j.place > t.after ORDER BY j.place LIMIT t.most)`;
  const isThere = `EXISTS (SELECT FROM ${tables.runs} r WHERE r.run_id = pg_catalog.decode(t.id, 'hex') AND r.body IS NOT NULL)
    OR EXISTS (SELECT FROM ${tables.ended} d WHERE d.run_id = pg_catalog.decode(t.id, 'hex')
      AND d.keep_until > ${parameters.add(times.wall())}::pg_catalog.float8)`;
  const found = await session.query(
    `SELECT t.no, e.place, e.kept, e.checksum, e.entries FROM ${input}
     LEFT JOIN LATERAL (
       SELECT * FROM (SELECT u.*, pg_catalog.sum(pg_catalog.octet_length(u.entries)) OVER (ORDER BY u.place, u.kept) - pg_catalog.octet_length(u.entries) AS before
         FROM (${part(tables.journal, 1)} UNION ALL ${part(tables.passing, 0)} ORDER BY place LIMIT t.most) u) sized
       WHERE before < ${CHARS_PER_PAGE}) e ON true
     WHERE ${isThere}
     ORDER BY t.no, e.place`,
    parameters.values,
  );
  const byJob = new Map<number, Row[]>();
  for (const row of found) {
    const rows = byJob.get(Number(row.no)) ?? [];
    if (row.place != null) rows.push(row);
    byJob.set(Number(row.no), rows);
  }
  return jobs.map((job, no) => pageOf(job, byJob.get(no)));
}

/** A damaged journal is the failure of its own readers only. */
function pageOf(job: Job<Read>, rows: readonly Row[] | undefined): Settled<Read> {
  if (!rows) return { job, value: null };
  if (!rows.every(({ entries, checksum }) => isIntact(entries, checksum)))
    return {
      job,
      error: new CheckpointCorruptError('this record is damaged: the checksum of its journal is wrong'),
    };
  const value = rows.map(({ place, kept, entries }) => ({
    ...{ place: Number(place), isKept: kept === '1', text: entries ?? '' },
  }));
  return { job, value };
}
