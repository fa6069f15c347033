import { isIntact, type Line, type RawLine } from '../../../files/lines.ts';
import { CheckpointCorruptError } from '../../../values/errors.ts';
import {
  eventsPlace,
  intactLine,
  type LeaseInFile,
  type PieceInFile,
  runIdOf,
  type State,
  toLease,
  toNumber,
  toState,
} from './lines.ts';

/** A piece, and its text as it is stored. */
export interface FoundPiece extends PieceInFile {
  readonly stored: string;
}

type Pieces = Map<string, FoundPiece>;

/**
 * Reads the lines of a journal one by one, and records the content of each commit. It continues after damage, to save the
 * readable rest.
 */
export class JournalScan {
  /** The first error. */
  damage: unknown;
  runId: string | undefined;
  meta: string | undefined;
  extras: string | null = null;
  /** The newest lease, whether or not a commit came after it. */
  leaseSoFar: LeaseInFile | undefined;
  /** The pieces that the head of the last commit names, and later ones. */
  piecesSoFar: Pieces = new Map();
  /**
   * The state at the last commit, like all fields below: later bytes are an incomplete write, which the next commit removes.
   */
  lease: LeaseInFile | undefined;
  /** The last commit. */
  state: State | undefined;
  stateAt = 0;
  end = 0;
  /** The pieces that its head names. */
  pieces: Pieces = new Map();
  #messageCount = 0;

  /** Takes the next line of a journal. @returns the content of an intact line */
  take(raw: RawLine): Line | undefined {
    try {
      const line = intactLine(raw);
      this.#note(line, raw);
      return line;
    } catch (error) {
      this.damage ??= error;
      return undefined;
    }
  }

  /**
   * Takes the torn end of a journal.
   * @param torn the bytes after the last line end: an unfinished line, unless only its end is missing
   */
  tear(torn: RawLine): void {
    if (isIntact(torn.bytes)) this.damage ??= wrong('end', torn.at);
  }

  #note(line: Line, { at, bytes }: RawLine): void {
    if ((at === 0) !== (line.kind === 'run')) throw wrong('kind', at);
    const [first = ''] = line.fields;
    if (line.kind === 'run') this.runId = runIdOf(line);
    else if (line.kind === 'base') this.meta = first;
    else if (line.kind === 'extras') this.extras = first;
    else if (line.kind === 'piece') this.#addPiece(line, { at, bytes });
    else if (line.kind === 'messages') this.#messageCount += toNumber(first);
    else if (line.kind === 'lease') this.leaseSoFar = { value: toLease(line), at, length: bytes.length };
    else if (line.kind === 'state') this.#commit(toState(line), at, at + bytes.length);
    else throw wrong('kind', at);
  }

  #addPiece({ fields: [name = '', stored = ''] }: Line, { at, bytes }: RawLine): void {
    if (eventsPlace(name) !== undefined) return;
    if (this.piecesSoFar === this.pieces) this.piecesSoFar = new Map(this.pieces);
    this.piecesSoFar.set(name, { at, length: bytes.length, stored });
  }

  /** A commit must fit to everything before it: no checksum would show a missing line. */
  #commit(state: State, at: number, end: number): void {
    const count = state.record?.messageCount ?? 0;
    const isWhole = count === this.#messageCount && state.leaseAt === (this.leaseSoFar?.at ?? -1);
    if (!isWhole || (state.record && this.meta === undefined)) {
      const found = `${this.#messageCount} of ${count} messages`;
      throw new CheckpointCorruptError(
        `this record is damaged: a line before byte ${at} is missing (${found} are there)`,
      );
    }
    const needed = new Set(state.record?.pieces);
    const pieces = [...this.piecesSoFar].filter(([, piece]) => needed.has(piece.at));
    if (pieces.length < needed.size) throw wrong('pieces', at);
    this.pieces = new Map(pieces);
    this.piecesSoFar = this.pieces;
    this.lease = this.leaseSoFar;
    this.state = state;
    this.stateAt = at;
    this.end = end;
  }
}

function wrong(what: string, at: number): CheckpointCorruptError {
  return new CheckpointCorruptError(`this record is damaged: the ${what} of the line at byte ${at} is wrong`);
}
