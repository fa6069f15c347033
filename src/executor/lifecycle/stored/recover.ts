import type { InterruptedRun, ReadableRun } from '../../../record/interrupted.ts';
import type { RunTree, TreePlace } from '../../../record/run-tree.ts';
import { LIVE_HERE, type PersonNeed, type RunVerdict, verdictOfRun } from '../../../record/verdict.ts';
import type { CheckpointStore } from '../../../store/port.ts';
import { checkKeys, type KnownKeys, kindOf } from '../../../values/known-options.ts';
import { programOf } from '../../../workflow/program.ts';
import type { ActiveRun, ExecutorServices } from '../../run/active-run.ts';
import { hasPlace, isTakeOver, takeNamed } from '../due/take-named.ts';
import {
  agentFor,
  emptyReport,
  leaveAlone,
  leaveUnrecovered,
  type RecoveryReport,
  type TakenUp,
  takeUp,
  treeIn,
  type Work,
} from './recover-one-run.ts';
import { pages } from './stored-run-pages.ts';

export type { RecoveryEntry, RecoveryReport } from './recover-one-run.ts';

export interface RecoverOptions {
  /**
   * Most recovered runs that are live at once, those of other sweeps of this executor included.
   * @default 64
   */
  readonly concurrency?: number;
  /**
   * Starts in a row without progress before a run is parked.
   * @default the executor's `defaults.maxAttempts`
   * @example maxAttempts: 5
   */
  readonly maxAttempts?: number;
  /**
   * An abort starts no further runs; the started ones continue, and are in the report.
   * @default none
   * @example signal: stop.signal
   */
  readonly signal?: AbortSignal;
  /**
   * Keeps the process alive, and resolves at the executor's shutdown, or when the signal is aborted: until then the executor
   * takes up the runs that become due. Without it, suspended runs keep no process alive.
   * @default false
   */
  readonly follow?: boolean;
}

const optionKeys: KnownKeys<RecoverOptions> = {
  concurrency: true,
  maxAttempts: true,
  signal: true,
  follow: true,
};

/** A run of the list that may be started. */
interface Candidate extends TakenUp {
  readonly run: ReadableRun;
}

/** The runs that a sweep reads before it starts them. */
interface Later {
  readonly suspects: Candidate[];
  readonly children: ReadableRun[];
  /** Messages may wait behind them: the process that stored the parking, or the message, may have died before it ended the turn. */
  readonly parked: string[];
  readonly tree: RunTree;
}

/**
 * Starts the interrupted runs that earlier processes left, and the suspended ones that are due: a bounded loop over the store's
 * list, page by page, without transcripts. From a store with the group `due`, processes that recover at once take different runs. From then on the executor looks for runs that become due.
 */
export async function recover(services: ExecutorServices, options: RecoverOptions): Promise<RecoveryReport> {
  checkKeys(options, optionKeys, { of: 'recover' });
  const { concurrency = 64, maxAttempts = services.config.defaults.maxAttempts, signal, follow = false } = options;
  if (typeof follow !== 'boolean') throw new TypeError(`recover: follow must be true or false, not ${kindOf(follow)}`);
  checkCount('concurrency', concurrency);
  checkCount('maxAttempts', maxAttempts);
  const report = emptyReport();
  const { store, warn } = services.config;
  const work: Work = { begun: [], services, report, concurrency, maxAttempts, signal };
  let waiting = 0;
  try {
    if (store) waiting = await lookOnce(store, work);
  } finally {
    // Not before: the report has what the list had.
    services.sweep.begin();
    services.deliveries.begin();
    if (!services.isShutDown) services.scheduler?.begin();
  }
  if (report.failed.length > 0) warn('run.recovery.failed', { failed: report.failed.length });
  if (follow) await services.sweep.follow(signal);
  return { ...report, waiting };
}

/** Starts the runs of the list, and counts those that rest. */
async function lookOnce(store: CheckpointStore, work: Work): Promise<number> {
  try {
    await sweep(store, work);
    await work.services.unknownAgents.lookAtResting();
    await Promise.all(work.begun);
    return store.due && !isTakeOver(work) ? await store.due.countResting() : 0;
  } catch (error) {
    // An aborted store may reject the read.
    if (!work.signal?.aborted) throw error;
    return 0;
  } finally {
    await Promise.all(work.begun);
  }
}

