/**
 * The life of a run in one process, as a chart. `resolving`: its record is being read. `at-work`: this process has the run, and
 * announces its end. `leaving`: the store is being asked to take it, for it only waits. `left`: the store has it. `closing`: its
 * newest state, or its end, is being stored. `answered`: it ended before, or another start has it. `admitted`: it is stored, and
 * due. `refused`: it could not begin here. `lost`: another process has it. `over`: its result is known.
 */
export type LifePhase =
  | 'resolving'
  | 'at-work'
  | 'leaving'
  | 'left'
  | 'closing'
  | 'answered'
  | 'admitted'
  | 'refused'
  | 'lost'
  | 'over';

/** The allowed changes. `over` follows each other phase: a machine may break, and a host may stop it, at any time. */
export const changes: { readonly [From in LifePhase]: readonly LifePhase[] } = {
  // A start that finds the run at rest asks the store to take it back at once.
  resolving: ['at-work', 'leaving', 'answered', 'admitted', 'refused', 'lost', 'over'],
  'at-work': ['leaving', 'closing', 'lost', 'over'],
  // The store did not take it: it is where it was.
  leaving: ['resolving', 'at-work', 'left', 'lost', 'over'],
  left: ['over'],
  closing: ['lost', 'over'],
  answered: ['over'],
  admitted: ['over'],
  // The host's own record of it is ended.
  refused: ['closing', 'over'],
  lost: ['over'],
  over: [],
};

/** Returns whether the life of a run may go from one phase to another. */
export function mayFollow(from: LifePhase, to: LifePhase): boolean {
  return changes[from].includes(to);
}
