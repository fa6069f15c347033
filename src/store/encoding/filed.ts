import type { RunCheckpointMeta } from '../../run/request.ts';
import type { Encryption } from './encryption.ts';

/** Under what a run with a record is found, as texts to store: hashes where the store has a codec. */
export interface Filed {
  /** Empty = it cannot be searched. */
  readonly agent: string;
  /** Null = it cannot be searched. */
  readonly caller: string | null;
  /** The key under which due runs are taken in turn; empty = none. Absent: it stays as it is. */
  readonly fair?: string | undefined;
}

/** Most characters of an id by which runs are found: databases index short texts only. */
const MAX_KEY_CHARS = 200;

/**
 * Returns the texts under which the runs of an agent, a caller, a fair key or a definition are found, the one to store first. Ids may share one:
 * agents and callers are compared as well. Undefined: a host's codec cannot hash, and all entries are read.
 */
export function keysOf(
  id: string,
  what: 'agent' | 'caller' | 'fair' | 'definition',
  encryption: Encryption,
): readonly [string, ...string[]] | undefined {
  return encryption.lookups(id.slice(0, MAX_KEY_CHARS).toWellFormed().replaceAll('\0', '\ufffd'), what);
}

/** Returns under what the run of a whole record is found. @param fairKey absent = it stays as it is */
export function filedOf(
  { agentId = '', callerId = '' }: RunCheckpointMeta,
  fairKey: string | undefined,
  encryption: Encryption,
): Filed {
  const fair =
    fairKey === undefined ? undefined : fairKey === '' ? '' : (keysOf(fairKey, 'fair', encryption)?.[0] ?? '');
  return {
    agent: keysOf(agentId, 'agent', encryption)?.[0] ?? '',
    caller: keysOf(callerId, 'caller', encryption)?.[0] ?? null,
    fair,
  };
}
