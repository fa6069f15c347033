import type { Agent } from '../../agent/agent.ts';
import type { Model } from '../../model/port.ts';
import { modelOf } from '../../model/tier.ts';
import type { RunStatus } from '../../run/finalize.ts';
import { isAppending } from '../../store/capabilities.ts';
import { memoryStore } from '../../store/memory/memory-store.ts';
import type { CheckpointStore } from '../../store/port.ts';
import { systemClock } from '../../values/clock.ts';
import { withDeadline } from '../../values/deadline.ts';
import { toErrorData } from '../../values/error-data.ts';
import type { JsonValue } from '../../values/json.ts';
import { programOf } from '../../workflow/program.ts';
import { agentOfWorkflow } from '../../workflow/workflow.ts';
import { scriptedModel } from '../scripted-model.ts';
import { drawBadBoot } from './bad-setup.ts';
import { type History, play, type Scene } from './history.ts';
import { type AllowedFaults, judgeHistories } from './judge.ts';
import type { CrashTestPromise } from './ledger.ts';
import { type CrashPoint, nameOfStop, type StopAt } from './life.ts';
import { ModelMemory } from './model.ts';
import { type CrashTestOptions, checkCrashTest, wrong } from './options.ts';
import { baseClockOf, MovedTime } from './person.ts';
import type { ProcessJob } from './process.ts';

/** A broken promise. Plain JSON. */
export interface CrashTestViolation {
  /** Which promise; docs/crash-test.md explains each letter. */
  readonly promise: CrashTestPromise;
  /** Where the process died, for example `after store.append 3`; `no crash` = it is broken without a crash, too. */
  readonly crashAt: string;
  /** What happened. */
  readonly detail: string;
}

/** The result of a crash test. Plain JSON. */
export interface CrashTestReport {
  /** The number of histories, the one without a crash included. */
  readonly runs: number;
  /** Processes that died. */
  readonly crashes: number;
  /** The boundaries of the run without a crash: the places at which a process can die. */
  readonly boundaries: number;
  /**
   * Histories in which a run was parked for a person, as `executor: { onUnknownOutcome: 'park' }` asks: that is an end, too.
   * 0 without that setting.
   */
  readonly parked: number;
  /**
   * Processes with a broken setup (no model, or no key) that booted after a crash, before the next process, and found the run
   * stored. They are drawn: about one for each second crash, the same in each repeat of the test.
   */
  readonly badSetups: number;
  /**
   * The end of the run without a crash: a test should check that it is the expected one. `data` is the checked output, or what the machine
   * of a workflow returns; `state` is the last state of that machine, as XState writes it.
   */
  readonly undisturbed: {
    readonly status: RunStatus;
    readonly output: string;
    readonly data?: unknown;
    readonly state?: JsonValue;
    readonly error?: string;
  };
  /**
   * At most one of each promise and history, and one of all histories in which only the output differs. Empty = every promise was kept.
   */
  readonly violations: readonly CrashTestViolation[];
}

/** The test stops after this many processes that never end. */
const MAX_HUNG = 3;
const SPARE_LIVES = 4;

/**
 * Kills a run of your agent at every boundary, one after the other: before and after each write to the store, around each
 * tool call, in the middle of each model call. It continues the run in a new executor on the same storage, and compares the
 * result with that of the run without a crash. All of this happens in one process, in which a "dead" executor can no longer
 * reach anything.
 *
 * @returns the report; broken promises are part of it and do not reject
 * @throws {TypeError} for invalid options: no agent, an invalid model or store, a limit that is not a number
 * @example
 * const { violations } = await crashTest({ agent, prompt: 'Charge order 7.', model: () => scriptedModel(script) });
 * assert.deepEqual(violations, []);
 */
export async function crashTest(options: CrashTestOptions): Promise<CrashTestReport> {
  checkCrashTest(options);
  const time = new MovedTime();
  const stores = await openStores(options, time);
  try {
    return await new CrashTest(options, { stores, time }).run();
  } finally {
    await stores.dispose();
  }
}

interface Trial {
  readonly points: readonly CrashPoint[];
  /** For each crash the number that draws whether a process with a broken setup boots after it. */
  readonly draws: readonly number[];
}

class CrashTest {
  readonly #options: CrashTestOptions;
  readonly #stores: OpenedStores;
  readonly #time: MovedTime;
  readonly #memory = new ModelMemory();
  readonly #violations: CrashTestViolation[] = [];
  readonly #stamp: string;
  /** Histories in which only the output differs. */
  #otherOutputs = 0;
  #otherOutput: CrashTestViolation | undefined;
  #runs = 0;
  #crashes = 0;
  #hung = 0;
  #parked = 0;
  #badSetups = 0;

