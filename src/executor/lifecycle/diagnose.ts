import type { Agent } from '../../agent/agent.ts';
import type { RunCheckpoint } from '../../record/checkpoint.ts';
import { parentOf } from '../../record/identify.ts';
import type { InterruptedRun } from '../../record/interrupted.ts';
import { migrateRecord } from '../../record/migrate.ts';
import { type Place, RunTree } from '../../record/run-tree.ts';
import { isRewritten } from '../../record/upcast.ts';
import { staysParked } from '../../run/fields.ts';
import { boundedStore } from '../../store/checked-store.ts';
import { type CheckpointStore, checkStore } from '../../store/port.ts';
import { systemClock } from '../../values/clock.ts';
import { toErrorData } from '../../values/error-data.ts';
import { checkKeys, type KnownKeys } from '../../values/known-options.ts';
import type { ExecutorOptions } from '../host/options.ts';
import { parkingOf } from '../run/acquire.ts';
import { type Listed, listed } from './stored-run-pages.ts';

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
   * `resumes`: it continues. `waits`: its parent continues it. `live`: a process works on it. `parked`: it is parked, or will
   * be. `skipped`: left alone, because there is no agent of its id. `fails`: `migrate` fails, and it stays as it is.
   * `unreadable`: its bytes are kept, and nothing is done.
   */
  readonly verdict: 'resumes' | 'waits' | 'live' | 'parked' | 'skipped' | 'fails' | 'unreadable';
  /** Why, in words; after the name of the run they make a sentence. */
  readonly reason: string;
  /** The error code of the reason, if there is one. */
  readonly code?: string;
  /** Whether it stays as it is until a person, or a deploy, changes something. */
  readonly needsSomebody: boolean;
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
 * for await (const { runId, verdict, reason, needsSomebody } of diagnose(store, { agents: [agent] })) {
 *   if (needsSomebody) console.warn(`${runId} (${verdict}): ${reason}`);
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
  const doctor = new Doctor(bounded, options);
  for await (const entry of listed(bounded, { signal })) {
    signal?.throwIfAborted();
    const diagnosis = await doctor.lookAt(entry);
    if (diagnosis) yield diagnosis;
  }
}

type Finding = Pick<RunDiagnosis, 'verdict' | 'reason' | 'code' | 'needsSomebody'>;

class Doctor {
  readonly #store: CheckpointStore;
  readonly #options: DiagnoseOptions;
  readonly #agents: ReadonlyMap<string, Agent> | undefined;
  readonly #tree = new RunTree({ load: (runId) => this.#store.load(runId) });

  constructor(store: CheckpointStore, options: DiagnoseOptions) {
    this.#store = store;
    this.#options = options;
    this.#agents = options.agents && new Map(options.agents.map((agent) => [agent.id, agent]));
  }

