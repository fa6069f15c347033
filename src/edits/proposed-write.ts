import { isObject } from '../values/json.ts';
import { kindOf } from '../values/known-options.ts';

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

/**
 * Returns the changes of an answer.
 * @throws {TypeError} for anything but an object with a list of changes
 * @internal
 */
export function proposedWritesOf(what: string, response: unknown): readonly WriteSnapshot[] {
  if (!isObject(response) || Array.isArray(response))
    throw new TypeError(`${what} needs an answer, an object with proposedWrites, not ${kindOf(response)}`);
  const writes: unknown = response.proposedWrites ?? [];
  if (!Array.isArray(writes)) throw new TypeError(`${what}: proposedWrites must be a list, not ${kindOf(writes)}`);
  for (const [i, write] of writes.entries()) {
    if (!isObject(write) || typeof write.path !== 'string' || typeof write.content !== 'string')
      throw new TypeError(`${what}: proposedWrites[${i}] must be { path, content }, two texts, not ${kindOf(write)}`);
  }
  return writes as readonly WriteSnapshot[];
}
