import { ON_COMMAND } from '../../due.ts';
import { isDeadProcess } from '../../owner.ts';
import type { Claim } from '../../port.ts';
import { releaseClaim } from '../../rules/ownership.ts';
import type { TakeDue, TakenHead, TakenHeads } from '../../store-driver.ts';
import type { PoolSession, Row } from '../pool.ts';
import { listedHead, type Reader } from '../reader.ts';
import { storedRun } from '../run-queries.ts';
import type { Server } from '../server.ts';
import type { WriteQueue } from '../write-queue.ts';
import { type TakenRows, type TakeWish, takeNamedRows, takeOfFew, takeOfMany } from './take-statements.ts';

/** How long this process leaves a run alone whose record it cannot read, ms, and how many of them it remembers. */
const SKIP_MS = 30_000;
const MAX_SKIPPED = 1_000;

/** How many times one call tries again because it took only runs that it had to give back. */
const MAX_TRIES = 10;

/** Takes due runs from PostgreSQL. The server sees no texts: a run whose record proves unreadable is given back. */
export class Taker {
  readonly #server: Server;
  readonly #reader: Reader;
  readonly #queue: WriteQueue;
  /** Until when runs are left alone, on the clock of `performance.now()`. */
  readonly #skipped = new Map<string, number>();
  #dead: readonly string[] = [];
  /** There were enough runs for the last call of the statement for many, so that the next one begins with it. */
  #areMany = false;

  constructor(server: Server, { reader, queue }: { readonly reader: Reader; readonly queue: WriteQueue }) {
    this.#server = server;
    this.#reader = reader;
    this.#queue = queue;
  }

  async take(take: TakeDue): Promise<TakenHeads> {
    await this.#queue.settle();
    const taken: TakenHead[] = [];
    for (let tries = 1; ; tries++) {
      const rows = await this.#rows({ ...take, limit: take.limit - taken.length });
      const unusable: Claim[] = [];
      for (const each of rows.rows.map((row) => takenHead(row, take.owner))) {
        if (take.isTakeable(each.head)) taken.push(each);
        else unusable.push(each.claim);
      }
      await Promise.all(unusable.map((claim) => this.#giveBack(claim)));
      if (unusable.length > 0 && taken.length < take.limit && tries < MAX_TRIES) continue;
      const isMore = rows.isMany || rows.found > rows.rows.length;
      const nextAt = rows.nextAt !== null && rows.nextAt < ON_COMMAND ? rows.nextAt : undefined;
      return { now: rows.now, taken, nextAt: isMore ? rows.now : nextAt };
    }
  }

  async #rows(take: TakeDue): Promise<TakenRows> {
    if (this.#areMany && take.limit > 0 && !take.runIds) {
      const rows = await this.#attempt(takeOfMany, take);
      this.#areMany = rows.rows.length === take.limit;
      return rows;
    }
    const statement = take.runIds ? takeNamedRows : takeOfFew;
    const found = await this.#attempt(statement, take);
    const dead = found.owners.filter((owner) => isDeadProcess(owner));
    const isNews = dead.some((owner) => !this.#dead.includes(owner));
    this.#dead = dead;
    if (found.isMany && take.limit > 0) {
      this.#areMany = true;
      return this.#rows(take);
    }
    return isNews && found.rows.length < take.limit ? this.#again(found, take, statement) : found;
  }

  /** The runs of processes that died can be taken too. */
  async #again(found: TakenRows, take: TakeDue, statement: typeof takeOfFew): Promise<TakenRows> {
    const more = await this.#attempt(statement, { ...take, limit: take.limit - found.rows.length });
    return { ...more, rows: [...found.rows, ...more.rows], found: more.found + found.rows.length };
  }

  /** An attempt whose answer is lost may have taken runs: the next one has the same tokens, and so finds them. */
  #attempt(
    statement: (session: PoolSession, server: Server, wish: TakeWish) => Promise<TakenRows>,
    take: TakeDue,
  ): Promise<TakenRows> {
    const tokens = Array.from({ length: take.limit }, () => Math.floor(Math.random() * 2 ** 53));
    const skipped = this.#skippedNow();
    let attempts = 0;
    return this.#reader.insist((session) =>
      statement(session, this.#server, { ...take, tokens, skipped, dead: this.#dead, isAgain: attempts++ > 0 }),
    );
  }

  #skippedNow(): readonly string[] {
    const now = performance.now();
    for (const [runId, until] of this.#skipped) {
      if (until > now && this.#skipped.size <= MAX_SKIPPED) break;
      this.#skipped.delete(runId);
    }
    return [...this.#skipped.keys()];
  }

  /** Its attempt did not happen. A claim that cannot be given back ends by its time. */
  async #giveBack(claim: Claim): Promise<void> {
    const { runId, attempts } = claim;
    this.#skipped.delete(runId);
    this.#skipped.set(runId, performance.now() + SKIP_MS);
    const decide = releaseClaim(claim, { attempts: attempts - 1 });
    await this.#queue.add({ kind: 'release', runId, decide, size: 0, hasClaim: true }, undefined).catch(() => {});
  }
}

function takenHead(row: Row, owner: string): TakenHead {
  const stored = storedRun(row);
  const { epoch = 0, attempts = 0 } = stored.lease ?? {};
  return { head: listedHead(stored), claim: { runId: stored.runId, owner, epoch, attempts } };
}