  /** Undefined if the run has ended meanwhile. */
  async lookAt(entry: InterruptedRun): Promise<RunDiagnosis | undefined> {
    const { runId } = entry;
    if (entry.status === 'quarantined') return { runId, ...unreadable(entry.reason) };
    let record: RunCheckpoint | null;
    try {
      record = await this.#store.load(runId);
    } catch (error) {
      const { code, message } = toErrorData(error);
      return { runId, ...unreadable(`${code}: ${message}`) };
    }
    if (!record) return undefined;
    if (entry.owner !== undefined) return { runId, ...live, record: factsOf(entry, record) };
    return { runId, ...(await this.#waiting(entry, record)) };
  }

  /** For a run without an owner. */
  async #waiting(entry: Listed, record: RunCheckpoint): Promise<Finding & Pick<RunDiagnosis, 'record'>> {
    const aside = this.#aside(record) ?? (await this.#agentless(record));
    if (aside) return { ...aside, record: factsOf(entry, record) };
    try {
      const next = migrateRecord(record, this.#options.migrate);
      return { ...(await this.#next(entry, next)), record: factsOf(entry, next) };
    } catch (error) {
      const { code, message, cause } = toErrorData(error);
      const reason = cause ? `${message}: ${cause.message}` : message;
      return { verdict: 'fails', reason, code, needsSomebody: true, record: factsOf(entry, record) };
    }
  }

  /** Why a run must not start. */
  #aside({ parked }: RunCheckpoint): Finding | undefined {
    // A run that was parked because its agent had changed continues when the agent is the same again.
    if (parked && (staysParked(parked.code) || !this.#agents)) {
      const { code, reason } = parked;
      return { verdict: 'parked', reason: `it is parked: ${reason}`, code, needsSomebody: true };
    }
    return undefined;
  }

  /** The agent of a child may be one that only the palette of its parent has. */
  async #agentless(record: RunCheckpoint): Promise<Finding | undefined> {
    const { agentId } = record.meta;
    if (!this.#agents || this.#agents.has(agentId)) return undefined;
    const parent = parentOf(record);
    if (parent && (await this.#placeOf(record)).kind === 'child') return undefined;
    const reason = `there is no agent ${agentId} to continue it; its record is kept`;
    return { verdict: 'skipped', reason, code: 'AGENT_NOT_FOUND', needsSomebody: true };
  }

  /** The effect of its next start. */
  async #next(entry: Listed, record: RunCheckpoint): Promise<Finding> {
    const parent = parentOf(record);
    if (parent) return this.#findingOfChild(record, parent.runId);
    const { maxAttempts, onUnknownOutcome, onDefinitionChange } = this.#options;
    const agent = this.#agents?.get(record.meta.agentId);
    const started = { ...record, attempts: (record.attempts ?? 0) + 1 };
    const parked = parkingOf(started, { agent, maxAttempts, onUnknownOutcome, onDefinitionChange });
    if (!parked) return resuming(record, entry.attempts ?? 0);
    const reason = `the next start parks it: ${parked.reason}`;
    return { verdict: 'parked', reason, code: parked.code, needsSomebody: true };
  }

  /** A child belongs to its parent as long as a run above it is not a child itself. */
  async #findingOfChild(record: RunCheckpoint, parentRunId: string): Promise<Finding> {
    const { kind } = await this.#placeOf(record);
    if (kind === 'child')
      return { verdict: 'waits', reason: `run ${parentRunId} began it and continues it`, needsSomebody: false };
    const reason = 'the run that began it no longer exists: it is ended as cancelled, without another model call';
    return { verdict: 'resumes', reason, needsSomebody: false };
  }

  #placeOf(record: RunCheckpoint): Promise<Place> {
    const parent = parentOf(record);
    return this.#tree.placeOf({ runId: record.meta.runId, ...(parent ? { parent } : {}) });
  }
}

const live: Finding = { verdict: 'live', reason: 'a process works on it', needsSomebody: false };

function unreadable(reason: string): Finding {
  const code = /^[A-Z][A-Z_]+/.exec(reason)?.[0];
  return { verdict: 'unreadable', reason, ...(code ? { code } : {}), needsSomebody: true };
}

function resuming({ outcome, iteration }: RunCheckpoint, attempts: number): Finding {
  const from = `it continues after ${iteration === 1 ? '1 step' : `${iteration} steps`}`;
  const again =
    attempts === 0
      ? ''
      : `; it was started ${attempts === 1 ? 'once' : `${attempts} times`} without recording anything new`;
  const reason = outcome ? `it ended (${outcome.status}), and only its outcome has to be delivered` : `${from}${again}`;
  return { verdict: 'resumes', reason, needsSomebody: false };
}

function factsOf({ owner, attempts }: Listed, record: RunCheckpoint): NonNullable<RunDiagnosis['record']> {
  const { meta, iteration, updatedAt, openStep } = record;
  const unknown = (openStep?.calls ?? []).filter(({ effect, state }) => effect === 'once' && state === 'started');
  return {
    agentId: meta.agentId,
    iteration,
    attempts: attempts ?? record.attempts ?? 0,
    updatedAt,
    isMigrated: isRewritten(record),
    // A live process knows the state of its calls.
    unknownCalls: owner === undefined ? unknown.map(({ name }) => name) : [],
    ...(owner === undefined ? {} : { owner }),
  };
}
