import { createHash } from 'node:crypto';
import type { AgUiEventOf, AgUiMessage } from './protocol.ts';

type Snapshot = AgUiEventOf<'MESSAGES_SNAPSHOT'>;

/** Copies what `extend` changes. A copy of all would hold the large contents of a conversation twice. */
function copyOf(message: AgUiMessage): AgUiMessage {
  if (message.role !== 'assistant' || !message.toolCalls) return { ...message };
  return { ...message, toolCalls: message.toolCalls.map((call) => ({ ...call, function: { ...call.function } })) };
}

/** A message of a reader. */
interface Had {
  /** Without its contents once they were sent and do not grow any more. */
  message: AgUiMessage;
  /** Of the whole message, once it does not grow any more; '' if only its id matters. */
  digest?: string | undefined;
}

/** Stands for the snapshots of a reader whose messages are not in memory: all of them must be read again. */
export const needsAll: Snapshot = { type: 'MESSAGES_SNAPSHOT', messages: [] };

/**
 * The messages of one reader, kept by the rules of the protocol: the mapper sends only what the reader lacks, and a snapshot says
 * only what puts the reader right.
 */
export class AgUiReader {
  #all: Had[] = [];
  readonly #byId = new Map<string, Had>();
  /** Those that may grow. */
  readonly #open = new Set<Had>();
  #isSent = false;

  /** @param posted the messages that the reader has, as it posted them, or from before its run; only their ids, roles and order matter */
  constructor(posted: readonly AgUiMessage[] = []) {
    for (const message of posted) if (!this.#byId.has(message.id)) this.#put({ message, digest: '' });
  }

  get messages(): readonly AgUiMessage[] {
    return this.#all.map(({ message }) => message);
  }

  find(id: string): AgUiMessage | undefined {
    return this.#byId.get(id)?.message;
  }

  /** Returns whether a message does not grow any more. Its contents may be out of memory. */
  isOver(id: string): boolean {
    return this.#byId.get(id)?.digest !== undefined;
  }

  /** Adds a message at the end. With `behind` it is added after that message, and does not grow. */
  add(message: AgUiMessage, behind?: string): void {
    const had: Had = { message };
    this.#put(had, behind);
    if (behind === undefined) this.#open.add(had);
    else this.#close(had);
  }

  #put(had: Had, behind?: string): void {
    const index = behind === undefined ? -1 : this.#all.findIndex(({ message }) => message.id === behind);
    if (index === -1) this.#all.push(had);
    else this.#all.splice(index + 1, 0, had);
    this.#byId.set(had.message.id, had);
  }

  /** Adds text to a message, or arguments to the call that it holds. */
  extend(id: string, text: string): void {
    const message = this.find(id);
    if (!message) return;
    const call = message.role === 'assistant' ? message.toolCalls?.[0] : undefined;
    if (call) call.function.arguments += text;
    else if (typeof message.content === 'string') message.content += text;
  }

  /** The messages that `isOver` names do not grow any more. */
  close(isOver: (id: string) => boolean): void {
    for (const had of this.#open) if (isOver(had.message.id)) this.#close(had);
  }

  #close(had: Had): void {
    had.digest ??= digestOf(had.message);
    this.#open.delete(had);
    if (this.#isSent) had.message = bareOf(had.message);
  }

  /** The reader has been sent its messages: only those that may grow are whole from now on. */
  noteSent(): void {
    this.#isSent = true;
    for (const had of this.#all) if (!this.#open.has(had)) this.#close(had);
  }

  /** Returns whether the reader has exactly these messages. */
  has(wanted: readonly AgUiMessage[]): boolean {
    if (this.#all.length !== wanted.length) return false;
    return wanted.every((message, index) => {
      const { message: had, digest } = this.#all[index] ?? {};
      if (!had || had.id !== message.id) return false;
      return digest === '' || (digest ?? digestOf(had)) === digestOf(message);
    });
  }

  /** Makes these the messages of the reader. @returns its snapshots; `needsAll` if the messages are not in memory */
  replace(wanted: readonly AgUiMessage[]): Snapshot[] {
    if (this.#isSent) return [needsAll];
    const snapshots = this.snapshots(wanted);
    const digests = new Map(this.#all.map(({ message, digest }) => [message.id, digest]));
    this.#all = [];
    this.#byId.clear();
    this.#open.clear();
    for (const message of wanted) this.#put({ message: copyOf(message), digest: digests.get(message.id) });
    return snapshots;
  }

  /**
   * Returns the snapshots after which the reader has exactly these messages, in this order. A reader keeps the place of each
   * message that it has, and keeps reasoning that no message of a snapshot replaces. So where a message is in the wrong place,
   * or reasoning must go, a first snapshot removes what stands behind the last message that is right.
   */
  snapshots(wanted: readonly AgUiMessage[]): Snapshot[] {
    const right = this.#prefixOf(wanted);
    const wrong = this.messages.slice(right);
    const wantedIds = new Set(wanted.map(({ id }) => id));
    const isMixed = wrong.some(({ id, role }) => role === 'reasoning' || wantedIds.has(id));
    const kept = wanted.slice(0, right);
    const lists: AgUiMessage[][] = [];
    if (isMixed) {
      // Reasoning leaves a reader only under another role.
      const reasoning = wrong.filter(({ role }) => role === 'reasoning');
      if (reasoning.length > 0) {
        lists.push([...kept, ...reasoning.map(({ id }): AgUiMessage => ({ id, role: 'assistant', content: '' }))]);
      }
      if (kept.length < wanted.length) lists.push(kept);
    }
    lists.push([...wanted]);
    return lists.map((messages): Snapshot => ({ type: 'MESSAGES_SNAPSHOT', messages: messages.map(copyOf) }));
  }

  /** How many messages stand at the beginning of both lists. */
  #prefixOf(wanted: readonly AgUiMessage[]): number {
    let count = 0;
    for (const { id } of this.messages)
      if (id === wanted[count]?.id) count += 1;
      else break;
    return count;
  }
}

function digestOf(message: AgUiMessage): string {
  return createHash('sha256').update(JSON.stringify(message)).digest('base64');
}

function bareOf({ id, role }: AgUiMessage): AgUiMessage {
  return { id, role, content: '' } as AgUiMessage;
}
