import type { RunCheckpoint } from '../../record/checkpoint.ts';
import { isAtRest } from '../../run/waits/model-waits.ts';
import { statePaths } from '../../run/workflow/state.ts';
import { isDue, isOwning } from '../../store/capabilities.ts';
import type { CheckpointStore } from '../../store/port.ts';
import { toErrorData } from '../../values/error-data.ts';
import { checkAside, isAsideAsAsked, isShortOfHelp } from './aside.ts';
import { type BadBoot, type BadSetup, checkGivenBack, standingRuns, workBadly } from './bad-setup.ts';
import { EffectLedger } from './ledger.ts';
import { type CrashPoint, type LateWrite, Life, nameOfStop, type StopAt } from './life.ts';
import { baseClockOf, type CrashTestAnswers, type CrashTestEvents, HistoryPerson, MovedTime } from './person.ts';
import { type MortalProcess, type ProcessJob, processOf } from './process.ts';

/** Where histories run. */
export interface Scene {
  readonly job: ProcessJob;
  /** Opens the storage: `store` as a process does, `bare` for the test. */
  readonly open: () => Promise<{ readonly store: CheckpointStore; readonly bare: CheckpointStore }>;
  /** Waits for `work`. @throws if it takes too long */
  readonly within: <T>(what: string, work: Promise<T>) => Promise<T>;
  /** How many more processes may follow the last planned crash: a store that fails may refuse each. */
  readonly spareLives: number;
  /** Whether an ended run is started again, to check that it has ended. */
  readonly isAskedAgain: boolean;
  /** The ledger of its processes; absent = a plain one. */
  readonly ledger?: (runId: string) => EffectLedger;
  /** Answers the waits of its runs; absent = time passes where it can. */
  readonly answers?: CrashTestAnswers | undefined;
  /** Sends machine events to its workflow; absent = none. */
  readonly events?: CrashTestEvents | undefined;
  /** Draws a process with a broken setup, which boots before the next one; absent = there are none. */
  readonly badBoot?: (life: number) => BadBoot | undefined;
  /** Called at the end of a process: calls that it waited for may be answered now. */
  readonly onEnd?: () => void;
}

/** The history of one run over all its processes. */
export interface History {
  readonly ledger: EffectLedger;
  /** The boundaries that each process reached. */
  readonly points: readonly (readonly CrashPoint[])[];
  /** Where processes died. */
  readonly crashes: readonly CrashPoint[];
  /** The record in the storage when a process ended before the run. */
  readonly left: readonly RunCheckpoint[];
  /** A process did not end. */
  readonly isHung: boolean;
  /** The run itself was parked, as its host asked: a person continues it. */
  readonly isAside: boolean;
  /** A sub-agent of the run was parked, and the run continued without it. */
  readonly isShortOfHelp: boolean;
}

/** Runs one history of the crash test to its end: a process for each planned death, and as many more as needed. */
export async function play(scene: Scene, runId: string, stops: readonly StopAt[]): Promise<History> {
  const player = new Player(scene, scene.ledger?.(runId) ?? new EffectLedger(runId));
  try {
    await player.play(stops);
  } finally {
    player.life?.end();
    scene.onEnd?.();
  }
  return player;
}

class Player implements History {
  readonly ledger: EffectLedger;
  readonly points: CrashPoint[][] = [];
  readonly crashes: CrashPoint[] = [];
  readonly left: RunCheckpoint[] = [];
  isHung = false;
  isAside = false;
  life: Life | undefined;
  readonly #scene: Scene;
  readonly #foreign = new Set<string>();
  readonly #person: HistoryPerson;
  #reason = '';
  #late: LateWrite | undefined;

  constructor(scene: Scene, ledger: EffectLedger) {
    this.#scene = scene;
    this.ledger = ledger;
    const { job, answers, events } = scene;
    const base = baseClockOf(job.executor.clock);
    this.#person = new HistoryPerson({ answers, events, ledger, time: job.time ?? new MovedTime(), base });
  }

