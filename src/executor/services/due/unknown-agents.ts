import type { DueRun, DueStore } from '../../../store/due-port.ts';
import { toErrorData } from '../../../values/error-data.ts';
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
      warn('due.read.failed', { error: toErrorData(error) });
    }
  }

  /** A child may have an agent that only its parent has. */
  async #unknownIn(due: DueStore): Promise<DueRun[]> {
    const found: DueRun[] = [];
    let after: DueRun | undefined;
    for (let page = 0; page < MAX_PAGES; page++) {
      const { runs } = await due.list({ limit: PAGE, ...(after ? { after } : {}) });
      found.push(...runs.filter(({ meta, parent }) => parent === undefined && !this.#isKnown(meta.agentId)));
      after = runs.at(-1);
      if (runs.length < PAGE) break;
    }
    return found;
  }
}

function countsOf(runs: readonly DueRun[]): readonly (readonly [agentId: string, runs: number])[] {
  const counts = new Map<string, number>();
  for (const { meta } of runs) counts.set(meta.agentId, (counts.get(meta.agentId) ?? 0) + 1);
  return [...counts];
}
