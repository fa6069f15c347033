import {
  ThreadBusyError,
  ThreadFullError,
  ThreadMessageConflictError,
  ThreadMissingError,
} from '../../values/errors.ts';
import type { Admission, BegunTurn, OnBusy } from '../thread-port.ts';
import type { RecordFacts } from './decision.ts';
import type { ThreadChange, ThreadDecision, ThreadFacts, ThreadRow, TurnRow } from './thread-rows.ts';

/* Which turn of a thread is next, and what becomes of a message. A thread has one live run at most. */

/** The texts of a turn, and the writes to runs, that a decision makes. They encrypt. */
export interface TurnTexts<W> {
  /** Returns the text of a turn that has begun. */
  begun(turn: TurnRow): string;
  /** Returns the write of the first record of a queued turn; undefined if its text cannot be read. */
  firstRecord(turn: TurnRow, upTo: number): W | undefined;
  /** Returns the id of the agent of a turn. */
  agentOf(turn: TurnRow): string;
  /** Returns the write of a command that cancels the live run. */
  cancel(live: TurnRow, by: TurnRow): W;
}

/** A message on its way to its thread. */
export interface Arrival<W> extends TurnTexts<W> {
  readonly message: string;
  readonly onBusy: OnBusy;
  readonly maxQueued: number;
  /** The row of its thread, if it is the first message. */
  readonly thread: ThreadRow;
  /** Wall clock, ms. */
  readonly now: number;
  /** Whether a stored turn has the same content. */
  isEqual(turn: TurnRow): boolean;
  /** Returns the text of a queued turn. */
  queuedText(runId: string): string;
  /** Returns the id of its run. @param attempt counts the runs of this message, from 0 */
  runId(attempt: number): string;
  /** Returns the write of the command that gives it to the live run; undefined: it cannot. */
  steer(live: TurnRow): W | undefined;
}

/**
 * Decides what becomes of a message.
 * @throws {THREAD_MESSAGE_CONFLICT} @throws {THREAD_BUSY} @throws {THREAD_FULL}
 */
export function admitTurn<W>(arrival: Arrival<W>): (facts: ThreadFacts) => ThreadDecision<Admission, W> {
  return (facts) => {
    const { turn } = facts;
    if (turn) return { value: known(turn, facts, arrival) };
    const advanced = facts.live && facts.hasRecord(facts.live.runId) ? unmoved<W>(facts) : recovered(facts, arrival);
    const { live } = advanced;
    const row = newTurn(arrival, facts, live ? 'queued' : 'live');
    return live ? behind(live, { arrival, facts, row, advanced }) : first(row, arrival, advanced);
  };
}

function known<W>(turn: TurnRow, facts: ThreadFacts, { isEqual }: Arrival<W>): Admission {
  if (!isEqual(turn)) throw new ThreadMessageConflictError('the thread has a message of this id with other content');
  const live = facts.live?.runId;
  const runId = turn.state === 'steered' ? (live ?? turn.runId) : turn.runId;
  return { runId, state: 'known', ...(live === undefined ? {} : { live }) };
}

/** Where a thread is after the end of its live run. */
interface Advanced<W> {
  readonly thread: ThreadRow | null;
  readonly live: TurnRow | null;
  readonly turns: readonly TurnRow[];
  readonly writes: readonly W[];
}

const unmoved = <W>({ thread, live }: ThreadFacts): Advanced<W> => ({ thread, live, turns: [], writes: [] });

/** The record of a live turn may be gone: a host removed it. Then that turn has no messages, and the next one begins. */
function recovered<W>(facts: ThreadFacts, texts: TurnTexts<W> & Pick<Arrival<W>, 'now'>): Advanced<W> {
  const { thread } = facts;
  if (!thread) return unmoved(facts);
  return advance(facts, thread, { texts, now: texts.now, count: 0, isDelivered: () => false, compaction: null });
}

function newTurn<W>(arrival: Arrival<W>, facts: ThreadFacts, state: 'live' | 'queued'): TurnRow {
  let attempt = facts.thread?.rewinds ?? 0;
  while (facts.isKnown(arrival.runId(attempt))) attempt += 1;
  const runId = arrival.runId(attempt);
  const { message, queuedText } = arrival;
  return { message, runId, state, order: 0, first: 0, count: 0, text: queuedText(runId), compaction: null };
}

