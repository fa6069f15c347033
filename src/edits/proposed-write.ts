/** A change to a file that a model proposes. Only `applyWrites` makes it. */
export interface WriteSnapshot {
  /** Relative to the root, with forward slashes. */
  readonly path: string;
  /** The whole new text; '' for a deletion. */
  readonly content: string;
  /** The file is deleted. */
  readonly delete?: boolean;
  /**
   * The version of the file that the model read, or that it proposed this change for: the SHA-256 of its bytes in hex; null =
   * there was no file. `applyWrites` refuses the change if the file differs. Absent = not known, and not compared.
   */
  readonly base?: string | null;
}

/** An answer with the changes that it proposes: one of a fan-out, or any object with this field. */
export interface ProposedWrites {
  readonly proposedWrites?: readonly WriteSnapshot[];
}
