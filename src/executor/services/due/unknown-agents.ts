import type { DueRun, DueStore } from '../../../store/due-port.ts';
import type { Config } from '../../host/config.ts';

/** How often the due runs are looked at, and how long one waits before it is reported, ms. */
const EVERY_MS = 60_000;
/** Most due runs of one look: a page each. A longer list hides the rest until it is shorter. */
const PAGE = 100;
const MAX_PAGES = 10;
/** Most warnings of one look. The ids of agents come from the store. */
const MAX_WARNINGS = 20;

/**
 * Warns of due runs that wait for an agent which no process seems to have: this one does not have it, and no other has taken them for
 * a minute. Nothing else reports them: a worker asks its store for the runs of its own agents only.
 */
export class UnknownAgents {
  readonly #config: Config;
  readonly #isKnown: (agentId: string) => boolean;
  readonly #due: DueStore | undefined;
  /** The runs without an agent of the last look. */
  #before: ReadonlySet<string> = new Set();
  /** Monotonic ms. */
  #lookedAt: number | undefined;
  #isLooking = false;
  #hasLookedAtResting = false;

  /** @param isKnown whether this process has an agent, by its id */
  constructor(config: Config, isKnown: (agentId: string) => boolean) {
    this.#config = config;
    this.#isKnown = isKnown;
    this.#due = config.store?.due;
  }

  /** Looks, once in a minute at most, and not in the first one. Never throws, and no caller waits for it. */
  look(): void {
    const now = this.#config.clock.monotonic();
    this.#lookedAt ??= now;
    if (!this.#due || this.#isLooking || now - this.#lookedAt < EVERY_MS) return;
    this.#lookedAt = now;
    this.#isLooking = true;
    void this.#look(this.#due).finally(() => {
      this.#isLooking = false;
    });
  }

  async #look(due: DueStore): Promise<void> {
    const { warn } = this.#config;
    try {
      const found = await this.#unknownIn(due);
      const waiting = found.filter(({ runId }) => this.#before.has(runId));
      this.#before = new Set(found.map(({ runId }) => runId));
      for (const [agentId, runs] of countsOf(waiting).slice(0, MAX_WARNINGS))
        warn('agent.unknown', {
          code: 'AGENT_NOT_FOUND',
          agentId,
          runs,
        });
    } catch (error) {
      warn('due.read.failed', { error });
    }
  }

  /**
   * Looks at the runs that rest, once: a deployment that lacks a workflow should learn it before its timers are due. Never throws. Another
   * process may have the agents, so only one page is read.
   */
  async lookAtResting(): Promise<void> {
    const { store, warn } = this.#config;
    // Only such a store has runs that rest.
    if (!store?.due || this.#hasLookedAtResting) return;
    this.#hasLookedAtResting = true;
    try {
      const page = await store.listInterrupted({ status: 'waiting', limit: PAGE });
      const runs = page.flatMap((run) => ('meta' in run && this.#isUnknown(run) ? [run] : []));
      const agentIds = countsOf(runs).map(([agentId]) => agentId);
      if (runs.length > 0)
        warn('agent.absent', { code: 'AGENT_NOT_FOUND', agentIds: agentIds.slice(0, MAX_WARNINGS), runs: runs.length });
    } catch (error) {
      warn('due.read.failed', { error });
    }
  }

  #isUnknown({ meta, parent }: Listed): boolean {
    return parent === undefined && !this.#isKnown(meta.agentId);
  }

  /** A child may have an agent that only its parent has. */
  async #unknownIn(due: DueStore): Promise<DueRun[]> {
    const found: DueRun[] = [];
    let after: DueRun | undefined;
    for (let page = 0; page < MAX_PAGES; page++) {
      const { runs } = await due.list({ limit: PAGE, ...(after ? { after } : {}) });
      found.push(...runs.filter((run) => this.#isUnknown(run)));
      after = runs.at(-1);
      if (runs.length < PAGE) break;
    }
    return found;
  }
}

/** What a list says of a run. */
type Listed = Pick<DueRun, 'meta' | 'parent'>;

function countsOf(runs: readonly Listed[]): readonly (readonly [agentId: string, runs: number])[] {
  const counts = new Map<string, number>();
  for (const { meta } of runs) counts.set(meta.agentId, (counts.get(meta.agentId) ?? 0) + 1);
  return [...counts];
}
