/**
 * A value that those who walk or print a context do not see (XState, an inspector, a log): large, or the host's own
 * business. Only whoever asks for it by name gets it.
 */
export class Hidden<T extends object> {
  readonly #value: T;

  constructor(value: T) {
    this.#value = value;
  }

  get value(): T {
    return this.#value;
  }

  toJSON(): string {
    return `(${Object.keys(this.#value).length} hidden)`;
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toJSON();
  }
}
