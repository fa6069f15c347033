import { setTimeout as sleep } from 'node:timers/promises';
import { withFile } from '../../files/atomic-write.ts';
import { orAbsent } from '../../files/errors.ts';
import type { OpenFile } from '../../files/file-system.ts';
import { readLines } from '../../files/lines.ts';
import { safeName } from '../../files/names.ts';
import type { RunCheckpoint } from '../../record/checkpoint.ts';
import { MAX_WAITING, type SentCommand } from '../../run/command.ts';
import type { RunOutcome } from '../../run/result.ts';
import { CheckpointCorruptError } from '../../values/errors.ts';
import type { StoredCommand } from '../commands.ts';
import { RunTexts } from '../encoding/blob-refs.ts';
import { decodeRecord, parseStored } from '../encoding/encode.ts';
import { messagesFrom } from '../encoding/encryption.ts';
import { isHeld } from '../lease.ts';
import type { InboxOf } from '../port.ts';
import type { Access } from './access.ts';
import { storeError } from './errors.ts';
import { foundBy, readJournal } from './journal/journal.ts';
import { JournalScan } from './journal/scan.ts';
import { renewed, toLiveLease } from './lease.ts';
import { opened } from './mail.ts';
import { nameRun, type WriteQueues } from './queue.ts';
import { checkFolder, type RunFiles } from './run.ts';

/**
 * Loads records and outcomes, after the writes that were asked for before. Reading takes no lock: a journal only grows, or
 * another file takes its place.
 */
export class Reader {
  readonly #access: Access;
  readonly #queues: WriteQueues;
  readonly #files: RunFiles;

  constructor(access: Access, queues: WriteQueues, files: RunFiles) {
    this.#access = access;
    this.#queues = queues;
    this.#files = files;
  }

  async load(runId: string, signal?: AbortSignal): Promise<RunCheckpoint | null> {
    signal?.throwIfAborted();
    return this.#reading(async () => {
      await this.#queues.idle(safeName(runId));
      const record = await surely(() => this.#record(runId, signal));
      if (!record) await this.#access.confirm();
      return record;
    });
  }

  async outcome(runId: string): Promise<RunOutcome | null> {
    return this.#reading(async () => {
      await this.#queues.idle(safeName(runId));
      const kept = await this.#files.outcomes.find(runId);
      if (!kept) {
        await this.#access.confirm();
        return null;
      }
      const texts = new RunTexts(this.#files.encryption, runId);
      if (!this.#files.outcomes.isOver(kept))
        return parseStored(texts.open(kept.text, 'outcome'), 'outcome') as RunOutcome;
      // It is over for good, also when the wall clock goes back. Should removing it fail, the sweep will do it.
      await this.#queues.add(nameRun(runId), (session) => session.forgetOutcome()).catch(() => {});
      return null;
    });
  }

  /**
   * Whether somebody else surely holds a run at the moment. Looking takes no lock: those who want a run need not get in
   * the way of its owner, who takes the lock with each write.
   */
  async isHeldByOther(runId: string, owner: string): Promise<boolean> {
    const { durable, folders, leaseClock } = this.#files;
    const name = safeName(runId);
    await this.#queues.idle(name);
    try {
      await this.#access.check();
      const { journal } = await withFile(durable.files.open(folders.journal(name), 'read'), readJournal);
      const stored = journal?.lease?.value;
      if (!stored || stored.owner === null || stored.owner === owner) return false;
      const lease = toLiveLease(await renewed(durable.files, folders.expiry(name), stored), leaseClock);
      return isHeld(lease, leaseClock.now());
    } catch {
      // Whatever is wrong is for the claim itself to say.
      return false;
    }
  }

  async inbox(of: InboxOf): Promise<SentCommand[]> {
    return this.#reading(async () => {
      if ('owner' in of) return this.#inboxOf(of.owner);
      const name = safeName(of.runId);
      await this.#queues.idle(name);
      return opened((await this.#files.mail.find(name)).values(), this.#files.encryption);
    });
  }

  /** Most of the time nothing waits: then this is one look at an empty folder. */
  async #inboxOf(owner: string): Promise<SentCommand[]> {
    const { mail, durable, folders, encryption } = this.#files;
    const found: StoredCommand[] = [];
    for (const name of await mail.names()) {
      await this.#queues.idle(name);
      const opening = durable.files.open(folders.journal(name), 'read');
      const run = await orAbsent(withFile(opening, readJournal));
      if (run?.journal?.lease?.value.owner !== owner) continue;
      for (const command of (await mail.find(name)).values()) found.push(command);
      if (found.length >= MAX_WAITING) break;
    }
    return opened(found, encryption);
  }

  async #reading<T>(work: () => Promise<T>): Promise<T> {
    try {
      await this.#access.check();
      return await work();
    } catch (error) {
      throw storeError(error, this.#files.folders.dir);
    }
  }

  async #record(runId: string, signal: AbortSignal | undefined): Promise<RunCheckpoint | null> {
    const { durable, folders, encryption } = this.#files;
    const name = safeName(runId);
    await checkFolder(this.#files, name);
    const texts = new RunTexts(encryption, runId);
    const opening = durable.files.open(folders.journal(name), 'read');
    return (await orAbsent(withFile(opening, (file) => readRecord(file, texts, signal)))) ?? null;
  }
}

/** How often something that looks damaged is looked at before it is said to be, and the pause between, ms. */
const LOOKS = 3;
const PAUSE_MS = 10;

/** Reads once more what looks damaged: a writer may just have cut a torn end off under our eyes. */
export async function surely<T>(read: () => Promise<T>): Promise<T> {
  for (let looks = 1; ; looks++) {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof CheckpointCorruptError) || looks === LOOKS) throw error;
    }
    await sleep(PAUSE_MS);
  }
}

async function readRecord(
  file: OpenFile,
  texts: RunTexts,
  signal: AbortSignal | undefined,
): Promise<RunCheckpoint | null> {
  const scan = new JournalScan();
  const messages: unknown[] = [];
  for await (const batch of readLines(file)) {
    signal?.throwIfAborted();
    for (const raw of batch.lines) {
      const line = scan.take(raw);
      if (line?.kind !== 'messages') continue;
      const [count, stored = ''] = line.fields;
      addMessages(texts.whole(stored, messagesFrom(messages.length), scan.piecesSoFar), Number(count), messages);
    }
    if (batch.torn) scan.tear(batch.torn);
    if (scan.damage !== undefined) throw scan.damage;
  }
  const { journal, damage } = foundBy(scan, await file.stamp());
  if (damage !== undefined) throw damage;
  const { runId } = texts;
  const { meta = '', extras, pieces, state } = scan;
  if (!journal || !state?.record) return null;
  if (scan.runId !== runId) throw new CheckpointCorruptError(`this record is damaged: it names the run ${scan.runId}`);
  // What follows the last commit was never acknowledged.
  messages.length = state.record.messageCount;
  return decodeRecord(
    {
      runId,
      messages,
      meta: texts.open(meta, 'meta'),
      extras: extras === null ? null : texts.open(extras, 'extras'),
      head: texts.whole(state.record.head, 'head', pieces),
    },
    journal.lease?.value.attempts,
  );
}

function addMessages(text: string, count: number, messages: unknown[]): void {
  const parsed = parseStored(text, 'messages');
  if (!Array.isArray(parsed) || parsed.length !== count) {
    throw new CheckpointCorruptError('this record is damaged: its messages are not what they should be');
  }
  for (const message of parsed) messages.push(message);
}
