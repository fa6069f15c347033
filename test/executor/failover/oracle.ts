/*
 * What clauses 2 to 7 of docs/contract/failover.md say, in a few lines: which models are asked, in which order, and what becomes of the
 * step. It shares no code with what it judges.
 */

/** What a model does in one request. Times in ms. */
export type Deed =
  | { readonly kind: 'answer' }
  | { readonly kind: 'passing' | 'blocked' | 'final'; readonly retryAfterMs?: number }
  | { readonly kind: 'stall' };

/** How a step ended. */
export type StepEnd = 'answer' | 'waits' | 'needs a person' | 'ends';

const [RETRY_MS, STALL_MS, FIRST_REST_MS, LONGEST_REST_MS] = [60_000, 1_000, 30_000, 600_000];
/** The random number of the clock is always a half. */
const backoff = (attempt: number) => Math.round(Math.min(8_000, 1_000 * 2 ** (attempt - 1)) / 2);

export class Oracle {
  readonly asked: string[] = [];
  now = 0;
  /** The model that answered last. */
  #last: string | undefined;
  readonly #rests = new Map<string, { failures: number; endsAt: number }>();

  readonly list: readonly string[];
  readonly deedOf: (model: string) => Deed;

  constructor(list: readonly string[], deedOf: (model: string) => Deed) {
    this.list = list;
    this.deedOf = deedOf;
  }

  step(isWake: boolean): StepEnd {
    const order =
      this.#last === undefined ? this.list : [this.#last, ...this.list.filter((each) => each !== this.#last)];
    const rests = (model: string) => this.now < (this.#rests.get(model)?.endsAt ?? 0);
    const resting = this.list.length > 1 ? order.filter(rests) : [];
    const queue = [...order.filter((each) => !resting.includes(each)), ...resting];
    const isFirstResting = queue[0] !== order[0];
    const kinds: string[] = [];
    while (queue.length > 0) {
      const model = queue.shift() as string;
      const end = this.#ask(model, { isWake, hasNext: queue.length > 0 });
      if (end.kind === 'answer') {
        this.#last = model;
        this.#rests.delete(model);
        return 'answer';
      }
      if (end.kind !== 'final') this.#fail(model, end.retryAfterMs ?? 0);
      kinds.push(end.kind);
      if (end.kind === 'final' && kinds.length === 1 && !isFirstResting) return 'ends';
    }
    if (kinds.includes('passing')) return 'waits';
    return kinds.includes('blocked') ? 'needs a person' : 'ends';
  }

  #ask(model: string, { isWake, hasNext }: { isWake: boolean; hasNext: boolean }) {
    const isAlone = this.list.length === 1;
    const most = isWake || this.#rests.has(model) ? 1 : isAlone ? 5 : 2;
    let endsAt: number | undefined;
    for (let attempt = 1; ; attempt++) {
      this.asked.push(model);
      const deed = this.deedOf(model);
      if (deed.kind === 'stall') this.now += STALL_MS;
      if (deed.kind !== 'passing' && deed.kind !== 'stall') return deed;
      const retryAfterMs = deed.kind === 'passing' ? (deed.retryAfterMs ?? 0) : 0;
      const end = { kind: 'passing' as const, retryAfterMs };
      endsAt ??= this.now + RETRY_MS;
      if (attempt === most || retryAfterMs > endsAt - this.now) return end;
      if (hasNext && retryAfterMs > 1_000) return end;
      this.now += Math.min(endsAt - this.now, retryAfterMs + backoff(attempt));
    }
  }

  #fail(model: string, retryAfterMs: number) {
    if (this.list.length === 1) return;
    const rest = this.#rests.get(model);
    const isResting = rest !== undefined && this.now < rest.endsAt;
    const failures = (rest?.failures ?? 0) + (isResting ? 0 : 1);
    const ms = Math.min(LONGEST_REST_MS, FIRST_REST_MS * 2 ** (failures - 1));
    const endsAt = Math.max(isResting ? rest.endsAt : this.now + ms, this.now + retryAfterMs);
    this.#rests.set(model, { failures, endsAt });
  }
}
