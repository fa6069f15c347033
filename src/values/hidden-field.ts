/** A field of objects that are not ours to have more properties. */
export interface HiddenField<Value> {
  /** @param object must not be frozen yet; a second time it gets the newer value */
  put(object: object, value: Value): void;
  /** Of anything: what a host hands over need not be an object. */
  has(value: unknown): boolean;
  get(value: unknown): Value | undefined;
}

/** A constructor may give another object than the one it made: that is how a class adds a private field to it. */
class Given {
  constructor(object: object) {
    // biome-ignore lint/correctness/noConstructorReturn: see above
    return object;
  }
}

/**
 * Like a WeakMap from objects to values: JSON, spreads, comparisons and inspectors do not see it, a copy does not have it, and
 * freezing does not fix it. Each step of each run makes such objects; a WeakMap has them all in one table, which grows, and
 * which every collection of garbage goes through.
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
