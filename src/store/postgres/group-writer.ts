import { PawlError } from '../../values/error-codes.ts';
import { type Decided, decideNow } from '../rules/decision.ts';
import { removeEnded } from './ended.ts';
import { isGroupFailure, isTransient, NoAnswer } from './errors.ts';
import { inTransaction, type PoolSession } from './pool.ts';
import { leaseAfter, recordAfter, rowChange } from './row-change.ts';
import { type FoundRow, factsFound, factsKnown, look, type RowState } from './run-row.ts';
import { pauseServer, type Server } from './server.ts';
import type { SentJob, WriteJob } from './write-queue.ts';
import { write } from './write-statement.ts';

/** How many runs are remembered as this store wrote them last. */
const MAX_KNOWN = 4_096;

/** More time for a group by its size: 0.1 s for a million characters. */
const MS_PER_CHAR = 1e-4;

/** A change that will be sent for a job. */
interface Planned extends SentJob {
  readonly job: WriteJob;
}

/**
 * Writes groups of changes to PostgreSQL. Each write is decided from the stored state, and is stored only if that state is
 * unchanged, which the row's token shows. So a write may be repeated after a lost answer: a row that has the new token
 * proves the first write.
 *
 * A write that names its claim is decided from the state that this store wrote last, which saves a read. Only a fresh read
 * refuses a write.
 */
export class GroupWriter {
  readonly #server: Server;
  readonly #known = new Map<string, RowState>();

  constructor(server: Server) {
    this.#server = server;
  }

  /**
   * Settles each of them; never rejects.
   * @param takeLate removes the jobs that waited behind a group until their own time was over
   */
  async perform(group: readonly WriteJob[], takeLate: () => readonly WriteJob[]): Promise<void> {
    const open = new Set(group);
    for (let failures = 1; open.size > 0; failures++) {
      try {
        await this.#attempt(open);
      } catch (error) {
        if (isTransient(error)) {
          const now = performance.now();
          const late = [...open].filter((job) => job.until <= now);
          this.#refuse([...late, ...takeLate()], open, error);
          if (open.size > 0) await pauseServer(failures);
        } else if (open.size === 1 || isGroupFailure(error)) {
          this.#refuse([...open], open, error);
        } else {
          // An unforeseen failure: each job is written alone, so that only the one at fault fails.
          for (const job of open) await this.perform([job], takeLate);
          return;
        }
      }
    }
  }

