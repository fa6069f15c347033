import { crc32 } from 'node:zlib';
import { DAMAGED_TEXT } from '../../commands.ts';
import { isIntact } from '../../encoding/checksum.ts';
import { noteRow } from '../../schedules/note-row.ts';
import type { ScheduleRow, ScheduleWrite } from '../../store-driver.ts';
import { inLockedTransaction, type PoolSession, type Row } from '../pool.ts';
import { look } from '../run-row.ts';
import type { Server } from '../server.ts';
import { decideRun, makeRuns } from '../threads/thread-tables.ts';

/** Reads all schedules from PostgreSQL. */
export async function readSchedules(session: PoolSession, { tables }: Server): Promise<ScheduleRow[]> {
  return (await session.query(`SELECT * FROM ${tables.schedules} ORDER BY id`)).map(rowOf);
}

/**
 * Stores a schedule in PostgreSQL, with the run that begins, in one transaction. It may be repeated.
 * @returns whether it is noted @throws {NoAnswer} if another transaction has changed the run: then it is tried again
 */
export async function writeSchedule(session: PoolSession, server: Server, write: ScheduleWrite): Promise<boolean> {
  const { schema, schedules } = server.tables;
  const { id, revision, text } = write.row;
  return inLockedTransaction(session, [`schedule ${schema} ${id}`], async () => {
    const [stored] = await session.query(`SELECT * FROM ${schedules} WHERE id = $1`, [id]);
    const isKnown = write.run !== undefined && (await isRunKnown(session, server, write.run.runId));
    const { isNoted, isNew, run } = noteRow(write, { stored: stored ? rowOf(stored) : null, isKnown });
    if (run) await makeRuns({ session, server }, [await decideRun({ session, server }, run)]);
    if (isNew) {
      await session.query(
        `INSERT INTO ${schedules} (id, revision, checksum, content) VALUES ($1, $2::bigint, $3::bigint, $4)
         ON CONFLICT (id) DO UPDATE SET revision = excluded.revision, checksum = excluded.checksum, content = excluded.content`,
        [id, revision, crc32(text), text],
      );
    }
    return isNoted;
  });
}

async function isRunKnown(session: PoolSession, { tables, times }: Server, runId: string): Promise<boolean> {
  const found = (await look(session, [runId], { tables, times, withInbox: false })).get(runId);
  return found?.run?.record !== undefined || found?.endedBody !== undefined || (found?.outcomeEpoch ?? 0) > 0;
}

function rowOf({ id, revision, checksum, content }: Row): ScheduleRow {
  const text = typeof content === 'string' && isIntact(content, checksum) ? content : DAMAGED_TEXT;
  return { id: String(id), revision: Number(revision), text };
}
