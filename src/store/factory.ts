import { type Clock, systemClock } from '../run/clock.ts';
import type { RunCheckpointMeta, RunInfo } from '../run/request.ts';
import { type Checkpointer, createCheckpointer, noCheckpointer } from './checkpointer.ts';
import type { CheckpointStore, Claim } from './port.ts';
import type { Landed } from './record-writer.ts';

export interface BeginOptions {
  readonly claim?: Claim | undefined;
  readonly landed?: Landed | undefined;
  readonly onFlushError?: ((error: unknown) => void) | undefined;
}

/** Decides run by run whether it is recorded, and how. */
export interface CheckpointerFactory {
  /** null = this run is not durable. */
  begin(info: RunInfo, options?: BeginOptions): Promise<Checkpointer | null>;
  /** What `recover`, `list` and a repeated `start` read. */
  readonly store?: CheckpointStore;
}

export interface FactoryOptions {
  /** Least time between two unforced writes of a run, ms; default 0 = each step is written. */
  readonly throttleMs?: number;
  /** A save over it is refused with RecordTooLargeError before anything is written; default 64 MiB. */
  readonly maxRecordBytes?: number;
  readonly clock?: Clock;
  /** Deadline of one store call, ms; default 30,000. */
  readonly timeoutMs?: number;
}

/**
 * The default factory: every run is durable from its start on.
 * @param store undefined = no run is durable: `begin` gives a checkpointer that does nothing
 */
export function createCheckpointerFactory(
  store: CheckpointStore | undefined,
  options: FactoryOptions = {},
): CheckpointerFactory {
  if (!store) return { begin: async () => noCheckpointer };
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
