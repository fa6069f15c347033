import { insideOf } from '../../executor/inside.ts';
import type { Grant } from '../../http/authorize.ts';
import type { Served } from '../../http/route.ts';
import { type ErrorData, toErrorData } from '../../values/error-data.ts';
import type { RunLine, WatchFrame } from '../wire.ts';
import { Audience } from './audience.ts';
import type { Tab } from './tab.ts';

/** The pause between two looks at the store, ms. */
const POLL_MS = 500;
/** The longest pause while the store does not answer, ms. */
const AWAY_MS = 10_000;
/** Failures in a row after which the store counts as away. */
const AWAY_AFTER = 2;
/** A process that dies writes nothing: the list is read again after this time without a write, ms. */
const RELIST_MS = 10_000;

/** Most lines that are sent at once: a tab holds fewer. */
const SENT_LINES = 1_000;

/** A tab that watches. */
interface Watching {
  readonly tab: Tab;
  readonly grant: Grant;
  /** It wants the lines of all runs. */
  readonly hasRuns: boolean;
  /** The run whose view it shows, which may be one below others. */
  readonly runId: string | undefined;
}

interface Watched extends Watching {
  readonly audience: Audience;
  /** The line of its run that it has; undefined = none yet. */
  shown?: string;
  isGone?: true;
  /** It has the first lines. */
  isWelcome?: true;
}

/** Looks at the store for all tabs of a Studio: twice a second while there is one, else never. */
export class Watcher {
  readonly #served: Served;
  readonly #tabs = new Set<Watched>();
  readonly #audiences = new Map<string, Audience>();
  #timer: unknown;
  #mark: string | undefined;
  #listedAt = Number.NEGATIVE_INFINITY;
  #failures = 0;
  /** Why the store counts as away. */
  #away: ErrorData | undefined;
  #looking: Promise<void> | undefined;

  constructor(served: Served) {
    this.#served = served;
  }

  /** Watches for a tab. @returns ends that */
  add(watching: Watching): () => void {
    const { grant } = watching;
    const key = keyOf(grant);
    const audience = this.#audiences.get(key) ?? this.#newAudience(grant);
    this.#audiences.set(key, audience);
    const watched: Watched = { ...watching, audience };
    this.#tabs.add(watched);
    void this.#welcome(watched);
    return () => {
      this.#tabs.delete(watched);
      if (![...this.#tabs].some((each) => each.audience === audience)) this.#audiences.delete(key);
      if (this.#tabs.size === 0) this.#rest();
    };
  }

  /** The readers of a grant, with what they know if a tab of theirs watches. */
  audienceOf(grant: Grant): Audience {
    const found = this.#audiences.get(keyOf(grant));
    const isWatched = [...this.#tabs].some((each) => each.audience === found && each.isWelcome && each.hasRuns);
    return found && isWatched ? found : this.#newAudience(grant);
  }

  #newAudience({ all, callerId }: Grant): Audience {
    return new Audience(this.#served, all ? undefined : callerId);
  }

  /** A new tab gets what is there: what other tabs of its readers know by now, or else one look at all of it. */
  async #welcome(watched: Watched): Promise<void> {
    const { tab, audience, hasRuns } = watched;
    await this.#looking;
    const isKnown = [...this.#tabs].some((each) => each.audience === audience && each.isWelcome && each.hasRuns);
    if (!isKnown) this.#listedAt = Number.NEGATIVE_INFINITY;
    await this.#look();
    if (isKnown) await this.#readShown(audience, [watched]).catch((error: unknown) => this.#onFailure(error));
    if (!this.#tabs.has(watched)) return;
    watched.isWelcome = true;
    if (this.#away) tab.store(awayFor(this.#away, watched.grant));
    tab.lines(hasRuns ? audience.first : []);
  }

  /** Without a tab nothing is asked. */
  #rest(): void {
    this.#served.web.clock.clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#mark = undefined;
    this.#failures = 0;
    this.#away = undefined;
    this.#listedAt = Number.NEGATIVE_INFINITY;
  }

  #arm(): void {
    const { clock } = this.#served.web;
    clock.clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#tabs.size === 0) return;
    const pause = this.#failures < AWAY_AFTER ? POLL_MS : Math.min(AWAY_MS, POLL_MS * 2 ** (this.#failures - 1));
    this.#timer = clock.setTimeout(() => void this.#look(), pause);
  }

  /** One look. Never rejects. */
  #look(): Promise<void> {
    this.#looking ??= this.#lookOnce().finally(() => {
      this.#looking = undefined;
      this.#arm();
    });
    return this.#looking;
  }

  async #lookOnce(): Promise<void> {
    try {
      const { executor, web } = this.#served;
      const now = web.clock.monotonic();
      const mark = await insideOf(executor).changeMark();
      const isSame = mark !== undefined && mark === this.#mark && now - this.#listedAt < RELIST_MS;
      if (!isSame || executor.runs.get().length > 0 || this.#owesWhole()) await this.#read(now);
      this.#mark = mark;
      if (this.#away) for (const { tab } of this.#tabs) tab.store({ type: 'store', isAway: false });
      this.#away = undefined;
      this.#failures = 0;
    } catch (error) {
      this.#onFailure(error);
    }
  }

  #owesWhole(): boolean {
    return [...this.#audiences.values()].some(({ owesWhole }) => owesWhole);
  }

  /** Reads once for each audience. @param now monotonic ms */
  async #read(now: number): Promise<void> {
    for (const audience of new Set([...this.#tabs].map((each) => each.audience))) {
      const watching = [...this.#tabs].filter((each) => each.audience === audience);
      if (watching.some(({ hasRuns }) => hasRuns)) {
        const { lines, gone } = await audience.read();
        const sent = lines.length <= SENT_LINES ? lines : newest(lines);
        for (const { tab, hasRuns, isWelcome } of watching) if (hasRuns && isWelcome) tab.lines(sent, gone);
      }
      await this.#readShown(audience, watching);
    }
    this.#listedAt = now;
  }

  /** The run that a tab shows may be one below others, which no list has. */
  async #readShown(audience: Audience, watching: readonly Watched[]): Promise<void> {
    const found = new Map<string, RunLine | undefined>();
    for (const each of watching) {
      const { runId, tab } = each;
      if (runId === undefined || each.isGone) continue;
      if (!found.has(runId)) found.set(runId, await audience.find(runId));
      const line = found.get(runId);
      const text = JSON.stringify(line);
      if (line && text !== each.shown) tab.lines([line]);
      if (!line) {
        each.isGone = true;
        tab.lines([], [runId]);
      }
      each.shown = text;
    }
  }

  #onFailure(error: unknown): void {
    this.#failures += 1;
    this.#mark = undefined;
    if (this.#failures !== AWAY_AFTER) return;
    this.#served.web.warn('studio.store.away', { error });
    this.#away = toErrorData(error);
    for (const { tab, grant } of this.#tabs) tab.store(awayFor(this.#away, grant));
  }
}

function keyOf({ all, callerId }: Grant): string {
  return all ? '' : `=${callerId}`;
}

/** The message of a store may name hosts and paths. */
function awayFor({ code, message }: ErrorData, { all }: Grant): Extract<WatchFrame, { type: 'store' }> {
  return { type: 'store', isAway: true, code, ...(all ? { message } : {}) };
}

function newest(lines: readonly RunLine[]): readonly RunLine[] {
  return [...lines].sort((a, b) => (b.updatedAt ?? 0) - (a.updatedAt ?? 0)).slice(0, SENT_LINES);
}
