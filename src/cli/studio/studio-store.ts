import type { Codec } from '../../index.ts';
import { type MethodName, methodOf, wrapStore } from '../../store/read-only.ts';
import { StoreUnavailableError } from '../../values/errors.ts';
import { openExistingStore, openReader, type RunStore } from '../open/open-store.ts';
import { Failure } from '../ui/failure.ts';

/** Closed when it had nothing to do for this long, ms: before it would begin to remove what has expired. */
const IDLE_MS = 20_000;

interface StudioStoreOptions {
  readonly codec: Codec | undefined;
  /** Whether actions may write. */
  readonly write: boolean;
}

/**
 * Opens the store of Studio: a connection that only reads and, for the time of an action, a second one that writes.
 * @throws {Failure} if this cannot be a store; a store that does not answer says so at each read
 */
export async function openStudioStore(
  option: string | undefined,
  { codec, write }: StudioStoreOptions,
): Promise<RunStore> {
  const reader = await openReader(option, codec);
  if (!write) return reader;
  const writer = new Writer(() => openExistingStore(option, codec).catch(asStoreError));
  return {
    ...reader,
    ...wrapStore(reader, (name, call, does) => (does === 'writes' ? (...args) => writer.call(name, args) : call)),
    close: async () => {
      await writer.close();
      await reader.close();
    },
  };
}

/** A page needs a code as well: the errors of commands are sentences alone. */
function asStoreError(error: unknown): never {
  throw error instanceof Failure ? new StoreUnavailableError(error.message, { cause: error }) : error;
}

/** Opens the store at the first write, and closes it when no write has come for a while. */
class Writer {
  readonly #open: () => Promise<RunStore>;
  #store: Promise<RunStore> | undefined;
  #calls = 0;
  #idle: NodeJS.Timeout | undefined;

  constructor(open: () => Promise<RunStore>) {
    this.#open = open;
  }

  async call(name: MethodName, args: readonly unknown[]): Promise<unknown> {
    this.#calls += 1;
    clearTimeout(this.#idle);
    try {
      return await methodOf(await this.#openOnce(), name)?.(...args);
    } finally {
      this.#calls -= 1;
      if (this.#calls === 0) this.#idle = setTimeout(() => void this.close().catch(() => {}), IDLE_MS).unref();
    }
  }

  async close(): Promise<void> {
    clearTimeout(this.#idle);
    const store = this.#store;
    this.#store = undefined;
    await (await store)?.close();
  }

  #openOnce(): Promise<RunStore> {
    const opening = this.#store ?? this.#open();
    this.#store = opening;
    opening.catch(() => {
      if (this.#store === opening) this.#store = undefined;
    });
    return opening;
  }
}
