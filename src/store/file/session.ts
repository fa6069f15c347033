import { withFile } from '../../files/atomic-write.ts';
import { CheckpointCorruptError, CheckpointTooNewError, PawlError } from '../../values/errors.ts';
import type { Piece, Pieces } from '../encoding/blob-refs.ts';
import { RunTexts } from '../encoding/blob-refs.ts';
import type { EncodedDelta, EncodedHead, EncodedRecord } from '../encoding/encode.ts';
import { parseStored } from '../encoding/encode.ts';
import type { MessageRow, MessageRows } from '../encoding/encryption.ts';
import type { Lease } from '../lease.ts';
import type { Commit } from './journal/commit.ts';
import { type Found, readHead } from './journal/journal.ts';
import type { RecordState, StoredLease } from './journal/lines.ts';
import { renewed, toLiveLease, writeRenewal } from './lease.ts';
import type { Mail } from './mail.ts';
import type { KeptOutcome } from './outcomes.ts';
import { findRun, type RunFiles, removeRun, storeCommit } from './run.ts';

/** A run, and the name of its files. Whoever only tidies up knows the name alone: then the id is empty. */
export interface RunName {
  readonly runId: string;
  readonly name: string;
}

/**
 * A run while its lock is held: what is stored of it, and what a group of writes makes of that. Nothing is written before
 * `flush`, and then everything at once.
 */
export class RunSession {
  readonly runId: string;
  readonly #files: RunFiles;
  readonly #found: Found;
  readonly #name: string;
  #lease: StoredLease | undefined;
  #record: RecordState | undefined;
  /** The head of the record, when this session wrote it. */
  #head: string | undefined;
  #base: Commit['base'];
  #rows: MessageRow[] = [];
  #pieces: Piece[] = [];
  #inHead: readonly string[] | undefined;
  readonly #inMessages = new Set<string>();
  #outcome: KeptOutcome | undefined;
  #mail: Mail | undefined;
  #isChanged = false;
  #isLeaseNew = false;
  #isRenewed = false;
  /** What was found is not to stay. */
  #isDiscarded = false;
  #mustSync = false;

  private constructor(files: RunFiles, { runId, name }: RunName, found: Found) {
    this.runId = runId;
    this.#files = files;
    this.#name = name;
    this.#found = found;
    this.#lease = found.journal?.lease?.value;
    this.#record = found.damage === undefined ? found.journal?.record : undefined;
  }

  /** @throws {CheckpointTooNewError} when a newer version laid the journal out */
  static async open(files: RunFiles, run: RunName): Promise<RunSession> {
    const found = await findRun(files, run.name);
    if (found.damage instanceof CheckpointTooNewError) throw found.damage;
    return new RunSession(files, run, found);
  }

  /** Why what is stored must not be believed. Its lease is what could be made out. */
  get damage(): unknown {
    return this.#isDiscarded || this.#base ? undefined : this.#found.damage;
  }

  get record(): RecordState | undefined {
    return this.#record;
  }

  now(): number {
    return this.#files.leaseClock.now();
  }

