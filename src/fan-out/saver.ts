/// <reference lib="esnext.disposable" preserve="true" />
import { resolve } from 'node:path';
import { diskFiles } from '../files/file-system.ts';
import { CheckpointWriter } from './checkpoint-writer.ts';
import type { ResponseSnapshot } from './snapshot.ts';

/**
 * Keeps a checkpoint file at the newest turn of every model, for hosts that ask their models themselves. What an earlier
 * process left under the same path and prompt stays in the file until there is something newer of that model.
 *
 * The file belongs to one process at a time, from the first update until `close` or the end of the process. In a process a
 * saver takes the file over from one that was never closed, but not from a `fanOut`.
 *
 * @example
 * const saver = new IncrementalSaver('ask.json', prompt, ['fast', 'deep'], false)
 * await saver.update('fast', snapshotFromPartial('fast', { text: 'So far …', steps: 1 }))
 * await saver.markCompleted('fast', fromModelResponse(response))
 */
export class IncrementalSaver {
  readonly #writer: CheckpointWriter;

  constructor(path: string, prompt: string, adapterIds: readonly string[], verbose: boolean) {
    const options = { files: diskFiles, now: () => Date.now(), supersede: true };
    // A host that changes its working folder later has still one file.
    this.#writer = new CheckpointWriter({ path: resolve(path), prompt, adapterIds: [...adapterIds], verbose }, options);
  }

  /**
   * Resolves when the file has this turn of the model, or a newer one.
   * @throws {FanOutOwnedElsewhereError} while another process, or a `fanOut` of this one, works on the file
   * @throws {FanOutConflictError} when it is of another prompt, or has answers of models that are not asked
   * @throws {StoreFullError} {StoreUnavailableError} and the next update brings this turn too
   * @throws {TypeError} for a model that is none of `adapterIds`
   */
  async update(modelId: string, snapshot: ResponseSnapshot): Promise<void> {
    return this.#writer.put({ ...copyOf(snapshot), modelId, completed: false });
  }

  /** The last turn of a model. It is completed when it was neither interrupted nor has an error. @throws what `update` throws */
  async markCompleted(modelId: string, snapshot: ResponseSnapshot): Promise<void> {
    const completed = !snapshot?.interrupted && snapshot?.error === undefined;
    return this.#writer.put({ ...copyOf(snapshot), modelId, completed });
  }

  /** Waits for what is being written, and lets the file go. */
  close(): Promise<void> {
    return this.#writer.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** It is written later, and by then the host may have changed its own. Texts stay what they are. */
function copyOf(snapshot: ResponseSnapshot): ResponseSnapshot {
  const { proposedWrites, toolCalls } = snapshot ?? {};
  return {
    ...snapshot,
    ...(Array.isArray(proposedWrites) ? { proposedWrites: proposedWrites.map((write) => ({ ...write })) } : {}),
    ...(toolCalls ? { toolCalls: { ...toolCalls } } : {}),
  };
}
