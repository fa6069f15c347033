import type { AgUiEventOf, AgUiMessage } from './protocol.ts';

type Snapshot = AgUiEventOf<'MESSAGES_SNAPSHOT'>;

/** Copies what `extend` changes. A copy of all would hold the large contents of a conversation twice. */
function copyOf(message: AgUiMessage): AgUiMessage {
  if (message.role !== 'assistant' || !message.toolCalls) return { ...message };
  return { ...message, toolCalls: message.toolCalls.map((call) => ({ ...call, function: { ...call.function } })) };
}

/**
 * The messages of one reader, kept by the rules of the protocol: the mapper sends only what the reader lacks, and a snapshot says
 * only what puts the reader right.
 */
export class Reader {
  #messages: AgUiMessage[] = [];
  readonly #byId = new Map<string, AgUiMessage>();

  /** @param posted the messages that the reader has, as it posted them; only their ids, roles and order matter */
  constructor(posted: readonly AgUiMessage[] = []) {
    for (const message of posted) if (!this.#byId.has(message.id)) this.add(message);
  }

  get messages(): readonly AgUiMessage[] {
    return this.#messages;
  }

  find(id: string): AgUiMessage | undefined {
    return this.#byId.get(id);
  }

  /** Adds a message at the end, or, with `behind`, after that message. */
  add(message: AgUiMessage, behind?: string): void {
    const index = behind === undefined ? -1 : this.#messages.findIndex(({ id }) => id === behind);
    if (index === -1) this.#messages.push(message);
    else this.#messages.splice(index + 1, 0, message);
    this.#byId.set(message.id, message);
  }

  /** Adds text to a message, or arguments to the call that it holds. */
  extend(id: string, text: string): void {
    const message = this.#byId.get(id);
    if (!message) return;
    const call = message.role === 'assistant' ? message.toolCalls?.[0] : undefined;
    if (call) call.function.arguments += text;
    else if (typeof message.content === 'string') message.content += text;
  }

  /** Returns whether the reader has exactly these messages. */
  has(wanted: readonly AgUiMessage[]): boolean {
    return JSON.stringify(this.#messages) === JSON.stringify(wanted);
  }

  /**
   * Returns the snapshots after which the reader has exactly these messages, in this order. A reader keeps the place of each
   * message that it has, and keeps reasoning that no message of a snapshot replaces. So where a message is in the wrong place,
   * or reasoning must go, a first snapshot removes what stands behind the last message that is right.
   */
  replace(wanted: readonly AgUiMessage[]): Snapshot[] {
    const right = this.#prefixOf(wanted);
    const wrong = this.#messages.slice(right);
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
    this.#set(wanted);
    return lists.map((messages): Snapshot => ({ type: 'MESSAGES_SNAPSHOT', messages: messages.map(copyOf) }));
  }

  /** How many messages stand at the beginning of both lists. */
  #prefixOf(wanted: readonly AgUiMessage[]): number {
    let count = 0;
    for (const { id } of this.#messages)
      if (id === wanted[count]?.id) count += 1;
      else break;
    return count;
  }

  #set(messages: readonly AgUiMessage[]): void {
    this.#messages = messages.map(copyOf);
    this.#byId.clear();
    for (const message of this.#messages) this.#byId.set(message.id, message);
  }
}
