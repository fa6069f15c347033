/// <reference lib="esnext.disposable" preserve="true" />
import { resolve } from 'node:path';
import { diskFiles } from '../files/file-system.ts';
import { CheckpointWriter } from './checkpoint-writer.ts';
import type { ResponseSnapshot } from './snapshot.ts';

/**
 * Writes the newest turn of every model to a checkpoint file, for hosts that call their models themselves. A turn of an
 * earlier process with the same path and prompt stays until that model has a newer one.
 *
 * The file belongs to one process at a time, from the first update until `close` or the end of the process. Within a process,
 * a saver takes the file over from a saver that was never closed, but not from a `fanOut`.
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
    // The path must stay the same if the host changes its working folder.
    this.#writer = new CheckpointWriter({ path: resolve(path), prompt, adapterIds: [...adapterIds], verbose }, options);
  }

  /**
   * Resolves when the file has this turn of the model, or a newer one.
   * @throws {FAN_OUT_OWNED_ELSEWHERE} while another process, or a `fanOut` of this one, uses the file
   * @throws {FAN_OUT_CONFLICT} if it belongs to another prompt, or has answers of other models
   * @throws {STORE_FULL} {STORE_UNAVAILABLE} and the next update writes this turn too
   * @throws {TypeError} for a model that is not in `adapterIds`
   */
  async update(modelId: string, snapshot: ResponseSnapshot): Promise<void> {
    return this.#writer.put({ ...copyOf(snapshot), modelId, completed: false });
  }

  /** Writes the last turn of a model. It is completed unless it was interrupted or has an error. @throws what `update` throws */
  async markCompleted(modelId: string, snapshot: ResponseSnapshot): Promise<void> {
    const completed = !snapshot?.interrupted && snapshot?.error === undefined;
    return this.#writer.put({ ...copyOf(snapshot), modelId, completed });
  }

  /** Waits for the current write, and releases the file. */
  close(): Promise<void> {
    return this.#writer.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** A copy, because the host may change its object before the write. Strings cannot change. */
function copyOf(snapshot: ResponseSnapshot): ResponseSnapshot {
  const { proposedWrites, toolCalls } = snapshot ?? {};
  return {
    ...snapshot,
    ...(Array.isArray(proposedWrites) ? { proposedWrites: proposedWrites.map((write) => ({ ...write })) } : {}),
    ...(toolCalls ? { toolCalls: { ...toolCalls } } : {}),
  };
}