/** No run is live: the run of the message begins. */
function first<W>(row: TurnRow, arrival: Arrival<W>, advanced: Advanced<W>): ThreadDecision<Admission, W> {
  const thread = advanced.thread ?? arrival.thread;
  const begun = begin(row, thread, arrival);
  if (!begun) throw new ThreadMissingError('the first record of the turn cannot be made');
  return {
    value: { runId: row.runId, state: 'started', live: row.runId },
    change: {
      thread: { ...thread, turns: thread.turns + 1, updatedAt: arrival.now },
      turns: [...advanced.turns, begun.turn],
      writes: [...advanced.writes, begun.write],
    },
  };
}

interface Behind<W> {
  readonly arrival: Arrival<W>;
  readonly facts: ThreadFacts;
  readonly row: TurnRow;
  readonly advanced: Advanced<W>;
}

/** A run is live: the message waits, reaches that run, or is refused. */
function behind<W>(live: TurnRow, { arrival, facts, row, advanced }: Behind<W>): ThreadDecision<Admission, W> {
  const { onBusy, maxQueued, now } = arrival;
  const { count, lowest, highest } = facts.queue;
  if (onBusy === 'reject') throw new ThreadBusyError('a run of the thread is live');
  if (count >= maxQueued)
    throw new ThreadFullError(`${count} messages wait in the thread, and maxQueued is ${maxQueued}`);
  const steering = onBusy === 'steer' ? arrival.steer(live) : undefined;
  const isNext = onBusy === 'interrupt';
  const queued: TurnRow = {
    ...row,
    state: steering ? 'steered' : 'queued',
    order: isNext ? lowest - 1 : highest + 1,
  };
  const write = isNext ? arrival.cancel(live, queued) : steering;
  return {
    value: {
      runId: steering ? live.runId : row.runId,
      state: steering ? 'steered' : 'queued',
      live: live.runId,
    },
    change: {
      thread: { ...(advanced.thread ?? arrival.thread), updatedAt: now },
      turns: [...advanced.turns, queued],
      writes: [...advanced.writes, ...(write ? [write] : [])],
    },
  };
}

/** The end of a turn's run. */
interface Ending<W> {
  readonly texts: TurnTexts<W>;
  readonly runId: string;
  readonly now: number;
  /** Whether the run has delivered a steered message. */
  isDelivered(turn: TurnRow): boolean;
  /** The text of a shorter history that the run made. */
  readonly compaction: { readonly upTo: number; readonly text: string } | undefined;
}

/** Decides what is next in a thread whose run ends: its messages are the thread's, and the next turn begins. */
export function endTurn<W>(
  ending: Ending<W>,
): (facts: ThreadFacts, ended: RecordFacts | undefined) => ThreadDecision<BegunTurn | undefined, W> {
  const { texts, runId, now, isDelivered } = ending;
  return (facts, ended) => {
    const { thread, live } = facts;
    if (!thread || live?.runId !== runId || !ended) return { value: live ? begunTurn(live, texts) : undefined };
    const count = ended.messageCount;
    const isWhole = (ending.compaction?.upTo ?? Number.POSITIVE_INFINITY) <= thread.length + count;
    const compaction = isWhole ? (ending.compaction?.text ?? null) : null;
    const next = advance(facts, thread, { texts, now, count, isDelivered, compaction });
    return {
      value: next.live ? begunTurn(next.live, texts) : undefined,
      change: { thread: next.thread ?? thread, turns: next.turns, writes: next.writes },
    };
  };
}

function begunTurn<W>(turn: TurnRow, texts: TurnTexts<W>): BegunTurn {
  return { runId: turn.runId, agentId: texts.agentOf(turn) };
}

interface Advance<W> {
  readonly texts: TurnTexts<W>;
  readonly now: number;
  /** How many messages the turn that ends has. */
  readonly count: number;
  isDelivered(turn: TurnRow): boolean;
  readonly compaction: string | null;
}

