import type { RunCheckpointMeta, RunInfo } from '../run/request.ts';
import { type Clock, systemClock } from '../values/clock.ts';
import { checkKeys, type KnownKeys } from '../values/known-options.ts';
import { checkStore } from './capabilities.ts';
import { type Checkpointer, checkNumbers, createCheckpointer, noCheckpointer } from './checkpointer.ts';
import type { CheckpointStore, Claim } from './port.ts';
import type { LandedState } from './record-writes.ts';

export interface BeginOptions {
  readonly claim?: Claim | undefined;
  readonly landed?: LandedState | undefined;
  readonly onFlushError?: ((error: unknown) => void) | undefined;
  /** The key under which the run is taken in turn with others: see `createExecutor({ fairBy })`. */
  readonly fairKey?: string | undefined;
}

/** Decides run by run whether it is recorded, and how. */
export interface CheckpointerFactory {
  /** null = this run is not durable. */
  begin(info: RunInfo, options?: BeginOptions): Promise<Checkpointer | null>;
  /** `recover`, `list` and a repeated `start` read this store. */
  readonly store?: CheckpointStore;
}

export interface FactoryOptions {
  /** Shortest time between two unforced writes of a run, ms; default 0 = each step is written. */
  readonly throttleMs?: number;
  /** A larger save is refused with RecordTooLargeError before any write; default 64 MiB. */
  readonly maxRecordBytes?: number;
  readonly clock?: Clock;
  /** Deadline of one store call, ms; default 30,000. */
  readonly timeoutMs?: number;
}

const optionKeys: KnownKeys<FactoryOptions> = {
  throttleMs: true,
  maxRecordBytes: true,
  clock: true,
  timeoutMs: true,
};

/**
 * Makes the default factory of checkpointers: every run is durable from its start on.
 * @param store undefined or null = no run is durable: `begin` returns a checkpointer that does nothing
 * @throws {TypeError} for any other value that is not a store, for an unknown option, and for a number that is none
 */
export function createCheckpointerFactory(
  store: CheckpointStore | undefined,
  options: FactoryOptions = {},
): CheckpointerFactory {
  checkKeys(options, optionKeys, { of: 'createCheckpointerFactory' });
  checkNumbers('createCheckpointerFactory', options);
  if (store === undefined || store === null) return { begin: async () => noCheckpointer };
  checkStore('createCheckpointerFactory: the store', store);
  const clock = options.clock ?? systemClock;
  return {
    store,
    begin: async (info, begun = {}) => createCheckpointer(store, metaOf(info), { ...options, clock, ...begun }),
  };
}

/** The nine stored attributes of a run. */
function metaOf(info: RunInfo): RunCheckpointMeta {
  const { runId, callerId, channelId, guildId, prompt, modelTier, parentRunId } = info;
  return {
    runId,
    agentId: info.subjectId,
    agentName: info.name,
    callerId,
    channelId,
    guildId,
    prompt,
    modelTier,
    parentRunId,
  };
}