/** Checks an option of `recover` that counts runs. @throws {TypeError} With no place at all the first run would never start. */
function checkCount(name: string, count: unknown): void {
  const isCount = count === Number.POSITIVE_INFINITY || (Number.isInteger(count) && Number(count) > 0);
  if (!isCount) throw new TypeError(`recover: ${name} must be a whole number above 0, not ${String(count)}`);
}

async function sweep(store: CheckpointStore, work: Work): Promise<void> {
  const { services, signal } = work;
  const later: Later = { suspects: [], children: [], parked: [], tree: treeIn(store, services) };
  // Hosts that boot together read the same list: without the group `due` they meet less often in a random order.
  const { random } = services.config;
  if (isTakeOver(work)) return;
  for await (const page of pages(store, { signal, random })) {
    await takeUpAll(candidatesOf(page, work, later), work);
    if (isTakeOver(work)) return;
  }
  await takeUpAll(await childrenOf(work, later), work);
  await takeUpSuspects(later.suspects, work);
  for (const runId of later.parked) if (!isTakeOver(work)) await services.passParked(runId);
  await takeUpOlder(store, work);
}

/**
 * Starts the resting workflows of another version whose definition has a `migrate`: what their new states begin, for example a shorter
 * timer, must not wait until something wakes them. A deployment without a `migrate` reads nothing for it.
 */
async function takeUpOlder(store: CheckpointStore, work: Work): Promise<void> {
  const { services, signal } = work;
  const migrating = new Map([...services.config.agents].filter(([, agent]) => programOf(agent)?.migrate));
  if (migrating.size === 0 || !store.due) return;
  for await (const page of pages(store, { signal, status: 'waiting' })) {
    for (const entry of page) {
      if (!('meta' in entry) || entry.version === undefined || services.registry.live(entry.runId)) continue;
      const agent = migrating.get(entry.meta.agentId);
      if (!agent || agent.version === entry.version) continue;
      if (!(await hasPlace(work))) return;
      work.begun.push(takeUp({ run: entry }, work).then(() => {}));
    }
  }
}

/** The runs of a page that can be started at once. The others are reported, or looked at later. */
function candidatesOf(page: readonly InterruptedRun[], work: Work, later: Later): Candidate[] {
  const { suspects, children, parked, tree } = later;
  const ready: Candidate[] = [];
  for (const entry of page) {
    tree.add(entry);
    const found = judged(entry, work);
    // After a restore a person looks at each run first.
    if ('code' in found && found.verdict === 'parked' && found.code !== 'RESTORED') parked.push(entry.runId);
    if (!('need' in found)) leaveUnrecovered(work.report, entry.runId, found);
    else if (!work.services.paused.mayTake(found.run.meta.agentId)) leaveAlone(work, found.run);
    else if (found.need === 'place') children.push(found.run);
    else (isSuspect(found, work) ? suspects : ready).push(takenUp(found));
  }
  return ready;
}

/** The children that can be started by themselves. Their places are known when the whole list is read. */
async function childrenOf(work: Work, { suspects, children, tree }: Later): Promise<Candidate[]> {
  const ready: Candidate[] = [];
  for (const child of children) {
    const place = await tree.placeOf(child);
    if (isTakeOver(work)) return [];
    const found = judged(child, work, place);
    if (!('need' in found)) leaveUnrecovered(work.report, child.runId, found);
    else (isSuspect(found, work) ? suspects : ready).push(takenUp(found, place));
  }
  return ready;
}

/** The verdict on a listed run, by the facts that a list, this process and the tree have. Its start knows the rest. */
function judged(entry: InterruptedRun, { services }: Work, place?: TreePlace): RunVerdict | PersonNeed {
  const { runId } = entry;
  const agentId = 'meta' in entry ? entry.meta.agentId : '';
  return verdictOfRun({
    entry,
    isLiveHere: services.registry.live(runId)?.life.hasBegun === true,
    asker: services.owner,
    agent: agentFor(services, agentId) ? 'found' : 'missing',
    place,
  });
}

const takenUp = ({ run }: PersonNeed, place?: TreePlace): Candidate => ({ run, ...(place ? { place } : {}) });

/** Whether one more start without progress would park it. */
const isSuspect = ({ run }: PersonNeed, { maxAttempts }: Work) => (run.attempts ?? 0) >= maxAttempts - 1;

