import type { Served } from '../../http/route.ts';
import { type AnyRun, endedLine, runLine, runStates } from '../../http/runs/run-line.ts';
import { Below, maxStepsOf, withoutOwner } from '../../http/runs/run-list.ts';
import type { FoundRun, KeptRun, ListedRun, ListRunsOptions } from '../../index.ts';
import { hasCode } from '../../values/error-data.ts';
import { nextTurn } from '../../values/event-loop.ts';
import type { RunLine, RunState, StoreView } from '../wire.ts';

/** Most runs that have not ended whose lines are compared. */
const OPEN_RUNS = 20_000;
/** Runs that ended: the newest. */
const ENDED_RUNS = 100;
/** Runs that ended and are remembered. */
const KEPT_ENDED = 5_000;
/** Runs that are counted while no tab watches; runs that ended and are counted. */
const COUNTED_RUNS = 1_000;
/** Most lines of the first frame of a tab. */
const FIRST_LINES = 300;
/** Runs that are not in the list any more, and are looked for at one time. */
const LOOKED_FOR = 100;
/** Lines that are made in one turn of the event loop. */
const RUNS_PER_TURN = 200;
/** The clocks of hosts may differ by so much, ms. */
const SKEW_MS = 5_000;
/** A whole list may take this share of the time; between two of them only what is new is read. */
const LISTING_SHARE = 0.05;

/** What has changed for the readers of an audience. */
interface Change {
  readonly lines: readonly RunLine[];
  readonly gone: readonly string[];
}

interface Missing extends Change {
  /** Whether there are more. */
  readonly isPartial: boolean;
}

interface Known {
  /** The parts of the line that change. */
  readonly key: string;
  readonly line: RunLine;
  readonly isOpen: boolean;
}

/** Readers who may see the same runs: those of one caller, or those who see all. */
export class Audience {
  readonly #served: Served;
  /** Undefined: they see the runs of all. */
  readonly #callerId: string | undefined;
  #known = new Map<string, Known>();
  /** When the next whole list is due, monotonic ms. */
  #wholeAt = Number.NEGATIVE_INFINITY;
  /** The newest time of a record in the last list. */
  #newest = 0;

  constructor(served: Served, callerId: string | undefined) {
    this.#served = served;
    this.#callerId = callerId;
  }

  /** Whether the last reading may have missed that a run is gone. */
  owesWhole = true;

