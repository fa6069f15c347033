/** Which text it is. A sealed text must open at its own place only. */
export interface Place {
  readonly runId: string;
  /** What of the run: for example `head`, or `messages 12`. */
  readonly part: string;
}

/** What a store passes its texts through, on their way in and out. `encrypt` makes one; a host may bring its own. */
export interface Codec {
  /** What is stored in the place of a text: printable ASCII without spaces. Equal texts may give unequal results. */
  seal(text: string, place: Place): string;
  /** The text that was sealed. Throws when it is not what was sealed, or was sealed for another place. */
  open(sealed: string, place: Place): string;
  /** What becomes of texts that were stored before there was a codec; default `refuse`. */
  readonly plain?: 'refuse' | 'read';
}
