import { hasCode } from '../../values/error-data.ts';
import { isAmount, isObject } from '../../values/json.ts';
import { DAMAGED_TEXT } from '../commands.ts';
import { parseStored } from '../encoding/encode.ts';
import type { Encryption } from '../encoding/encryption.ts';
import { type BodyWriter, charsOf } from '../encoding/stored-body.ts';
import { saveRecord } from '../rules/writes.ts';
import type { ScheduleDriver, ScheduleRow, StoreWrite } from '../store-driver.ts';
import type { ScheduleStore, StoredSchedule, TickRun } from './port.ts';

/** What the schedules of a store are made with. */
interface Parts {
  readonly encryption: Encryption;
  readonly bodies: BodyWriter;
}

const PART = 'schedule';
const none = { count: 0 };

/** Makes the schedules of a store. */
export function scheduleGroup(schedules: ScheduleDriver, { encryption, bodies }: Parts): ScheduleStore {
  return {
    list: async () => (await schedules.list()).map((row) => opened(row, encryption)),
    note: async (schedule, run) => {
      const { id, revision, ...rest } = schedule;
      // The mark tells the write of this process from an equal one of another.
      const content = JSON.stringify({ ...rest, mark: crypto.randomUUID() });
      const row = { id, revision, text: encryption.seal(content, id, PART) };
      return schedules.write({ row, ...(run ? { run: firstSave(bodies, run) } : {}) });
    },
  };
}

/** The write of the first record of a run, as an admission makes it. */
function firstSave(bodies: BodyWriter, { record, fairKey }: TickRun): StoreWrite<void> {
  const body = bodies.ofRecord(record, fairKey);
  const decide = saveRecord(body, { keepsDue: true });
  return { kind: 'save', runId: body.runId, decide, body, size: charsOf(body), hasClaim: false };
}

/** A damaged one has nothing but its revision: the next process that defines it writes it again. @throws {KEY_MISMATCH} */
function opened({ id, revision, text }: ScheduleRow, encryption: Encryption): StoredSchedule {
  try {
    const content = text === DAMAGED_TEXT ? undefined : parseStored(encryption.open(text, id, PART), PART);
    if (isObject(content) && isAmount(content.since) && isAmount(content.definedAt)) {
      const { mark: _, ...rest } = content;
      return { ...(rest as unknown as StoredSchedule), id, revision };
    }
  } catch (error) {
    if (!hasCode(error, 'CHECKPOINT_CORRUPT')) throw error;
  }
  return { id, revision, isEnabled: false, definedAt: 0, since: 0, skipped: none, missed: none, failed: none };
}
