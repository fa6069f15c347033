import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { orAbsent } from '../../files/errors.ts';
import type { OpenFile } from '../../files/file-system.ts';
import { withFile } from '../../files/file-system.ts';
import { readLines } from '../../files/lines.ts';
import { safeName } from '../../files/safe-name.ts';
import { MAX_WAITING } from '../../run/command.ts';
import { CheckpointCorruptError } from '../../values/errors.ts';
import type { StoredCommand } from '../commands.ts';
import type { InboxOf } from '../port.ts';
import type { Decided } from '../rules/decision.ts';
import type { EndedHead, EndedPage, MessageReader, StoredTexts, StoreWrite } from '../store-driver.ts';
import { storeError } from './errors.ts';
import { foundBy, readJournal } from './journal/read.ts';
import { JournalScan } from './journal/scan.ts';
import { renewed, toLiveLease } from './lease.ts';
import { nameRun, type WriteQueues } from './queue.ts';
import { checkFolder, type RunFiles } from './run-files.ts';
import type { StoreFolder } from './store-folder.ts';

/**
 * Loads records and outcomes of a file store, after the earlier writes. Reading takes no lock: a journal only grows, or
 * another file replaces it.
 */
export class Reader {
  readonly #access: StoreFolder;
  readonly #queues: WriteQueues;
  readonly #files: RunFiles;

  constructor(access: StoreFolder, queues: WriteQueues, files: RunFiles) {
    this.#access = access;
    this.#queues = queues;
    this.#files = files;
  }

  /** Loads a record. @param options.hasEnded only that of a run that ended; default: only that of any other */
  async load(
    runId: string,
    messages: MessageReader,
    { signal, hasEnded = false }: { readonly signal?: AbortSignal | undefined; readonly hasEnded?: boolean } = {},
  ): Promise<StoredTexts | null> {
    const { folders, ended } = this.#files;
    const name = safeName(runId);
    return this.#reading(async () => {
      await this.#queues.idle(name);
      const path = hasEnded ? folders.endedJournal(name) : folders.journal(name);
      const isKept = !hasEnded || (await surely(() => ended.isKept(name)));
      const record = isKept ? await surely(() => this.#record(path, { runId, messages, signal })) : null;
      if (!record) await this.#access.confirm();
      // A run that ended has no lease: its record counts the attempts.
      return record && hasEnded ? { ...record, attempts: undefined } : record;
    });
  }

  async outcome(runId: string): Promise<string | null> {
    return this.#reading(async () => {
      await this.#queues.idle(safeName(runId));
      const kept = await this.#files.outcomes.find(runId);
      if (!kept) {
        await this.#access.confirm();
        return null;
      }
      if (!this.#files.outcomes.isOver(kept)) return kept.text;
      // It has expired for good, even if the wall clock goes back. If the removal fails, the sweep repeats it.
      await this.#queues.add(nameRun(runId), (session) => session.forgetOutcome()).catch(() => {});
      return null;
    });
  }

  /**
   * The answer to a claim of a run that another owner certainly has; undefined = the lock of the run is needed. Owners take
   * the lock with each write, and a look takes none.
   */
  async refusal<T>({ runId, decide }: StoreWrite<T>): Promise<Decided<T> | undefined> {
    const { durable, folders, leaseClock } = this.#files;
    const name = safeName(runId);
    await this.#queues.idle(name);
    try {
      await this.#access.check();
      const { journal } = await withFile(durable.files.open(folders.journal(name), 'read'), readJournal);
      const stored = journal?.lease?.value;
      if (!stored) return undefined;
      const lease = toLiveLease(await renewed(durable.files, folders.expiry(name), stored), leaseClock);
      const decision = decide({ lease, expiresAt: lease?.expiresAt, now: leaseClock.now() });
      return 'need' in decision || decision.change ? undefined : decision;
    } catch {
      // The write itself reports the problem.
      return undefined;
    }
  }

  async inbox(of: InboxOf): Promise<StoredCommand[]> {
    return this.#reading(async () => {
      if ('owner' in of) return this.#inboxOf(of.owner);
      const name = safeName(of.runId);
      await this.#queues.idle(name);
      return [...(await this.#files.mail.find(name)).values()];
    });
  }

  /** Usually no command waits: then this is one look at an empty folder. */
  async #inboxOf(owner: string): Promise<StoredCommand[]> {
    const { mail, durable, folders } = this.#files;
    const found: StoredCommand[] = [];
    for (const name of await mail.names()) {
      await this.#queues.idle(name);
      const opening = durable.files.open(folders.journal(name), 'read');
      const run = await orAbsent(withFile(opening, readJournal));
      if (run?.journal?.lease?.value.owner !== owner) continue;
      for (const command of (await mail.find(name)).values()) found.push(command);
      if (found.length >= MAX_WAITING) break;
    }
    return found;
  }

  async #reading<T>(work: () => Promise<T>): Promise<T> {
    try {
      await this.#access.check();
      return await work();
    } catch (error) {
      throw storeError(error, this.#files.folders.dir);
    }
  }

  async #record(path: string, loading: Loading): Promise<StoredTexts | null> {
    await checkFolder(this.#files, dirname(path));
    const opening = this.#files.durable.files.open(path, 'read');
    return (await orAbsent(withFile(opening, (file) => readRecord(file, loading)))) ?? null;
  }

  async ended(page: EndedPage): Promise<EndedHead[]> {
    return this.#reading(async () => {
      await this.#queues.idle();
      return this.#files.ended.page(page);
    });
  }
}

/** How many times apparent damage is read before it is reported, and the pause between, ms. */
const LOOKS = 3;
const PAUSE_MS = 10;

/** Reads a file of the store, and a second time if it looks damaged: a writer may just have removed an incomplete write. */
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

interface Loading {
  readonly runId: string;
  readonly messages: MessageReader;
  readonly signal: AbortSignal | undefined;
}

async function readRecord(file: OpenFile, { runId, messages, signal }: Loading): Promise<StoredTexts | null> {
  const scan = new JournalScan();
  messages.keep(0);
  for await (const batch of readLines(file)) {
    signal?.throwIfAborted();
    for (const raw of batch.lines) {
      const line = scan.take(raw);
      if (line?.kind !== 'messages') continue;
      const [count, stored = ''] = line.fields;
      const before = messages.count;
      messages.add(stored, scan.piecesSoFar);
      if (messages.count - before !== Number(count)) {
        throw new CheckpointCorruptError('this record is damaged: its messages are not what they should be');
      }
    }
    if (batch.torn) scan.tear(batch.torn);
    if (scan.damage !== undefined) throw scan.damage;
  }
  const { journal, damage } = foundBy(scan, await file.stamp());
  if (damage !== undefined) throw damage;
  const { meta = '', extras, pieces, state } = scan;
  if (!journal || !state?.record) return null;
  if (scan.runId !== runId) throw new CheckpointCorruptError(`this record is damaged: it names the run ${scan.runId}`);
  // Bytes after the last commit were never acknowledged.
  messages.keep(state.record.messageCount);
  return { meta, extras, head: state.record.head, pieces, attempts: journal.lease?.value.attempts };
}
