import { crc32 } from 'node:zlib';
import type { EncodedHead } from '../encoding/encode.ts';
import type { Piece } from '../encoding/piece-refs.ts';
import type { RowChange } from './row-change.ts';

/** A row of `messages` as a change adds it. */
interface MessageRow {
  readonly first: number;
  readonly checksum: number;
  readonly messages: string;
  readonly pieces: string | null;
}

type Columns = Pick<EncodedHead, 'version' | 'revision' | 'updatedAt'>;

/** The beginning of a head's JSON: the fields that have columns of their own. */
const columnsOf = ({ version, revision, updatedAt }: Columns) =>
  `{"version":${version},"revision":${revision},"updatedAt":${updatedAt}`;

/**
 * Returns a head as PostgreSQL stores it: without the fields that are columns, because the server's log has the changed
 * part of a row with each save. An encrypted head keeps them: the codec vouches for what it contains.
 */
export function withoutColumns<T extends Columns & { readonly head: string }>(encoded: T): T {
  const columns = columnsOf(encoded);
  return encoded.head.startsWith(`${columns},`) ? { ...encoded, head: encoded.head.slice(columns.length) } : encoded;
}

/**
 * Returns a head stored in PostgreSQL as JSON, with the fields that are columns. One that earlier versions stored, or that
 * was encrypted, is whole.
 */
export function withColumns(head: string, columns: Columns): string {
  return head.startsWith(',') ? columnsOf(columns) + head : head;
}

/** Returns tokens as one text for a column, each once. */
export const tokensOfRow = (tokens: readonly number[]) => [...new Set(tokens)].join(' ');

/** Returns the pieces of a change that the server may not have yet. A piece that is already stored is stored twice. */
export function newPieces({ head, start, record }: RowChange): readonly Piece[] {
  return head?.blobs.pieces.filter(({ name }) => start || !record?.pieces.has(name)) ?? [];
}

/** Returns the rows of messages that a change writes to PostgreSQL. @param token names the rows that this change writes */
export function messageRows({ rows = [], head, record }: RowChange, token: number): MessageRow[] {
  const tokens = head?.blobs.inMessages.map((name) => record?.pieces.get(name) ?? token) ?? [];
  const pieces = tokens.length > 0 ? tokensOfRow(tokens) : null;
  return rows.map(({ first, text }) => ({ first, checksum: crc32(text), messages: text, pieces }));
}
