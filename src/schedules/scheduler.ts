import type { Warn } from '../log/log.ts';
import type { ScheduleStore, StoredSchedule, TickRun } from '../store/schedules/port.ts';
import type { Clock } from '../values/clock.ts';
import { withDeadline } from '../values/deadline.ts';
import { toErrorData } from '../values/error-data.ts';
import type { DefinedSchedule, ScheduledRun } from './definition.ts';
import { goneRow, judgeTick, type Looker, type SettledTick, settledRow, type TickVerdict, tickRunId } from './rules.ts';

/** What schedules need of an executor. */
interface SchedulerParts {
  readonly store: ScheduleStore;
  readonly clock: Clock;
  readonly random: () => number;
  readonly warn: Warn;
  readonly deployment: number | undefined;
  /** Longest time of a call of `start`, ms. */
  readonly ms: number;
  /** Makes the first record of a run. @throws for a value that is no run */
  readonly recordOf: (run: ScheduledRun, of: { readonly runId: string; readonly schedule: string }) => Promise<TickRun>;
  /** Whether a run has ended, or is parked. */
  readonly hasEnded: (runId: string) => Promise<boolean>;
  /** Redacts a text for the store. */
  readonly redacted: (text: string) => string;
  /** A run is admitted: it is due now. */
  readonly admitted: (runId: string) => void;
  /** A shutdown waits for this work. */
  readonly outlive: <T>(work: Promise<T>) => Promise<T>;
}

/** What a process knows of a schedule. */
interface Known {
  readonly schedule: DefinedSchedule;
  /** When to look at it, wall clock, ms. */
  at: number;
  isBusy: boolean;
  /** Another process was first the last time: it is first again, most likely. */
  isBehind: boolean;
}

/** A suspended computer, or a clock that is set, is noticed within this time, ms. */
const LOOK_MS = 60_000;
/** The pause after a store that did not answer, ms. */
const RETRY_MS = 5_000;
/** How much later looks a process that was not the first, at most, ms. */
const BEHIND_MS = 500;
/** How many times a tick is tried again because other processes write its schedule. */
const MAX_TRIES = 20;

/** How much of an error of `start` is kept. */
const MAX_ERROR_CHARS = 1_000;

/** Why a tick began no run. */
const whyNot = {
  skipped: 'schedule.skipped',
  missed: 'schedule.missed',
  failed: 'schedule.start.failed',
} as const;

/**
 * Settles the ticks of an executor's schedules: one timer for all of them, which keeps no process alive. Every process does the same,
 * and the store lets one be the first: there is no leader.
 */
export class Scheduler {
  readonly #parts: SchedulerParts;
  readonly #known: readonly Known[];
  /** The rows as this process has last read or written them. */
  #rows: Map<string, StoredSchedule> | undefined;
  #reading: Promise<void> | undefined;
  #beganAt = 0;
  #timer: unknown;
  #users = 0;
  #isOver = false;
  #isFailing = false;