  async play(stops: readonly StopAt[]): Promise<void> {
    const { ledger } = this;
    for (let n = 0; n < stops.length + this.#scene.spareLives; n++) {
      ledger.life = n;
      const opened = await this.#openNext(n);
      if (!opened) return;
      await this.#live(opened, stops[n]);
      if (this.isHung) return;
    }
    ledger.life += 1;
    const opened = await this.#open(ledger.life);
    if (!opened || (await this.#isEnd(opened)) || this.isAside) return;
    ledger.complain('a', `the run did not come to its end: ${this.#reason || 'no process finished it'}`);
  }

  get isShortOfHelp(): boolean {
    return isShortOfHelp(this.ledger, this.#scene.job.executor);
  }

  /** Whether no further process has anything to do: it is over, or it was parked and a later process has left it so. */
  async #isEnd(opened: Opened): Promise<boolean> {
    const { ledger } = this;
    const { executor } = this.#scene.job;
    const isEnd = this.isAside || ledger.isOver;
    if (this.isAside) checkAside(ledger, executor, await list(opened.bare));
    else if (ledger.isOver) await this.#askAgain(opened);
    else this.isAside = isAsideAsAsked(ledger.recordOf(ledger.runId), executor);
    return isEnd;
  }

  /** The storage for the next process, after one with a broken setup if one is drawn. Undefined = there is nothing to do. */
  async #openNext(n: number): Promise<Opened | undefined> {
    const opened = await this.#open(n);
    if (!opened || (await this.#isEnd(opened))) return undefined;
    const before = standingRuns(this.ledger);
    const boot = before.size > 0 && !this.isAside ? this.#scene.badBoot?.(n) : undefined;
    if (!boot) return opened;
    const { claims } = await this.#liveBadly(opened, boot);
    if (this.isHung) return undefined;
    const again = await this.#open(n);
    const { executor } = this.#scene.job;
    if (again) checkGivenBack(this.ledger, { what: boot.setup.name, before, claims, executor });
    return again && ((await this.#isEnd(again)) ? undefined : again);
  }

  /** The record that the next process finds. Undefined = no process can continue. */
  async #open(n: number): Promise<Opened | undefined> {
    const { ledger } = this;
    try {
      return await this.#scene.within('opening the storage', this.#look(n));
    } catch (error) {
      ledger.complain('a', `the storage could not be read ${this.#last()}: ${textOf(error)}`);
      return undefined;
    }
  }

  async #look(n: number): Promise<Opened | undefined> {
    const { life } = this;
    await life?.settle();
    const opened = await this.#scene.open();
    if (n === 0) for (const { runId } of await list(opened.bare)) this.#foreign.add(runId);
    // As after the end of its lease, without the wait.
    if (isOwning(opened.bare))
      for (const claim of life?.claims.values() ?? []) await opened.bare.release(claim).catch(() => {});
    for (const stored of [...this.ledger.stored()]) if (!(await this.#check(opened.bare, stored))) return undefined;
    return opened;
  }

  /** Whether the storage has what it acknowledged. */
  async #check(
    store: CheckpointStore,
    {
      runId,
      certain,
      unclear,
    }: { runId: string; certain: RunCheckpoint | null; unclear: readonly (RunCheckpoint | null)[] },
  ): Promise<boolean> {
    const { ledger } = this;
    const found = await store.load(runId);
    if (found && runId === ledger.runId) this.left.push(found);
    const differences = [certain, ...unclear].map((each) => firstDifference(found, each));
    const same = differences.lastIndexOf(undefined);
    if (same !== -1) {
      ledger.noteFault(runId, found);
      return true;
    }
    if (!found) {
      const hint = 'does store() open the same storage each time?';
      ledger.complain(
        'a',
        `${this.#last()} the record is gone although save ${certain?.revision} was acknowledged (${hint})`,
      );
      return false;
    }
    if (!certain) {
      ledger.complain('e', `${this.#last()} the record is there again although deleting it was acknowledged`);
    } else if (found.revision === certain.revision) {
      ledger.complain('b', `${this.#last()} save ${certain.revision} is not what was saved: ${differences[0]}`);
    } else {
      const what = `save ${certain.revision} was acknowledged, and the store has save ${found.revision}`;
      ledger.complain('b', `${this.#last()} ${what}: what was recorded in between would run again`);
    }
    ledger.noteFault(runId, found);
    return true;
  }

  async #live({ store, bare }: Opened, stopAt: StopAt | undefined): Promise<void> {
    const life = new Life(stopAt);
    this.points.push(life.points);
    const process = this.#processOf(store, life);
    await this.#endOf(life, Promise.race([this.#work(process, { life, bare }), life.died]));
    this.#late = life.late;
    if (life.diedAt) this.crashes.push(life.diedAt);
  }

  /** A process whose setup cannot continue the run. */
  async #liveBadly({ store }: Opened, { setup, isWorker }: BadBoot): Promise<Life> {
    const { ledger } = this;
    ledger.badSetups += 1;
    ledger.badSetup = setup.name;
    const life = new Life();
    const { executor } = this.#processOf(store, life, setup);
    // What is due is not only of this history where other runs are in the storage.
    await this.#endOf(life, workBadly(executor, isWorker && isDue(store) && this.#foreign.size === 0));
    ledger.badSetup = undefined;
    return life;
  }

  #processOf(store: CheckpointStore, life: Life, badSetup?: BadSetup): MortalProcess {
    this.life = life;
    const isForeign = (runId: string) => this.#foreign.has(runId);
    const world = { store, life, ledger: this.ledger, late: this.#late, isForeign, person: this.#person };
    return processOf(this.#scene.job, { ...world, ...(badSetup ? { badSetup } : {}) });
  }

  /** Resolves when the process is over. */
  async #endOf(life: Life, work: Promise<unknown>): Promise<void> {
    try {
      await this.#scene.within('the process', work);
    } catch (error) {
      this.isHung = true;
      const { workflow, iteration } = this.ledger.last ?? {};
      const states = statePaths(workflow?.snapshot.value ?? null).join(', ');
      const where = states && ` (after ${iteration} transitions it is in state ${states})`;
      this.ledger.complain('a', `the run did not end ${this.#last()}: ${textOf(error)}${where}`);
    }
    life.end();
    this.#scene.onEnd?.();
  }

  /** What a host does at its start; resolves when the run ends, or if there is nothing to do. Never rejects. */
  async #work(
    { executor, start }: MortalProcess,
    { life, bare }: { life: Life; bare: CheckpointStore },
  ): Promise<void> {
    const leaving = life.leaving.then(() => executor.shutdown());
    try {
      await this.#person.begin(bare, this.#storedIds());
      for (let visits = 0; visits < VISITS; visits++) {
        const ended = await this.#continue({ executor, start });
        if (ended === 'left') await leaving;
        const isResting = ended === 'waiting' || (ended === 'none' && this.#isWaiting());
        if (isResting && !life.isOver && (await this.#person.visit(bare, this.#storedIds()))) continue;
        if (isResting) this.#reason = this.#person.reason || this.#reason;
        if (ended !== 'left' && ended !== 'none') await executor.shutdown();
        return;
      }
      this.#reason = `the run still waits after ${VISITS} answers`;
    } catch (error) {
      this.#reason = textOf(error);
    }
  }

  /** Continues the run in a process, or starts it. @returns how it ended there; `none` = the process finds nothing to do */
  async #continue({ executor, start }: MortalProcess): Promise<'none' | 'waiting' | 'left' | 'ended'> {
    const { ledger } = this;
    const { runId } = ledger;
    const { resumed, parked, skipped, failed } = await executor.recover({ maxAttempts: 99 });
    const reason = [...parked, ...skipped, ...failed].find((entry) => entry.runId === runId)?.reason;
    const isStored = ledger.recordOf(runId) != null;
    const found = executor.get(runId);
    // Children without a parent that waits for them.
    if (!found) await Promise.all(resumed.map((entry) => executor.get(entry.runId)?.result));
    if (!found && (isStored || ledger.outcomes.length > 0)) {
      this.#reason = isStored ? (reason ?? 'the store has it, and its list does not') : '';
      return 'none';
    }
    const run = found ?? (await start(runId));
    const { error, status } = await run.result;
    this.#reason = error ? `${status}, ${textOf(error)}` : status;
    if (status === 'interrupted' && error?.code === 'ERR_SHUTDOWN') return 'left';
    return status === 'waiting' ? 'waiting' : 'ended';
  }

  #isWaiting(): boolean {
    const record = this.ledger.recordOf(this.ledger.runId);
    return record != null && ((record.waiting?.waits.length ?? 0) > 0 || isAtRest(record));
  }

  /** The runs of the history that the store has. */
  #storedIds(): string[] {
    return [...this.ledger.stored()].flatMap(({ runId, certain, unclear }) =>
      certain || unclear.some((record) => record !== null) ? [runId] : [],
    );
  }

  /** An ended run leaves no records; a store that keeps outcomes returns the same outcome again. */
  async #askAgain({ bare }: Opened): Promise<void> {
    const { ledger } = this;
    let left = await this.#listLeft(bare);
    // After a crash the next process removes what a child left whose end its parent had already read.
    if (this.crashes.length > 0 && left.length > 0 && !left.includes(ledger.runId)) {
      await this.#boot(bare);
      left = await this.#listLeft(bare);
    }
    if (left.length > 0) ledger.complain('e', `the run is over, and the store still lists ${left.join(', ')}`);
    const outcome = ledger.outcomes.at(-1)?.outcome;
    if (!this.#scene.isAskedAgain || !bare.outcomes || !outcome) return;
    const calls = ledger.calls.length;
    const life = new Life();
    const { start } = processOf(this.#scene.job, { store: bare, life, ledger, isForeign: () => true });
    const asked = start(ledger.runId).then(({ result }) => result);
    const again = await this.#scene
      .within('asking for the result again', asked)
      .catch((error: unknown) => textOf(error));
    life.end();
    const isSame = typeof again === 'object' && again.status === outcome.status && again.output === outcome.output;
    if (!isSame || ledger.calls.length > calls) {
      ledger.complain('e', 'the run was over, and starting it again under its id did not give the same answer');
    }
  }

  /** The runs of the history that the store lists, without those that wait for a person. */
  async #listLeft(store: CheckpointStore): Promise<string[]> {
    const own = (await list(store)).map(({ runId }) => runId).filter((runId) => !this.#foreign.has(runId));
    // A parked child waits even after the end of its parent, and its own children wait for it.
    const parked = [...this.ledger.aside()].map(({ meta }) => meta.runId);
    return own.filter((runId) => !parked.some((top) => runId === top || runId.startsWith(`${top}~`)));
  }

  /** A process that recovers what it finds, and starts nothing. */
  async #boot(store: CheckpointStore): Promise<void> {
    const life = new Life();
    const isForeign = (runId: string) => this.#foreign.has(runId);
    const { executor } = processOf(this.#scene.job, { store, life, ledger: this.ledger, isForeign });
    const recover = async () => {
      const { resumed } = await executor.recover({ maxAttempts: 99 });
      await Promise.all(resumed.map(({ runId }) => executor.get(runId)?.result));
    };
    await this.#scene.within('the next boot', recover()).catch(() => {});
    life.end();
  }

  #last(): string {
    const point = this.crashes.at(-1);
    return point ? `after the crash ${nameOfStop(point)}` : 'without a crash';
  }
}

/** The most times that one process has its waits answered. */
const VISITS = 200;

type Opened = Awaited<ReturnType<Scene['open']>>;

const list = async (store: CheckpointStore): Promise<readonly { runId: string }[]> => store.listInterrupted();

function textOf(error: unknown): string {
  const { code, message, cause } = toErrorData(error, 'ERROR');
  return cause ? `${code}: ${message} (${textOf(cause)})` : `${code}: ${message}`;
}

/**
 * Describes the first difference between the found and the saved record; undefined = they are equal. The count of attempts
 * does not count: a claim may have increased it.
 */
function firstDifference(found: RunCheckpoint | null, saved: RunCheckpoint | null): string | undefined {
  if (found === saved) return undefined;
  if (!found || !saved) return found ? 'there is a record, and there should be none' : 'there is no record';
  return differenceAt(plain({ ...found, attempts: 0 }), plain({ ...saved, attempts: 0 }), '');
}

/** As in JSON: a property that is undefined is absent. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

function differenceAt(found: unknown, saved: unknown, path: string): string | undefined {
  if (Object.is(found, saved)) return undefined;
  if (!isContainer(found) || !isContainer(saved) || Array.isArray(found) !== Array.isArray(saved)) {
    return `${path || 'it'} is ${shown(found)} and was ${shown(saved)}`;
  }
  for (const key of new Set([...Object.keys(saved), ...Object.keys(found)])) {
    const difference = differenceAt(found[key], saved[key], path ? `${path}.${key}` : key);
    if (difference) return difference;
  }
  return undefined;
}

function isContainer(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === 'object' && value !== null;
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'absent';
  return text.length > 80 ? `${text.slice(0, 77)}…` : text;
}
