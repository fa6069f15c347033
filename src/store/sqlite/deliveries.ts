import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { deliveryPauseMs, type TakeDeliveries, type TakenDelivery } from '../deliveries/deliveries.ts';
import { isIntact } from '../encoding/checksum.ts';
import type { EndToDeliver } from '../rules/decision.ts';

interface DeliveryRow {
  readonly run_id: string;
  readonly outcome_id: string;
  readonly tries: number;
  readonly mark: string;
  readonly outcome: string | null;
  readonly checksum: number | null;
}

/** The ends that no process has delivered, in SQLite: the rows of `deliveries`. One past its time counts as removed. */
export class DeliveryTable {
  readonly #now: () => number;
  readonly #put: StatementSync;
  readonly #remove: StatementSync;
  readonly #due: StatementSync;
  readonly #isDue: StatementSync;
  readonly #move: StatementSync;
  readonly #forget: StatementSync;

  constructor(db: DatabaseSync, now: () => number) {
    this.#now = now;
    this.#put = db.prepare(
      'INSERT OR REPLACE INTO deliveries (run_id, outcome_id, agent, due_at, until, tries, mark) VALUES (?, ?, ?, ?, ?, 0, ?)',
    );
    this.#remove = db.prepare('DELETE FROM deliveries WHERE run_id = ? AND outcome_id = ?');
    const due = 'FROM deliveries d WHERE d.agent = ? AND d.due_at <= ? AND d.until > ?';
    this.#isDue = db.prepare(`SELECT 1 ${due} LIMIT 1`);
    this.#due = db.prepare(
      `SELECT d.run_id, d.outcome_id, d.tries, d.mark, o.outcome, o.checksum
       FROM (SELECT d.* ${due} ORDER BY d.due_at LIMIT ?) d LEFT JOIN outcomes o ON o.run_id = d.run_id AND o.until > ?`,
    );
    this.#move = db.prepare('UPDATE deliveries SET due_at = ?, tries = ? WHERE run_id = ? AND outcome_id = ?');
    const gone = 'SELECT run_id, outcome_id FROM deliveries WHERE until <= ? LIMIT ?';
    this.#forget = db.prepare(`DELETE FROM deliveries WHERE (run_id, outcome_id) IN (${gone})`);
  }

  put(runId: string, { id, agent, text, untilMs }: EndToDeliver): void {
    this.#put.run(runId, id, agent, this.#now(), untilMs, text);
  }

  remove(runId: string, id: string): void {
    this.#remove.run(runId, id);
  }

  /** Whether there is something to take: a read, so that an idle process takes no lock. */
  hasDue(agents: readonly string[]): boolean {
    const now = this.#now();
    return agents.some((agent) => this.#isDue.get(agent, now, now) !== undefined);
  }

  /** Takes the ends whose time has come. Callers hold the transaction. */
  take({ agents, limit, leaseMs }: TakeDeliveries): TakenDelivery[] {
    const now = this.#now();
    const taken: TakenDelivery[] = [];
    for (const agent of agents) {
      if (taken.length >= limit) break;
      const rows = this.#due.all(agent, now, now, limit - taken.length, now) as unknown as DeliveryRow[];
      for (const { run_id: runId, outcome_id: id, tries, mark: text, ...kept } of rows) {
        this.#move.run(now + deliveryPauseMs(tries, leaseMs), tries + 1, runId, id);
        const isWhole = kept.outcome !== null && kept.checksum !== null && isIntact(kept.outcome, kept.checksum);
        taken.push({ runId, id, text, outcome: isWhole ? kept.outcome : null });
      }
    }
    return taken;
  }

  /** Deletes marks that are past their time; -1 = all of them. */
  forgetExpired(limit: number): void {
    this.#forget.run(this.#now(), limit);
  }
}
