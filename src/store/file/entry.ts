import { withFile } from '../../files/atomic-write.ts';
import { isAbsent, orAbsent, systemCode } from '../../files/errors.ts';
import type { OpenFile } from '../../files/file-system.ts';
import { safeName } from '../../files/names.ts';
import { type InterruptedRun, interruptedRun, quarantinedRun } from '../../record/interrupted.ts';
import { CheckpointCorruptError, PawlError } from '../../values/errors.ts';
import { RunTexts } from '../encoding/blob-refs.ts';
import { decodeHead } from '../encoding/encode.ts';
import { refuseDamaged } from '../lease.ts';
import { isDeadProcess } from '../owner.ts';
import type { Cursor } from '../port.ts';
import { storeError } from './errors.ts';
import { readSummary, type Summary, scanJournal } from './journal/journal.ts';
import type { StoredLease } from './journal/lines.ts';
import { renewed, toLiveLease } from './lease.ts';
import { surely } from './reader.ts';
import type { RunFiles } from './run.ts';

/** A line of a list, and its place in the list. */
export interface Entry {
  readonly run: InterruptedRun;
  readonly place: Cursor;
}

/** A folder without a record: its run was only claimed, or something was killed when it had just begun or ended. */
export interface Leftover {
  /** Wall clock, ms. */
  readonly changedAt: number;
}

/** What lists read of single runs. One for each list: what it finds out about owners is of that moment. */
export class Entries {
  readonly #files: RunFiles;
  /** Whether an owner lives takes a look at the system; once per owner is enough. */
  readonly #dead = new Map<string, boolean>();

  constructor(files: RunFiles) {
    this.#files = files;
  }

  /** @returns undefined when the run is gone */
  async read(name: string): Promise<Entry | Leftover | undefined> {
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
      const place = { runId: (await identified) ?? name, updatedAt: 0 };
      return { run: quarantinedRun(place, reason), place };
    }
  }

  async #toEntry(name: string, summary: Summary, storedHead: string): Promise<Entry> {
    const { journal, runId, pieces } = summary;
    if (safeName(runId) !== name) throw new CheckpointCorruptError(`this record is damaged: it names the run ${runId}`);
    const place = { runId, updatedAt: journal.record?.updatedAt ?? 0 };
    try {
      refuseDamaged(journal.lease?.value);
      const owner = await this.#ownerOf(name, journal.lease?.value);
      const texts = new RunTexts(this.#files.encryption, runId);
      const stored = { runId, meta: texts.open(summary.meta, 'meta'), head: texts.whole(storedHead, 'head', pieces) };
      return { run: interruptedRun(decodeHead(stored, journal.lease?.value.attempts), owner), place };
    } catch (error) {
      if (!(error instanceof PawlError)) throw error;
      return { run: quarantinedRun(place, error), place };
    }
  }

  /** Who holds a run at the moment. */
  async #ownerOf(name: string, lease: StoredLease | undefined): Promise<string | undefined> {
    if (!lease || lease.owner === null || this.#isDead(lease.owner)) return undefined;
    const { durable, folders, leaseClock } = this.#files;
    const live = toLiveLease(await renewed(durable.files, folders.expiry(name), lease), leaseClock);
    return live && live.expiresAt > leaseClock.now() ? lease.owner : undefined;
  }

  #isDead(owner: string): boolean {
    const isDead = this.#dead.get(owner) ?? isDeadProcess(owner);
    this.#dead.set(owner, isDead);
    return isDead;
  }
}

/** One journal is a link, a pipe, a folder, or somebody else's: no reason to keep the other runs from whoever asks. */
function isOfOneFile(error: unknown): boolean {
  return ['ELOOP', 'ESPIPE', 'ENXIO', 'EISDIR', 'EACCES'].includes(systemCode(error) ?? '');
}

/** What cannot be read for a reason of its own does not say either whose it is. */
function nameless(error: unknown): undefined {
  if (isAbsent(error) || isOfOneFile(error)) return undefined;
  throw error;
}

/**
 * Whose journal this is, as far as one that cannot be read says so; else the name of its folder. Any guess will do, because
 * the name of the folder tells whether it is right.
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
      // It does not say so here.
    }
  }
  return name;
}

/** The JSON string that a text begins with, quotes included; '' when it begins with none. */
function leadingString(text: string): string {
  if (!text.startsWith('"')) return '';
  for (let at = 1; at < text.length; at++) {
    if (text[at] === '\\') at += 1;
    else if (text[at] === '"') return text.slice(0, at + 1);
  }
  return '';
}
