import { crc32 } from 'node:zlib';
import { totalColumns } from '../../record/totals.ts';
import { CheckpointTooNewError, StoreUnavailableError } from '../../values/errors.ts';
import { ON_COMMAND } from '../due.ts';
import { olderLayout } from '../read-only.ts';
import { isTableMissing, MEDDLING, refuseMeddling } from './errors.ts';
import { quotedSchema } from './parameters.ts';
import { inTransaction, type PoolSession } from './pool.ts';

/** The names of the tables of a store. */
const names = {
  layouts: 'layouts',
  runs: 'runs',
  starts: 'starts',
  messages: 'messages',
  pieces: 'pieces',
  outcomes: 'outcomes',
  commands: 'commands',
  waits: 'waits',
  signals: 'signals',
  journal: 'journal',
  passing: 'passing',
  ended: 'ended',
  threads: 'threads',
  turns: 'thread_turns',
  lastTurn: 'last_turn',
  deliveries: 'deliveries',
  totals: 'totals',
  schedules: 'schedules',
  limits: 'limits',
} as const;

/** The schema of a store, and its tables, as statements name them. */
export type Tables = { readonly [Name in keyof typeof names | 'schema']: string };

/** "Pawl" in ASCII: the first half of the lock under which a layout is changed. */
const LOCK = 0x5061776c;

function tablesIn(name: string): Tables {
  const schema = quotedSchema(name);
  const tables = Object.entries(names).map(([key, table]) => [key, `${schema}.${table}`] as const);
  return { schema, ...(Object.fromEntries(tables) as Omit<Tables, 'schema'>) };
}

const tableNames = Object.values(names);

/** Ends an INSERT into a journal: a row with the key of another one replaces it. */
export const REPLACES =
  'ON CONFLICT (run_id, place) DO UPDATE SET checksum = excluded.checksum, entries = excluded.entries';

/** The condition of the index on fair keys: it is used only where this is repeated. */
export const HAS_TURN = `body IS NOT NULL AND due_at < ${ON_COMMAND}`;

/** The condition of the index on agents and fair keys. */
export const HAS_TIME = `due_at < ${ON_COMMAND}`;

/** The condition of the index on definitions. */
export const IS_PARKED = "due_at IS NULL AND definition <> ''";

/** Whether a run was given back: its time has half a ms. */
export const GIVEN_BACK = '(due_at <> pg_catalog.floor(due_at))';

/**
 * The steps from each layout to the next; the first one starts from nothing. A released layout is never changed: append
 * another step.
 *
 * Ids are stored as bytes, because a PostgreSQL text cannot hold every string. `runs` has the claim and the head, which change
 * with each save. It leaves room in its pages for the next version of a row. Columns that seldom change come first, because
 * the server's log leaves out an unchanged beginning of a row. The parts that a whole save writes once (`starts`) and the log
 * (`messages`) are found by the token of that save. So are the `pieces` that heads and messages name: those of one write are
 * one row, whose token is beside the texts that name them. No column that changes with each save has an index.
 */
