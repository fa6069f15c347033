/**
 * Wraps a value so that code which walks or prints a context (XState, an inspector, a log) does not see it. Only `value`
 * returns it.
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

/** A hidden field of objects whose visible properties must not change. */
interface HiddenField<Value> {
  /** @param object must not be frozen yet; a second `put` replaces the value */
  put(object: object, value: Value): void;
  /** Accepts any value: a host may pass something that is not an object. */
  has(value: unknown): boolean;
  get(value: unknown): Value | undefined;
}

/**
 * A constructor may return another object than the one it made. A class uses that to add a private field to a given object.
 */
class Given {
  constructor(object: object) {
    // biome-ignore lint/correctness/noConstructorReturn: see above
    return object;
  }
}

/**
 * Makes a hidden field of objects, like a WeakMap: JSON, spreads, comparisons and inspectors do not see it, a copy lacks
 * it, and `put` replaces it on a frozen object. Each step of each run makes such objects. A WeakMap would keep them all in
 * one growing table, which every garbage collection walks.
 */
export function hiddenField<Value>(): HiddenField<Value> {
  class Field extends Given {
    #value: Value;

    constructor(object: object, value: Value) {
      super(object);
      this.#value = value;
    }

    static put(object: object, value: Value): void {
      if (#value in object) object.#value = value;
      else new Field(object, value);
    }

    static has(object: unknown): object is Field {
      return typeof object === 'object' && object !== null && #value in object;
    }

    static get(object: unknown): Value | undefined {
      return Field.has(object) ? object.#value : undefined;
    }
  }
  return Field;
}