/** Waits only for places: the runs themselves continue in the background. */
async function takeUpAll(runs: readonly Candidate[], work: Work): Promise<void> {
  // Without the run itself: the promise that waits for all would keep ten thousand ended runs in memory.
  await beginEach(runs, work, (run) => work.begun.push(takeUp(run, work).then(() => {})));
}

/** Begins each run that this process gets. Of a store without the group `due` that is known when its start has claimed it. */
async function beginEach(runs: readonly Candidate[], work: Work, begin: (run: Candidate) => unknown): Promise<void> {
  const others = await takeNamed(runs, work, begin);
  for (const run of await claimableOf(others, work)) if (await hasPlace(work)) begin(run);
}

/**
 * The runs among those that `take` did not give that have to be claimed by themselves, because the store does not find them due:
 * those of a host's machine, for example. The others are reported. They are read as a list, because a claim would count a start.
 */
async function claimableOf(runs: readonly Candidate[], work: Work): Promise<readonly Candidate[]> {
  const { store } = work.services.config;
  if (!store?.due || runs.length === 0) return runs;
  const now = await readAgain(store, runs, work);
  return runs.filter(({ run: { runId }, place }) => {
    const entry = now.get(runId);
    const found = entry ? judged(entry, work, place) : takenBy(work.services, runId);
    if (!('need' in found)) leaveUnrecovered(work.report, runId, found);
    else if (!work.services.paused.mayTake(found.run.meta.agentId)) leaveAlone(work, found.run);
    else return true;
    return false;
  });
}

/** The verdict on a run that a process has written, or ended, since it was listed. */
function takenBy({ registry }: ExecutorServices, runId: string): RunVerdict {
  const live = { verdict: 'live', needsPerson: false } as const;
  if (registry.live(runId)) return { ...live, reason: LIVE_HERE };
  if (registry.ended(runId)) return { ...live, reason: 'it ended in the meantime' };
  return { ...live, code: 'RUN_OWNED_ELSEWHERE', reason: 'another process has taken it' };
}

/** Reads the entries of runs again that stand where they did. A process that has taken a run writes it, which moves its entry. */
async function readAgain(
  store: CheckpointStore,
  runs: readonly Candidate[],
  { signal }: Work,
): Promise<ReadonlyMap<string, InterruptedRun>> {
  const times = runs.map(({ run }) => run.updatedAt);
  const after = { updatedAt: times.reduce((least, each) => Math.min(least, each)), runId: '' };
  const last = times.reduce((most, each) => Math.max(most, each));
  const wanted = new Set(runs.map(({ run }) => run.runId));
  const found = new Map<string, InterruptedRun>();
  for await (const page of pages(store, { signal, after, wanted: wanted.size })) {
    for (const entry of page) if (wanted.has(entry.runId)) found.set(entry.runId, entry);
    if (found.size === wanted.size || page.some(({ updatedAt = 0 }) => updatedAt > last)) break;
  }
  return found;
}

/**
 * Runs that one more start would park. This run may kill its process, or may only have died together with another run. Each
 * starts when the one before has recorded progress, so that a killer dies alone.
 */
async function takeUpSuspects(suspects: readonly Candidate[], work: Work): Promise<void> {
  const { alone } = work.services.recovery;
  for (const suspect of suspects) {
    if (!(await alone.enter(1, work.signal))) return;
    let begun: Promise<ActiveRun | undefined> = Promise.resolve(undefined);
    await beginEach([suspect], work, (run) => {
      begun = takeUp(run, work);
      work.begun.push(begun.then(() => {}));
    });
    const progressed = begun.then((run) => run?.life.progressed.promise);
    void progressed.then(() => alone.leave());
    await unlessAborted(progressed, work.signal);
  }
}

/** Waits for a promise, but not past the end of the sweep. */
function unlessAborted(promise: Promise<unknown>, signal: AbortSignal | undefined): Promise<unknown> {
  if (!signal) return promise;
  const aborted = Promise.withResolvers<void>();
  const abort = () => aborted.resolve();
  signal.addEventListener('abort', abort);
  if (signal.aborted) abort();
  return Promise.race([promise, aborted.promise]).finally(() => signal.removeEventListener('abort', abort));
}
