import { randomBytes } from 'node:crypto';
import { type Durable, unfinished } from '../../files/atomic-write.ts';
import { isAbsent, orAbsent } from '../../files/errors.ts';
import type { FileStamp, OpenFile } from '../../files/file-system.ts';
import { withFile } from '../../files/file-system.ts';
import type { OpenFiles } from '../../files/open-files.ts';
import type { Syncs } from '../../files/syncs.ts';
import { CheckpointCorruptError, RevisionGapError, StoreUnavailableError } from '../../values/errors.ts';
import type { Encryption } from '../encoding/encryption.ts';
import type { LeaseClock } from '../lease-clock.ts';
import type { EndedToKeep } from '../rules/decision.ts';
import type { EndedFiles } from './ended.ts';
import type { Folders } from './folders.ts';
import type { InboxFiles } from './inboxes.ts';
import { appendCommit, type Commit, isBloated, rewriteJournal } from './journal/commit.ts';
import type { PublishedFiles } from './journal/published.ts';
import { type Found, type Journal, readJournal } from './journal/read.ts';
import type { OutcomeFiles } from './outcomes.ts';

/** A run, and the name of its files. A cleanup knows only the name: then the id is empty. */
export interface RunName {
  readonly runId: string;
  readonly name: string;
}

/** The state that the writes of all runs share. */
export interface RunFiles {
  readonly durable: Durable;
  readonly folders: Folders;
  readonly outcomes: OutcomeFiles;
  readonly mail: InboxFiles;
  readonly published: PublishedFiles;
  readonly ended: EndedFiles;
  readonly leaseClock: LeaseClock;
  /** Wall clock, ms. */
  readonly now: () => number;
  readonly encryption: Encryption;
  readonly syncs: Syncs;
  /** Journals that stay open between two writes, by name. */
  readonly kept: OpenFiles;
  /** What this process knows of the journals that it writes, by name. */
  readonly known: Map<string, Journal>;
  /** Journals whose last sync failed: a second sync could succeed without having written anything. They are rewritten. */
  readonly suspects: Set<string>;
  /** The runs written since a list sorted the runs; no names without such a list. */
  readonly written: { names: Set<string> | undefined };
}

/** Most journals that are remembered: a further one removes the oldest. */
const MAX_KNOWN = 20_000;

const nothing: Found = { journal: undefined, damage: undefined };

/** Reads the journal of a run in a file store. Callers hold the run's lock, also for the functions below. */
export async function findRun(run: RunFiles, name: string): Promise<Found> {
  const { durable, folders, known } = run;
  const path = folders.journal(name);
  const journal = known.get(name);
  let stamp: FileStamp;
  try {
    stamp = await durable.files.stamp(path);
  } catch (error) {
    if (isAbsent(error)) return nothing;
    throw error;
  }
  if (journal && isSameJournal(journal.stamp, stamp)) return { journal, damage: undefined };
  await checkFolder(run, folders.run(name));
  await durable.files.remove(unfinished(path));
  return withFile(durable.files.open(path, 'read'), readJournal);
}

/** Returns whether a journal has not changed: it only grows, or another file replaces it. */
export function isSameJournal(a: FileStamp, b: FileStamp): boolean {
  return a.identity === b.identity && a.size === b.size;
}

/** Checks that the folder of a run is no link. A link instead of a run's folder would lead out of the store. */
export async function checkFolder({ durable }: RunFiles, path: string): Promise<void> {
  const stamp = await orAbsent(durable.files.stamp(path));
  if (!stamp || stamp.isFolder) return;
  throw new StoreUnavailableError(`${path} is not a folder; something that is not the store made it`);
}

export interface Store {
  readonly found: Found;
  readonly commit: Commit;
  /** Nothing found may stay. */
  readonly isDiscarded: boolean;
  readonly isSynced: boolean;
}

