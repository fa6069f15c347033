import type { Warn } from '../../../log/log.ts';
import type { Clock } from '../../../values/clock.ts';
import type { ErrorData } from '../../../values/error-data.ts';

/** The runs of an agent that this process could not continue are left alone for this time, doubled up to the longest, ms. */
const FIRST_PAUSE_MS = 30_000;
const LONGEST_PAUSE_MS = 600_000;
/** Shortest time between two warnings about one agent, ms. */
const WARNING_MS = 60_000;

interface Pause {
  /** Monotonic ms. */
  until: number;
  ms: number;
  /** One run is being tried: the others stay where they are until it got past its setup, or did not. */
  isTrying: boolean;
  fault: ErrorData;
  /** The runs that this process has given back since its last warning. */
  readonly runs: Set<string>;
  warnedAt: number;
}

/** A run that was given back. */
interface GivenBack {
  readonly runId: string;
  readonly agentId: string;
  /** What is wrong with the setup of this process. */
  readonly fault: ErrorData;
}

const unwarned = () => ({ runs: new Set<string>(), warnedAt: Number.NEGATIVE_INFINITY });

/**
 * The agents whose runs the setup of this process cannot continue: a model, a key or a tool is missing here. The process leaves all
 * runs of such an agent to others for a while, and then tries one: a worker that was deployed badly must not claim and release a
 * hundred thousand runs.
 */
export class PausedAgents {
  readonly #clock: Clock;
  readonly #warn: Warn;
  readonly #pauses = new Map<string, Pause>();

  constructor(clock: Clock, warn: Warn) {
    this.#clock = clock;
    this.#warn = warn;
  }

  /** Notes a run that was given back. Those that were taken together with it do not make the pause longer. */
  note({ runId, agentId, fault }: GivenBack): void {
    const now = this.#clock.monotonic();
    const before = this.#pauses.get(agentId);
    const pause = before ?? { until: now, ms: 0, isTrying: false, fault, ...unwarned() };
    this.#pauses.set(agentId, pause);
    pause.runs.add(runId);
    pause.isTrying = false;
    pause.fault = fault;
    if (now >= pause.until) {
      pause.ms = pause.ms === 0 ? FIRST_PAUSE_MS : Math.min(LONGEST_PAUSE_MS, pause.ms * 2);
      pause.until = now + pause.ms;
    }
    if (now - pause.warnedAt < WARNING_MS) return;
    const fields = { code: 'SETUP', agentId, runs: pause.runs.size, pauseMs: pause.ms, error: fault };
    this.#warn('setup.failed', fields);
    pause.warnedAt = now;
    pause.runs.clear();
  }

  /** Whether any agent is left alone, or was so a moment ago. */
  get isAny(): boolean {
    return this.#pauses.size > 0;
  }

  /** Returns whether a run of this agent may be taken now. */
  mayTake(agentId: string): boolean {
    const pause = this.#pauses.get(agentId);
    return !pause || (!pause.isTrying && pause.until <= this.#clock.monotonic());
  }

  /** Enters the next run of an agent. After a pause it is the only one until `leave`. @returns whether it may be tried */
  enter(agentId: string): boolean {
    if (!this.mayTake(agentId)) return false;
    const pause = this.#pauses.get(agentId);
    if (pause) pause.isTrying = true;
    return true;
  }

  /** A run that was entered has begun, or was refused. @param isPast it has recorded something: the setup is whole again */
  leave(agentId: string, isPast: boolean): void {
    const pause = this.#pauses.get(agentId);
    if (!pause || pause.until > this.#clock.monotonic()) return;
    if (isPast) this.#pauses.delete(agentId);
    else pause.isTrying = false;
  }

  /** Ends the pause of an agent: a person wants its run to be tried. */
  retry(agentId: string): void {
    this.#pauses.delete(agentId);
  }

  /** Returns what was missing for the last run of an agent; undefined = the agent is not left alone. */
  faultOf(agentId: string): ErrorData | undefined {
    return this.#pauses.get(agentId)?.fault;
  }

  /** Returns for how long an agent is left alone, ms; 0 = its next run may be tried. */
  leftMs(agentId: string): number {
    const pause = this.#pauses.get(agentId);
    return pause ? Math.max(0, pause.until - this.#clock.monotonic()) : 0;
  }

  /** Returns when the next agent may be tried again, ms; undefined = none is left alone. */
  get nextMs(): number | undefined {
    const left = [...this.#pauses.keys()].map((agentId) => this.leftMs(agentId)).filter((ms) => ms > 0);
    return left.length === 0 ? undefined : Math.min(...left);
  }
}