  /** The lines of a new tab: those that need a person first. */
  get first(): readonly RunLine[] {
    const lines = [...this.#known.values()].map(({ line }) => line);
    const rank = ({ state }: RunLine) => runStates.indexOf(state);
    return lines.sort((a, b) => rank(a) - rank(b) || (b.updatedAt ?? 0) - (a.updatedAt ?? 0)).slice(0, FIRST_LINES);
  }

  /**
   * Counts the runs in each state: those of the last reading if a tab watches, else those that come first.
   * @throws the store's error
   */
  async counts(): Promise<Pick<StoreView, 'counts' | 'isPartial'>> {
    const known = [...this.#known.values()].flatMap(({ isOpen, line }) => (isOpen ? [line] : []));
    const isKnown = this.#wholeAt !== Number.NEGATIVE_INFINITY;
    const open = isKnown ? [] : await this.#list({ limit: COUNTED_RUNS });
    const ended = await this.#listEnded(COUNTED_RUNS);
    const counts: { [state in RunState]?: number } = {};
    const lines = [...known, ...(await this.#linesOf([...open, ...ended]))];
    for (const { state } of lines) counts[state] = (counts[state] ?? 0) + 1;
    const isPartial = [open.length, ended.length].includes(COUNTED_RUNS) || known.length >= OPEN_RUNS;
    return { counts, isPartial };
  }

  /** Reads what has changed. @param isAll whether to read the whole list even if that was done a moment ago @throws the store's error */
  async read(isAll = false): Promise<Change> {
    const { clock } = this.#served.web;
    const began = clock.monotonic();
    const isWhole = isAll || began >= this.#wholeAt;
    const open = await this.#open(isWhole);
    const lines = await this.#linesOf([...open, ...(await this.#listEnded())]);
    const missing = isWhole ? await this.#missing(new Set(lines.map(({ runId }) => runId))) : noChange;
    const changed = [...lines, ...missing.lines].filter((line) => this.#isNews(line));
    for (const runId of missing.gone) this.#known.delete(runId);
    if (isWhole) this.#wholeAt = began + (clock.monotonic() - began) / LISTING_SHARE;
    this.owesWhole = !isWhole || missing.isPartial;
    return { lines: changed, gone: missing.gone };
  }

  /** All runs that have not ended; or those that are live here, and those with a new record. */
  async #open(isWhole: boolean): Promise<readonly ListedRun[]> {
    const { executor } = this.#served;
    const after = isWhole ? {} : { after: { runId: '', updatedAt: Math.max(0, this.#newest - SKEW_MS) } };
    const found = await this.#list({ limit: OPEN_RUNS, ...after });
    for (const { updatedAt } of found) this.#newest = Math.max(this.#newest, updatedAt ?? 0);
    if (isWhole) return found;
    const live = executor.runs.get().length;
    return live === 0 ? found : [...found, ...(await this.#list({ limit: live }))];
  }

  #list(options: ListRunsOptions): Promise<readonly ListedRun[]> {
    const own = this.#callerId === undefined ? {} : { callerId: this.#callerId };
    return this.#served.executor.list({ ...options, ...own });
  }

  async #listEnded(limit = ENDED_RUNS): Promise<readonly AnyRun[]> {
    const own = this.#callerId === undefined ? {} : { callerId: this.#callerId };
    const page = await this.#served.executor.history({ limit, ...own }).catch((error: unknown): readonly KeptRun[] => {
      if (hasCode(error, 'UNSUPPORTED') || hasCode(error, 'NOT_DURABLE')) return [];
      throw error;
    });
    return page.map((run) => (run.status === 'quarantined' ? run : endedLine(run)));
  }

  /** Runs below others are part of the line of their root. */
  async #linesOf(runs: readonly AnyRun[]): Promise<RunLine[]> {
    const below = new Below(this.#served);
    const lines: RunLine[] = [];
    for (const [at, run] of runs.entries()) {
      // Requests must not wait until a list of thousands is read.
      if (at % RUNS_PER_TURN === RUNS_PER_TURN - 1) await nextTurn();
      if (!('parent' in run && run.parent)) lines.push(await this.line(run, below));
    }
    return lines;
  }

  /** Makes the line of a run as these readers may see it. @param below counts how many runs are looked at */
  async line(run: AnyRun, below: Below): Promise<RunLine> {
    const all = this.#callerId === undefined;
    const agentId = ('meta' in run ? run.meta?.agentId : undefined) ?? '';
    const maxSteps = maxStepsOf(this.#served, agentId);
    const line = runLine(run, { all, maxSteps, ...(await below.look(run)) });
    return all ? line : withoutOwner(line);
  }

  /** What became of known runs that the list does not have any more. */
  async #missing(listed: ReadonlySet<string>): Promise<Missing> {
    const lines: RunLine[] = [];
    const gone: string[] = [];
    const away = [...this.#known].filter(([runId, { isOpen }]) => isOpen && !listed.has(runId));
    for (const [runId] of away.slice(0, LOOKED_FOR)) {
      const line = await this.find(runId);
      if (line) lines.push(line);
      else gone.push(runId);
    }
    return { lines, gone, isPartial: away.length > LOOKED_FOR };
  }

  /** Finds the line of one run; undefined if nothing of it is stored any more. */
  async find(runId: string): Promise<RunLine | undefined> {
    try {
      const found = await this.#served.executor.find(runId, { owner: true });
      return found && (await this.#isOwn(found)) ? await this.line(found, new Below(this.#served)) : undefined;
    } catch (error) {
      const code = unreadable.find((each) => hasCode(error, each));
      if (code === undefined) throw error;
      return runLine({ runId, status: 'quarantined', reason: `${code}: it cannot be read` });
    }
  }

  /** An id that was erased may be that of another caller's run by now. A run belongs to the caller of its root. */
  async #isOwn(run: FoundRun): Promise<boolean> {
    if (this.#callerId === undefined) return true;
    const root = run.parent ? await this.#served.executor.find(run.parent.rootRunId) : run;
    return root?.meta?.callerId === this.#callerId;
  }

  /** Forgets runs that ended: those that ended first. */
  #forget(): void {
    const ended = [...this.#known].filter(([, { isOpen }]) => !isOpen).slice(0, -ENDED_RUNS);
    for (const [runId] of ended) this.#known.delete(runId);
  }

  #isNews(line: RunLine): boolean {
    const key = keyOf(line);
    if (this.#known.get(line.runId)?.key === key) return false;
    this.#known.set(line.runId, { key, line, isOpen: !endStates.has(line.state) });
    if (this.#known.size > OPEN_RUNS + KEPT_ENDED) this.#forget();
    return true;
  }
}

const noChange: Missing = { lines: [], gone: [], isPartial: false };
const unreadable = ['CHECKPOINT_CORRUPT', 'CHECKPOINT_TOO_NEW', 'KEY_MISMATCH'];
const endStates: ReadonlySet<string> = new Set(['ok', 'fail', 'cut']);

function keyOf({ state, where, why, code, steps, tokens, usd, updatedAt, owner, children }: RunLine): string {
  return JSON.stringify([state, where, why, code, steps, tokens, usd, updatedAt, owner, children]);
}