/** Writes a commit of a run to its journal: appended to the journal if possible, else as a new journal. */
export async function storeCommit(run: RunFiles, name: string, what: Store): Promise<void> {
  const { found, commit, isDiscarded } = what;
  const old = isDiscarded ? undefined : found.journal;
  // A claim of a damaged record must not fail because the journal needs a rewrite.
  const isOfLease = commit.isLeaseNew && commit.rows.length === 0;
  const mayGrow = old && (isOfLease || !isBloated(old));
  const mayAppend = mayGrow && !found.damage && !commit.base && !run.suspects.has(name);
  try {
    const journal = mayAppend ? await append(run, name, { ...what, old }) : await rewrite(run, name, { ...what, old });
    remember(run.known, name, journal);
  } catch (error) {
    run.known.delete(name);
    if (what.isSynced) run.suspects.add(name);
    throw error;
  }
}

function remember(known: Map<string, Journal>, name: string, journal: Journal): void {
  known.delete(name);
  known.set(name, journal);
  const [oldest] = known.size > MAX_KNOWN ? known.keys() : [];
  if (oldest !== undefined) known.delete(oldest);
}

async function append(
  run: RunFiles,
  name: string,
  { old, commit, isSynced }: Store & { old: Journal },
): Promise<Journal> {
  const { durable, folders, kept, syncs } = run;
  const { identity } = old.stamp;
  const file = kept.take(name, identity) ?? (await durable.files.open(folders.journal(name), 'update'));
  try {
    const journal = await appendCommit(file, old, commit);
    if (isSynced) await syncs.sync(file, name);
    kept.keep(name, identity, file);
    // A run without an owner needs no open file for now.
    if (commit.lease?.owner == null) kept.drop(name);
    return journal;
  } catch (error) {
    await takeBack(file, old);
    await file.close().catch(() => {});
    throw error;
  }
}

/**
 * A process must not take a commit for stored that the disk may not have. If even this fails, the next writer finds an
 * incomplete write.
 */
async function takeBack(file: OpenFile, { end }: Journal): Promise<void> {
  await file.truncate(end).catch(() => {});
}

async function rewrite(run: RunFiles, name: string, what: Store & { old: Journal | undefined }): Promise<Journal> {
  const { durable, folders } = run;
  const { found, commit, old } = what;
  const path = folders.journal(name);
  run.kept.drop(name);
  // In each case: the replaced file may be the disk's only copy of a record.
  const isSynced = what.isSynced || (durable.isSynced && commit.record !== undefined);
  const isNew = !found.journal && !found.damage;
  if (isNew) {
    await checkFolder(run, folders.run(name));
    await durable.files.makeFolder(folders.run(name));
  }
  // Epochs restart: a renewal of the former run would look like one of the new lease.
  if (!old) await durable.files.remove(folders.expiry(name), true);
  // Its bytes stay, under another name, for a later inspection.
  if (found.damage) await durable.files.link(path, `${path}.damaged-${randomBytes(6).toString('hex')}`);
  const journal = await rewriteJournal({ ...durable, isSynced }, path, { commit, old }).catch((error: unknown) => {
    if (!(error instanceof CheckpointCorruptError)) throw error;
    // A process that writes deltas has the whole record, and can save it.
    throw new RevisionGapError(`run ${commit.runId}: what is stored is damaged; save the whole record`, {
      cause: error,
    });
  });
  // The failed sync may have been that of the run's own name.
  const mayBeNameless = !found.journal?.record || run.suspects.has(name);
  if (isSynced && mayBeNameless) await durable.folders.sync(folders.runs);
  run.suspects.delete(name);
  return journal;
}

/** Ends a run in a file store: its folder is moved to those that are kept. */
export async function endRun(run: RunFiles, { runId, name }: RunName, end: EndedToKeep): Promise<void> {
  forgetRun(run, name);
  await run.ended.put(name, runId, end);
}

function forgetRun({ known, suspects, kept }: RunFiles, name: string): void {
  known.delete(name);
  suspects.delete(name);
  kept.drop(name);
}

/**
 * Removes the files of a run from a file store. The journal is removed first: without it there is no run. A later list
 * removes the rest of its folder.
 */
export async function removeRun(run: RunFiles, name: string, isSynced: boolean): Promise<void> {
  const { durable, folders } = run;
  forgetRun(run, name);
  await durable.files.remove(folders.journal(name));
  const isGone = await durable.files.removeFolder(folders.run(name)).then(
    () => true,
    () => false,
  );
  if (isSynced) await durable.folders.sync(isGone ? folders.runs : folders.run(name));
}
