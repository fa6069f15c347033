/** What a call of `executor.drive` did. Plain JSON of less than 512 bytes, for the journal of an engine or the log of a queue. */
export interface Driven {
  /** Absent after `drive('due')`. */
  readonly runId?: string;
  /**
   * `ended`: the run is over, its outcome is stored and delivered. `waiting`: there is nothing to do before `wakeAt`. `more`: it is
   * due: drive it again. `owned-elsewhere`: another process works on it, until `wakeAt` at least.
   *
   * Of `drive('due')`: `ended`: no run is due. `waiting`: the next one is due at `wakeAt`. `more`: others are due.
   */
  readonly state: 'ended' | 'waiting' | 'more' | 'owned-elsewhere';
  /** Wall clock, ms. Absent while `waiting`: only an answer, another command or a person helps. */
  readonly wakeAt?: number;
  /** The code of the error that ended the run, or of what keeps it from continuing. */
  readonly code?: string;
  /** How many times the state of a run was recorded while it worked. The record that a slice makes as it leaves does not count. */
  readonly boundaries: number;
  /** Of `drive('due')`: how many runs it worked on. */
  readonly runs?: number;
}

/** Codes come from hosts as well. */
const MAX_CODE_CHARS = 64;

/** Returns the code for an answer of `drive`, which is short; undefined without one. */
export function codeIn(code: string | undefined): Pick<Driven, 'code'> {
  return code === undefined ? {} : { code: code.slice(0, MAX_CODE_CHARS) };
}