/** Ends the live turn, if there is one, and begins the next. */
function advance<W>(facts: ThreadFacts, thread: ThreadRow, { texts, now, ...end }: Advance<W>): Advanced<W> {
  const { live, steered } = facts;
  const length = thread.length + (live ? end.count : 0);
  const ended: TurnRow[] = live ? [{ ...live, state: 'ended', count: end.count, compaction: end.compaction }] : [];
  const settled = steered.map((turn): TurnRow => {
    if (!live || !end.isDelivered(turn)) return { ...turn, state: 'queued' };
    return { ...turn, state: 'taken', runId: live.runId, order: live.order, text: texts.begun(turn) };
  });
  const waiting = [...settled.filter(({ state }) => state === 'queued'), ...(facts.next ? [facts.next] : [])];
  const next = waiting.sort((a, b) => a.order - b.order)[0];
  const after = { ...thread, length, updatedAt: now };
  const begun = next && begin(next, after, texts);
  const turns = [...ended, ...settled.filter((turn) => turn !== next)];
  if (!next) return { thread: after, live: null, turns, writes: [] };
  const counted = { ...after, turns: after.turns + 1 };
  if (begun) return { thread: counted, live: begun.turn, turns: [...turns, begun.turn], writes: [begun.write] };
  // Its text is damaged: it must not block the others. The next message of the thread begins the one after it.
  const lost: TurnRow = { ...next, state: 'ended', order: after.turns, first: length, count: 0 };
  return { thread: counted, live: null, turns: [...turns, lost], writes: [] };
}

function begin<W>(
  turn: TurnRow,
  { turns, length }: ThreadRow,
  texts: TurnTexts<W>,
): { readonly turn: TurnRow; readonly write: W } | undefined {
  const write = texts.firstRecord(turn, length);
  if (!write) return undefined;
  const begun: TurnRow = { ...turn, state: 'live', order: turns, first: length, count: 0, text: texts.begun(turn) };
  return { turn: begun, write };
}

/** The turns to drop from a thread. */
export interface Drop<W> {
  /** The turns to drop, the newest first: a part of them, if there are many. */
  readonly turns: readonly TurnRow[];
  readonly now: number;
  erase(turn: TurnRow): W;
}

/**
 * Decides the removal of the newest turns of a thread, and of those that wait.
 * @throws {THREAD_BUSY} beside a live run, or if other turns have begun meanwhile
 */
export function dropTurns<W>(drop: Drop<W>): (facts: ThreadFacts) => ThreadDecision<void, W> {
  return (facts) => {
    const { thread } = facts;
    if (!thread || drop.turns.length === 0) return { value: undefined };
    if (facts.live && facts.hasRecord(facts.live.runId)) throw new ThreadBusyError('a run of the thread is live');
    const oldest = drop.turns.at(-1) as TurnRow;
    // The answer of an earlier attempt was lost.
    if (thread.turns <= oldest.order) return { value: undefined };
    const begun = drop.turns.filter(({ state }) => state !== 'taken');
    if (oldest.order + begun.length !== thread.turns) throw new ThreadBusyError('the thread has changed meanwhile');
    const change: ThreadChange<W> = {
      thread: {
        ...thread,
        turns: oldest.order,
        length: oldest.first,
        rewinds: thread.rewinds + 1,
        updatedAt: drop.now,
      },
      remove: drop.turns.map(({ message }) => message),
      erase: begun.map(drop.erase),
    };
    return { value: undefined, change };
  };
}

/**
 * Decides that a message begins another run in the place of the last turn, which is its own: that is dropped in the same commit.
 * @throws {THREAD_BUSY} beside a live run, or if other turns have begun meanwhile
 */
export function admitAgain<W>(
  arrival: Arrival<W>,
  drop: Drop<W>,
): (facts: ThreadFacts) => ThreadDecision<Admission, W> {
  const [dropped, admitted] = [dropTurns(drop), admitTurn(arrival)];
  const before = drop.turns.at(-1)?.runId;
  return (facts) => {
    const { turn } = facts;
    if (drop.turns.filter(({ state }) => state !== 'taken').length > 1)
      throw new ThreadBusyError('this is not the last message of the thread');
    // The answer of an earlier attempt was lost.
    if (turn && turn.runId !== before) return { value: known(turn, facts, arrival) };
    const { thread, remove, erase } = dropped(facts).change ?? {};
    if (!thread || thread === 'remove') throw new ThreadMissingError('the thread has this message no more');
    const { next, steered, queue } = facts;
    const { value, change } = admitted({
      ...{ thread, turn: null, live: null, next, steered, queue },
      hasRecord: (runId) => facts.hasRecord(runId),
      isKnown: (runId) => facts.isKnown(runId),
    });
    return { value, change: { ...change, remove, erase } };
  };
}
