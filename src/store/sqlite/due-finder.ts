import type { DatabaseSync } from 'node:sqlite';
import { ON_COMMAND } from '../due.ts';
import { GIVEN_BACK } from './schema.ts';

/** Up to this many due runs are compared with each other; of more only some of each key are read. */
const FEW = 512;

export interface DueRow {
  readonly no: number;
  readonly run_id: string;
  /** Null = the run is parked. */
  readonly due_at: number | null;
  readonly fair: string;
  readonly agent: string;
  readonly owner: string | null;
  readonly epoch: number | null;
  readonly attempts: number | null;
  readonly expires_at: number;
  readonly boot: string;
  readonly deployment: number | null;
}

/** Finds due runs, those of others too. */
export interface Finder {
  /** Whether there are more than few. */
  isMany(now: number): boolean;
  /** All due runs. */
  all(now: number): Iterable<DueRow>;
  /** The first fair key after another one, or from it on, of a run with a turn. */
  key(which: '>' | '>=', key: string): string | undefined;
  /** The due runs of a fair key, by their time: one list, or one for each agent. Each is read before the next one. */
  ofKey(key: string, now: number): Iterable<Iterable<DueRow>>;
}

/** The ways to due runs, each by an index: no statement reads the runs of agents, keys or definitions that are not asked for. */
export interface Finders {
  /** Runs of all agents. */
  readonly all: Finder;
  /** Only runs of these agents. */
  of(agents: readonly string[], now: number): Finder;
  /** Of these runs those that are due, or were given back. */
  named(runIds: Iterable<string>, now: number): Iterable<DueRow>;
  /** Runs that were parked for one of these definitions. */
  parkedFor(definitions: readonly string[]): Iterable<DueRow>;
}

/** The columns of a DueRow. @param by the index to use */
const columnsBy = (by: string) =>
  `d.no, d.run_id, d.due_at, d.fair, d.agent, c.owner, c.epoch, c.attempts, c.expires_at, c.boot, c.deployment
  FROM due d ${by} LEFT JOIN claims c ON c.run_id = d.run_id`;

/** An index on keys is used only where its condition is repeated. */
const HAS_TURN = `due_at < ${ON_COMMAND}`;
const inList = 'IN (SELECT value FROM json_each(?))';

type Rows = Iterable<DueRow>;

/** Prepares the statements that find due runs in SQLite. */
export function findersOf(db: DatabaseSync): Finders {
  const named = db.prepare(
    `SELECT ${columnsBy('')} WHERE d.no IN (SELECT no FROM runs WHERE run_id ${inList})
       AND (d.due_at <= ? OR (d.due_at < ${ON_COMMAND} AND ${GIVEN_BACK})) ORDER BY d.due_at, d.run_id`,
  );
  const parked = db.prepare(
    `SELECT ${columnsBy('INDEXED BY due_definition')} WHERE d.due_at IS NULL AND d.definition ${inList}`,
  );
  return {
    all: finderOfAll(db),
    of: findersOfAgents(db),
    named: (runIds, now) => named.iterate(JSON.stringify([...runIds]), now) as unknown as Rows,
    parkedFor: (definitions) => parked.iterate(JSON.stringify(definitions)) as unknown as Rows,
  };
}

function finderOfAll(db: DatabaseSync): Finder {
  const many = db.prepare(`SELECT 1 FROM due INDEXED BY due_at WHERE due_at <= ? LIMIT 1 OFFSET ${FEW}`);
  const oldest = db.prepare(`SELECT ${columnsBy('INDEXED BY due_at')} WHERE d.due_at <= ?`);
  const keyThat = (is: string) =>
    db.prepare(
      `SELECT fair FROM due INDEXED BY due_turns WHERE fair ${is} ? AND ${HAS_TURN} ORDER BY fair, due_at LIMIT 1`,
    );
  const keys = { '>': keyThat('>'), '>=': keyThat('>=') };
  const ofKey = db.prepare(
    `SELECT ${columnsBy('INDEXED BY due_turns')} WHERE d.fair = ? AND d.due_at <= ? AND d.${HAS_TURN} ORDER BY d.due_at, d.run_id`,
  );
  return {
    isMany: (now) => many.get(now) !== undefined,
    all: (now) => oldest.iterate(now) as unknown as Rows,
    key: (which, key) => (keys[which].get(key) as { fair: string } | undefined)?.fair,
    ofKey: (key, now) => [ofKey.iterate(key, now) as unknown as Rows],
  };
}

function findersOfAgents(db: DatabaseSync): Finders['of'] {
  const many = db.prepare(
    `SELECT 1 FROM due INDEXED BY due_agent WHERE agent ${inList} AND due_at <= ? LIMIT 1 OFFSET ${FEW}`,
  );
  const oldest = db.prepare(`SELECT ${columnsBy('INDEXED BY due_agent')} WHERE d.agent ${inList} AND d.due_at <= ?`);
  const present = db.prepare(
    `SELECT value AS agent FROM json_each(?) a
     WHERE EXISTS (SELECT 1 FROM due INDEXED BY due_agent WHERE agent = a.value AND due_at <= ?)`,
  );
  const keyThat = (is: string) =>
    db.prepare(
      `SELECT min((SELECT fair FROM due INDEXED BY due_agent_turns
         WHERE agent = a.value AND fair ${is} ? AND ${HAS_TURN} ORDER BY fair LIMIT 1)) AS fair FROM json_each(?) a`,
    );
  const keys = { '>': keyThat('>'), '>=': keyThat('>=') };
  const ofKey = db.prepare(
    `SELECT ${columnsBy('INDEXED BY due_agent_turns')}
     WHERE d.agent = ? AND d.fair = ? AND d.due_at <= ? AND d.${HAS_TURN} ORDER BY d.due_at, d.run_id`,
  );
  return (agents, now) => {
    const asked = JSON.stringify(agents);
    let found: readonly string[] | undefined;
    const due = () => {
      found ??= (present.all(asked, now) as { agent: string }[]).map(({ agent }) => agent);
      return found;
    };
    return {
      isMany: (at) => many.get(asked, at) !== undefined,
      all: (at) => oldest.iterate(asked, at) as unknown as Rows,
      key: (which, key) => (keys[which].get(key, JSON.stringify(due())) as { fair: string | null }).fair ?? undefined,
      *ofKey(key, at) {
        for (const agent of due()) yield ofKey.iterate(agent, key, at) as unknown as Rows;
      },
    };
  };
}
