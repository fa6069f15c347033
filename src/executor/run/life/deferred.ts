/**
 * A promise that is resolved from outside. It is made when the first caller waits: most runs have no more than one promise under
 * way that anything waits for, and hosts keep thousands of runs.
 */
export class Deferred<T> {
  #promise: Promise<T> | undefined;
  #resolve: ((value: T) => void) | undefined;

  /** Resolves with the value of `resolve`. */
  get promise(): Promise<T> {
    this.#promise ??= new Promise<T>((resolve) => {
      this.#resolve = resolve;
    });
    return this.#promise;
  }

  /** Only the first call counts. */
  resolve(value: T): void {
    if (this.#resolve) this.#resolve(value);
    else this.#promise ??= Promise.resolve(value);
    this.#resolve = undefined;
  }
}
