import { appendFileSync, existsSync, readFileSync } from 'node:fs';

/** A transfer as the bank has it. */
export interface Transfer {
  /** The idempotency key of the call that made it. */
  readonly reference: string;
  readonly order: string;
  readonly cents: number;
}

/** A bank that cannot take anything back: each line of its file is money that has moved. */
export class Bank {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  transfer(transfer: Transfer): void {
    appendFileSync(this.#path, `${JSON.stringify(transfer)}\n`);
  }

  get transfers(): readonly Transfer[] {
    if (!existsSync(this.#path)) return [];
    const lines = readFileSync(this.#path, 'utf8').split('\n');
    return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Transfer);
  }
}
