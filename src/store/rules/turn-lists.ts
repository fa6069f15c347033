import type { ThreadFacts, TurnQuery, TurnRow } from './thread-rows.ts';

/* The turns of a thread as a list, for drivers without an index. */

const isBegun = ({ state }: TurnRow) => state === 'live' || state === 'ended';
const isWaiting = ({ state }: TurnRow) => state === 'queued' || state === 'steered';
const byOrder = (a: TurnRow, b: TurnRow) => a.order - b.order;
/** The newest first; of one run the messages that it has taken come before the run. */
const newestFirst = (a: TurnRow, b: TurnRow) => b.order - a.order || (a.state === 'taken' ? -1 : 1);

/** Returns the begun turns of a run. */
export function begunTurnsIn(turns: Iterable<TurnRow>, runId: string): TurnRow[] {
  return [...turns].filter((turn) => turn.runId === runId && isBegun(turn));
}

/** Returns the turns that wait: how many, and their lowest and highest place. */
export function queueOf(turns: readonly TurnRow[]): ThreadFacts['queue'] {
  const orders = turns.filter(isWaiting).map(({ order }) => order);
  const [lowest, highest] = orders.length > 0 ? [Math.min(...orders), Math.max(...orders)] : [0, 0];
  return { count: orders.length, lowest, highest };
}

/** Returns the facts of a decision that the turns of a thread give. */
export function factsOfTurns(
  turns: readonly TurnRow[],
  messages: readonly string[],
): Pick<ThreadFacts, 'turn' | 'live' | 'next' | 'steered' | 'queue'> {
  const queued = turns.filter(({ state }) => state === 'queued').sort(byOrder);
  return {
    turn: turns.find(({ message }) => messages.includes(message)) ?? null,
    live: turns.find(({ state }) => state === 'live') ?? null,
    next: queued[0] ?? null,
    steered: turns.filter(({ state }) => state === 'steered').sort(byOrder),
    queue: queueOf(turns),
  };
}

/** Answers a query among all turns of a thread. */
export function turnsAmong(turns: readonly TurnRow[], query: TurnQuery): TurnRow[] {
  switch (query.kind) {
    case 'begun':
      return turns
        .filter((turn) => isBegun(turn) && turn.order >= query.from)
        .sort(byOrder)
        .slice(0, query.limit);
    case 'newest':
      return turns.filter(isBegun).sort(newestFirst).slice(0, query.limit);
    case 'last':
      return turns
        .filter((turn) => !isWaiting(turn) && turn.order >= query.from)
        .sort(newestFirst)
        .slice(0, query.limit);
    case 'waiting':
      return turns.filter(isWaiting).slice(0, query.limit);
    case 'message':
      return turns.filter(({ message }) => query.messages.includes(message));
    case 'run':
      return turns.filter(({ runId, state }) => runId === query.runId && state !== 'taken');
    case 'at':
      return turns
        .filter((turn) => isBegun(turn) && turn.first <= query.index)
        .sort(newestFirst)
        .slice(0, 1);
    case 'compacted':
      return turns
        .filter(({ state, compaction, first, count }) => {
          return state === 'ended' && compaction !== null && first + count <= query.upTo;
        })
        .sort(newestFirst)
        .slice(0, 1);
  }
}