const layouts: readonly ((tables: Tables) => string)[] = [
  ({ runs, starts, messages, pieces, outcomes, commands }) => `
    CREATE TABLE ${runs} (
      run_id bytea PRIMARY KEY,
      body bigint,
      epoch bigint,
      attempts bigint NOT NULL,
      version bigint,
      expires_at double precision,
      owner text,
      token bigint NOT NULL,
      revision bigint,
      updated_at double precision,
      message_count bigint,
      checksum bigint,
      pieces text,
      head text
    ) WITH (fillfactor = 70);
    CREATE TABLE ${starts} (
      body bigint PRIMARY KEY,
      meta_checksum bigint NOT NULL,
      extras_checksum bigint NOT NULL,
      meta text NOT NULL,
      extras text
    );
    CREATE TABLE ${messages} (
      body bigint,
      first bigint,
      checksum bigint NOT NULL,
      messages text NOT NULL,
      pieces text,
      PRIMARY KEY (body, first)
    );
    CREATE TABLE ${pieces} (
      body bigint,
      bundle bigint,
      checksum bigint NOT NULL,
      bundled text NOT NULL,
      PRIMARY KEY (body, bundle)
    );
    CREATE TABLE ${outcomes} (
      run_id bytea PRIMARY KEY,
      until double precision NOT NULL,
      epoch bigint NOT NULL,
      checksum bigint NOT NULL,
      outcome text NOT NULL
    );
    CREATE INDEX ON ${outcomes} (until);
    CREATE TABLE ${commands} (
      no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      run_id bytea NOT NULL,
      command_id text NOT NULL,
      checksum bigint NOT NULL,
      command text NOT NULL,
      UNIQUE (run_id, command_id)
    );
  `,
  // A version that knows only the first layout would call heads without these fields damaged.
  ({ runs }) =>
    `COMMENT ON COLUMN ${runs}.head IS 'JSON; one that begins with a comma lacks version, revision and updated_at'`,
  // A number without alignment: the server's log leaves out an unchanged end of a row, and most heads end as they did before.
  // When a run is due (null: never), what runs wait for, and signals that were early, or were delivered (`run_id` has them).
  ({ runs, commands, waits, signals }) => `
    ALTER TABLE ${runs} ADD COLUMN due_at numeric DEFAULT 0;
    CREATE INDEX ON ${runs} (due_at, run_id) WHERE body IS NOT NULL;
    ALTER TABLE ${commands} ADD COLUMN sent_at double precision;
    CREATE TABLE ${waits} (
      no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      topic text NOT NULL,
      run_id bytea NOT NULL,
      wait_id text NOT NULL,
      UNIQUE (run_id, wait_id)
    );
    CREATE INDEX ON ${waits} (topic, no);
    CREATE TABLE ${signals} (
      no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      signal text NOT NULL UNIQUE,
      topic text NOT NULL,
      until double precision NOT NULL,
      run_id bytea,
      checksum bigint NOT NULL,
      content text
    );
    CREATE INDEX ON ${signals} (topic, no) WHERE run_id IS NULL;
    CREATE INDEX ON ${signals} (until);
  `,
  // The journals of runs. A row has the entries that one write added; its key ends with the place of the last one. The rows of
  // `passing` are deleted with each step. The runs that ended and whose record is kept: the row of `runs` with its head is moved to
  // `ended`, and its parts stay where they are. `agent` and `caller` are hashes if the texts are encrypted.
  ({ journal, passing, ended, threads, turns }) => `
    CREATE TABLE ${journal} (
      run_id bytea,
      place bigint,
      checksum bigint NOT NULL,
      entries text NOT NULL,
      PRIMARY KEY (run_id, place)
    );
    CREATE TABLE ${passing} (
      run_id bytea,
      place bigint,
      checksum bigint NOT NULL,
      entries text NOT NULL,
      PRIMARY KEY (run_id, place)
    );
    CREATE TABLE ${ended} (
      run_id bytea PRIMARY KEY,
      body bigint NOT NULL,
      version bigint,
      revision bigint,
      updated_at double precision,
      message_count bigint,
      checksum bigint,
      pieces text,
      head text,
      ended_at double precision NOT NULL,
      keep_until double precision NOT NULL,
      epoch bigint NOT NULL,
      agent text,
      caller text,
      entry_checksum bigint NOT NULL,
      entry text NOT NULL
    );
    CREATE INDEX ON ${ended} (ended_at DESC, run_id);
    CREATE INDEX ON ${ended} (agent, ended_at DESC, run_id);
    CREATE INDEX ON ${ended} (caller, ended_at DESC, run_id);
    CREATE INDEX ON ${ended} (keep_until);
    CREATE TABLE ${threads} (
      no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      thread text NOT NULL UNIQUE,
      caller text NOT NULL,
      updated_at double precision NOT NULL,
      turns bigint NOT NULL,
      length bigint NOT NULL,
      rewinds bigint NOT NULL,
      checksum bigint NOT NULL,
      content text NOT NULL
    );
    CREATE INDEX ON ${threads} (caller, updated_at, thread);
    CREATE INDEX ON ${threads} (updated_at, thread);
    CREATE TABLE ${turns} (
      thread bigint NOT NULL,
      message text NOT NULL,
      state text NOT NULL,
      place bigint NOT NULL,
      run_id bytea NOT NULL,
      first bigint NOT NULL,
      count bigint NOT NULL,
      checksum bigint NOT NULL,
      content text NOT NULL,
      compaction text,
      PRIMARY KEY (thread, message)
    );
    CREATE INDEX ON ${turns} (thread, state, place);
    CREATE INDEX ON ${turns} (run_id);
  `,
  // Under what runs are found: hashes if the texts are encrypted, empty or null in rows of an earlier layout. They stand at the end,
  // and without alignment, for the reason that `due_at` does. Only a run that is due at some time can have a turn. `last_turn` has
  // one row: the fair key of the run that was taken last.
  ({ runs, lastTurn }) => `
    ALTER TABLE ${runs} ADD COLUMN fair text COLLATE "C" NOT NULL DEFAULT '',
      ADD COLUMN agent text COLLATE "C" NOT NULL DEFAULT '',
      ADD COLUMN caller text COLLATE "C",
      ADD COLUMN deployment numeric;
    CREATE INDEX ON ${runs} (fair, due_at, run_id, agent) WHERE ${HAS_TURN};
    CREATE INDEX ON ${runs} (caller, run_id) WHERE body IS NOT NULL;
    CREATE TABLE ${lastTurn} (no integer PRIMARY KEY, fair text NOT NULL);
  `,
  // Due runs are found by their agent too: what others have due costs a search nothing. `definition` is that for which a run was
  // parked, as a hash if the texts are encrypted; such a run is never due. No condition of these indexes is that of another one,
  // because the server would sometimes choose the other one, and read the rows of all.
  ({ runs }) => `
    ALTER TABLE ${runs} ADD COLUMN definition text COLLATE "C";
    CREATE INDEX ON ${runs} (agent, due_at, run_id);
    CREATE INDEX ON ${runs} (agent, fair, due_at, run_id) WHERE ${HAS_TIME};
    CREATE INDEX ON ${runs} (definition, run_id) WHERE ${IS_PARKED};
  `,
  // The ends that no process has delivered. A row outlives outcome and record. Ends from before this layout count as delivered.
  ({ deliveries }) => `
    CREATE TABLE ${deliveries} (
      run_id bytea,
      outcome_id bytea,
      agent text COLLATE "C" NOT NULL,
      due_at double precision NOT NULL,
      until double precision NOT NULL,
      tries bigint NOT NULL DEFAULT 0,
      mark text NOT NULL,
      PRIMARY KEY (run_id, outcome_id)
    );
    CREATE INDEX ON ${deliveries} (agent, due_at);
    CREATE INDEX ON ${deliveries} (until);
  `,
  // The totals of the runs that began on a day and ended with a status. No run is named in them.
  ({ totals }) => `
    CREATE TABLE ${totals} (
      no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      day text COLLATE "C" NOT NULL,
      status text COLLATE "C" NOT NULL,
      ${totalColumns.map((column) => `${column} double precision NOT NULL`).join(', ')}
    );
    CREATE INDEX ON ${totals} (day, status);
  `,
  // Why a run is not due. Rows of an earlier layout do not say it, until their record is written again.
  ({ runs }) => `ALTER TABLE ${runs} ADD COLUMN paused_by text COLLATE "C"`,
  ({ schedules }) =>
    `CREATE TABLE ${schedules} (id text COLLATE "C" PRIMARY KEY, revision bigint NOT NULL, checksum bigint NOT NULL, content text NOT NULL)`,
  ({
    limits,
  }) => `CREATE TABLE ${limits} (id text COLLATE "C" PRIMARY KEY, next_at float8 NOT NULL, idle_at float8 NOT NULL);
    CREATE INDEX ON ${limits} (idle_at)`,
];

