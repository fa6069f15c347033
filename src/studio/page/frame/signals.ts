// Values that change, and what reads them: a view, an effect or a computed value runs again once something that it read is another.

/** A value that can be read, and followed by what reads it. */
export interface ReadonlySignal<T> {
  /** The present value; what reads it runs again once it is another. */
  readonly value: T;
  /** Reads the value, and does not follow it. */
  peek(): T;
}

/** A value that can be set. */
export interface Signal<T> extends ReadonlySignal<T> {
  value: T;
}

/** What runs now, and follows what it reads. */
let reader: Reader | undefined;
/** What runs once the outermost `batch` is over. */
const waiting = new Set<() => void>();
let depth = 0;
/** Most runs after one change: an effect that wakes itself freezes no tab. */
const MAX_RUNS = 10_000;

/** Changes several signals: what reads them runs once, after the last one. */
export function batch(change: () => void): void {
  depth += 1;
  try {
    change();
    // What runs may change signals: those who read them come into the same set, behind.
    if (depth > 1) return;
    let left = MAX_RUNS;
    for (const run of waiting) {
      waiting.delete(run);
      left -= 1;
      if (left > 0) run();
      else throw new Error('These signals change each other without an end.');
    }
  } finally {
    depth -= 1;
  }
}

class Source<T> implements Signal<T> {
  readonly readers = new Set<Reader>();
  protected current: T;

  constructor(first: T) {
    this.current = first;
  }

  peek(): T {
    return this.current;
  }

  get value(): T {
    const value = this.peek();
    reader?.found(this, value);
    return value;
  }

  set value(next: T) {
    this.current = next;
    batch(() => this.notify());
  }

  notify(): void {
    for (const each of this.readers) each.notify();
  }
}

/** Follows the signals that were read since it began. */
export class Reader {
  readonly #values = new Map<Source<unknown>, unknown>();
  readonly notify: () => void;

  /** @param notify called at each change of what it read */
  constructor(notify: () => void) {
    this.notify = notify;
  }

  found(source: Source<unknown>, value: unknown): void {
    this.#values.set(source, value);
    source.readers.add(this);
  }

  /** Whether anything that it read is another value by now. */
  get isStale(): boolean {
    return [...this.#values].some(([source, value]) => source.peek() !== value);
  }

  begin(): void {
    this.end();
    reader = this;
  }

  end(): void {
    for (const source of this.#values.keys()) source.readers.delete(this);
    this.#values.clear();
  }

  /** Runs a function, and follows what it reads. */
  follow<T>(run: () => T): T {
    const before = reader;
    this.begin();
    try {
      return run();
    } finally {
      reader = before;
    }
  }
}

/** A reader that runs something once what it read is another. */
export function readerFor(run: () => void): Reader {
  const check = () => {
    if (own.isStale) run();
  };
  const own = new Reader(() => waiting.add(check));
  return own;
}

/** What is read from now on is followed by none. */
export function readAlone(): void {
  reader = undefined;
}

/** Computed when it is read, if anything that it is made of has changed. */
export class Computed<T> extends Source<T | undefined> {
  readonly #compute: () => T;
  readonly #reader = new Reader(() => {
    this.#isOld = true;
    this.notify();
  });
  /** Something that it read was set. */
  #isOld = false;
  #isNew = true;

  constructor(compute: () => T) {
    super(undefined);
    this.#compute = compute;
  }

  override peek(): T {
    const isStale = this.#isNew || (this.#isOld && this.#reader.isStale);
    this.#isOld = false;
    if (isStale) {
      // One that throws is computed again for its next reader.
      this.#isNew = true;
      this.current = this.#reader.follow(this.#compute);
      this.#isNew = false;
    }
    return this.current as T;
  }

  end(): void {
    this.#reader.end();
  }
}

/** Makes a value that can be set. */
export function signal<T>(first: T): Signal<T> {
  return new Source(first);
}

/** Makes a value of others. */
export function computed<T>(compute: () => T): ReadonlySignal<T> {
  return new Computed(compute) as ReadonlySignal<T>;
}

/** Runs a function now, and after each change of what it read; before that, what it returned. @returns ends it */
export function effect(run: () => unknown): () => void {
  let clean: unknown;
  const end = () => typeof clean === 'function' && clean();
  const again = () => {
    end();
    clean = own.follow(run);
  };
  const own = readerFor(again);
  batch(again);
  return () => {
    own.end();
    end();
  };
}
