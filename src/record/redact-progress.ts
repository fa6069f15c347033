import { type FieldSpec, rowsOf } from '../run/field-rows.ts';
import type { Progress } from '../run/progress.ts';
import { type RunOutcome, type RunOutput, redactOutcome } from '../run/result.ts';
import { Transcript } from '../run/transcript.ts';
import type { ErrorData } from '../values/error-data.ts';
import { Hidden } from '../values/hidden.ts';
import { dropEncoding, enterMessage, type Message, type ToolOutput } from '../values/message.ts';
import type { FieldRedactor, Redactor } from '../values/redact.ts';
import type { RunCheckpoint } from './checkpoint.ts';

/** Redacts the stored texts of a run's progress: messages, open step, phases, outcome. Each object is redacted once. */
export class ProgressRedaction implements FieldRedactor {
  readonly #redactor: Redactor;
  readonly #seen = new WeakMap<object, object>();
  /** The redacted lists of messages, by the field that has them: each grows with its original. */
  readonly #lists = new Map<string, { readonly source: Transcript; readonly redacted: Transcript }>();

  constructor(redactor: Redactor) {
    this.#redactor = redactor;
  }

  /** By the table of run fields; in a field without a row every text is redacted. */
  progress(progress: Progress): Progress {
    return this.#fields(progress);
  }

  /** A record, as `progress`. */
  record(record: RunCheckpoint): RunCheckpoint {
    return this.#fields(record);
  }

  #fields<T extends object>(of: T): T {
    const fields: Record<string, unknown> = {};
    for (const [key, value] of Object.entries(of)) fields[key] = this.#field(key, value);
    return fields as T;
  }

  #field(key: string, value: unknown): unknown {
    if (value instanceof Transcript) return this.transcript(value, key);
    const redact = redactions.get(key) ?? unknownField;
    if (redact === 'public' || value === undefined) return value;
    if (!(value instanceof Hidden)) return redact(value, this);
    return this.once(value, (hidden) => new Hidden(redact(hidden.value, this) as object));
  }

  /** The redacted messages grow like the original ones: only new messages are read, and stored. */
  transcript(transcript: Transcript, key = 'transcript'): Transcript {
    const known = this.#lists.get(key);
    const before = known && transcript.continues(known.source) ? known : undefined;
    const added = transcript.slice(before?.source.length ?? 0).map((message) => this.message(message));
    const redacted = before ? before.redacted.append(...added) : Transcript.of(added);
    this.#lists.set(key, { source: transcript, redacted });
    return redacted;
  }

  outcome<T extends RunOutput | RunOutcome>(outcome: T): T {
    return redactOutcome(outcome, this);
  }

  text(text: string): string {
    return this.#redactor.text(text);
  }

  json<T>(value: T): T {
    return this.#redactor.json(value);
  }

  error(error: ErrorData): ErrorData {
    return this.#redactor.error(error);
  }

  output(output: ToolOutput): ToolOutput {
    return this.#redactor.output(output);
  }

  list<T>(items: readonly T[], change: (item: T) => T): readonly T[] {
    return this.#redactor.list(items, change);
  }

  message(message: Message): Message {
    return this.once(message, () => {
      const changed = this.#redactor.message(message);
      if (changed === message) return message;
      // The text of the original is not stored.
      dropEncoding(message);
      return enterMessage(changed);
    });
  }

  once<T extends object>(value: T, change: (value: T) => T): T {
    const known = this.#seen.get(value) ?? change(value);
    this.#seen.set(value, known);
    return known as T;
  }
}

const redactions = new Map<string, FieldSpec<unknown>['redact']>(
  rowsOf('identity', 'start', 'head', 'messages').map(({ key, spec }) => [key, spec.redact]),
);

const unknownField = (value: unknown, by: FieldRedactor): unknown => by.json(value);