  /** Tries once to perform a group of writes. @throws the failure, and `NoAnswer` if a job is still open without a failure */
  async #attempt(open: Set<WriteJob>): Promise<void> {
    dropAborted(open);
    if (open.size === 0) return;
    let [size, until] = [0, 0];
    for (const job of open) {
      size += job.size;
      until = Math.max(until, job.until);
    }
    const ms = until - performance.now() + size * MS_PER_CHAR;
    await this.#server.attempt(ms, async (session) => {
      const planned = await this.#plan(session, open);
      if (planned.length > 0) await this.#send(session, planned, open);
    });
    if (open.size > 0) throw new NoAnswer('other transactions keep changing the run, or keep it locked');
  }

  async #plan(session: PoolSession, open: Set<WriteJob>): Promise<Planned[]> {
    const planned: Planned[] = [];
    const unknown: WriteJob[] = [];
    for (const job of open) {
      const plan = this.#planFromMemory(job);
      if (plan) planned.push(plan);
      else unknown.push(job);
    }
    if (unknown.length === 0) return planned;
    const ids = unknown.map((job) => job.runId);
    const { tables, times } = this.#server;
    const withInbox = unknown.some(({ kind }) => kind === 'leave');
    const found = await look(session, ids, { tables, times, withInbox });
    for (const job of unknown) {
      const plan = this.#planFrom(job, found.get(job.runId) as FoundRow, open);
      if (plan) planned.push(plan);
    }
    return planned;
  }

  /** A decision from memory is never final: undefined if a read is needed. */
  #planFromMemory(job: WriteJob): Planned | undefined {
    const run = job.hasClaim && job.sent.size === 0 ? this.#known.get(job.runId) : undefined;
    if (!run) return undefined;
    try {
      const decision = job.decide(factsKnown(run));
      return 'need' in decision ? undefined : plannedFor(job, decision, { run, endedBody: run.endedBody });
    } catch (error) {
      if (error instanceof PawlError) return undefined;
      throw error;
    }
  }

  #planFrom(job: WriteJob, found: FoundRow, open: Set<WriteJob>): Planned | undefined {
    const sent = sentFor(job, found);
    if (sent) {
      this.#onLanded(job, sent, open);
      return undefined;
    }
    try {
      const decision = decideNow(job.decide, factsFound(found));
      const plan = plannedFor(job, decision, found);
      if (plan) return plan;
      open.delete(job);
      job.resolve(decision.value);
    } catch (error) {
      this.#refuse([job], open, error);
    }
    return undefined;
  }

  async #send(session: PoolSession, planned: readonly Planned[], open: Set<WriteJob>): Promise<void> {
    for (const plan of planned) plan.job.sent.set(plan.token, plan);
    const replaced = planned.filter(({ change: { start, endedBody } }) => start && endedBody !== undefined);
    const landed = await (replaced.length > 0
      ? this.#replace(session, planned, replaced)
      : this.#write(session, planned));
    for (const plan of planned) {
      if (landed.has(plan.token)) {
        this.#onLanded(plan.job, plan, open);
      } else {
        plan.job.sent.delete(plan.token);
        this.#known.delete(plan.job.runId);
      }
    }
  }

  /** Writes the planned changes of which some replace kept records: those are removed with the write, or not at all. */
  #replace(
    session: PoolSession,
    planned: readonly Planned[],
    replaced: readonly Planned[],
  ): Promise<ReadonlySet<number>> {
    return inTransaction(session, async () => {
      const changes = replaced.map(({ change }) => change);
      await removeEnded(session, this.#server.tables, changes);
      const landed = await this.#write(session, planned);
      if (replaced.every(({ token }) => landed.has(token))) return landed;
      throw new NoAnswer('other transactions keep changing the run, or keep it locked');
    });
  }

  /** Writes the planned changes. @returns the tokens of the stored changes */
  async #write(session: PoolSession, planned: readonly Planned[]): Promise<ReadonlySet<number>> {
    const { appends } = this.#server;
    const [first] = planned;
    // A second try may meet what stopped the first one: the general statement replaces rows that are there.
    const isPlain = planned.length === 1 && first?.job.sent.size === 1 && appends.has(first);
    if (!isPlain) return write(session, planned, this.#server);
    return new Set((await appends.write(session, first)) ? [first.token] : []);
  }

  #onLanded(job: WriteJob, { change, token, record, value }: SentJob, open: Set<WriteJob>): void {
    const { kind, attempts, due, start } = change;
    const endedBody = start ? undefined : change.endedBody;
    const lease = leaseAfter(change);
    this.#known.delete(job.runId);
    // A process that has released or deleted a run does not write to it next.
    if (kind === 'put' && lease?.owner != null)
      this.#known.set(job.runId, { token, lease, attempts, record, due, endedBody });
    for (const runId of this.#known.keys()) {
      if (this.#known.size <= MAX_KNOWN) break;
      this.#known.delete(runId);
    }
    open.delete(job);
    job.resolve(value);
  }

  #refuse(jobs: readonly WriteJob[], open: Set<WriteJob>, error: unknown): void {
    for (const job of jobs) {
      this.#known.delete(job.runId);
      open.delete(job);
      job.reject(this.#server.seen(error));
    }
  }
}

/** A request that may have been executed is not withdrawn. */
function dropAborted(open: Set<WriteJob>): void {
  for (const job of open) {
    if (!job.signal?.aborted || job.sent.size > 0) continue;
    open.delete(job);
    job.reject(job.signal.reason);
  }
}

function plannedFor(
  job: WriteJob,
  decided: Decided<unknown>,
  { run, endedBody }: Pick<FoundRow, 'run' | 'endedBody'>,
): Planned | undefined {
  const { value } = decided;
  const { runId, body } = job;
  const change = decided.change && rowChange(run, decided.change, { runId, body, endedBody });
  if (!change) return undefined;
  const token = Math.floor(Math.random() * 2 ** 53);
  return { job, value, change, token, record: recordAfter(change, token) };
}

/** An earlier request that was executed. */
function sentFor(job: WriteJob, { run }: FoundRow): SentJob | undefined {
  if (run) return job.sent.get(run.token);
  for (const sent of job.sent.values()) if (sent.change.kind === 'remove' || sent.change.kind === 'end') return sent;
  return undefined;
}