  constructor(schedules: readonly DefinedSchedule[], parts: SchedulerParts) {
    this.#parts = parts;
    this.#known = schedules.map((schedule) => ({
      schedule,
      at: Number.NEGATIVE_INFINITY,
      isBusy: false,
      isBehind: false,
    }));
  }

  /** Looks from now on, until each caller has ended it. @returns ends it for this caller */
  begin(): () => void {
    if (this.#isOver) return () => {};
    this.#users += 1;
    if (this.#users === 1) {
      this.#beganAt = this.#parts.clock.now();
      this.#rows = undefined;
      for (const known of this.#known) known.at = Number.NEGATIVE_INFINITY;
      this.#look();
    }
    let isEnded = false;
    return () => {
      if (isEnded) return;
      isEnded = true;
      this.#users -= 1;
      if (this.#users === 0) this.#parts.clock.clearTimeout(this.#timer);
    };
  }

  /** Looks no more. */
  end(): void {
    this.#isOver = true;
    this.#parts.clock.clearTimeout(this.#timer);
  }

  #look(): void {
    if (this.#isOver || this.#users === 0) return;
    const { clock, outlive } = this.#parts;
    const now = clock.now();
    if (!this.#rows && !this.#reading) void outlive(this.#readFirst());
    const due = this.#known.filter(({ at, isBusy }) => at <= now && !isBusy);
    if (this.#rows) for (const known of due) void outlive(this.#settle(known));
    this.#arm(now);
  }

  #arm(now: number): void {
    const { clock } = this.#parts;
    clock.clearTimeout(this.#timer);
    let next = now + LOOK_MS;
    for (const { at, isBusy } of this.#known) if (!isBusy && at < next) next = at;
    // Until the rows are read nothing is done; what reads them looks again.
    const ms = this.#rows ? Math.max(1, Math.ceil(next - now)) : LOOK_MS;
    this.#timer = clock.setTimeout(() => this.#look(), ms);
    unreferenced(this.#timer);
  }

  /** Reads what the store keeps, and marks what this deployment does not define any more. Never rejects. */
  async #readFirst(): Promise<void> {
    const { store, clock } = this.#parts;
    try {
      await this.#read();
      const own = new Set(this.#known.map(({ schedule }) => schedule.id));
      for (const row of this.#rows?.values() ?? []) {
        const gone = own.has(row.id) ? undefined : goneRow(row, this.#looker());
        if (gone) await store.note(gone);
      }
    } catch (error) {
      this.#onFailure(error);
      if (!this.#rows) {
        clock.clearTimeout(this.#timer);
        this.#timer = clock.setTimeout(() => this.#look(), RETRY_MS);
        return unreferenced(this.#timer);
      }
    }
    this.#look();
  }

  /** Reads the rows; calls that come together share one read. */
  #read(): Promise<void> {
    this.#reading ??= this.#parts.store
      .list()
      .then((rows) => {
        this.#rows = new Map(rows.map((row) => [row.id, row]));
        this.#isFailing = false;
      })
      .finally(() => {
        this.#reading = undefined;
      });
    return this.#reading;
  }

  /** Does what is to be done about a schedule now, and says when to look again. Never rejects. */
  async #settle(known: Known): Promise<void> {
    const { schedule } = known;
    const { clock, random } = this.#parts;
    known.isBusy = true;
    try {
      if (known.isBehind) await this.#read();
      known.isBehind = await this.#settleDue(known);
      const next = schedule.isEnabled ? schedule.ticks.next(clock.now()) : undefined;
      known.at = (next ?? Number.POSITIVE_INFINITY) + (known.isBehind ? (0.4 + 0.6 * random()) * BEHIND_MS : 0);
    } catch (error) {
      this.#onFailure(error);
      known.at = clock.now() + RETRY_MS;
    } finally {
      known.isBusy = false;
      if (!this.#isOver && this.#users > 0) this.#arm(clock.now());
    }
  }

  /** Settles what is due of a schedule. @returns whether another process was first */
  async #settleDue(known: Known): Promise<boolean> {
    const { schedule } = known;
    let isBehind = false;
    let isFresh = known.isBehind;
    for (let tries = 0; tries < MAX_TRIES && !this.#isOver; tries++) {
      const verdict = judgeTick(schedule, this.#rows?.get(schedule.id), this.#looker());
      if (verdict.does === 'nothing') {
        if (isFresh) return isBehind;
        // It may have been resumed, or defined by another process, since this one has read or written it.
        isFresh = true;
        await this.#read();
        continue;
      }
      if (!(verdict.does === 'define' ? await this.#note(verdict.row) : await this.#settleTick(schedule, verdict))) {
        isBehind = true;
        await this.#read();
      }
      isFresh = true;
    }
    return isBehind;
  }

  async #settleTick(schedule: DefinedSchedule, verdict: Extract<TickVerdict, { does: 'tick' }>): Promise<boolean> {
    const { settled, run } = await this.#outcomeOf(schedule, verdict);
    const row = settledRow(schedule, verdict, settled);
    if (!(await this.#note(row, run))) return false;
    this.#tell(schedule.id, { settled, due: verdict.due });
    return true;
  }

  async #outcomeOf(
    { id, start, overlap, missed }: DefinedSchedule,
    { row, due, isLate }: Extract<TickVerdict, { does: 'tick' }>,
  ): Promise<{ readonly settled: SettledTick; readonly run?: TickRun }> {
    const { clock, ms, recordOf, hasEnded, redacted } = this.#parts;
    if (isLate && missed === 'skip') return { settled: { as: 'missed' } };
    const isOverlapping = overlap === 'skip' && row.lastRunId !== undefined && !(await hasEnded(row.lastRunId));
    if (isOverlapping) return { settled: { as: 'skipped' } };
    const runId = tickRunId(id, due.newest);
    try {
      const what = `start of schedule ${id}`;
      const started = (async () => start(new Date(due.newest)))();
      const run = await recordOf(await withDeadline(started, { ms, clock, what }), { runId, schedule: id });
      return { settled: { as: 'started', runId }, run };
    } catch (error) {
      const message = redacted(toErrorData(error).message).slice(0, MAX_ERROR_CHARS);
      return { settled: { as: 'failed', error: message } };
    }
  }

  async #note(row: StoredSchedule, run?: TickRun): Promise<boolean> {
    const isNoted = await this.#parts.store.note(row, run);
    if (isNoted) this.#rows?.set(row.id, row);
    return isNoted;
  }

  #tell(
    schedule: string,
    { settled, due }: { settled: SettledTick; due: Extract<TickVerdict, { does: 'tick' }>['due'] },
  ): void {
    const { warn, admitted } = this.#parts;
    const tick = new Date(due.newest).toISOString();
    if (due.older > 0) warn('schedule.missed', { schedule, ticks: due.older });
    if (settled.as === 'started') admitted(settled.runId);
    else
      warn(whyNot[settled.as], {
        schedule,
        tick,
        ...(settled.as === 'missed' ? { ticks: 1 } : {}),
        ...(settled.as === 'failed' ? { error: settled.error } : {}),
      });
  }

  #looker(): Looker {
    return { now: this.#parts.clock.now(), deployment: this.#parts.deployment, beganAt: this.#beganAt };
  }

  #onFailure(error: unknown): void {
    if (!this.#isFailing) this.#parts.warn('schedule.read.failed', { error });
    this.#isFailing = true;
  }
}

/** The timer may be of a host's clock: it need not have the method, and the method may throw. */
function unreferenced(timer: unknown): void {
  try {
    (timer as { unref?: () => void } | undefined)?.unref?.();
  } catch {
    // The timer then keeps the process alive; `end` clears it.
  }
}
