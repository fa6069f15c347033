import { type CheckpointStore, memoryStore } from 'pawl';
import type { StoreGroups } from 'pawl/stores/kit';
import { type TestClock, testClock } from 'pawl/testing';
import { type History, play, type Scene } from '../../src/testing/crash-test/history.ts';
import { type AllowedFaults, judgeHistories } from '../../src/testing/crash-test/judge.ts';
import type { Complaint } from '../../src/testing/crash-test/ledger.ts';
import type { StopAt } from '../../src/testing/crash-test/life.ts';
import { ModelMemory } from '../../src/testing/crash-test/model.ts';
import { type NotingBudget, notingBudget } from '../fixtures/noting-ports.ts';
import { plainStore } from '../fixtures/watched-store.ts';
import { judgeFamily, judgeLosses, type Losses } from './simulation-judge.ts';
import { TimedLedger, telling } from './simulation-ledger.ts';
import { type Misfortune, type Story, storyAgent, storyModel, storyPalette } from './simulation-plans.ts';
import { type Fired, fire, Trouble, waiting } from './simulation-store.ts';
import { type Recording, throttled } from './simulation-throttle.ts';

/** What stands between the processes and the storage, which is honest; absent = nothing. */
export type Between = (storage: CheckpointStore) => Promise<CheckpointStore>;

const RESTART_MS = 20_000;
const STEP_MS = 2_000;
/** Simulated: more than an hour. */
const MAX_STEPS = 2_000;
const MAX_UNSAVED_STEPS = 8;

/** What became of a run, and what the budget's books hold of it: tokens by turn, each once. */
export interface Lived {
  readonly history: History;
  readonly ledger: TimedLedger;
  readonly books: { readonly [turn: string]: number };
}

/** A story as it goes without any trouble, and what its misfortunes can be compared with. */
export class Simulation {
  readonly #story: Story;
  readonly #memory = new ModelMemory();
  readonly #between: Between;
  readonly #recording: Recording;
  #whole: Lived | undefined;

  constructor(story: Story, between: Between = async (storage) => storage, recording: Recording = throttled) {
    this.#story = story;
    this.#between = between;
    this.#recording = recording;
  }

  async whole(): Promise<Lived> {
    this.#whole ??= await this.#play({ stops: [], faults: [], outage: undefined, latency: [0], jumps: [] }, {});
    return this.#whole;
  }

  /** @returns the promises that were broken, and what the history was */
  async suffer(misfortune: Misfortune, fired: Fired): Promise<Lived & { complaints: Complaint[] }> {
    const whole = await this.whole();
    const lived = await this.#play(misfortune, fired);
    for (const { when, what } of lived.history.crashes) fire(fired, `crash ${when} ${what.split(' ')[0]}`);
    const allowed = { ...this.#allowed(misfortune), mayDiffer: lived.ledger.isParked };
    const complaints = [
      ...judgeHistories(lived.history, whole.history, allowed),
      ...judgeLosses(lived.ledger, this.#losses(misfortune)),
      ...(lived.ledger.isOver ? judgeFamily(lived.ledger, whole.ledger, allowed) : []),
    ];
    return { complaints, ...lived };
  }

  async #play(misfortune: Misfortune, fired: Fired): Promise<Lived> {
    const budget = notingBudget();
    const clock = testClock(1_700_000_000_000);
    const storage = memoryStore({ clock });
    const trouble = new Trouble(misfortune, clock, fired);
    const bare = this.#bare(storage);
    const wait = waiting(clock);
    const ledger = new TimedLedger('run', clock);
    const open = async () => {
      await wait(RESTART_MS);
      const between = await this.#between(bare);
      return { store: trouble.wrap(between), bare: between };
    };
    const scene: Scene = {
      ...this.#scene(
        clock,
        telling(budget, () => ledger),
        fired,
      ),
      open,
      // It costs a process; one history of a story is enough.
      isAskedAgain: misfortune === this.#story.misfortunes[0],
      ledger: () => ledger,
      onEnd: () => trouble.release(),
    };
    const history = await play(scene, 'run', stopsOf(misfortune, { clock, fired, ledger }));
    return { history, ledger, books: booksOf(budget) };
  }