  constructor(options: CrashTestOptions, { stores, time }: { stores: OpenedStores; time: MovedTime }) {
    this.#options = options;
    this.#stores = stores;
    this.#time = time;
    this.#stamp = crypto.randomUUID().slice(0, 8);
  }

  async run(): Promise<CrashTestReport> {
    const { limit = 300, doubleCrashes = 100 } = this.#options;
    const fresh = this.#models();
    const whole = await this.#play(
      { points: [], draws: [] },
      this.#scene(() => this.#memory.remember(fresh())),
    );
    const points = whole.points[0] ?? [];
    this.#judge([], whole, whole);
    if (whole.ledger.isOver) {
      const scene = this.#scene(() => this.#memory.recall(fresh));
      const single = spread(points, limit).map((point): Trial => ({ points: [point], draws: [] }));
      const most = single.length + doubleCrashes;
      const pairs = await this.#playAll(single, { scene, whole, total: most });
      const double = spread(pairs, doubleCrashes);
      await this.#playAll(double, { scene, whole, total: single.length + double.length });
    }
    const { status = 'error', output = '', data, error } = whole.ledger.outcomes[0]?.outcome ?? {};
    const state = whole.ledger.last?.workflow?.snapshot.value;
    return {
      runs: this.#runs,
      crashes: this.#crashes,
      boundaries: points.length,
      parked: this.#parked,
      badSetups: this.#badSetups,
      undisturbed: {
        status,
        output,
        ...(data === undefined ? {} : { data }),
        ...(state === undefined ? {} : { state }),
        ...(error ? { error: `${error.code}: ${error.message}` } : {}),
      },
      violations: this.#violations.map((violation) => this.#summed(violation)),
    };
  }

  /**
   * Plays and judges the run with each of these crashes.
   * @returns the same crashes, each with one more in the process that continued
   */
  async #playAll(
    trials: readonly Trial[],
    { scene, whole, total }: { scene: Scene; whole: History; total: number },
  ): Promise<Trial[]> {
    const further: Trial[] = [];
    for (const [nth, trial] of trials.entries()) {
      if (this.#hung >= MAX_HUNG) return further;
      const { points } = trial;
      const draws = [...trial.draws, nth];
      const history = await this.#play({ points, draws }, scene);
      this.#judge(points, history, whole);
      this.#tell(total);
      const next = history.crashes.length === points.length ? history.points[points.length] : undefined;
      for (const point of next ?? []) further.push({ points: [...points, point], draws });
    }
    return further;
  }

  async #play({ points, draws }: Trial, scene: Scene): Promise<History> {
    this.#runs += 1;
    const stops = points.map(({ when, what, nth }): StopAt => {
      return (point) => (point.when === when && point.what === what && point.nth === nth ? 'crash' : undefined);
    });
    const badBoot = (life: number) => drawBadBoot(draws[life - 1]);
    const history = await play({ ...scene, badBoot }, `crash-test-${this.#stamp}-${this.#runs}`, stops);
    await this.#stores.dispose({ keepLast: true });
    this.#crashes += history.crashes.length;
    this.#badSetups += history.ledger.badSetups;
    if (history.isHung) this.#hung += 1;
    if (history.isAside || history.isShortOfHelp) this.#parked += 1;
    return history;
  }

  #judge(points: readonly CrashPoint[], history: History, whole: History): void {
    const allowed = allowedFor(this.#options, this.#stores.first);
    const crashAt = points.length > 0 ? points.map(nameOfStop).join(', then ') : 'no crash';
    for (const complaint of judgeHistories(history, whole, {
      ...allowed,
      mayDiffer: history.isShortOfHelp,
    })) {
      if (complaint.isOfOutput && ++this.#otherOutputs > 1) continue;
      const { promise, detail } = complaint;
      const violation = { promise, crashAt, detail };
      if (complaint.isOfOutput) this.#otherOutput = violation;
      this.#violations.push(violation);
    }
  }

  /** One violation for all histories in which only the output differs. */
  #summed(violation: CrashTestViolation): CrashTestViolation {
    const more = this.#otherOutputs - 1;
    if (violation !== this.#otherOutput || more === 0) return violation;
    const where = `the output differs in ${more} more histories`;
    return { ...violation, detail: `${violation.detail}; ${where}: does it have a time, or a random number?` };
  }

  #tell(total: number): void {
    try {
      this.#options.onHistory?.({ played: this.#runs, total: total + 1 });
    } catch {
      // Errors of the host's callback are ignored.
    }
  }

  #models(): () => Model {
    const { model = noModel } = this.#options;
    return () => modelOf(model(), 'the answer of model()');
  }

  #scene(modelOf: () => Model): Scene {
    const {
      agent,
      prompt,
      workflow,
      input,
      tools = [],
      executor = {},
      lifeMs = 10_000,
      answers,
      events,
    } = this.#options;
    const what = workflow
      ? { workflow, invocation: { input } }
      : { agent: agent as Agent, invocation: { prompt: prompt ?? '' } };
    const job: ProcessJob = {
      ...what,
      tools,
      executor,
      memory: this.#memory,
      time: this.#time,
      modelFor: modelOf,
      isAlone: isAlone(this.#options),
    };
    const within: Scene['within'] = (what, work) => withDeadline(work, { ms: lifeMs, clock: systemClock, what });
    const open = () => this.#stores.open();
    return { job, answers, events, open, within, spareLives: SPARE_LIVES, isAskedAgain: true };
  }
}

