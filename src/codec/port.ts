/** The place of a text in the store. An encrypted text can be decrypted at its own place only. */
export interface Place {
  readonly runId: string;
  /** The part of the run: for example `head`, or `messages 12`. */
  readonly part: string;
}

/** Encodes the texts that a store writes and decodes those it reads. `encrypt` makes one; a host may write its own. */
export interface Codec {
  /** Returns what the store keeps instead of the text: printable ASCII without spaces. Equal texts may give unequal results. */
  seal(text: string, place: Place): string;
  /** Returns the original text. Throws if the input is damaged, or was sealed for another place. */
  open(sealed: string, place: Place): string;
  /**
   * Hashes a text that stores search for, such as the id of a caller: one hash for each key, that of the current key first. A
   * store keeps the first, and searches for all. Equal texts give equal hashes, in all processes. Without it, a store with this
   * codec searches by decrypting what it has.
   * @param what names the kind of the text: the same text of another kind has other hashes
   */
  lookups?(text: string, what: string): readonly string[];
  /** How texts that were stored before there was a codec are handled; default `refuse`. */
  readonly plain?: 'refuse' | 'read';
}
