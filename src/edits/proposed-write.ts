/** A change to a file that a model proposes. Nothing of it is done before `applyWrites`. */
export interface WriteSnapshot {
  /** Relative to the root, with forward slashes. */
  readonly path: string;
  /** The whole new text; '' for a deletion. */
  readonly content: string;
  /** The file is to go. */
  readonly delete?: boolean;
  /**
   * What the file was when the model read it, or proposed this without reading: the SHA-256 of its bytes in hex; null = there
   * was none. `applyWrites` refuses when it is something else by then. Absent = nobody knows, and nothing is compared.
   */
  readonly base?: string | null;
}

/** An answer with the changes that it proposes: one of a fan-out, or any object with this field. */
export interface ProposedWrites {
  readonly proposedWrites?: readonly WriteSnapshot[];
}
