import { type Command, isInboxFull, MAX_WAITING, placesFor, type SentCommand } from '../run/command.ts';
import { decodeCommand, encodeCommand, refuseFull, refuseLarge, refuseMissing } from './commands.ts';

/** The commands of a memory store, by run: texts, as the records. */
export class MemoryInboxes {
  readonly #texts = new Map<string, Map<string, string>>();

  send(runId: string, command: Command, hasRecord: boolean): void {
    const text = encodeCommand(command);
    if (!hasRecord) throw refuseMissing(runId);
    const waiting = this.#texts.get(runId) ?? new Map<string, string>();
    if (waiting.has(command.id)) return;
    if (waiting.size >= placesFor(command.kind)) throw refuseFull(runId);
    const chars = charsOf(waiting.values());
    if (isInboxFull(chars, text, command.kind)) throw refuseLarge(runId, chars);
    this.#texts.set(runId, waiting.set(command.id, text));
  }

  runIds(): Iterable<string> {
    return this.#texts.keys();
  }

  of(runIds: readonly string[]): SentCommand[] {
    const sent = runIds.flatMap((runId) =>
      [...(this.#texts.get(runId)?.values() ?? [])].map((text) => ({ runId, command: decodeCommand(text) })),
    );
    return sent.slice(0, MAX_WAITING);
  }

  acknowledge(runId: string, ids: readonly string[]): void {
    const waiting = this.#texts.get(runId);
    for (const id of ids) waiting?.delete(id);
    if (waiting?.size === 0) this.#texts.delete(runId);
  }

  remove(runId: string): void {
    this.#texts.delete(runId);
  }
}

function charsOf(texts: Iterable<string>): number {
  let chars = 0;
  for (const { length } of texts) chars += length;
  return chars;
}
