import type { FileStamp, OpenFile } from '../../../files/file-system.ts';
import { decodeLine, readLastLine, readLineAt, readLines } from '../../../files/lines.ts';
import { CheckpointCorruptError, PawlError } from '../../../values/errors.ts';
import {
  intactLine,
  type LeaseInFile,
  type PieceInFile,
  type PiecesInFile,
  type RecordState,
  runIdOf,
  type State,
  toLease,
  toState,
} from './lines.ts';
import { type FoundPiece, JournalScan } from './scan.ts';

/** The state of a journal at its last commit. Small: it is kept in memory for each run that is being written. */
export interface Journal {
  readonly stamp: FileStamp;
  /** The end of the last commit; later bytes are an incomplete write. */
  readonly end: number;
  readonly lease: LeaseInFile | undefined;
  /** The line of the last state. */
  readonly stateAt: number;
  readonly superseded: number;
  readonly record: RecordState | undefined;
  /** The places of the pieces that the head names. */
  readonly pieces: ReadonlyMap<string, PieceInFile>;
}

/** `damage` says why a journal is invalid, `journal` what could be read of it all the same. */
export interface Found {
  readonly journal: Journal | undefined;
  readonly damage: unknown;
}

/** A journal without its messages; its texts as they are stored. */
export interface Summary {
  readonly journal: Journal;
  readonly runId: string;
  readonly meta: string;
  /** Undefined when there is no record yet. */
  readonly head: string | undefined;
  /** The pieces that the head names. */
  readonly pieces: FoundPieces;
}

/** Reads the ends of a run's journal, and all of it only if they are invalid. */
export async function readJournal(file: OpenFile): Promise<Found> {
  const stamp = await file.stamp();
  try {
    const found = await readEnds(file, stamp);
    if (found) return { journal: toJournal(found), damage: undefined };
  } catch (error) {
    if (error instanceof PawlError) return { journal: undefined, damage: error };
    throw error;
  }
  return foundBy(await scanJournal(file), stamp);
}

/**
 * Reads the content of a run's journal, without its messages.
 * @throws {CheckpointCorruptError}
 * @throws {CheckpointTooNewError}
 */
export async function readSummary(file: OpenFile): Promise<Summary> {
  const stamp = await file.stamp();
  const ends = await readEnds(file, stamp);
  if (!ends) {
    const scan = await scanJournal(file);
    const { journal, damage } = foundBy(scan, stamp);
    if (damage !== undefined || !journal) throw damage;
    const { runId = '', meta = '', state, pieces } = scan;
    return { journal, runId, meta, head: state?.record?.head, pieces };
  }
  const { runId, firstLength, state, pieces } = ends;
  const summary = { journal: toJournal(ends), runId, head: state.record?.head, pieces };
  if (!state.record) return { ...summary, meta: '' };
  const bytes = await readLineAt(file, firstLength, 1_024);
  const base = intactLine({ at: firstLength, bytes: bytes ?? Buffer.alloc(0) });
  return { ...summary, meta: base.fields[0] ?? '' };
}

/** Reads all lines of a run's journal. */
export async function scanJournal(file: OpenFile): Promise<JournalScan> {
  const scan = new JournalScan();
  for await (const batch of readLines(file)) {
    for (const line of batch.lines) scan.take(line);
    if (batch.torn) scan.tear(batch.torn);
  }
  return scan;
}

/** Returns the content of a journal, after all of its lines were read. */
export function foundBy(scan: JournalScan, stamp: FileStamp): Found {
  const { state, stateAt, end, pieces } = scan;
  const damage = scan.damage ?? (state ? undefined : missing('first commit'));
  // After damage no commit counts; the newest lease still names the owner of the run.
  const lease = damage === undefined ? scan.lease : scan.leaseSoFar;
  if (!state && !lease) return { journal: undefined, damage };
  const last = state ?? { leaseAt: -1, superseded: 0, record: undefined };
  return { journal: { ...withoutHead(last, stateAt), stamp, end, lease, pieces: placesOf(pieces) }, damage };
}

type FoundPieces = ReadonlyMap<string, FoundPiece>;

/** The part of pieces that is kept in memory. */
const placesOf = (pieces: FoundPieces) => new Map([...pieces].map(([name, { at, length }]) => [name, { at, length }]));

/** Reads the head in the last state of a journal; it names its pieces. @throws {CheckpointCorruptError} */
export async function readHead(file: OpenFile, { stateAt }: Journal): Promise<string | undefined> {
  const bytes = await readLineAt(file, stateAt, 2_048);
  return toState(intactLine({ at: stateAt, bytes: bytes ?? Buffer.alloc(0) })).record?.head;
}

/** Returns the part of a journal's state that is kept in memory. */
export function withoutHead({ superseded, record }: State, stateAt: number) {
  if (!record) return { stateAt, superseded, record };
  const { head: _, pieces: __, ...rest } = record;
  return { stateAt, superseded, record: rest };
}

interface Ends {
  readonly stamp: FileStamp;
  readonly runId: string;
  readonly firstLength: number;
  readonly state: State;
  readonly stateAt: number;
  readonly lease: LeaseInFile | undefined;
  readonly pieces: FoundPieces;
}

/** The first line, the last one, and the lease and the pieces that it names; undefined if one of them is incomplete. */
async function readEnds(file: OpenFile, stamp: FileStamp): Promise<Ends | undefined> {
  const first = await readLineAt(file, 0);
  const firstLine = first && decodeLine(first);
  if (firstLine?.kind !== 'run') return undefined;
  const runId = runIdOf(firstLine);
  const last = await readLastLine(file, stamp.size);
  const line = last && decodeLine(last.bytes);
  if (!first || !last || line?.kind !== 'state') return undefined;
  const state = toState(line);
  const pieces = await readPieces(file, state.record?.pieces ?? []);
  if (!pieces) return undefined;
  const ends = { stamp, runId, firstLength: first.length, state, stateAt: last.at, pieces };
  if (state.leaseAt === -1) return { ...ends, lease: undefined };
  const bytes = await readLineAt(file, state.leaseAt);
  const leaseLine = bytes && decodeLine(bytes);
  if (!bytes || leaseLine?.kind !== 'lease') return undefined;
  return { ...ends, lease: { value: toLease(leaseLine), at: state.leaseAt, length: bytes.length } };
}

async function readPieces(file: OpenFile, places: PiecesInFile): Promise<FoundPieces | undefined> {
  const pieces = new Map<string, FoundPiece>();
  for (const at of places) {
    const bytes = await readLineAt(file, at, 4_096);
    const line = bytes && decodeLine(bytes);
    if (line?.kind !== 'piece') return undefined;
    const [name = '', stored = ''] = line.fields;
    pieces.set(name, { at, length: bytes?.length ?? 0, stored });
  }
  return pieces;
}

function toJournal({ stamp, state, stateAt, lease, pieces }: Ends): Journal {
  return { ...withoutHead(state, stateAt), stamp, end: stamp.size, lease, pieces: placesOf(pieces) };
}

function missing(what: string): CheckpointCorruptError {
  return new CheckpointCorruptError(`this record is damaged: its ${what} is missing`);
}
