/** What is let go at an end. A host's signal or clock may refuse even that. */
export class Cleanups {
  readonly #onThrow: (error: unknown) => void;
  readonly #waiting: (() => void)[] = [];
  #isOver = false;

  constructor(onThrow: (error: unknown) => void) {
    this.#onThrow = onThrow;
  }

  /** For the end, or at once when that is over. */
  add(cleanup: () => void): void {
    if (this.#isOver) this.#attempt(cleanup);
    else this.#waiting.push(cleanup);
  }

  /** The end is here. */
  run(): void {
    this.#isOver = true;
    for (const cleanup of this.#waiting.splice(0)) this.#attempt(cleanup);
  }

  #attempt(cleanup: () => void): void {
    try {
      cleanup();
    } catch (error) {
      this.#onThrow(error);
    }
  }
}
