import type { Agent } from '../../../agent/agent.ts';
import type { RunCheckpoint } from '../../../record/checkpoint.ts';
import {
  type InterruptedRun,
  interruptedRun,
  type OpenWait,
  openWaitsIn,
  type ReadableRun,
} from '../../../record/interrupted.ts';
import { migrateRecord } from '../../../record/migrate.ts';
import { RunTree, type TreePlace } from '../../../record/run-tree.ts';
import { isRewritten } from '../../../record/upcast.ts';
import { type NextStart, type RunVerdict, type VerdictFacts, verdictOfRun } from '../../../record/verdict.ts';
import { isAtRest } from '../../../run/waits/model-waits.ts';
import { checkStore, isDue } from '../../../store/capabilities.ts';
import { boundedStore } from '../../../store/checked-store.ts';
import type { CheckpointStore } from '../../../store/port.ts';
import { systemClock } from '../../../values/clock.ts';
import { toErrorData } from '../../../values/error-data.ts';
import { checkKeys, type KnownKeys } from '../../../values/known-options.ts';
import { programOf } from '../../../workflow/program.ts';
import { restOf } from '../../../workflow/view.ts';
import type { ExecutorOptions } from '../../host/options.ts';
import { startByRules } from '../../run/record/start-rules.ts';
import { hasUnread } from '../../run/waits/rest-again.ts';
import { allListed, type StoredEntry } from './stored-run-pages.ts';

/** How the runs will be recovered: use the options of the executor that will do it. */
export interface DiagnoseOptions
  extends Pick<ExecutorOptions, 'agents' | 'migrate' | 'onUnknownOutcome' | 'onDefinitionChange' | 'clock'> {
  /** As for `executor.recover`; default 3. */
  readonly maxAttempts?: number;
  /** Longest wait for one answer of the store, ms; default 30,000. */
  readonly timeoutMs?: number;
  /** Aborted: rejects with its reason before the next record. */
  readonly signal?: AbortSignal;
}

const optionKeys: KnownKeys<DiagnoseOptions> = {
  agents: true,
  migrate: true,
  onUnknownOutcome: true,
  onDefinitionChange: true,
  clock: true,
  maxAttempts: true,
  timeoutMs: true,
  signal: true,
};

/** The stored state of one run, and the effect of the next `recover()` on it. */
export interface RunDiagnosis {
  readonly runId: string;
  /**
   * `resumes`: it continues. `waits`: for an answer, an event, a time, a child or its model. `child`: its parent continues it.
   * `live`: a process works on it. `parked`: it is parked, or the next start parks it. `skipped`: left alone, because there is
   * no agent of its id, or a newer deployment has claimed it. `fails`: `migrate` fails, and it stays as it is. `unreadable`: its bytes are kept, and nothing is done.
   */
  readonly verdict: 'resumes' | 'waits' | 'child' | 'live' | 'parked' | 'skipped' | 'fails' | 'unreadable';
  /** Why, in words, without the code. */
  readonly reason: string;
  /** The error code of the reason, if there is one. */
  readonly code?: string;
  /** Whether it stays as it is until a person, or a deploy, changes something. */
  readonly needsPerson: boolean;
  /** The content of the record; absent if it cannot be read. */
  readonly record?: {
    readonly agentId: string;
    readonly iteration: number;
    /** Starts in a row that recorded nothing new. */
    readonly attempts: number;
    /** Wall clock, ms. */
    readonly updatedAt: number;
    /** Whether an older version wrote it, or `migrate` changes it: the next save rewrites it. */
    readonly isMigrated: boolean;
    /** Calls of `once` tools that were running: it is unknown whether they took effect, and they are not repeated. */
    readonly unknownCalls: readonly string[];
    /** Its open waits; absent = none. */
    readonly waits?: readonly OpenWait[];
    /** The owner that works on it. */
    readonly owner?: string;
  };
}

/**
 * Reads every record of a store and reports what the next `recover()` would do with it, and why. Each is read whole, as a
 * resume would read it, with its checksums and the upcasts from older versions, and `migrate` is tried on it. It reads one
 * record at a time, so memory stays flat. Nothing is written, claimed or run. A run that begins or ends meanwhile may be
 * missing.
 *
 * Without `agents` it does not check whether a run's agent exists, or whether its phases have changed.
 * @throws the store's error if it cannot be listed
 * @example
 * for await (const { runId, verdict, reason, needsPerson } of diagnose(store, { agents: [agent] })) {
 *   if (needsPerson) console.warn(`${runId} (${verdict}): ${reason}`);
 * }
 */
export async function* diagnose(
  store: CheckpointStore,
  options: DiagnoseOptions = {},
): AsyncGenerator<RunDiagnosis, void, undefined> {
  checkKeys(options, optionKeys, { of: 'diagnose' });
  checkStore('diagnose: the store', store);
  const { clock = systemClock, timeoutMs: ms = 30_000, signal } = options;
  const bounded = boundedStore(store, { ms, clock });
  const { agents } = options;
  const known = agents && new Map(agents.map((agent) => [agent.id, agent]));
  const doctor = new Doctor(bounded, { ...options, ...(known ? { agentOf: (id: string) => known.get(id) } : {}) });
  for await (const each of allListed(bounded, { signal })) {
    signal?.throwIfAborted();
    const diagnosis = await doctor.lookAt(each);
    if (diagnosis) yield diagnosis;
  }
}

