/**
 * A value that code which walks or prints a context (XState, an inspector, a log) does not see: it is large, or the host's
 * own. Only `value` returns it.
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
