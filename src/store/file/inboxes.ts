import { type Durable, writeAtomically } from '../../files/atomic-write.ts';
import { orAbsent } from '../../files/errors.ts';
import { decodeLine, encodeLine, splitLines } from '../../files/lines.ts';
import { isSafeName } from '../../files/safe-name.ts';
import type { StoredCommand } from '../commands.ts';
import { parseStored } from '../encoding/encode.ts';
import type { InboxFacts } from '../rules/decision.ts';
import type { Folders } from './folders.ts';

/** The commands that wait for a run, by their ids: the oldest first. */
export type Mail = ReadonlyMap<string, StoredCommand>;

/**
 * The inboxes of runs in a file store: a file of commands for each run, only while commands wait for it. A process that
 * changes one holds the lock of its run. Readers take no lock: a file is replaced as a whole.
 */
export class InboxFiles {
  readonly #durable: Durable;
  readonly #folders: Folders;

  constructor(durable: Durable, folders: Folders) {
    this.#durable = durable;
    this.#folders = folders;
  }

  /** A damaged command counts as never sent: it must not block the others. */
  async find(name: string): Promise<Mail> {
    const bytes = await orAbsent(this.#durable.files.readWhole(this.#folders.mailOf(name)));
    const mail = new Map<string, StoredCommand>();
    for (const raw of bytes ? splitLines(bytes) : []) {
      const [id = '', runId = '', text = '', seq, sentAt] = decodeLine(raw.bytes)?.fields ?? [];
      if (id === '') continue;
      // Earlier versions stored no number, and no time.
      const number = seq === undefined ? mail.size + 1 : Number(seq);
      const stored = { text, seq: number, sentAt: sentAt === undefined ? undefined : Number(sentAt) };
      const command = { id: String(parseStored(id, 'id')), runId: String(parseStored(runId, 'run id')), ...stored };
      mail.set(command.id, command);
    }
    return mail;
  }

  async put(name: string, mail: Mail): Promise<void> {
    const path = this.#folders.mailOf(name);
    if (mail.size === 0) return this.#durable.files.remove(path);
    await writeAtomically(this.#durable, path, async (file) => {
      let at = 0;
      for (const { id, runId, text, seq, sentAt } of mail.values()) {
        const numbers = seq === undefined ? [] : sentAt === undefined ? [seq] : [seq, sentAt];
        const line = encodeLine('command', [JSON.stringify(id), JSON.stringify(runId), text, ...numbers]);
        await file.write(line, at);
        at += line.length;
      }
    });
  }

  /** The names of the runs that commands wait for. */
  async names(): Promise<string[]> {
    return ((await orAbsent(this.#durable.files.names(this.#folders.mail))) ?? []).filter(isSafeName);
  }
}

/** Returns the highest number of the waiting commands; 0 if there are none. */
export function newestIn(mail: Mail): number {
  let newest = 0;
  for (const { seq = 0 } of mail.values()) newest = Math.max(newest, seq);
  return newest;
}

/** Returns the facts of an inbox. */
export function factsOfMail(mail: Mail): InboxFacts {
  let chars = 0;
  for (const { text } of mail.values()) chars += text.length;
  return { size: mail.size, chars, newest: newestIn(mail), has: (id) => mail.has(id) };
}
