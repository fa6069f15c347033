import type { CheckpointStore } from '../../store/port.ts';
import { systemClock } from '../../values/clock.ts';
import { withDeadline } from '../../values/deadline.ts';

const CLOSE_MS = 5_000;

/** The stores that a host's function gave. Those that can be closed are, once no process of a history has them. */
export class OpenedStores {
  readonly #opening: () => CheckpointStore | Promise<CheckpointStore>;
  readonly #opened = new Set<CheckpointStore>();
  #first: CheckpointStore | undefined;
  #last: CheckpointStore | undefined;
  #isShared = false;

  constructor(opening: () => CheckpointStore | Promise<CheckpointStore>) {
    this.#opening = opening;
  }

  get first(): CheckpointStore {
    if (!this.#first) throw new TypeError('no store was opened yet');
    return this.#first;
  }

  async open(): Promise<{ store: CheckpointStore; bare: CheckpointStore }> {
    const store = await this.#opening();
    for (const method of ['save', 'load', 'delete', 'listInterrupted'] as const) {
      if (typeof store?.[method] !== 'function') throw new TypeError(`what it gave has no ${method}`);
    }
    // The same object again: it is the host's, and in use.
    if (this.#opened.has(store)) this.#isShared = true;
    this.#opened.add(store);
    this.#first ??= store;
    this.#last = store;
    return { store, bare: store };
  }

  /** One that is given each time stays open. */
  async dispose({ keepLast = false }: { readonly keepLast?: boolean } = {}): Promise<void> {
    for (const store of this.#opened) {
      if (this.#isShared || (keepLast && store === this.#last)) continue;
      this.#opened.delete(store);
      const close = (store as Partial<AsyncDisposable>)[Symbol.asyncDispose];
      if (typeof close !== 'function') continue;
      const limit = { ms: CLOSE_MS, clock: systemClock, what: 'closing the store' };
      await withDeadline(Promise.resolve(close.call(store)), limit).catch(() => {});
    }
  }
}
