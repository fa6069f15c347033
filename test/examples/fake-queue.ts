import type { Queue } from '../../docs/examples/queues/sqs.ts';

/** How often the queue does what its makers warn of, from 0 to 1. */
export interface Trouble {
  /** A message is there twice. */
  readonly twice?: number;
  /** A message is lost. */
  readonly never?: number;
  /** A message comes as if another delay had been asked for, up to this many ms. */
  readonly lateMs?: number;
  /** A delete is lost: the message comes again when its visibility is over. */
  readonly undeleted?: number;
}

interface Held {
  readonly body: string;
  readonly receipt: string;
  visibleAt: number;
}

/** A queue with the semantics of SQS: at least once, no order, a visibility timeout. Seconds last a hundredth of a second. */
export class FakeQueue implements Queue {
  readonly #random: () => number;
  readonly #trouble: Required<Trouble>;
  #held: Held[] = [];
  #receipts = 0;
  /** How often messages were given out. */
  received = 0;

  constructor(random: () => number, trouble: Trouble = {}) {
    this.#random = random;
    this.#trouble = { twice: 0, never: 0, lateMs: 0, undeleted: 0, ...trouble };
  }

  get size(): number {
    return this.#held.length;
  }

  async send(body: string, { delaySeconds }: { readonly delaySeconds: number }): Promise<void> {
    const { twice, never, lateMs } = this.#trouble;
    if (this.#random() < never) return;
    for (let copies = this.#random() < twice ? 2 : 1; copies > 0; copies--) {
      const visibleAt = performance.now() + delaySeconds * SECOND_MS + this.#random() * lateMs;
      this.#held.push({ body, receipt: `${++this.#receipts}`, visibleAt });
    }
  }

  /** Any message that is visible: no order is promised. */
  async receive({ visibilitySeconds }: { readonly visibilitySeconds: number }) {
    const now = performance.now();
    const visible = this.#held.filter(({ visibleAt }) => visibleAt <= now);
    const chosen = visible[Math.floor(this.#random() * visible.length)];
    if (!chosen) return undefined;
    chosen.visibleAt = now + visibilitySeconds * SECOND_MS;
    this.received += 1;
    return { body: chosen.body, receipt: chosen.receipt };
  }

  async delete(receipt: string): Promise<void> {
    if (this.#random() < this.#trouble.undeleted) return;
    this.#held = this.#held.filter((each) => each.receipt !== receipt);
  }
}

const SECOND_MS = 10;