  /** Who has the run, and with which epoch. Until when says `renewedLease`. */
  get lease(): Lease | undefined {
    return toLiveLease(this.#lease, this.#files.leaseClock);
  }

  async renewedLease(): Promise<Lease | undefined> {
    const isAsFound = !this.#isLeaseNew && !this.#isRenewed;
    if (this.#lease && this.#lease.owner !== null && isAsFound) {
      this.#lease = await renewed(this.#files.durable.files, this.#files.folders.expiry(this.#name), this.#lease);
    }
    return this.lease;
  }

  /** How often the record that is stored now says that it was started. @throws {KeyMismatchError} */
  async attempts(): Promise<number> {
    const head = await this.head();
    if (head === undefined) return 0;
    const texts = new RunTexts(this.#files.encryption, this.runId);
    const { attempts } = parseStored(texts.withoutPieces(head, 'head'), 'head') as { attempts?: unknown };
    return Number(attempts ?? 0) || 0;
  }

  /** The head that is stored now, which names its pieces; undefined when there is no record. */
  async head(): Promise<string | undefined> {
    const { journal } = this.#found;
    if (!this.#record || this.#head !== undefined || !journal) return this.#head;
    const { durable, folders } = this.#files;
    const opening = durable.files.open(folders.journal(this.#name), 'read');
    return withFile(opening, (file) => readHead(file, journal));
  }

  /** What is kept of the run's end, while its time is not over. A damaged one tells nothing. */
  async keptOutcome(): Promise<KeptOutcome | undefined> {
    const kept = this.#outcome ?? (await undamaged(this.#files.outcomes.find(this.runId)));
    return kept && !this.#files.outcomes.isOver(kept) ? kept : undefined;
  }

  /** Removes a kept outcome whose time is over. */
  async forgetOutcome(): Promise<void> {
    const { outcomes } = this.#files;
    const kept = await undamaged(outcomes.find(this.runId));
    if (kept && outcomes.isOver(kept)) await outcomes.remove(this.runId);
  }

  putRecord({ meta, extras, rows, ...head }: EncodedRecord & Pieces & MessageRows): void {
    this.#base = { meta, extras };
    this.#rows = [...rows];
    this.#pieces = [];
    this.#putHead(head);
  }

  addDelta({ rows, ...head }: EncodedDelta & Pieces & MessageRows): void {
    for (const row of rows) this.#rows.push(row);
    this.#putHead(head);
  }

  /** @param mustLast whether it must survive the loss of power: who dies with the power needs no release */
  putLease(lease: Lease, mustLast: boolean): void {
    this.#lease = { ...lease, boot: this.#files.leaseClock.boot };
    this.#isLeaseNew = true;
    this.#isChanged = true;
    this.#mustSync ||= mustLast;
  }

  renewLease(lease: Lease): void {
    this.#lease = { ...lease, boot: this.#files.leaseClock.boot };
    this.#isRenewed = true;
  }

  /** Record, lease, and the commands that wait. */
  remove(): void {
    this.#isDiscarded = true;
    this.#isChanged = true;
    this.#mustSync = true;
    this.#base = undefined;
    this.#record = undefined;
    this.#head = undefined;
    this.#lease = undefined;
    this.#rows = [];
    this.#pieces = [];
    this.#inHead = undefined;
    this.#mail = new Map();
    this.#isRenewed = false;
  }

  /** The commands that wait. */
  async mail(): Promise<Mail> {
    return this.#mail ?? this.#files.mail.find(this.#name);
  }

  putMail(mail: Mail): void {
    this.#mail = mail;
  }

  putOutcome(kept: KeptOutcome): void {
    this.#outcome = kept;
  }

  /** Writes what has changed. @throws errors of the file system; then nothing counts as written */
  async flush(): Promise<void> {
    if (this.#outcome) await this.#files.outcomes.put(this.#outcome);
    // Before the record goes: commands that nobody is left to hear must not wait for the next run of that name.
    if (this.#mail) await this.#files.mail.put(this.#name, this.#mail);
    if (this.#isChanged) this.#files.written.names?.add(this.#name);
    const isSuspect = this.#record !== undefined && this.#files.suspects.has(this.#name);
    if (this.#isChanged || isSuspect) await this.#store(this.#mustSync || isSuspect);
    if (!this.#isRenewed || !this.#lease) return;
    await writeRenewal(this.#files.durable.files, this.#files.folders.expiry(this.#name), this.#lease);
  }

  #putHead(encoded: EncodedHead & Pieces & Pick<MessageRows, 'messageCount'>): void {
    const { head, version, revision, updatedAt, messageCount, pieces, inHead, inMessages } = encoded;
    this.#head = head;
    this.#inHead = inHead;
    for (const name of inMessages) this.#inMessages.add(name);
    for (const piece of pieces) this.#pieces.push(piece);
    this.#record = { version, revision, updatedAt, messageCount };
    this.#isChanged = true;
    this.#mustSync = true;
  }

  async #store(mustSync: boolean): Promise<void> {
    const isSynced = mustSync && this.#files.durable.isSynced;
    if (!this.#record && !this.#lease) return removeRun(this.#files, this.#name, isSynced);
    const head = this.#head ?? (await this.head());
    if (this.#record && head === undefined)
      throw new CheckpointCorruptError('this record is damaged: its head is missing');
    const record = this.#record && head !== undefined ? { ...this.#record, head } : undefined;
    const commit: Commit = {
      runId: this.runId,
      base: this.#base,
      rows: this.#rows,
      lease: this.#lease,
      isLeaseNew: this.#isLeaseNew,
      record,
      pieces: this.#pieces,
      inMessages: this.#inMessages,
      inHead: record ? (this.#inHead ?? [...(this.#found.journal?.pieces.keys() ?? [])]) : [],
    };
    await storeCommit(this.#files, this.#name, {
      found: this.#found,
      commit,
      isDiscarded: this.#isDiscarded,
      isSynced,
    });
  }
}

async function undamaged<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof PawlError) return undefined;
    throw error;
  }
}
