import type { RunCheckpoint } from '../../record/checkpoint.ts';
import { interruptedRun } from '../../record/interrupted.ts';
import { mayBeChild, type TreePlace } from '../../record/run-tree.ts';
import { type RunVerdict, verdictOfRun } from '../../record/verdict.ts';
import { staysParked } from '../../run/fields.ts';
import type { RunResult } from '../../run/result.ts';
import type { CheckpointStore } from '../../store/port.ts';
import { type ErrorData, hasCode, hasTrait, toErrorData } from '../../values/error-data.ts';
import { NotDurableError, StoreUnavailableError } from '../../values/errors.ts';
import { agentFor, begin, treeIn } from '../lifecycle/stored/recover-one-run.ts';
import type { ActiveRun, ExecutorServices } from '../run/active-run.ts';
import { driveDue } from './drive-due.ts';
import { codeIn, type Driven } from './driven.ts';
import type { DriveLimits } from './options.ts';

/** The slices of one executor. */
export class Drives {
  readonly #services: ExecutorServices;
  /** The runs that it works on, by id. */
  readonly #running = new Map<string, Promise<Driven>>();

  constructor(services: ExecutorServices) {
    this.#services = services;
  }

  /**
   * Works on one stored run for the time of a budget, and leaves it in good order: ended, at rest, or due. A second call for the
   * same run joins the first. `due` is not the id of a run: it works on due runs one after another.
   * @throws {STORE_UNAVAILABLE} or another error of the store, if it did not answer @throws {NOT_DURABLE} without a store
   */
  drive(runId: string, limits: DriveLimits): Promise<Driven> {
    const running = this.#running.get(runId);
    if (running) return running;
    this.#services.deliveries.begin();
    const begun = runId === 'due' ? driveDue(this.#services, limits) : drive(this.#services, runId, limits);
    const driving = begun.finally(() => this.#running.delete(runId));
    this.#running.set(runId, driving);
    return driving;
  }
}

async function drive(services: ExecutorServices, runId: string, limits: DriveLimits): Promise<Driven> {
  const { store } = services.config;
  if (!store) throw new NotDurableError('drive needs a store (createExecutor({ store }))');
  const around: Around = { services, store, runId, limits };
  const { clock, defaults } = services.config;
  const since = clock.monotonic();
  if (isOver(around)) return { runId, state: 'more', boundaries: 0 };
  if (await isLiveHere(around)) return elsewhere(around, null);
  const head = await headOf(around);
  if ('driven' in head) return head.driven;
  const { record } = head;
  const found = { runId, ...(record.parent ? { parent: record.parent } : {}) };
  const place = mayBeChild(found) ? await treeIn(store, services).placeOf(found) : undefined;
  const verdict = verdictIn(around, record, place);
  if (verdict) return refused(around, verdict);
  const { agentId } = record.meta;
  if (!services.paused.enter(agentId)) return leftAlone(around, agentId);
  const { graceMs, signal } = limits;
  const slice = { budgetMs: Math.max(0, limits.budgetMs - (clock.monotonic() - since)), graceMs };
  const begun = begin(services, { meta: record.meta, place, maxAttempts: defaults.maxAttempts, slice });
  const { run, result } = await begun.catch((error: unknown) => {
    // Else no other run of the agent is tried here any more.
    services.paused.leave(agentId, false);
    throw error;
  });
  if (!run?.life.hasBegun) services.paused.leave(agentId, false);
  const end = () => run?.slice?.end();
  signal?.addEventListener('abort', end, { once: true });
  if (signal?.aborted) end();
  try {
    return await answerOf(around, run, await result);
  } finally {
    signal?.removeEventListener('abort', end);
  }
}

/** What a call of `drive` works with. */
interface Around {
  readonly services: ExecutorServices;
  readonly store: CheckpointStore;
  readonly runId: string;
  readonly limits: DriveLimits;
}

const isOver = ({ services, limits }: Around) => services.isShutDown || limits.signal?.aborted === true;

/** Whether this process keeps the run live, without a budget, for longer than this one. It may be about to end, or to rest. */
async function isLiveHere({ services, runId, limits }: Around): Promise<boolean> {
  const { registry, config } = services;
  const { clock } = config;
  const over = Promise.withResolvers<'over'>();
  const end = () => over.resolve('over');
  const timer = clock.setTimeout(end, limits.budgetMs);
  limits.signal?.addEventListener('abort', end);
  try {
    for (let live = registry.live(runId); live; live = registry.live(runId)) {
      if ((await Promise.race([live.life.ended.promise, over.promise])) === 'over') return true;
    }
    return false;
  } finally {
    clock.clearTimeout(timer);
    limits.signal?.removeEventListener('abort', end);
  }
}

/** The head of the run's record, or the answer for a run without one that can be read. */
async function headOf(around: Around): Promise<{ readonly record: RunCheckpoint } | { readonly driven: Driven }> {
  const { store, runId } = around;
  try {
    const record = await store.load(runId, { messages: false });
    return record ? { record } : { driven: await readEnd(around) };
  } catch (error) {
    const data = toErrorData(error);
    if (hasTrait(error, 'isStoreAway')) throw error;
    // Another process may have the key, or know the version.
    return { driven: stuck(around, data.code, !hasCode(data, 'CHECKPOINT_CORRUPT')) };
  }
}

/** The run has no record: it ended, or there was none. */
async function readEnd({ store, runId }: Around): Promise<Driven> {
  const outcome = (await store.outcomes?.find(runId)) ?? null;
  const code = outcome ? outcome.error?.code : 'RUN_NOT_FOUND';
  return { runId, state: 'ended', ...codeIn(code), boundaries: 0 };
}

/** Why a run is not started; undefined: it is. Who owns it, only its claim can say. */
function verdictIn({ services }: Around, record: RunCheckpoint, place: TreePlace | undefined): RunVerdict | undefined {
  if (record.hosted) {
    const reason = 'a machine of a host continues it';
    return { verdict: 'skipped', reason, code: 'RUN_OWNED_ELSEWHERE', needsPerson: true };
  }
  const agent = agentFor(services, record.meta.agentId) ? 'found' : 'missing';
  const verdict = verdictOfRun({ entry: interruptedRun(record), asker: services.owner, agent, place });
  return 'need' in verdict ? undefined : verdict;
}

function refused(around: Around, { verdict, code }: RunVerdict): Driven {
  if (verdict === 'parked') return parked(around, code);
  // Only the machine of the host continues it.
  if (verdict === 'skipped' && code === 'RUN_OWNED_ELSEWHERE') return stuck(around, code, false);
  return stuck(around, code ?? (verdict === 'child' ? 'RUN_OWNED_ELSEWHERE' : undefined), verdict !== 'unreadable');
}

/** A run that a slice was too short for says so; of all others the list says why. */
function parked({ runId }: Around, code: string | undefined): Driven {
  const shown = code === 'SLICE_TOO_SHORT' ? code : 'RUN_PARKED';
  return { runId, state: 'waiting', code: shown, boundaries: 0 };
}

/** This process cannot continue the run. @param mayPass whether time, or another process, may help */
function stuck({ services, runId }: Around, code: string | undefined, mayPass = true): Driven {
  const pauseMs = services.stuck.note({ runId, dueAt: 0 }, 'stuck');
  const wakeAt = mayPass ? { wakeAt: services.config.clock.now() + pauseMs } : {};
  return { runId, state: 'waiting', ...wakeAt, ...codeIn(code), boundaries: 0 };
}

/** The setup of this process cannot continue runs of this agent. Another process may drive the run at once. */
function leftAlone({ services, runId }: Around, agentId: string): Driven {
  const wakeAt = services.config.clock.now() + services.paused.leftMs(agentId);
  return { runId, state: 'waiting', code: 'SETUP', wakeAt, boundaries: 0 };
}

/** Reads the answer of `drive` from the result of the run in this process. */
async function answerOf(around: Around, run: ActiveRun | undefined, result: RunResult): Promise<Driven> {
  const { services, runId } = around;
  const { error, status } = result;
  const boundaries = run?.actor.getSnapshot().context.persisted ?? 0;
  if (error?.code === 'SETUP' && !run?.endFacts.left?.parked)
    return { ...leftAlone(around, run?.agent.id ?? ''), boundaries };
  if (run?.life.isRefused) return refusal(around, error);
  services.stuck.note({ runId, dueAt: 0 }, 'further');
  if (result.status === 'waiting') return { runId, state: 'waiting', ...wakeAtIn(result.wakeAt), boundaries };
  if (status === 'interrupted') return { ...interrupted(around, run, error), boundaries };
  if (run?.life.hasBegun && !run.endFacts.isDelivered) return { ...stuck(around, 'UNDELIVERED'), boundaries };
  return { runId, state: 'ended', ...codeIn(error?.code), boundaries };
}

/** Answers for a run that could not begin. */
async function refusal(around: Around, error: ErrorData | undefined): Promise<Driven> {
  const { store, runId } = around;
  const code = error?.code;
  if (hasTrait(error, 'isStoreAway')) throw storeAway(error);
  if (code === 'RUN_NOT_FOUND') return readEnd(around);
  if (code === 'ERR_SHUTDOWN') return { runId, state: 'more', boundaries: 0 };
  if (code === 'RUN_PARKED') {
    const why = (await store.load(runId, { messages: false }))?.parked?.code;
    // A process with the agent as it was continues it.
    return staysParked(why) ? parked(around, why) : stuck(around, why);
  }
  if (code !== 'RUN_OWNED_ELSEWHERE') return stuck(around, code, code !== 'CHECKPOINT_CORRUPT');
  return elsewhere(around, (await store.due?.heldUntil(runId)) ?? null);
}

/** Another process has the run, or this one keeps it without a budget. @param until the end of its lease, wall clock, ms */
function elsewhere({ services, runId }: Around, until: number | null): Driven {
  const { clock, defaults } = services.config;
  return { runId, state: 'owned-elsewhere', wakeAt: until ?? clock.now() + defaults.leaseMs, boundaries: 0 };
}

/** Answers for a run that this process has left: at the end of the slice, or because it lost it. */
function interrupted(around: Around, run: ActiveRun | undefined, error: ErrorData | undefined): Driven {
  const { runId } = around;
  if (hasTrait(error, 'isStoreAway')) throw storeAway(error);
  if (error?.code === 'LEASE_LOST') return elsewhere(around, null);
  const left = run?.endFacts.left;
  if (left?.parked) return parked(around, left.parked.code);
  const waits = left?.waiting?.waits ?? [];
  if (waits.length === 0) return { runId, state: 'more', boundaries: 0 };
  return { runId, state: 'waiting', ...wakeAtIn(left?.waiting?.wakeAt), boundaries: 0 };
}

const wakeAtIn = (wakeAt: number | undefined) => (wakeAt === undefined ? {} : { wakeAt });

/** The host's caller tries again: the run is as it was. */
function storeAway(error: ErrorData | undefined): StoreUnavailableError {
  return new StoreUnavailableError(error?.message ?? 'the store did not answer', { cause: error });
}
