import type { RunCheckpoint } from '../../record/checkpoint.ts';
import { CheckpointCorruptError } from '../../values/errors.ts';
import { hasTexts, isObject, jsonText } from '../../values/json.ts';
import { parseStored } from '../encoding/encode.ts';
import type { Encryption } from '../encoding/encryption.ts';
import type { ThreadRow, TurnRow } from '../rules/thread-rows.ts';
import type { Compaction, ThreadKey } from '../thread-port.ts';

/** The content of a turn's text. */
export interface TurnContent {
  /** The id of its message. */
  readonly id: string;
  readonly digest: string;
  readonly agentId: string;
  /** The first record of its run, while it waits. */
  readonly record?: RunCheckpoint;
  /** Of its first record. */
  readonly fairKey?: string | undefined;
}

/** Encrypts and decrypts the texts of threads and turns. A text of a turn belongs to its message, so that forks share it. */
export class ThreadTexts {
  readonly #encryption: Encryption;

  constructor(encryption: Encryption) {
    this.#encryption = encryption;
  }

  /** Encrypts the text of a thread. @param of.fork names a fork */
  sealThread({ callerId, id, fork }: ThreadKey & { readonly fork?: string }, thread: string): string {
    return this.#encryption.seal(jsonText({ callerId, id, fork }, 'thread'), thread, 'thread');
  }

  /** Opens the text of a thread. @throws {CHECKPOINT_CORRUPT} @throws {KEY_MISMATCH} */
  openThread({ thread, text }: Pick<ThreadRow, 'thread' | 'text'>): ThreadKey {
    const key = parseStored(this.#encryption.open(text, thread, 'thread'), 'thread');
    if (hasTexts(key, ['callerId', 'id'])) {
      const { callerId, id } = key as unknown as ThreadKey;
      return { callerId, id };
    }
    throw new CheckpointCorruptError('this thread is damaged: it has no id');
  }

  sealTurn(content: TurnContent, message: string): string {
    return this.#encryption.seal(jsonText(content, 'turn'), message, 'turn');
  }

  /** Opens the text of a turn. @throws {CHECKPOINT_CORRUPT} @throws {KEY_MISMATCH} */
  openTurn({ message, text }: Pick<TurnRow, 'message' | 'text'>): TurnContent {
    const content = parseStored(this.#encryption.open(text, message, 'turn'), 'turn');
    if (hasTexts(content, ['id', 'digest', 'agentId'])) return content as unknown as TurnContent;
    throw new CheckpointCorruptError('this turn is damaged: it has no message id');
  }

  sealCompaction(compaction: Compaction, runId: string): string {
    return this.#encryption.seal(jsonText(compaction, 'compaction'), runId, 'compaction');
  }

  /** Undefined: the turn has none that can be used; the whole history takes its place. @throws {KEY_MISMATCH} */
  openCompaction({ runId, compaction }: TurnRow): Compaction | undefined {
    if (compaction === null) return undefined;
    const found = parseStored(this.#encryption.open(compaction, runId, 'compaction'), 'compaction');
    const isFine = isObject(found) && Number.isInteger(found.upTo) && Array.isArray(found.messages);
    return isFine ? (found as unknown as Compaction) : undefined;
  }
}
