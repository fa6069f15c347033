import { withFile } from '../../files/file-system.ts';
import { CheckpointCorruptError, CheckpointTooNewError } from '../../values/errors.ts';
import type { CommandToSend } from '../commands.ts';
import { parseStored } from '../encoding/encode.ts';
import type { MessageRow } from '../encoding/encryption.ts';
import type { Piece } from '../encoding/piece-refs.ts';
import { RunTexts } from '../encoding/piece-refs.ts';
import type { StoredBody } from '../encoding/stored-body.ts';
import type { JournalRow, StoredJournal } from '../encoding/stored-journal.ts';
import type { Claim } from '../port.ts';
import { type Change, decideAsking, type Fact, type RecordFacts, type RunFacts } from '../rules/decision.ts';
import { checkClaim, damageIn, type Lease, type Ownership } from '../rules/lease.ts';
import type { StoreWrite } from '../store-driver.ts';
import { storeError } from './errors.ts';
import { factsOfMail, type Mail, newestIn } from './inboxes.ts';
import type { Commit } from './journal/commit.ts';
import type { RecordState, StoredLease } from './journal/lines.ts';
import { type Found, readHead } from './journal/read.ts';
import { renewed, toLiveLease, writeRenewal } from './lease.ts';
import { type KeptOutcome, undamaged } from './outcomes.ts';
import { endRun, findRun, type RunFiles, type RunName, removeRun, storeCommit } from './run-files.ts';
import { readWaits, type Waits, writeWaits } from './waits.ts';

/**
 * One run of a file store while its lock is held: its stored state, and the changes of a group of writes. Nothing is
 * written before `flush`, and then everything at once.
 */
export class RunSession {
  readonly runId: string;
  readonly #files: RunFiles;
  readonly #found: Found;
  readonly #name: string;
  #lease: StoredLease | undefined;
  #record: RecordState | undefined;
  /** The head of the record, if this session wrote it. */
  #head: string | undefined;
  #base: Commit['base'];
  #rows: MessageRow[] = [];
  #pieces: Piece[] = [];
  #inHead: readonly string[] | undefined;
  readonly #inMessages = new Set<string>();
  /** Kept events, and up to which place passing ones are over. */
  #events: JournalRow[] = [];
  #dropTo: number | undefined;
  #outcome: KeptOutcome | undefined;
  #mail: Mail | undefined;
  #isChanged = false;
  /** A whole record was written, be it removed again: it replaces that of a run which ended. */
  #hasBegun = false;
  #isLeaseNew = false;
  #isRenewed = false;
  /** The found state must not stay. */
  #isDiscarded = false;
  /** The run ends, or all of it is removed: the only write of its group. */
  #last: Pick<Change, 'end' | 'erase'> | undefined;
  #mustSync = false;

  private constructor(files: RunFiles, { runId, name }: RunName, found: Found) {
    this.runId = runId;
    this.#files = files;
    this.#name = name;
    this.#found = found;
    this.#lease = found.journal?.lease?.value;
    this.#record = found.damage === undefined ? found.journal?.record : undefined;
  }

  /**
   * Opens a run whose lock is held, and reads its journal.
   * @throws {CheckpointTooNewError} if a newer version wrote the journal
   */
  static async open(files: RunFiles, run: RunName): Promise<RunSession> {
    const found = await findRun(files, run.name);
    if (found.damage instanceof CheckpointTooNewError) throw found.damage;
    return new RunSession(files, run, found);
  }

