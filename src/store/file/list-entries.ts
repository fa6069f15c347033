import { isAbsent, orAbsent, systemCode } from '../../files/errors.ts';
import type { OpenFile } from '../../files/file-system.ts';
import { withFile } from '../../files/file-system.ts';
import { safeName } from '../../files/safe-name.ts';
import { CheckpointCorruptError, PawlError } from '../../values/errors.ts';
import { isDeadProcess } from '../owner.ts';
import { damageIn, type Lease } from '../rules/lease.ts';
import type { ListedHead } from '../store-driver.ts';
import { storeError } from './errors.ts';
import type { StoredLease } from './journal/lines.ts';
import { readSummary, type Summary, scanJournal } from './journal/read.ts';
import { renewed, toLiveLease } from './lease.ts';
import { surely } from './reader.ts';
import type { RunFiles } from './run-files.ts';

/** A folder without a record: its run was only claimed, or a process died at its beginning or end. */
export interface Leftover {
  /** Wall clock, ms. */
  readonly changedAt: number;
}

/**
 * Reads the list entry of each run from the end of its journal. One for each list: its facts about owners are of that
 * moment.
 */
export class ListEntries {
  readonly #files: RunFiles;
  /** A system call finds out whether an owner is alive; once per owner is enough. */
  readonly #dead = new Map<string, boolean>();

  constructor(files: RunFiles) {
    this.#files = files;
  }

  /** Reads the head of a run's journal for a list. @returns undefined when the run is gone */
  async read(name: string): Promise<ListedHead | Leftover | undefined> {
    const { files } = this.#files.durable;
    const path = this.#files.folders.journal(name);
    try {
      const found = await surely(() => orAbsent(withFile(files.open(path, 'read'), readSummary)));
      if (!found) return await orAbsent(files.stamp(this.#files.folders.run(name)));
      return found.head === undefined ? found.journal.stamp : await this.#toEntry(name, found, found.head);
    } catch (error) {
      const reason = isOfOneFile(error) ? storeError(error, this.#files.folders.dir) : error;
      if (!(reason instanceof PawlError)) throw error;
      const identified = withFile(files.open(path, 'read'), (file) => identify(file, name)).catch(nameless);
      return { runId: (await identified) ?? name, updatedAt: 0, meta: '', head: '', now: 0, error: reason };
    }
  }

  async #toEntry(name: string, { journal, runId, meta, pieces }: Summary, head: string): Promise<ListedHead> {
    if (safeName(runId) !== name) throw new CheckpointCorruptError(`this record is damaged: it names the run ${runId}`);
    const updatedAt = journal.record?.updatedAt ?? 0;
    const lease = await this.#liveLease(name, journal.lease?.value);
    const stored = journal.lease?.value.due;
    const due = stored === undefined ? 0 : stored;
    const place = { due, fair: journal.lease?.value.fair };
    return { runId, updatedAt, meta, head, pieces, lease, ...place, now: this.#files.leaseClock.now() };
  }

  /** The expiry of the lease is read only where it matters. */
  async #liveLease(name: string, lease: StoredLease | undefined): Promise<Lease | undefined> {
    const { durable, folders, leaseClock } = this.#files;
    const isFree = !lease || lease.owner === null || damageIn(lease) !== undefined || this.#isDead(lease.owner);
    return toLiveLease(isFree ? lease : await renewed(durable.files, folders.expiry(name), lease), leaseClock);
  }

  #isDead(owner: string): boolean {
    const isDead = this.#dead.get(owner) ?? isDeadProcess(owner);
    this.#dead.set(owner, isDead);
    return isDead;
  }
}

/** One journal is a link, a pipe, a folder, or another application's file: the list still shows all other runs. */
function isOfOneFile(error: unknown): boolean {
  return ['ELOOP', 'ESPIPE', 'ENXIO', 'EISDIR', 'EACCES'].includes(systemCode(error) ?? '');
}

/** A text that cannot be read for a reason of its own does not name its run either. */
function nameless(error: unknown): undefined {
  if (isAbsent(error) || isOfOneFile(error)) return undefined;
  throw error;
}

/**
 * The run of a journal, if an unreadable one still names it; else the name of its folder. A guess is enough, because the name
 * of the folder verifies it.
 */
async function identify(file: OpenFile, name: string): Promise<string> {
  const [, , , id = ''] = (await file.read(4_096, 0)).toString().split('\t');
  const { meta } = await scanJournal(file);
  const guesses = [() => JSON.parse(leadingString(id)), () => JSON.parse(meta ?? '').runId];
  for (const guess of guesses) {
    try {
      const runId: unknown = guess();
      if (typeof runId === 'string' && safeName(runId) === name) return runId;
    } catch {
      // Its id is not there.
    }
  }
  return name;
}

/** The JSON string at the beginning of a text, quotes included; '' if there is none. */
function leadingString(text: string): string {
  if (!text.startsWith('"')) return '';
  for (let at = 1; at < text.length; at++) {
    if (text[at] === '\\') at += 1;
    else if (text[at] === '"') return text.slice(0, at + 1);
  }
  return '';
}
