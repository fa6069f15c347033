import { type Durable, writeAtomically } from '../../../files/atomic-write.ts';
import type { FileStamp, OpenFile } from '../../../files/file-system.ts';
import { withFile } from '../../../files/file-system.ts';
import { decodeLine, readLines } from '../../../files/lines.ts';
import type { MessageRow } from '../../encoding/encryption.ts';
import { namesIn, type Piece } from '../../encoding/piece-refs.ts';
import type { JournalRow } from '../../encoding/stored-journal.ts';
import { LineWriter } from './line-writer.ts';
import {
  baseLine,
  eventsLine,
  eventsPlace,
  extrasLine,
  intactLine,
  type LineKind,
  leaseLine,
  messagesLine,
  type PieceInFile,
  pieceLine,
  type RecordState,
  runLine,
  type StoredLease,
  stateLine,
} from './lines.ts';
import { type Journal, withoutHead } from './read.ts';

/** The content of a commit. */
export interface Commit {
  readonly runId: string;
  /** Begins a record that replaces the existing one. */
  readonly base: { readonly meta: string; readonly extras: string | null } | undefined;
  readonly rows: readonly MessageRow[];
  readonly lease: StoredLease | undefined;
  readonly isLeaseNew: boolean;
  readonly record: (RecordState & { readonly head: string }) | undefined;
  /** The new pieces that the head and the messages name. */
  readonly pieces: readonly Piece[];
  /** The names of the pieces that the head needs, and that the messages need. */
  readonly inHead: readonly string[];
  readonly inMessages: ReadonlySet<string>;
  /** Kept events. */
  readonly events: readonly JournalRow[];
}

/** A journal with fewer superseded bytes is never rewritten, ... */
const MIN_SUPERSEDED = 2 ** 16;

/** ... and one with more is rewritten if they are more than this share of the others. */
const MAX_SUPERSEDED_SHARE = 0.45;

/** Returns whether so much of a journal is superseded that a rewrite is worth its bytes. */
export function isBloated({ superseded, end }: Journal): boolean {
  return superseded > MIN_SUPERSEDED && superseded > MAX_SUPERSEDED_SHARE * (end - superseded);
}

/**
 * Appends a commit to the journal of a run. Another process may see it before it is synced; its success is not reported
 * yet.
 */
export async function appendCommit(file: OpenFile, journal: Journal, commit: Commit): Promise<Journal> {
  if (journal.stamp.size > journal.end) await file.truncate(journal.end);
  const writer = new LineWriter(file, journal.end);
  let superseded = journal.superseded + (journal.end - journal.stateAt);
  const pieces = addPieces(writer, commit, journal.pieces);
  for (const [name, { length }] of journal.pieces) {
    if (!pieces.has(name) && !commit.inMessages.has(name)) superseded += length;
  }
  await addRows(writer, commit);
  let { lease } = journal;
  if (commit.isLeaseNew && commit.lease) {
    superseded += lease?.length ?? 0;
    lease = addLease(writer, commit.lease);
  }
  return addState(writer, { commit, lease, superseded, stamp: journal.stamp, pieces });
}

/**
 * Rewrites the journal of a run, in place of the existing one.
 * @param old the source of the record, if the commit has no whole one
 */
export function rewriteJournal(durable: Durable, path: string, { commit, old }: Rewrite): Promise<Journal> {
  return writeAtomically(durable, path, async (file) => {
    const writer = new LineWriter(file, 0);
    const there = new Map<string, PieceInFile>();
    if (old && !commit.base) {
      await withFile(durable.files.open(path, 'read'), (from) => copyRecord(from, { old, commit, writer, there }));
    } else writer.add(runLine(commit.runId));
    if (commit.base) writer.add(baseLine(commit.base.meta));
    if (commit.base?.extras != null) writer.add(extrasLine(commit.base.extras));
    if (old && commit.base) {
      await withFile(durable.files.open(path, 'read'), (from) => copyEvents(from, { old, writer }));
    }
    const pieces = addPieces(writer, commit, there);
    await addRows(writer, commit);
    const lease = commit.lease && addLease(writer, commit.lease);
    const stamp = await file.stamp();
    return addState(writer, { commit, lease, superseded: 0, stamp, pieces });
  });
}

export interface Rewrite {
  readonly commit: Commit;
  readonly old: Journal | undefined;
}

const copied: readonly string[] = ['run', 'base', 'extras', 'piece', 'messages'] satisfies LineKind[];