  /** Adds a write to the group, and returns its answer. @throws errors of Pawl only before any change */
  async perform<T>({ decide, body }: Pick<StoreWrite<T>, 'decide' | 'body'>): Promise<T> {
    const { value, change } = await decideAsking(decide, this.#facts(), (need) => this.#read(need));
    if (change) await this.#make(change, body);
    return value;
  }

  /** Decides the end of the run, and makes nothing. @returns the record that ends; undefined: the run has ended before */
  async endedBy({ decide }: Pick<StoreWrite<unknown>, 'decide'>): Promise<RecordFacts | undefined> {
    const { change } = await decideAsking(decide, this.#facts(), (need) => this.#read(need));
    if (!change) return undefined;
    const { version = 0, revision = 0, messageCount = 0 } = this.#record ?? {};
    return { version, revision, messageCount };
  }

  /** Returns whether the run has a record, and whether there is any trace of it. */
  async known(): Promise<{ readonly hasRecord: boolean; readonly isKnown: boolean }> {
    const hasRecord = this.#record !== undefined;
    const { keptEpoch = 0 } = hasRecord ? {} : await this.#read(['keptEpoch']);
    return { hasRecord, isKnown: hasRecord || keptEpoch > 0 };
  }

  /** Removes the rest of a run without a record, unless it is held. */
  async removeLeftover(isHeld: (lease: Lease | undefined) => boolean): Promise<void> {
    const isUsed = this.#record !== undefined || this.#damage !== undefined;
    if (!isUsed && !isHeld(await this.#renewedLease())) this.#remove();
  }

  /** The known facts of the run, without further reads. */
  #facts(): RunFacts {
    const now = this.#files.leaseClock.now();
    const due = this.#lease?.due === undefined ? 0 : this.#lease.due;
    return { lease: this.#lease ?? null, record: this.#record ?? null, now, due, damage: this.#damage };
  }

  async #read(need: readonly Fact[]): Promise<RunFacts> {
    const has = (fact: Fact) => need.includes(fact);
    const kept = has('keptEpoch') ? await this.#keptOutcome() : undefined;
    return {
      ...(has('expiresAt') ? { expiresAt: (await this.#renewedLease())?.expiresAt ?? 0 } : {}),
      ...(has('keptEpoch') ? { keptEpoch: Math.max(kept?.epoch ?? 0, await this.#files.ended.epoch(this.#name)) } : {}),
      ...(has('attempts') ? { attempts: await this.#attempts() } : {}),
      ...(has('inbox') ? { inbox: factsOfMail(await this.#waiting()) } : {}),
    };
  }

  async #make(change: Change, body: StoredBody | undefined): Promise<void> {
    const { record, lease, ttlMs, keep, raiseEpoch, remove, send, forget, due, filed } = change;
    if (change.end || change.erase) this.#last = change;
    // Reads come first: they may fail, and then nothing may change.
    const mail = send || forget ? await this.#waiting() : undefined;
    if (record && body?.journal) await this.#addEvents(body.journal);
    const isReleased = lease !== undefined && ttlMs === undefined && !record && !this.#record;
    const isPlaced = due !== undefined || (filed?.fair ?? '') !== '';
    const isOwnerless = isPlaced && !this.#lease;
    const kept = isReleased || isOwnerless || raiseEpoch !== undefined ? await this.#keptOutcome() : undefined;
    if (record === 'put' && body) this.#begin(body);
    if (record && body) this.#add(body);
    if (keep) this.#outcome = { runId: this.runId, ...keep };
    if (mail && send) this.#send(mail, send);
    if (mail && forget) this.#forget(mail, forget);
    // If a kept outcome remembers the epoch, nothing else is kept of a run without a record.
    const isOver = remove || (isReleased && kept !== undefined);
    if (isOver) await this.#files.published.drop(this.#name, Number.POSITIVE_INFINITY);
    if (isOver) this.#remove();
    else if (lease || ttlMs !== undefined)
      this.#own(lease, { ttlMs, mustLast: this.#record !== undefined && !isFree(lease) });
    if (isPlaced && !isOver)
      this.#setPlace({ due, fair: filed?.fair }, { epoch: kept?.epoch ?? 0, attempts: body?.attempts ?? 0 });
    this.#raiseEpoch(kept, raiseEpoch ?? (isReleased ? lease.epoch : 0));
  }

  /** Why the stored state is invalid. Its lease is what could be read. */
  get #damage(): unknown {
    return this.#isDiscarded || this.#base ? undefined : this.#found.damage;
  }

  async #renewedLease(): Promise<Lease | undefined> {
    const isAsFound = !this.#isLeaseNew && !this.#isRenewed;
    if (this.#lease && this.#lease.owner !== null && isAsFound) {
      this.#lease = await renewed(this.#files.durable.files, this.#files.folders.expiry(this.#name), this.#lease);
    }
    return toLiveLease(this.#lease, this.#files.leaseClock);
  }

  /** The attempts in the stored record. @throws {KeyMismatchError} */
  async #attempts(): Promise<number> {
    const head = await this.#storedHead();
    if (head === undefined) return 0;
    const texts = new RunTexts(this.#files.encryption, this.runId);
    const { attempts } = parseStored(texts.withoutPieces(head, 'head'), 'head') as { attempts?: unknown };
    return Number(attempts ?? 0) || 0;
  }

  /** The stored head, which names its pieces; undefined without a record. */
  async #storedHead(): Promise<string | undefined> {
    const { journal } = this.#found;
    if (!this.#record || this.#head !== undefined || !journal) return this.#head;
    const { durable, folders } = this.#files;
    const opening = durable.files.open(folders.journal(this.#name), 'read');
    return withFile(opening, (file) => readHead(file, journal));
  }

  /** The kept outcome, until it expires. A damaged one has no effect. */
  async #keptOutcome(): Promise<KeptOutcome | undefined> {
    const kept = this.#outcome ?? (await undamaged(this.#files.outcomes.find(this.runId)));
    return kept && !this.#files.outcomes.isOver(kept) ? kept : undefined;
  }

  /** Publishes events at once: the files of earlier writes of this run are written. @throws {LeaseLostError} */
  async publish(claim: Claim, rows: readonly JournalRow[]): Promise<void> {
    checkClaim(this.#lease, claim);
    if (this.#record) await this.#publish(rows);
  }

  /** Before anything changes: if this fails, its write alone is refused. */
  async #publish(rows: readonly JournalRow[]): Promise<void> {
    try {
      if (rows.length > 0) await this.#files.published.append(this.#name, rows);
    } catch (error) {
      throw storeError(error, this.#files.folders.dir);
    }
  }

  async #addEvents({ rows, dropTo }: StoredJournal): Promise<void> {
    await this.#publish(rows.filter(({ isKept, place }) => !isKept && place > (dropTo ?? 0)));
    if (dropTo !== undefined && this.#dropTo === undefined)
      this.#events.push(...(await this.#files.published.kept(this.#name)));
    this.#events.push(...rows.filter(({ isKept }) => isKept));
    if (dropTo !== undefined) this.#dropTo = Math.max(dropTo, this.#dropTo ?? 0);
  }

  /** Checks that a claim is the newest. @returns the waits of the run: for which topic each one is */
  async waitsOf(claim: Claim): Promise<Waits> {
    checkClaim(this.#lease, claim);
    return readWaits(this.#files, this.#name);
  }

  /** Writes down for which topics the run waits. */
  async putWaits(waits: Waits): Promise<void> {
    await writeWaits(this.#files, this.#name, waits);
  }

  /** Returns whether a command of this id waits. */
  async hasCommand(id: string): Promise<boolean> {
    return (await this.#waiting()).has(id);
  }

  /** Removes an expired outcome. */
  async forgetOutcome(): Promise<void> {
    const { outcomes } = this.#files;
    const kept = await undamaged(outcomes.find(this.runId));
    if (kept && outcomes.isOver(kept)) await outcomes.remove(this.runId);
  }

  /** A whole record follows. */
  #begin({ start }: StoredBody): void {
    this.#base = start;
    this.#hasBegun = true;
    this.#rows = [];
    this.#pieces = [];
  }

  #add(body: StoredBody): void {
    const { rows, head, version, revision, updatedAt, messageCount, blobs } = body;
    for (const row of rows) this.#rows.push(row);
    this.#head = head;
    this.#inHead = blobs.inHead;
    for (const name of blobs.inMessages) this.#inMessages.add(name);
    for (const piece of blobs.pieces) this.#pieces.push(piece);
    this.#record = { version, revision, updatedAt, messageCount };
    this.#isChanged = true;
    this.#mustSync = true;
  }

  /**
   * Writes down the owner of the run.
   * @param mustLast whether it must survive a loss of power: an owner that dies with the power needs no release
   */
  #own(
    ownership: Ownership | undefined,
    { ttlMs, mustLast }: { readonly ttlMs: number | undefined; readonly mustLast: boolean },
  ): void {
    const owned = ownership ?? this.#lease;
    if (!owned) return;
    const { leaseClock } = this.#files;
    const before = toLiveLease(this.#lease, leaseClock)?.expiresAt ?? Number.NEGATIVE_INFINITY;
    const expiresAt = ttlMs === undefined ? before : leaseClock.now() + ttlMs;
    const { owner, epoch, attempts, deployment } = owned;
    const { due, sent, fair } = this.#lease ?? {};
    const place = { due, sent, fair, ...(deployment === undefined ? {} : { deployment }) };
    this.#lease = { owner, epoch, attempts, expiresAt, boot: leaseClock.boot, ...place };
    if (!ownership) {
      this.#isRenewed = true;
      return;
    }
    this.#isLeaseNew = true;
    this.#isChanged = true;
    this.#mustSync ||= mustLast;
  }

  #raiseEpoch(kept: KeptOutcome | undefined, epoch: number): void {
    if (kept && kept.epoch < epoch) this.#outcome = { ...kept, epoch };
  }

  /**
   * Writes down when the run is due, and its fair key, beside its lease.
   * @param place what is absent stays as it is
   * @param unowned the counts of a run that had no lease yet
   */
  #setPlace(place: Pick<StoredLease, 'due' | 'fair'>, unowned: Pick<Ownership, 'epoch' | 'attempts'>): void {
    const { boot } = this.#files.leaseClock;
    const free: StoredLease = { owner: null, ...unowned, expiresAt: Number.NEGATIVE_INFINITY, boot };
    const { due = this.#lease?.due, fair = this.#lease?.fair } = place;
    this.#lease = { ...(this.#lease ?? free), due, fair };
    this.#isLeaseNew = true;
    this.#isChanged = true;
    // A time that is lost with the power makes the run due too early; a wake that is lost, never.
    this.#mustSync ||= due === 0;
  }

  #send(mail: Mail, { id, runId, text }: CommandToSend): void {
    const seq = Math.max(newestIn(mail), this.#lease?.sent ?? 0) + 1;
    this.#mail = new Map([...mail, [id, { id, runId, text, seq, sentAt: this.#files.now() }]]);
  }

  /** The number of the newest command outlives it: a later one must have a higher one. */
  #forget(mail: Mail, ids: readonly string[]): void {
    const left = new Map([...mail].filter(([id]) => !ids.includes(id)));
    if (left.size === mail.size) return;
    this.#mail = left;
    if (!this.#lease || newestIn(left) === newestIn(mail)) return;
    this.#lease = { ...this.#lease, sent: newestIn(mail) };
    this.#isLeaseNew = true;
    this.#isChanged = true;
  }

  /** Removes the record, the lease, and the waiting commands. */
  #remove(): void {
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
    this.#events = [];
    this.#dropTo = undefined;
    this.#isRenewed = false;
  }

  /** The waiting commands. */
  async #waiting(): Promise<Mail> {
    return this.#mail ?? this.#files.mail.find(this.#name);
  }

  /** Writes the changes. @throws errors of the file system; then nothing counts as written */
  async flush(): Promise<void> {
    if (this.#last) return this.#flushLast(this.#last);
    if (this.#hasBegun) await this.#files.ended.remove(this.#name);
    if (this.#outcome) await this.#files.outcomes.put(this.#outcome);
    // Before the record is deleted: its unread commands must not wait for the next run of that name.
    if (this.#mail && this.#isDiscarded) await this.#files.mail.put(this.#name, this.#mail);
    if (this.#isChanged) this.#files.written.names?.add(this.#name);
    const isSuspect = this.#record !== undefined && this.#files.suspects.has(this.#name);
    if (this.#isChanged || isSuspect) await this.#store(this.#mustSync || isSuspect);
    // After the run is due: no run may rest with a command.
    if (this.#mail && !this.#isDiscarded) await this.#files.mail.put(this.#name, this.#mail);
    // If this fails, readers get them until the next step is recorded.
    if (this.#dropTo !== undefined) await this.#files.published.drop(this.#name, this.#dropTo).catch(() => {});
    if (!this.#isRenewed || !this.#lease) return;
    await writeRenewal(this.#files.durable.files, this.#files.folders.expiry(this.#name), this.#lease);
  }

  /** Each part leaves the run as it was, or has ended it: a crash between them leaves a run that ends again. */
  async #flushLast({ end }: Pick<Change, 'end' | 'erase'>): Promise<void> {
    const { mail, outcomes, ended, durable } = this.#files;
    const run = { runId: this.runId, name: this.#name };
    if (this.#outcome) await outcomes.put(this.#outcome);
    await mail.put(run.name, new Map());
    this.#files.written.names?.add(run.name);
    if (end) return endRun(this.#files, run, end);
    await outcomes.remove(run.runId);
    await removeRun(this.#files, run.name, durable.isSynced && this.#found.journal !== undefined);
    await ended.remove(run.name);
  }

  async #store(mustSync: boolean): Promise<void> {
    const isSynced = mustSync && this.#files.durable.isSynced;
    if (!this.#record && !this.#lease) return removeRun(this.#files, this.#name, isSynced);
    const head = this.#head ?? (await this.#storedHead());
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
      events: this.#events,
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

/** Released, as damaged or not. */
function isFree(lease: Ownership | undefined): boolean {
  return lease !== undefined && (lease.owner === null || damageIn(lease) !== undefined);
}
