import { join } from 'node:path';
import { postgresStore } from 'pawl/stores/postgres';
import { PostgresServer, whyNoPostgres } from '../fixtures/postgres-server.ts';
import { Floor } from './floor.ts';
import { type Cost, inFolder, measured, perStep } from './measure.ts';
import { postgresFloor, type StepFloor } from './other-floors.ts';
import { unsavedSteps } from './promise-watch.ts';
import { amount, type Part, type Row } from './report.ts';
import { type BenchStore, bench, checkEnded } from './workload.ts';

/** A kind of store, and the floor of the same kind. */
export interface Kind {
  readonly name: string;
  floor(folder: string): StepFloor | Promise<StepFloor>;
  store(folder: string): OpenStore;
}

export interface OpenStore {
  readonly store: BenchStore;
  close(): Promise<void>;
  /** The bytes that another process has written for it so far; absent: this process writes them. */
  bytes?(): Promise<number>;
}

interface Case {
  readonly kind: Kind;
  /** Steps of one run. */
  readonly steps: number;
  readonly commits: 1 | 2;
}

/** Costs are those of one step. */
interface Measurement {
  /** The floor of all other figures. */
  readonly sqlite: Cost;
  /** The floor of the same kind. */
  readonly floor: Cost;
  readonly ours: Cost;
  readonly mostUnsaved: number;
}

/** What one durable step costs on PostgreSQL, where a server can be started. */
export async function otherStoreRows(isQuick: boolean): Promise<Part> {
  return (await onPostgres((kind) => rowsOf(kind, isQuick))) ?? { rows: [], broken: [] };
}

/** Measures on a PostgreSQL server of its own; undefined, with a note, where there is none: the other figures are worth having. */
export async function onPostgres<T>(measure: (kind: Kind) => Promise<T>): Promise<T | undefined> {
  if (whyNoPostgres) {
    console.error(`PostgreSQL is not measured: ${whyNoPostgres}`);
    return undefined;
  }
  const server = new PostgresServer([]);
  try {
    await server.create();
    return await measure(postgresOn(server));
  } catch (error) {
    console.error(`PostgreSQL is not measured: ${(error as Error).message}`);
    return undefined;
  } finally {
    await server.destroy();
  }
}

function postgresOn(server: PostgresServer): Kind {
  let floors = 0;
  return {
    name: 'PostgreSQL',
    floor: () => {
      floors += 1;
      return postgresFloor(server.url, `floor_${floors}`);
    },
    store: () => {
      const pool = server.pool();
      const store = postgresStore({ pool, schema: server.freshSchema() });
      const close = async () => {
        await store.close();
        await pool.end();
      };
      // The log that it writes ahead: whatever it commits is there.
      const bytes = async () => {
        const { rows } = await pool.query("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 AS bytes");
        return Number(rows[0]?.bytes);
      };
      return { store, close, bytes };
    },
  };
}

async function rowsOf(kind: Kind, isQuick: boolean): Promise<Part> {
  const lengths = isQuick ? [100] : [100, 1_000];
  const cases: Case[] = lengths.flatMap((steps) => [
    { kind, steps, commits: 1 },
    { kind, steps, commits: 2 },
  ]);
  const all = new Map<Case, Measurement[]>(cases.map((each) => [each, []]));
  // The first round of all warms up.
  for (let round = 0; round <= (isQuick ? 2 : 6); round++) {
    for (const [each, measurements] of all) {
      const measurement = await measure(each, isQuick ? 500 : 1_000);
      if (round > 0) measurements.push(measurement);
    }
  }
  const found = [...all];
  const rows = found.map(([each, of]) => cpuRow(each, of));
  const mostUnsaved = Math.max(...found.flatMap(([, of]) => of.map((each) => each.mostUnsaved)));
  return { rows, broken: unsavedSteps(mostUnsaved) };
}

const named = ({ kind, steps, commits }: Case) =>
  `${kind.name}, N=${steps}, ${commits === 1 ? 'one commit' : 'two commits'}`;

/**
 * The least of several rounds, of each side: whatever else a machine does can only add to it. The budget is against the floor that
 * all other figures have; a floor of the same kind computes next to nothing, and stands beside it.
 */
function cpuRow(each: Case, of: readonly Measurement[]): Row {
  const least = (side: 'ours' | 'sqlite' | 'floor') => Math.min(...of.map((measurement) => measurement[side].cpuMs));
  const [ours, sqlite, floor] = [least('ours'), least('sqlite'), least('floor')];
  const own = `${amount(ours / floor, 'x')} its own ${floor.toFixed(3)} ms, without the server`;
  const note = `${ours.toFixed(3)} ms, floor ${sqlite.toFixed(3)} ms; ${own}`;
  return { what: `CPU a step, ${named(each)}`, value: ours / sqlite, unit: 'x', budget: 5, note };
}

/** The floor, and then as many runs of the case as make about `total` steps. */
function measure({ kind, steps, commits }: Case, total: number): Promise<Measurement> {
  const runs = Math.max(1, Math.round(total / steps));
  return inFolder(async (folder) => {
    const floor = await kind.floor(folder);
    const least = await measured(() => floor.run(steps * runs, commits));
    await floor.close();
    const sqliteFloor = new Floor(join(folder, 'floor.db'));
    const sqlite = await measured(async () => sqliteFloor.run(steps * runs, commits));
    sqliteFloor.close();
    const { store, close } = kind.store(folder);
    const { run, watch } = bench({ store, steps, effect: commits === 2 ? 'once' : 'read' });
    // The first use makes folders and tables, which is no cost of a step.
    await store.listInterrupted();
    const cost = await measured(async () => {
      for (let i = 0; i < runs; i++) checkEnded(await run(), steps);
    });
    await close();
    return {
      sqlite: perStep(sqlite, steps * runs),
      floor: perStep(least, steps * runs),
      ours: perStep(cost, steps * runs),
      mostUnsaved: watch.mostUnsaved,
    };
  });
}
