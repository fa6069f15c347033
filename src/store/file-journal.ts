import type { FileStamp, OpenFile } from '../files/file-system.ts';
import { decodeLine, readLastLine, readLineAt, readLines } from '../files/lines.ts';
import { CheckpointCorruptError, PawlError } from '../run/errors.ts';
import { intactLine, type LeaseInFile, type RecordState, runIdOf, type State, toLease, toState } from './file-lines.ts';
import { JournalScan } from './file-scan.ts';

/** What a journal says at its last commit. Small: it is kept in memory for each run that is being written. */
export interface Journal {
  readonly stamp: FileStamp;
  /** Where the last commit ends; what follows was torn off. */
  readonly end: number;
  readonly lease: LeaseInFile | undefined;
  /** The line of the last state. */
  readonly stateAt: number;
  readonly superseded: number;
  readonly record: RecordState | undefined;
}

/** `damage` says why a journal must not be believed, `journal` what can be made out of it all the same. */
export interface Found {
  readonly journal: Journal | undefined;
  readonly damage: unknown;
}

/** A journal without its messages. */
export interface Summary {
  readonly journal: Journal;
  readonly runId: string;
  readonly meta: string;
  /** Undefined when there is no record yet. */
  readonly head: string | undefined;
}

/** Reads the ends of a journal, and all of it only where they are not as they should be. */
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

/** What stands in a journal, without its messages. @throws {CheckpointCorruptError} @throws {CheckpointTooNewError} */
export async function readSummary(file: OpenFile): Promise<Summary> {
  const stamp = await file.stamp();
  const ends = await readEnds(file, stamp);
  if (!ends) {
    const scan = await scanJournal(file);
    const { journal, damage } = foundBy(scan, stamp);
    if (damage !== undefined || !journal) throw damage;
    return { journal, runId: scan.runId ?? '', meta: scan.meta ?? '', head: scan.state?.record?.head };
  }
  const { runId, firstLength, state } = ends;
  const summary = { journal: toJournal(ends), runId, head: state.record?.head };
  if (!state.record) return { ...summary, meta: '' };
  const bytes = await readLineAt(file, firstLength, 1_024);
  const base = intactLine({ at: firstLength, bytes: bytes ?? Buffer.alloc(0) });
  return { ...summary, meta: base.fields[0] ?? '' };
}

export async function scanJournal(file: OpenFile): Promise<JournalScan> {
  const scan = new JournalScan();
  for await (const batch of readLines(file)) {
    for (const line of batch.lines) scan.take(line);
    if (batch.torn) scan.tear(batch.torn);
  }
  return scan;
}

/** What stands in a file, all of whose lines were taken. */
export function foundBy(scan: JournalScan, stamp: FileStamp): Found {
  const { state, lease, stateAt, end } = scan;
  const damage = scan.damage ?? (state ? undefined : missing('first commit'));
  return { journal: state && { ...withoutHead(state, stateAt), stamp, end, lease }, damage };
}

/** The head that stands in the last state of a journal. @throws {CheckpointCorruptError} */
export async function readHead(file: OpenFile, { stateAt }: Journal): Promise<string | undefined> {
  const bytes = await readLineAt(file, stateAt, 2_048);
  return toState(intactLine({ at: stateAt, bytes: bytes ?? Buffer.alloc(0) })).record?.head;
}

/** What is kept in memory of a state. */
export function withoutHead({ superseded, record }: State, stateAt: number) {
  if (!record) return { stateAt, superseded, record };
  const { head: _, ...rest } = record;
  return { stateAt, superseded, record: rest };
}

interface Ends {
  readonly stamp: FileStamp;
  readonly runId: string;
  readonly firstLength: number;
  readonly state: State;
  readonly stateAt: number;
  readonly lease: LeaseInFile | undefined;
}

/** The first line, the last one, and the lease that it names; undefined when one of them is not whole. */
async function readEnds(file: OpenFile, stamp: FileStamp): Promise<Ends | undefined> {
  const first = await readLineAt(file, 0);
  const firstLine = first && decodeLine(first);
  if (firstLine?.kind !== 'run') return undefined;
  const runId = runIdOf(firstLine);
  const last = await readLastLine(file, stamp.size);
  const line = last && decodeLine(last.bytes);
  if (!first || !last || line?.kind !== 'state') return undefined;
  const state = toState(line);
  const ends = { stamp, runId, firstLength: first.length, state, stateAt: last.at };
  if (state.leaseAt === -1) return { ...ends, lease: undefined };
  const bytes = await readLineAt(file, state.leaseAt);
  const leaseLine = bytes && decodeLine(bytes);
  if (!bytes || leaseLine?.kind !== 'lease') return undefined;
  return { ...ends, lease: { value: toLease(leaseLine), at: state.leaseAt, length: bytes.length } };
}

function toJournal({ stamp, state, stateAt, lease }: Ends): Journal {
  return { ...withoutHead(state, stateAt), stamp, end: stamp.size, lease };
}

function missing(what: string): CheckpointCorruptError {
  return new CheckpointCorruptError(`this record is damaged: its ${what} is missing`);
}
