import type { Activity, CriticHandle, SupervisedRun } from '../../critic/port.ts';
import { giveCalls } from '../../model/given-calls.ts';
import type { RunEvent } from '../../run/events/body.ts';
import { isActiveAs } from '../../run/events/table.ts';
import type { Limits } from '../../run/limits.ts';
import type { Progress } from '../../run/progress.ts';
import type { RunInfo } from '../../run/request.ts';
import { withDeadline } from '../../values/deadline.ts';
import { readProperty } from '../../values/error-data.ts';
import { CriticKillError } from '../../values/errors.ts';
import { frozenJson, isObject, type JsonObject } from '../../values/json.ts';
import { enterMessage } from '../../values/message.ts';
import { isThenable, letGo } from '../../values/thenable.ts';
import type { Config } from '../host/config.ts';
import { guarded } from '../host/guard.ts';
import type { ObservedRun, Observer } from '../host/observers.ts';
import { callTraced } from '../host/tracing.ts';
import type { RunActor } from './run-actor.ts';
import type { RunTime } from './run-time.ts';

/** The longest working time of a run with a critic, over all processes; its `maxRuntimeMs` is only a hint then. */
export const WATCHED_RUNTIME_MS = 24 * 3_600_000;

/** A longer nudge is refused. */
const MAX_NUDGE = 10_000;
const TAIL = 6;

/** The parts of a run that its critic uses. */
export interface Watched {
  readonly runId: string;
  readonly services: { readonly config: Config };
  readonly actor: RunActor;
  readonly observed: ObservedRun;
  readonly progress: Progress | undefined;
  readonly time: Pick<RunTime, 'elapsedMs'>;
  send(event: Parameters<RunActor['send']>[0]): void;
  stop(cause: unknown): void;
  onEnd(cleanup: () => void): void;
}

/** What earlier processes left. */
interface Past {
  readonly softLimitMs: number;
  /** Working time, ms. */
  readonly elapsedMs: number;
  readonly saved: JsonObject | undefined;
  /** Where the run is, until its machine knows. */
  readonly progress: Progress;
  readonly limits: Limits;
}

/**
 * Connects a run to its critic: passes activity, applies nudges, extensions and kills, contains the critic's failures. While the
 * run only waits, its critic is stopped: it has timers of its own, and would find the run idle.
 */
export class CriticMonitor implements Observer {
  readonly #run: Watched;
  readonly #info: RunInfo;
  readonly #past: Past;
  #handle!: CriticHandle;
  #onActivity: ((activity: Activity) => void) | undefined;
  #isPaused = false;
  /** Signs of life that were not yet reported to the critic. */
  #signs: Activity[] = [];
  /** The state that the critic returned last. */
  #state: JsonObject | undefined;

