import type { ErrorCause, ErrorData } from './error-data.ts';
import { isObject, type JsonValue } from './json.ts';
import type { Message, ToolOutput } from './message.ts';
import { withCompacted } from './message-mark.ts';
import { letGo } from './thenable.ts';

/** The destination of a text. */
export interface RedactionPlace {
  /** `record`: stores, kept outcomes, snapshots of hosts; `event`: events and the audit; `log`: warnings; `frame`: inspectors. */
  readonly where: 'record' | 'event' | 'log' | 'frame';
}

/**
 * A host's redaction: returns the text without its secrets. Pawl calls it once for each text, synchronously. It must not find
 * a secret in its own output.
 */
export type Redaction = (text: string, at: RedactionPlace) => string;

/** Redacts the fields of a run. */
export interface FieldRedactor {
  text(text: string): string;
  /** Redacts every text in a JSON value; field names stay. */
  json<T>(value: T): T;
  error(error: ErrorData): ErrorData;
  output(output: ToolOutput): ToolOutput;
  message(message: Message): Message;
  list<T>(items: readonly T[], change: (item: T) => T): readonly T[];
  /** Changes each object once: a second call returns the result of the first. */
  once<T extends object>(value: T, change: (value: T) => T): T;
}

/** Replaces a text whose redaction failed. */
const FAILED = '[redaction failed]';

/** Redacts the texts in a value with the option `redact`. Unchanged parts stay the same objects. */
export class Redactor {
  readonly #redact: Redaction;
  readonly #at: RedactionPlace;

  constructor(redact: Redaction, where: RedactionPlace['where']) {
    this.#redact = redact;
    this.#at = Object.freeze({ where });
  }

  /** If the redaction throws, the text must not leak, and the thrown error may hold the text. */
  text(text: string): string {
    if (text === '') return text;
    try {
      const answer: unknown = this.#redact(text, this.#at);
      if (typeof answer === 'string') return answer;
      letGo(answer);
    } catch {
      // The mark shows that a text was here.
    }
    return FAILED;
  }

  /** Redacts every text in a JSON value; field names stay. */
  json<T>(value: T): T {
    if (typeof value === 'string') return this.text(value) as T;
    if (Array.isArray(value)) return this.list(value, (item) => this.json(item)) as T;
    if (!isObject(value)) return value;
    const entries = Object.entries(value);
    const changed = entries.map(([key, item]) => [key, this.json(item)] as const);
    if (changed.every(([, item], i) => item === entries[i]?.[1])) return value;
    return Object.fromEntries(changed) as T;
  }

  list<T>(items: readonly T[], change: (item: T) => T): readonly T[] {
    const changed = items.map(change);
    return changed.every((item, i) => item === items[i]) ? items : changed;
  }

  error(error: ErrorData): ErrorData {
    return { ...this.#cause(error), code: error.code };
  }

  #cause({ message, cause, ...rest }: ErrorCause): ErrorCause {
    return { ...rest, message: this.text(message), ...(cause ? { cause: this.#cause(cause) } : {}) };
  }

  output(output: ToolOutput): ToolOutput {
    if (output.type === 'content') {
      const value = this.list(output.value, (part) => (part.type === 'text' ? this.#part(part) : part));
      return value === output.value ? output : { ...output, value: [...value] };
    }
    if (!('value' in output)) return this.json(output);
    const value = this.json(output.value as JsonValue);
    return value === output.value ? output : ({ ...output, value } as ToolOutput);
  }

  /**
   * Ids, names and files stay. A signed part of the model loses its signature if its text changes: no provider accepts it
   * then.
   */
  message(message: Message): Message {
    if (message.role === 'system') {
      const content = this.text(message.content);
      return content === message.content ? message : { ...message, content };
    }
    const content = this.list<Part>(message.content, (part) => this.#part(part, message.role === 'assistant'));
    const changed = content === message.content ? message : ({ ...message, content } as Message);
    return withCompacted(changed, (compacted) => this.message(compacted));
  }

  #part<P extends Part>(part: P, isSigned = false): P {
    const changed = this.#changed(part);
    if (changed === part || !isSigned) return changed;
    const { providerOptions: _, ...rest } = changed as P & { providerOptions?: unknown };
    return rest as P;
  }

  #changed<P extends Part>(part: P): P {
    if ('text' in part && typeof part.text === 'string') {
      const text = this.text(part.text);
      return text === part.text ? part : { ...part, text };
    }
    if (part.type === 'tool-call') {
      const input = this.json(part.input);
      return input === part.input ? part : { ...part, input };
    }
    if (part.type !== 'tool-result') return part;
    const output = this.output(part.output);
    return output === part.output ? part : { ...part, output };
  }
}

type Part = Exclude<Message['content'], string>[number] | Extract<ToolOutput, { type: 'content' }>['value'][number];