interface Copying {
  readonly old: Journal;
  readonly commit: Commit;
  readonly writer: LineWriter;
  /** Collects the places of the pieces. */
  readonly there: Map<string, PieceInFile>;
}

/** Each line is verified here: damage must not be copied into an intact file. */
async function copyRecord(from: OpenFile, { old, commit, writer, there }: Copying): Promise<void> {
  const needed = await piecesNeeded(from, old, commit);
  for await (const { lines } of readLines(from)) {
    for (const raw of lines) {
      if (raw.at >= old.end) continue;
      const { kind, fields } = intactLine(raw);
      const [name = ''] = fields;
      const isEvents = kind === 'piece' && eventsPlace(name) !== undefined;
      if (!copied.includes(kind) || (kind === 'piece' && !isEvents && !needed.has(name))) continue;
      if (kind === 'piece' && !isEvents) there.set(name, { at: writer.position, length: raw.bytes.length });
      writer.copy(raw.bytes);
      if (writer.isFull) await writer.flush();
    }
  }
}

/** The events of a record outlive its replacement. Those of a damaged line are lost. */
async function copyEvents(from: OpenFile, { old, writer }: Pick<Copying, 'old' | 'writer'>): Promise<void> {
  for await (const { lines } of readLines(from)) {
    for (const { at, bytes } of lines) {
      if (at >= old.end) continue;
      const { kind, fields } = decodeLine(bytes) ?? {};
      if (kind !== 'piece' || eventsPlace(fields?.[0] ?? '') === undefined) continue;
      writer.copy(bytes);
      if (writer.isFull) await writer.flush();
    }
  }
}

/** The pieces that a message names, or that this commit needs. */
async function piecesNeeded(from: OpenFile, old: Journal, { inHead, inMessages }: Commit): Promise<Set<string>> {
  const needed = new Set([...inHead, ...inMessages]);
  const inner = new Map<string, string[]>();
  for await (const { lines } of readLines(from)) {
    for (const raw of lines) {
      const { kind, fields } = intactLine(raw);
      const [name = '', text = ''] = fields;
      if (raw.at >= old.end) continue;
      if (kind === 'piece' && eventsPlace(name) === undefined) inner.set(name, namesIn(text));
      if (kind === 'messages') for (const named of namesIn(text)) needed.add(named);
    }
  }
  // Iterating over a growing set also visits the members added meanwhile.
  for (const name of needed) for (const each of inner.get(name) ?? []) needed.add(each);
  return needed;
}

/** A state that names such a piece is reported as damaged. It cannot happen: code that names a piece adds it, or found it. */
const nowhere: PieceInFile = { at: -1, length: 0 };

const none: Journal['pieces'] = new Map();

/** Adds the missing pieces. @returns the places of those that the head names */
function addPieces(
  writer: LineWriter,
  { pieces, inHead, inMessages }: Commit,
  there: ReadonlyMap<string, PieceInFile>,
): Journal['pieces'] {
  if (inHead.length === 0 && pieces.every(({ name }) => there.has(name))) return none;
  const places = new Map(there);
  const needed = new Set([...inHead, ...inMessages]);
  for (const piece of pieces) {
    if (places.has(piece.name) || !needed.has(piece.name)) continue;
    const at = writer.position;
    places.set(piece.name, { at, length: writer.add(pieceLine(piece)) });
  }
  return new Map(inHead.map((name) => [name, places.get(name) ?? nowhere]));
}

async function addRows(writer: LineWriter, { rows, events }: Pick<Commit, 'rows' | 'events'>): Promise<void> {
  for (const line of [...rows.map(messagesLine), ...events.map(eventsLine)]) {
    writer.add(line);
    if (writer.isFull) await writer.flush();
  }
}

function addLease(writer: LineWriter, value: StoredLease): Journal['lease'] {
  const at = writer.position;
  return { value, at, length: writer.add(leaseLine(value)) };
}

interface Ending {
  readonly commit: Commit;
  readonly lease: Journal['lease'];
  readonly superseded: number;
  readonly stamp: FileStamp;
  readonly pieces: Journal['pieces'];
}

async function addState(writer: LineWriter, { commit, lease, superseded, stamp, pieces }: Ending): Promise<Journal> {
  const stateAt = writer.position;
  const record = commit.record && { ...commit.record, pieces: [...pieces.values()].map(({ at }) => at) };
  const state = { leaseAt: lease?.at ?? -1, superseded, record };
  writer.add(stateLine(state));
  const end = writer.position;
  await writer.end();
  return { ...withoutHead(state, stateAt), stamp: { ...stamp, size: end }, end, lease, pieces };
}
