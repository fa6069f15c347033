import type { RunCheckpointState } from '../record/state.ts';
import type { RunInfo } from '../run/request.ts';
import type { Checkpointer } from '../store/checkpointer.ts';
import type { BeginOptions, CheckpointerFactory } from '../store/factory.ts';

/** A checkpointer that keeps everything in memory and writes nothing. It reports that it is durable. */
export interface RecordingCheckpointer extends Checkpointer {
  readonly durable: true;
  /** Every saved state, as it was at the save. */
  readonly states: readonly RunCheckpointState[];
  /** For each of `states`: whether it had to be written at once. */
  readonly forced: readonly boolean[];
  /** How often `complete` was called. */
  readonly completed: number;
  /** How often `fail` was called. */
  readonly failed: number;
  /** The last argument of `fail`. */
  readonly error: unknown;
}

/** A factory of recording checkpointers: one for each run. */
export interface RecordingFactory extends CheckpointerFactory {
  /** The information about each run, in the order of their starts. */
  readonly infos: readonly RunInfo[];
  readonly options: readonly (BeginOptions | undefined)[];
  /** The checkpointers, in the same order. */
  readonly checkpointers: readonly RecordingCheckpointer[];
}

/**
 * Records what a run saves.
 * @example
 * const checkpointer = recordingCheckpointer();
 * await executor.run(agent, { prompt }, { checkpointer });
 * checkpointer.states.at(-1)?.messages;
 */
export function recordingCheckpointer(): RecordingCheckpointer {
  const states: RunCheckpointState[] = [];
  const forced: boolean[] = [];
  let completed = 0;
  let failed = 0;
  let lastError: unknown;
  return {
    durable: true,
    states,
    forced,
    get completed() {
      return completed;
    },
    get failed() {
      return failed;
    },
    get error() {
      return lastError;
    },
    async save(state, options) {
      states.push(materialised(state));
      forced.push(options?.force === true);
    },
    async complete() {
      completed += 1;
    },
    async fail(error) {
      failed += 1;
      lastError = error;
    },
  };
}

/** The messages of a state are a getter: the spread reads it, and the array is copied. */
function materialised(state: RunCheckpointState): RunCheckpointState {
  const copy = { ...state };
  return copy.messages === undefined ? copy : { ...copy, messages: [...copy.messages] };
}

/** Makes a recording checkpointer for each run, and keeps the RunInfo. */
export function recordingFactory(): RecordingFactory {
  const infos: RunInfo[] = [];
  const options: (BeginOptions | undefined)[] = [];
  const checkpointers: RecordingCheckpointer[] = [];
  return {
    infos,
    options,
    checkpointers,
    async begin(info, begun) {
      const checkpointer = recordingCheckpointer();
      infos.push(info);
      options.push(begun);
      checkpointers.push(checkpointer);
      return checkpointer;
    },
  };
}