/** A workflow whose calls are tools asks no model. */
const noModel = () => scriptedModel([]);

/** Sub-agents also ask models, and make calls of their own. */
function isAlone({ executor, workflow }: CrashTestOptions): boolean {
  const called = workflow && programOf(agentOfWorkflow(workflow) as Agent)?.agents;
  return executor?.ports?.palette === undefined && !called?.length;
}

function allowedFor(options: CrashTestOptions, store: CheckpointStore): AllowedFaults {
  const { agent, executor } = options;
  return {
    // The machine of a workflow reads an unknown outcome as an error, and may go another way.
    errorsInARow: options.workflow ? 1 : (executor?.defaults?.maxConsecutiveToolErrors ?? 3),
    // Calls of several transitions may be open at once: each of them may run again, and no other.
    redoneSteps: options.workflow ? 0 : 1,
    hasPhasesAnew: agent?.phases?.some(({ recovery }) => recovery === 'boundary') ?? false,
    isAlone: isAlone(options),
    hasRealTime: executor?.clock === undefined,
    isAppending: isAppending(store),
  };
}

/** So many of them, evenly spread, with the first and the last. */
function spread<T>(all: readonly T[], limit: number): T[] {
  if (all.length <= limit) return [...all];
  const step = limit > 1 ? (all.length - 1) / (limit - 1) : 0;
  return Array.from({ length: limit }, (_, i) => all[Math.round(i * step)] as T);
}

async function openStores({ store, events }: CrashTestOptions, time: MovedTime): Promise<OpenedStores> {
  const memory = memoryStore({ clock: time.clock(baseClockOf(undefined)) });
  const stores = new OpenedStores(store ?? (() => memory));
  try {
    const { bare } = await stores.open();
    if (!events || bare.commands) return stores;
  } catch (error) {
    throw wrong(`store() must give a checkpoint store: ${toErrorData(error).message}`, error);
  }
  throw wrong('events needs a store with the group commands, which the store that store() gave has not');
}

const CLOSE_MS = 5_000;

/** The stores that a host's function returned. Those that can be closed are closed after their history. */
class OpenedStores {
  readonly #opening: () => CheckpointStore | Promise<CheckpointStore>;
  readonly #opened = new Set<CheckpointStore>();
  #first: CheckpointStore | undefined;
  #last: CheckpointStore | undefined;
  #isShared = false;

  constructor(opening: () => CheckpointStore | Promise<CheckpointStore>) {
    this.#opening = opening;
  }

  get first(): CheckpointStore {
    if (!this.#first) throw new TypeError('no store was opened yet');
    return this.#first;
  }

  async open(): Promise<{ store: CheckpointStore; bare: CheckpointStore }> {
    const store = await this.#opening();
    for (const method of ['save', 'load', 'delete', 'listInterrupted'] as const) {
      if (typeof store?.[method] !== 'function') throw new TypeError(`what it gave has no ${method}`);
    }
    // The same object again: it belongs to the host, and is in use.
    if (this.#opened.has(store)) this.#isShared = true;
    this.#opened.add(store);
    this.#first ??= store;
    this.#last = store;
    return { store, bare: store };
  }

  /** A store that is returned each time stays open. */
  async dispose({ keepLast = false }: { readonly keepLast?: boolean } = {}): Promise<void> {
    for (const store of this.#opened) {
      if (this.#isShared || (keepLast && store === this.#last)) continue;
      this.#opened.delete(store);
      const close = (store as Partial<AsyncDisposable>)[Symbol.asyncDispose];
      if (typeof close !== 'function') continue;
      const limit = { ms: CLOSE_MS, clock: systemClock, what: 'closing the store' };
      await withDeadline(Promise.resolve(close.call(store)), limit).catch(() => {});
    }
  }
}