/** How a doctor knows what the next start would do. */
interface DoctorOptions extends Omit<DiagnoseOptions, 'agents' | 'timeoutMs' | 'migrate'> {
  readonly migrate?: DiagnoseOptions['migrate'] | undefined;
  /** Finds the agent of a run; absent = it is not checked whether there is one. */
  readonly agentOf?: (id: string) => Agent | undefined;
}

/** Finds out what becomes of stored runs. */
export class Doctor {
  readonly #store: CheckpointStore;
  readonly #options: DoctorOptions;
  readonly #tree = this.#emptyTree();
  #listedTree: Promise<RunTree> | undefined;

  constructor(store: CheckpointStore, options: DoctorOptions) {
    this.#store = store;
    this.#options = options;
  }

  /** Undefined if the run has ended meanwhile. */
  async lookAt({ entry, isResting }: StoredEntry): Promise<RunDiagnosis | undefined> {
    const { runId } = entry;
    if (entry.status === 'quarantined') return { runId, ...(await this.#judge({ entry })) };
    let record: RunCheckpoint | null;
    try {
      record = await this.#store.load(runId);
    } catch (error) {
      return { runId, ...(await this.#judge({ entry, damage: toErrorData(error) })) };
    }
    return record ? this.lookAtRecord({ entry, isResting }, record) : undefined;
  }

  /** Judges a run whose record was read. @param stored.entry that of the list, which may be older */
  async lookAtRecord(
    { entry, isResting, newer }: Pick<VerdictFacts, 'newer'> & { entry: ReadableRun; isResting: boolean },
    record: RunCheckpoint,
  ): Promise<RunDiagnosis> {
    const { runId } = entry;
    const mayRest = await this.#mayRest(record);
    let start = undefined as NextStart | undefined;
    // At its first use: `migrate` is not called for a run that does not start.
    const next = () => {
      start ??= this.#start(record, mayRest);
      return start;
    };
    const found = await this.#judge({
      entry: entryOf(entry, record),
      agent: this.#agentOf(record),
      isResting,
      newer,
      next,
    });
    return { runId, ...found, record: factsOf(entry, start && 'record' in start ? start.record : record) };
  }

  /** The verdict, after a look at the run's place in its tree if that decides it. */
  async #judge(facts: VerdictFacts): Promise<RunVerdict> {
    const found = verdictOfRun(facts);
    if (!('need' in found)) return found;
    return this.#judge({ ...facts, place: await this.#placeOf(found.run) });
  }

  /** A list may show what began a run that cannot be read as a whole. It is read again only for a child of such a run. */
  async #placeOf(run: ReadableRun): Promise<TreePlace> {
    const place = await this.#tree.placeOf(run);
    if (place.kind !== 'child' || !place.trouble) return place;
    this.#listedTree ??= this.#readTree();
    return (await this.#listedTree).placeOf(run);
  }

  async #readTree(): Promise<RunTree> {
    const tree = this.#emptyTree();
    for await (const { entry } of allListed(this.#store, { signal: this.#options.signal })) tree.add(entry);
    return tree;
  }

  #emptyTree(): RunTree {
    return new RunTree({ load: (runId) => this.#store.load(runId) });
  }

  /** A command wakes a run; damaged ones do not. */
  async #mayRest({ meta, waiting, hosted, workflow }: RunCheckpoint): Promise<boolean> {
    const store = this.#store;
    if (!isDue(store) || hosted || !(workflow || waiting?.waits.length)) return false;
    const sent = await store.commands.inbox({ runId: meta.runId }).catch(() => []);
    return !hasUnread(sent);
  }

  #agentOf({ meta }: RunCheckpoint): VerdictFacts['agent'] {
    const { agentOf } = this.#options;
    if (!agentOf) return undefined;
    return agentOf(meta.agentId) ? 'found' : 'missing';
  }

  /** What its next start would find. */
  #start(record: RunCheckpoint, mayRest: boolean): NextStart {
    const { migrate, maxAttempts, onUnknownOutcome, onDefinitionChange, clock = systemClock } = this.#options;
    try {
      const next = migrateRecord(record, migrate);
      const agent = this.#options.agentOf?.(record.meta.agentId);
      const started = { ...next, attempts: (next.attempts ?? 0) + 1 };
      const start = startByRules(started, { agent, maxAttempts, onUnknownOutcome, onDefinitionChange });
      const parks = 'parks' in start ? start.parks : undefined;
      const rest = restOf(agent && programOf(agent), next);
      return { record: next, parks, rest, now: clock.now(), mayRest: mayRest && !next.parked && isAtRest(next) };
    } catch (error) {
      return { failed: toErrorData(error) };
    }
  }
}

/** The facts of the record itself: a host's own list may leave some out, and a run may be parked after it was listed. */
function entryOf({ owner, attempts }: ReadableRun, record: RunCheckpoint): InterruptedRun {
  return interruptedRun({ ...record, attempts: attempts ?? record.attempts }, owner);
}

function factsOf({ owner, attempts }: ReadableRun, record: RunCheckpoint): NonNullable<RunDiagnosis['record']> {
  const { meta, iteration, updatedAt, openStep } = record;
  const waits = openWaitsIn(record);
  const unknown = (openStep?.calls ?? []).filter(({ effect, state }) => effect === 'once' && state === 'started');
  return {
    agentId: meta.agentId,
    iteration,
    attempts: attempts ?? record.attempts ?? 0,
    updatedAt,
    isMigrated: isRewritten(record),
    // A live process knows the state of its calls.
    unknownCalls: owner === undefined ? unknown.map(({ name }) => name) : [],
    ...(waits.length > 0 ? { waits } : {}),
    ...(owner === undefined ? {} : { owner }),
  };
}
