import { decodeLine, type Line, type RawLine, unchecked } from '../../../files/lines.ts';
import { CheckpointCorruptError } from '../../../values/errors.ts';
import type { Due } from '../../due.ts';
import { parseStored } from '../../encoding/encode.ts';
import type { MessageRow } from '../../encoding/encryption.ts';
import type { Piece } from '../../encoding/piece-refs.ts';
import type { JournalRow } from '../../encoding/stored-journal.ts';
import type { Lease } from '../../rules/lease.ts';
import { layoutError } from '../errors.ts';

/*
 * A run's journal. One commit = the lines it adds, the last of which is a state. What the last state does not cover was
 * never acknowledged. Kinds of lines:
 *
 *   run       layout, run id             the first line of each journal
 *   base      meta                       the second, once there is a record
 *   extras    inputs and images          when the record has any
 *   piece     a name, a part of a record: heads and messages name it; or @ and a place, events of the run. Earlier versions
 *             read such a piece as one that nothing names
 *   messages  how many, an array of them
 *   lease     epoch, attempts, until, boot, owner; when the run is due, unless at 0; the last number of a command; the highest
 *             deployment, and the fair key: an earlier version ignores both
 *   state     where the lease stands, superseded bytes, and of the record: version, revision, updatedAt, messages, head,
 *             where the pieces stand that the head names
 *
 * A state that has no record is that of a run which was only claimed yet.
 */

/** The layout of file stores that this code reads and writes. */
export const LAYOUT = 1;

export type LineKind = 'run' | 'base' | 'extras' | 'piece' | 'messages' | 'lease' | 'state';

/** A lease, and the boot that its time belongs to. */
export interface StoredLease extends Lease {
  readonly boot: string;
  /** When the run is due; absent = 0. */
  readonly due?: Due | undefined;
  /** The highest number of a command of the run that waits no longer; absent = 0. */
  readonly sent?: number | undefined;
  /** The key under which the run is taken in turn; absent = none. */
  readonly fair?: string | undefined;
}

/** Stored for a run that is never due. */
const NEVER = 'never';

/** A lease, and the place of its line. */
export interface LeaseInFile {
  readonly value: StoredLease;
  readonly at: number;
  /** Bytes. */
  readonly length: number;
}

/** The part of a piece that is kept in memory. */
export interface PieceInFile {
  readonly at: number;
  /** Bytes of its line. */
  readonly length: number;
}

/** The record as a state line describes it. */
export interface RecordState {
  readonly version: number;
  readonly revision: number;
  readonly updatedAt: number;
  readonly messageCount: number;
}

export interface State {
  /** The place of the lease's line; -1 if there is none. */
  readonly leaseAt: number;
  /** Bytes of lines that a later one has replaced. */
  readonly superseded: number;
  readonly record: (RecordState & { readonly head: string; readonly pieces: PiecesInFile }) | undefined;
}

/** The places of the pieces that a head names, in order. */
export type PiecesInFile = readonly number[];

// Lines to be written, without their checksums.
/** Encodes the first line of a journal: the layout and the run's id. */
export const runLine = (runId: string): string => unchecked('run', [LAYOUT, JSON.stringify(runId)]);

/** Encodes the line of a journal with the run's attributes. */
export const baseLine = (meta: string): string => unchecked('base', [meta]);

/** Encodes the line of a journal with inputs and images. */
export const extrasLine = (extras: string): string => unchecked('extras', [extras]);

/** Encodes the line of a journal with a piece. */
export const pieceLine = ({ name, text }: Piece): string => unchecked('piece', [name, text]);

/** Encodes the line of a journal with kept events. */
export const eventsLine = ({ place, text }: JournalRow): string => unchecked('piece', [`@${place}`, text]);

/** The place of events, from the name of their line; undefined for a piece. */
export const eventsPlace = (name: string): number | undefined =>
  name.startsWith('@') ? toNumber(name.slice(1)) : undefined;

/** Encodes the line of a journal with a lease. */
export function leaseLine({
  epoch,
  attempts,
  expiresAt,
  boot,
  owner,
  due = 0,
  sent = 0,
  ...place
}: StoredLease): string {
  const { deployment, fair = '' } = place;
  const found = deployment !== undefined || fair !== '' ? [deployment ?? '', JSON.stringify(fair)] : [];
  const rest = due !== 0 || sent > 0 || found.length > 0 ? [due ?? NEVER, sent, ...found] : [];
  return unchecked('lease', [epoch, attempts, expiresAt, JSON.stringify(boot), JSON.stringify(owner), ...rest]);
}

/** Encodes the line of a journal with the state after a commit: the place of the lease, and the head. */
export function stateLine({ leaseAt, superseded, record }: State): string {
  if (!record) return unchecked('state', [leaseAt, superseded]);
  const { version, revision, updatedAt, messageCount, head, pieces } = record;
  const at = pieces.length > 0 ? [pieces.map((each) => each.toString(36)).join(' ')] : [];
  return unchecked('state', [leaseAt, superseded, version, revision, updatedAt, messageCount, head, ...at]);
}

/** Encodes the line of a journal with messages. */
export const messagesLine = ({ count, text }: MessageRow): string => unchecked('messages', [count, text]);

/** Decodes a line of a journal, and checks that it is intact. @throws {CheckpointCorruptError} if its checksum is wrong */
export function intactLine({ at, bytes }: RawLine): Line {
  const line = decodeLine(bytes);
  if (line) return line;
  throw new CheckpointCorruptError(`this record is damaged: the checksum of the line at byte ${at} is wrong`);
}

/** Decodes a line of a journal with a lease. */
export function toLease(line: Line): StoredLease {
  const [epoch, attempts, expiresAt, boot = '', owner = '', due = '0', sent = '0', deployment = '', fair = '""'] =
    line.fields;
  return {
    epoch: toNumber(epoch),
    attempts: toNumber(attempts),
    expiresAt: toNumber(expiresAt),
    boot: String(parseStored(boot, 'lease')),
    owner: parseStored(owner, 'lease') as string | null,
    due: due === NEVER ? null : toNumber(due),
    sent: toNumber(sent),
    ...(deployment === '' ? {} : { deployment: toNumber(deployment) }),
    fair: String(parseStored(fair, 'lease')),
  };
}

/** Decodes a line of a journal with the state after a commit. */
export function toState(line: Line): State {
  const [leaseAt, superseded, version, revision, updatedAt, messageCount, head, pieces] = line.fields;
  const state = { leaseAt: toNumber(leaseAt), superseded: toNumber(superseded) };
  if (head === undefined) return { ...state, record: undefined };
  const record = {
    version: toNumber(version),
    revision: toNumber(revision),
    updatedAt: toNumber(updatedAt),
    messageCount: toNumber(messageCount),
    head,
    pieces: pieces === undefined ? [] : pieces.split(' ').map((each) => Number.parseInt(each, 36)),
  };
  return { ...state, record };
}

/** Decodes the first line of a journal: returns the run's id. @throws {CheckpointTooNewError} */
export function runIdOf({ fields }: Line): string {
  const [layout, runId = ''] = fields;
  if (toNumber(layout) > LAYOUT) throw layoutError('this record', toNumber(layout), LAYOUT);
  return String(parseStored(runId, 'run id'));
}

/** Parses a number in a field of a line. */
export function toNumber(field: string | undefined): number {
  const number = Number(field);
  if (field === undefined || field === '' || Number.isNaN(number)) {
    throw new CheckpointCorruptError(`this record is damaged: it has ${field} where a number should be`);
  }
  return number;
}