/** Creates or updates the tables in PostgreSQL before the first use. */
export class Schema {
  readonly #name: string;
  readonly #tables: Tables;
  #isReady = false;

  constructor(name: string) {
    this.#name = name;
    this.#tables = tablesIn(name);
  }

  get tables(): Tables {
    return this.#tables;
  }

  get isReady(): boolean {
    return this.#isReady;
  }

  /**
   * Creates or migrates the tables, unless they are those of this version.
   * @throws {CHECKPOINT_TOO_NEW} if a newer version wrote the layout
   * @throws {STORE_UNAVAILABLE} for a reader, if there are no tables of this version
   */
  async prepare(session: PoolSession, { isReadOnly }: { readonly isReadOnly: boolean }): Promise<void> {
    const found = await this.#find(session);
    if (found !== layouts.length) {
      if (isReadOnly) throw this.#unread(found);
      await this.#migrate(session);
    }
    this.#isReady = true;
  }

  /** The tables were dropped: the next use looks again. */
  forget(): void {
    this.#isReady = false;
  }

  #unread(found: number): StoreUnavailableError {
    const place = `the PostgreSQL store in schema ${this.#name}`;
    return found === 0
      ? new StoreUnavailableError(`${place} does not exist`)
      : olderLayout(place, found, layouts.length);
  }

  /** The existing layout; 0 if there is none. */
  async #find(session: PoolSession): Promise<number> {
    try {
      return await this.#read(session);
    } catch (error) {
      if (isTableMissing(error)) return 0;
      throw error;
    }
  }

  async #read(session: PoolSession): Promise<number> {
    const [found = {}] = await session.query(
      `SELECT (SELECT l.layout FROM ${this.#tables.layouts} l WHERE l.part OPERATOR(pg_catalog.=) 'store') AS layout, m.* FROM ${MEDDLING} m`,
      [this.#name, tableNames],
    );
    refuseMeddling(found, this.#name);
    const layout = Number(found.layout ?? 0);
    if (layout <= layouts.length) return layout;
    throw new CheckpointTooNewError(
      `schema ${this.#name} has layout ${layout}, this Pawl knows ${layouts.length}: upgrade the package (nothing was touched)`,
    );
  }

  /** Under a lock: if several processes start at once, the others find it done. */
  async #migrate(session: PoolSession): Promise<void> {
    await inTransaction(session, async () => {
      await session.query('SELECT pg_catalog.pg_advisory_xact_lock($1::int, $2::int)', [LOCK, crc32(this.#name) | 0]);
      await this.#create(session);
      const from = await this.#read(session);
      for (const step of layouts.slice(from)) await session.query(step(this.#tables));
      await session.query(
        `INSERT INTO ${this.#tables.layouts} (part, layout) VALUES ('store', $1::int)
         ON CONFLICT (part) DO UPDATE SET layout = excluded.layout`,
        [layouts.length],
      );
    });
  }

  async #create(session: PoolSession): Promise<void> {
    const [found] = await session.query(
      `SELECT pg_catalog.current_setting('server_encoding') AS encoding,
         EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1)::pg_catalog.text AS schema,
         EXISTS (SELECT FROM pg_catalog.pg_tables WHERE schemaname = $1 AND tablename = 'layouts')::pg_catalog.text AS layouts`,
      [this.#name],
    );
    if (found?.encoding !== 'UTF8') {
      throw new StoreUnavailableError(
        `the database has the encoding ${found?.encoding}, which cannot hold every text; use one with UTF8`,
      );
    }
    // `IF NOT EXISTS` would need the right to create schemas even if there is nothing to create.
    if (found.schema !== 'true') await session.query(`CREATE SCHEMA ${this.#tables.schema}`);
    if (found.layouts === 'true') return;
    await session.query(`CREATE TABLE ${this.#tables.layouts} (part text PRIMARY KEY, layout integer NOT NULL)`);
  }
}