  /** What a child came to is known from its outcome alone: where there are children, the least store keeps outcomes. */
  #bare(storage: CheckpointStore & Pick<StoreGroups, 'outcomes'>): CheckpointStore {
    const { isPlain, family } = this.#story;
    if (!isPlain) return storage;
    const least: CheckpointStore = plainStore(storage);
    return family ? { ...least, outcomes: storage.outcomes } : least;
  }

  #scene(clock: TestClock, budget: NotingBudget, fired: Fired): Pick<Scene, 'job' | 'within' | 'spareLives'> {
    const wait = waiting(clock);
    const model = () => storyModel(this.#story, wait);
    const palette = storyPalette(this.#story, wait);
    const { throttleMs } = this.#story;
    const job: Scene['job'] = {
      agent: storyAgent(this.#story, wait),
      invocation: { prompt: 'Go.' },
      tools: [],
      executor: {
        clock,
        // Three deaths while the store refuses each write are three starts without progress: that parks a run, and is no defect.
        defaults: { maxRuntimeMs: 1e9, maxAttempts: 99 },
        onSaveError: { maxUnsavedSteps: MAX_UNSAVED_STEPS },
        ports: { budget, ...(palette ? { palette } : {}) },
      },
      memory: this.#memory,
      modelFor: () => (this.#whole ? this.#memory.recall(model) : this.#memory.remember(model())),
      isAlone: this.#story.family === undefined,
      ...(throttleMs > 0 ? { checkpointer: this.#recording(throttleMs, fired) } : {}),
    };
    return { job, within: (what, work) => driven(clock, what, work), spareLives: 30 };
  }

  #allowed(misfortune: Misfortune): AllowedFaults {
    const { isPlain, throttleMs, family } = this.#story;
    const isAlone = family === undefined;
    const least = isTroubled(misfortune) ? 1 + MAX_UNSAVED_STEPS : 1;
    return {
      errorsInARow: 3,
      // How many steps a throttle puts off is a question of time: see #losses.
      redoneSteps: throttleMs > 0 ? Number.POSITIVE_INFINITY : least,
      hasPhasesAnew: this.#hasPhasesAnew,
      isAlone,
      isAppending: !isPlain && isAlone && !isTroubled(misfortune),
    };
  }

  #losses(misfortune: Misfortune): Losses {
    return {
      throttleMs: this.#story.throttleMs,
      writeMs: 4 * Math.max(...misfortune.latency),
      unsavedSteps: isTroubled(misfortune) ? MAX_UNSAVED_STEPS : undefined,
      hasPhasesAnew: this.#hasPhasesAnew,
    };
  }

  get #hasPhasesAnew(): boolean {
    return this.#story.isPipeline && this.#story.plan.phases.some(({ recovery }) => recovery === 'boundary');
  }
}

function isTroubled({ faults, outage, phaseEnd }: Misfortune): boolean {
  return outage !== undefined || phaseEnd !== undefined || faults.length > 0;
}

function booksOf({ counted }: NotingBudget): Lived['books'] {
  return Object.fromEntries([...counted].map(([turn, { tokens }]) => [turn, tokens]));
}

function stopsOf(
  { stops, jumps }: Misfortune,
  { clock, fired, ledger }: { clock: TestClock; fired: Fired; ledger: TimedLedger },
): StopAt[] {
  return stops.map(({ at, how, isFromPhaseEnd }): StopAt => {
    let from = isFromPhaseEnd ? undefined : 0;
    return (_, index) => {
      if (fired['phase end']) from ??= index;
      for (const jump of jumps) {
        if (jump.at !== index) continue;
        fire(fired, jump.ms > 0 ? 'clock set forward' : 'clock set back');
        clock.wallJump(jump.ms);
      }
      if (from === undefined || index !== from + at) return undefined;
      if (how === 'shutdown') fire(fired, 'shutdown');
      ledger.dies(how);
      return how;
    };
  });
}

/** Lets time pass until something has come. @throws when it does not come */
async function driven<T>(clock: TestClock, what: string, work: Promise<T>): Promise<T> {
  let isOver = false;
  const over = work.finally(() => {
    isOver = true;
  });
  over.catch(() => {});
  for (let step = 0; step < MAX_STEPS && !isOver; step++) await clock.advance(STEP_MS);
  if (!isOver) throw new Error(`${what} took more than ${(MAX_STEPS * STEP_MS) / 60_000} minutes`);
  return over;
}