  private constructor(run: Watched, handle: CriticHandle, { info, past }: { info: RunInfo; past: Past }) {
    this.#run = run;
    this.#info = info;
    this.#past = past;
    this.#state = past.saved;
    this.#begin(handle);
    run.onEnd(() => {
      this.#signs = [];
      if (!this.#isPaused) this.#stop();
    });
  }

  /** Starts the critic of a run. @returns undefined if no critic watches this run */
  static start(run: Watched, info: RunInfo, past: Past) {
    const handle = handleOf(run, info, past);
    return handle && new CriticMonitor(run, handle, { info, past });
  }

  /** Stops the critic until the run works again. */
  pause(): void {
    if (this.#isPaused) return;
    this.#tell();
    // The last state of this critic: the next one begins with it.
    void this.state;
    this.#isPaused = true;
    this.#stop();
  }

  /** Starts the critic again, with its state, as in a new process. */
  resume(): void {
    if (!this.#isPaused) return;
    const handle = handleOf(this.#run, this.#info, { ...this.#past, saved: this.#state });
    if (!handle) return;
    this.#isPaused = false;
    this.#begin(handle);
  }

  #begin(handle: CriticHandle): void {
    this.#handle = handle;
    const { warn } = this.#run.services.config;
    this.#onActivity = guarded('the critic', (activity: Activity) => handle.onActivity(activity), warn);
  }

  #stop(): void {
    guarded('the critic', () => this.#handle.stop(), this.#run.services.config.warn)?.();
  }

  /**
   * The critic gets the event after the save that contains it has started. So the critic's actions and its own state of them
   * are in one record: the next one.
   */
  onEvent(event: RunEvent): void {
    const sign = this.#isPaused ? undefined : signOf(event);
    if (!sign) return;
    if (this.#signs.push(sign) === 1) queueMicrotask(() => this.#tell());
  }

  #tell(): void {
    for (const sign of this.#signs.splice(0)) this.#onActivity?.(sign);
  }

  get canRaiseSteps(): boolean {
    return typeof readProperty(this.#handle, 'onOutOfSteps') === 'function';
  }

  /** Resolves when the critic has answered about the step limit, or its time is up. */
  async outOfSteps(): Promise<void> {
    const { clock, defaults, warn } = this.#run.services.config;
    if (this.#isPaused) return;
    this.#tell();
    try {
      const asked = Promise.resolve(this.#handle.onOutOfSteps?.());
      await withDeadline(asked, { ms: defaults.portMs, clock, what: 'the critic' });
    } catch (error) {
      warn('critic.failed', {
        runId: this.#run.runId,
        outcome: 'it did not say whether the run may continue',
        error,
      });
    }
  }

  /** The state that the critic needs after a crash; if it cannot return it now, its previous state. */
  get state(): JsonObject | undefined {
    if (this.#isPaused) return this.#state;
    try {
      const state = this.#handle.state?.();
      letGo(state);
      if (isObject(state) && !isThenable(state)) this.#state = frozenJson(state, 'critic') as JsonObject;
    } catch {
      // Its previous state stays.
    }
    return this.#state;
  }
}

function handleOf(run: Watched, info: RunInfo, past: Past): CriticHandle | undefined {
  const { critic, warn } = run.services.config;
  if (!critic) return undefined;
  try {
    const seen = supervised(run, past);
    giveCalls(seen, (...asked) =>
      callTraced(run, { step: (run.progress?.iteration ?? 0) + 1, purpose: 'critic' }, asked),
    );
    const handle: unknown = critic.monitor(info, seen);
    letGo(handle);
    return isObject(handle) && !isThenable(handle) ? (handle as unknown as CriticHandle) : undefined;
  } catch (error) {
    warn('critic.failed', { runId: run.runId, outcome: 'the run is not watched', error });
    return undefined;
  }
}

function signOf(event: RunEvent): Activity | undefined {
  if (isActiveAs(event, 'step')) return { type: 'step', step: event.step, tools: event.tools };
  if (isActiveAs(event, 'tool')) return { type: 'tool', name: event.name };
  return isActiveAs(event, 'delta') ? { type: 'delta' } : undefined;
}

function supervised(run: Watched, { softLimitMs, saved, elapsedMs, ...begun }: Past): SupervisedRun {
  const contextNow = () => {
    const { value, context } = run.actor.getSnapshot();
    return value === 'resolving' ? begun : context;
  };
  const { clock } = run.services.config;
  return {
    clock,
    softLimitMs,
    ...(saved ? { saved } : {}),
    elapsedMs: () => elapsedMs + run.time.elapsedMs,
    tallies: () => {
      const { progress, limits } = contextNow();
      const { iteration, usage, raisedSteps } = progress;
      return { iteration, usage, maxIterations: limits.maxSteps + raisedSteps };
    },
    tail: (count = TAIL) => {
      const { transcript } = contextNow().progress;
      return transcript.slice(Math.max(0, transcript.length - count));
    },
    nudge: (text) => {
      if (typeof text !== 'string' || text.trim() === '') return;
      const content = [{ type: 'text', text: text.slice(0, MAX_NUDGE) }];
      run.send({ type: 'run.nudge', message: enterMessage({ role: 'user', content }) });
    },
    raiseSteps: (by) => {
      if (Number.isSafeInteger(by) && by > 0) run.send({ type: 'run.raise', by });
    },
    kill: (reason) => {
      const isSaid = typeof reason === 'string' && reason !== '';
      run.stop(new CriticKillError(isSaid ? reason : 'the critic ended the run'));
    },
  };
}
