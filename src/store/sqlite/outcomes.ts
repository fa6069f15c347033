import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { crc32 } from 'node:zlib';
import { CheckpointCorruptError } from '../../values/errors.ts';
import { isIntact } from '../encoding/checksum.ts';
import type { Change } from '../rules/decision.ts';

/** Most expired outcomes that the write of another one removes. */
const REMOVED_WITH_A_WRITE = 100;

interface OutcomeRow {
  readonly until: number;
  readonly checksum: number;
  readonly outcome: string;
}

/** The kept outcomes in SQLite: the rows of `outcomes`. An expired one counts as removed. */
export class OutcomeTable {
  readonly #now: () => number;
  readonly #find: StatementSync;
  readonly #put: StatementSync;
  readonly #raiseEpoch: StatementSync;
  readonly #forget: StatementSync;
  readonly #countExpired: StatementSync;
  readonly #epoch: StatementSync;
  readonly #remove: StatementSync;

  constructor(db: DatabaseSync, now: () => number) {
    this.#now = now;
    this.#find = db.prepare('SELECT until, checksum, outcome FROM outcomes WHERE run_id = ?');
    this.#put = db.prepare(
      `INSERT INTO outcomes (run_id, until, epoch, checksum, outcome) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (run_id) DO UPDATE SET until = excluded.until, epoch = excluded.epoch,
       checksum = excluded.checksum, outcome = excluded.outcome`,
    );
    this.#raiseEpoch = db.prepare('UPDATE outcomes SET epoch = max(epoch, ?) WHERE run_id = ?');
    this.#forget = db.prepare('DELETE FROM outcomes WHERE no IN (SELECT no FROM outcomes WHERE until <= ? LIMIT ?)');
    this.#epoch = db.prepare(
      `SELECT max(epoch) AS epoch FROM (SELECT epoch FROM outcomes WHERE run_id = $id AND until > $now UNION ALL
       SELECT e.epoch FROM runs r JOIN ended e ON e.no = r.no WHERE r.run_id = $id AND e.keep_until > $now)`,
    );
    this.#remove = db.prepare('DELETE FROM outcomes WHERE run_id = ?');
    this.#countExpired = db.prepare('SELECT count(*) AS count FROM outcomes WHERE until <= ?');
  }

  /** Reads the kept outcome of a run. @throws {CHECKPOINT_CORRUPT} */
  read(runId: string): { readonly text: string } | 'expired' | null {
    const row = this.#find.get(runId) as unknown as OutcomeRow | undefined;
    if (!row) return null;
    if (row.until <= this.#now()) return 'expired';
    if (!isIntact(row.outcome, row.checksum)) {
      throw new CheckpointCorruptError(`the kept outcome of run ${runId} is damaged: its checksum is wrong`);
    }
    return { text: row.outcome };
  }

  /** The highest epoch in a kept outcome, and in the kept record of a run that ended. */
  epoch(runId: string): number {
    const row = this.#epoch.get({ $id: runId, $now: this.#now() }) as { epoch: number | null } | undefined;
    return row?.epoch ?? 0;
  }

  remove(runId: string): void {
    this.#remove.run(runId);
  }

  put(runId: string, { text, untilMs, epoch }: NonNullable<Change['keep']>): void {
    this.forgetExpired(REMOVED_WITH_A_WRITE);
    this.#put.run(runId, untilMs, epoch, crc32(text), text);
  }

  raiseEpoch(runId: string, epoch: number): void {
    this.#raiseEpoch.run(epoch, runId);
  }

  /** Deletes outcomes that are past their time; -1 = all of them. @returns how many */
  forgetExpired(limit: number): number {
    return Number(this.#forget.run(this.#now(), limit).changes);
  }

  countExpired(): number {
    return Number(this.#countExpired.get(this.#now())?.count);
  }
}
