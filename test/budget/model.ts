/** A budget's books at their plainest: everything that happened, added up anew for each answer. Tokens only. */
export class ModelBooks {
  readonly #limit: number;
  readonly #windowMs: number;
  readonly #reservationMs: number;
  #calls: { caller: string; key: string; run: string; at: number; tokens: number }[] = [];
  #reservations: { caller: string; key: string; at: number; tokens: number }[] = [];
  #known: { caller: string; run: string; at: number; tokens: number }[] = [];
  #restored = 0;
  now = 0;

  constructor(limits: { readonly limit: number; readonly windowMs: number; readonly reservationMs: number }) {
    this.#limit = limits.limit;
    this.#windowMs = limits.windowMs;
    this.#reservationMs = limits.reservationMs;
  }

  spent(caller: string, exceptKey?: string): number {
    const isIn = (call: { at: number; caller: string }) =>
      call.at > this.now - this.#windowMs && call.caller === caller;
    return sum(this.#calls.filter((call) => isIn(call) && call.key !== exceptKey));
  }

  reserved(caller: string, exceptKey?: string): number {
    return sum(this.#open(caller).filter(({ key }) => key !== exceptKey));
  }

  isUsedUp(caller: string): boolean {
    return this.spent(caller) + this.reserved(caller) >= this.#limit;
  }

  /** @returns whether it was granted */
  reserve(caller: string, key: string, tokens: number): boolean {
    const used = this.spent(caller, key) + this.reserved(caller, key);
    if (used >= this.#limit) return false;
    if (this.reserved(caller, key) > 0 && used + tokens > this.#limit) return false;
    this.refund(caller, key);
    this.#reservations.push({ caller, key, at: this.now, tokens });
    return true;
  }

  commit(caller: string, key: string, tokens: number): void {
    this.refund(caller, key);
    const run = key.slice(0, key.lastIndexOf(':'));
    const before = this.#calls.find((call) => call.caller === caller && call.key === key);
    const replaced = before && before.at > this.now - this.#windowMs ? before.tokens : 0;
    this.#calls = this.#calls.filter((call) => call !== before);
    this.#calls.push({ caller, key, run, at: this.now, tokens });
    this.#know(caller, run, tokens - replaced);
  }

  refund(caller: string, key: string): void {
    this.#reservations = this.#reservations.filter((each) => each.caller !== caller || each.key !== key);
  }

  restore(caller: string, run: string, tokens: number): void {
    const missing = tokens - this.#knownOf(caller, run);
    if (missing <= 0) return;
    this.#restored += 1;
    this.#calls.push({ caller, key: `restored ${this.#restored}`, run, at: this.now, tokens: missing });
    this.#know(caller, run, missing);
  }

  #open(caller: string) {
    return this.#reservations.filter((each) => each.caller === caller && each.at > this.now - this.#reservationMs);
  }

  #knownOf(caller: string, run: string): number {
    const known = this.#known.find((each) => each.caller === caller && each.run === run);
    return known?.tokens ?? 0;
  }

  #know(caller: string, run: string, change: number): void {
    const tokens = this.#knownOf(caller, run) + change;
    this.#known = this.#known.filter((each) => each.caller !== caller || each.run !== run);
    this.#known.push({ caller, run, at: this.now, tokens });
  }
}

function sum(all: readonly { readonly tokens: number }[]): number {
  return all.reduce((total, { tokens }) => total + tokens, 0);
}
