import type { RunCheckpoint } from '../../record/checkpoint.ts';
import { messageIdOf } from '../../run/command.ts';
import { checkRunId, checkThreadId } from '../../run/identity.ts';
import { sha256 } from '../../values/digest.ts';
import { ThreadBusyError, ThreadExistsError, ThreadMissingError, UnsupportedError } from '../../values/errors.ts';
import { isAmount } from '../../values/json.ts';
import type { Message } from '../../values/message.ts';
import { eraseRun } from '../rules/history.ts';
import type { ThreadRow, TurnRow } from '../rules/thread-rows.ts';
import { admitAgain, admitTurn, type Drop, dropTurns, endTurn } from '../rules/threads.ts';
import type { ListedThread, StoreWrite, ThreadDriver, ThreadWrite } from '../store-driver.ts';
import type {
  Admission,
  BegunTurn,
  ReadThreadOptions,
  ThreadKey,
  ThreadLine,
  ThreadMessage,
  ThreadPlaceOf,
  ThreadStore,
  ThreadTurn,
  TurnEnd,
  TurnToAdmit,
} from '../thread-port.ts';
import { arrivalOf, type ThreadParts, turnTexts } from './admission.ts';

/** What the threads of a store need of it. */
interface ThreadStoreParts extends ThreadParts {
  readonly driver: ThreadDriver;
  /** Wall clock, ms. */
  readonly now: () => number;
  readonly isDead: ((owner: string) => boolean) | undefined;
  /** The own messages of a run, live or ended; none without a record. */
  readonly messagesOf: (runId: string) => Promise<readonly Message[]>;
}

/** Most turns that one commit drops. */
const DROPPED_AT_ONCE = 100;
/** Most rows of one turn: the inbox of a run has no room for as many messages. */
const MOST_TAKEN = 10_000;
/** How many turns are read at once. */
const TURNS_PER_PAGE = 200;
const DEFAULT_LIMIT = 100;

/** The threads of a store: encrypts, decides by the rules of threads, and reads messages from the records of their runs. */
export class Threads {
  readonly #parts: ThreadStoreParts;

  constructor(parts: ThreadStoreParts) {
    this.#parts = parts;
  }

  async admit(turn: TurnToAdmit): Promise<Admission> {
    const { texts, driver } = this.#parts;
    const threads = this.#threadsOf(turn);
    const messages = this.#lookups(checkThreadId(turn.messageId, 'a message'), 'message');
    const row: ThreadRow = {
      thread: threads[0],
      caller: this.#callersOf(turn.callerId)[0],
      updatedAt: turn.record.updatedAt,
      turns: 0,
      length: 0,
      rewinds: 0,
      text: texts.sealThread(turn, threads[0]),
    };
    const arrival = arrivalOf(this.#parts, turn, { message: messages[0], thread: row });
    const decide = turn.again ? admitAgain(arrival, await this.#lastTurn(threads, messages)) : admitTurn(arrival);
    return driver.write({ threads, messages, decide });
  }

  /** The turn of a message, with the messages that its run has taken. */
  async #lastTurn(threads: readonly string[], messages: readonly string[]): Promise<Drop<StoreWrite<unknown>>> {
    const { driver, now } = this.#parts;
    const [turn] = (await driver.turns(threads, { kind: 'message', messages })) ?? [];
    const found = turn && (await driver.turns(threads, { kind: 'last', from: turn.order, limit: MOST_TAKEN }));
    return { turns: found ?? [], now: now(), erase: ({ runId }) => this.#erase(runId) };
  }

  /** Ends the run of a turn, in the same commit as the rest. @param end ends the run */
  end(turn: TurnEnd & { readonly runId: string }, end: StoreWrite<unknown>): Promise<BegunTurn | undefined> {
    const { runId, delivered, compaction, now } = turn;
    const found = new Set(delivered.flatMap((id) => this.#lookups(id, 'message')));
    const decide = endTurn({
      texts: turnTexts(this.#parts, turn.id),
      runId,
      now,
      isDelivered: ({ message }) => found.has(message),
      compaction: compaction && {
        upTo: compaction.upTo,
        text: this.#parts.texts.sealCompaction(compaction, runId),
      },
    });
    return this.#parts.driver.write({ threads: this.#threadsOf(turn), messages: [], end, decide });
  }

  async read(key: ThreadKey, { after = -1, limit = DEFAULT_LIMIT }: ReadThreadOptions = {}): Promise<ThreadMessage[]> {
    const found: ThreadMessage[] = [];
    for await (const turn of this.#listBegun(key, after + 1)) {
      if (found.length >= limit) break;
      for (const message of await this.#messagesIn(turn)) if (message.index > after) found.push(message);
    }
    return found.slice(0, limit);
  }

  async history(key: ThreadKey, upTo: number): Promise<Message[]> {
    const { driver, texts } = this.#parts;
    const newest = await driver.turns(this.#threadsOf(key), { kind: 'compacted', upTo });
    const kept = newest?.[0] && texts.openCompaction(newest[0]);
    const from = kept ? kept.upTo : 0;
    const messages: Message[] = kept ? [...kept.messages] : [];
    for await (const turn of this.#listBegun(key, from)) {
      if (turn.first >= upTo) break;
      const own = await this.#parts.messagesOf(turn.runId);
      messages.push(...own.slice(Math.max(0, from - turn.first), Math.min(turn.count, upTo - turn.first)));
    }
    return messages;
  }

  async turnOf(key: ThreadKey, of: { messageId: string } | { runId: string }): Promise<ThreadTurn | null> {
    const turn = await this.#turnOf(key, of);
    return turn ? this.#shown(turn) : null;
  }

  async queuedRun(runId: string): Promise<RunCheckpoint | null> {
    const turn = await this.#parts.driver.findQueued(checkRunId(runId));
    return (turn && this.#parts.texts.openTurn(turn).record) ?? null;
  }

  async turns(
    key: ThreadKey,
    { limit, waiting = false }: { readonly limit: number; readonly waiting?: boolean },
  ): Promise<ThreadTurn[]> {
    const kind = waiting ? 'waiting' : 'newest';
    const rows = await this.#parts.driver.turns(this.#threadsOf(key), { kind, limit });
    return (rows ?? []).map((row) => this.#shown(row));
  }

  async list(options: Parameters<ThreadStore['list']>[0] = {}): Promise<ThreadLine[]> {
    const { callerId, after, limit = DEFAULT_LIMIT, heldUp } = options;
    const callers = callerId === undefined ? undefined : this.#callersOf(callerId);
    const page = { callers, heldUp, limit, ...(after === undefined ? {} : { after: cursorFrom(after) }) };
    const rows = await this.#parts.driver.list(page);
    return rows.map((row) => this.#line(row));
  }

  async rewind(key: ThreadKey, place: ThreadPlaceOf): Promise<void> {
    const threads = this.#threadsOf(key);
    const turn = await this.#placeOf(key, place);
    await this.#drop(threads, turn.order + (place.isBefore ? 0 : 1));
  }

  async fork(key: ThreadKey, place: ThreadPlaceOf & { readonly newId: string }): Promise<void> {
    const { texts, driver, now } = this.#parts;
    const to = { callerId: key.callerId, id: place.newId };
    const [threads, newThreads] = [this.#threadsOf(key), this.#threadsOf(to)];
    const turn = await this.#placeOf(key, place);
    if (turn.state === 'live' && !place.isBefore) throw new ThreadBusyError('the turn of the message has not ended');
    const isWith = place.isBefore ? 0 : 1;
    const updatedAt = now();
    // Unlike any other, so that a repetition of this write is known.
    const text = texts.sealThread({ ...to, fork: crypto.randomUUID() }, newThreads[0]);
    await driver.fork({
      threads,
      newThreads,
      decide: (source, found) => {
        // The answer of an earlier attempt was lost.
        if (found?.text === text) return undefined;
        if (found) throw new ThreadExistsError('there is a thread with the id of the fork');
        if (!source || source.turns < turn.order + isWith)
          throw new ThreadMissingError('the thread has changed meanwhile');
        const length = turn.first + (place.isBefore ? 0 : turn.count);
        const row = { ...source, thread: newThreads[0], updatedAt, turns: turn.order + isWith };
        return { ...row, length, rewinds: 0, text };
      },
    });
  }

  /** Returns the live run, which must end first. */
  async delete(key: ThreadKey): Promise<string | undefined> {
    const { driver } = this.#parts;
    const threads = this.#threadsOf(key);
    for (;;) {
      const waiting = await driver.turns(threads, { kind: 'waiting', limit: DROPPED_AT_ONCE });
      if (!waiting) return undefined;
      if (waiting.length === 0) break;
      const remove = waiting.map(({ message }) => message);
      await this.#write(threads, ({ thread }) => ({ value: undefined, ...(thread ? { change: { remove } } : {}) }));
    }
    const live = await this.#write(threads, ({ live, hasRecord }) => ({
      value: live && hasRecord(live.runId) ? live.runId : undefined,
    }));
    if (live !== undefined) return live;
    await this.#drop(threads, 0);
    await this.#write(threads, ({ thread, live, queue }) => {
      if (thread && (live || queue.count > 0)) throw new ThreadBusyError('the thread got another message meanwhile');
      return { value: undefined, ...(thread ? { change: { thread: 'remove' } } : {}) };
    });
    return undefined;
  }

  /** Drops the turns from a place on, the newest first: after each commit it is a thread. */
  async #drop(threads: readonly string[], from: number): Promise<void> {
    const { driver, now } = this.#parts;
    for (;;) {
      const rows = await driver.turns(threads, { kind: 'last', from, limit: DROPPED_AT_ONCE });
      const end = (rows ?? []).findLastIndex(({ state }) => state !== 'taken') + 1;
      const turns = (rows ?? []).slice(0, end);
      if (turns.length === 0) return;
      await this.#write(threads, dropTurns({ turns, now: now(), erase: (turn) => this.#erase(turn.runId) }));
    }
  }

  #erase(runId: string): StoreWrite<unknown> {
    return { kind: 'erase', runId, decide: eraseRun(runId, { isDead: this.#parts.isDead }), size: 0, hasClaim: false };
  }

  #write<T>(threads: readonly string[], decide: ThreadWrite<T>['decide']): Promise<T> {
    return this.#parts.driver.write({ threads, messages: [], decide });
  }

  /** The begun turns from that of a message on. */
  async *#listBegun(key: ThreadKey, index: number): AsyncGenerator<TurnRow> {
    const { driver } = this.#parts;
    const threads = this.#threadsOf(key);
    const at = index <= 0 ? undefined : await driver.turns(threads, { kind: 'at', index });
    let from = at?.[0]?.order ?? 0;
    for (;;) {
      const page = await driver.turns(threads, { kind: 'begun', from, limit: TURNS_PER_PAGE });
      yield* page ?? [];
      const last = page?.at(-1);
      if (!page || !last || page.length < TURNS_PER_PAGE) return;
      from = last.order + 1;
    }
  }

  async #messagesIn(turn: TurnRow): Promise<ThreadMessage[]> {
    const { runId, first, count, state } = turn;
    const own = await this.#parts.messagesOf(runId);
    const shown = state === 'live' ? own : own.slice(0, count);
    return shown.map((message, place) => {
      const sent = place === 0 ? this.#parts.texts.openTurn(turn).id : messageIdOf(message);
      const id = sent ?? `${runId}:${place}`;
      return { id, runId, index: first + place, message };
    });
  }

  async #turnOf(key: ThreadKey, of: { messageId: string } | { runId: string }): Promise<TurnRow | undefined> {
    const threads = this.#threadsOf(key);
    const { driver } = this.#parts;
    if ('runId' in of) return (await driver.turns(threads, { kind: 'run', runId: of.runId }))?.[0];
    const messages = this.#lookups(checkThreadId(of.messageId, 'a message'), 'message');
    return (await driver.turns(threads, { kind: 'message', messages }))?.[0];
  }

  /** The begun turn that contains a message. @throws {THREAD_MISSING} */
  async #placeOf(key: ThreadKey, { messageId }: ThreadPlaceOf): Promise<TurnRow> {
    const asked = await this.#turnOf(key, { messageId });
    const runId = asked?.state === 'taken' ? asked.runId : asked ? undefined : messageId.replace(/:(\d+|m)$/, '');
    const turn = runId === undefined ? asked : await this.#turnOf(key, { runId });
    if (turn && (turn.state === 'live' || turn.state === 'ended')) return turn;
    throw new ThreadMissingError('the thread has no such message, or its turn has not begun');
  }

  #shown(turn: TurnRow): ThreadTurn {
    const { runId, state } = turn;
    const messageId = this.#parts.texts.openTurn(turn).id;
    return { messageId, runId, state: state === 'taken' ? 'steered' : state };
  }

  #line(row: ListedThread): ThreadLine {
    const { updatedAt, turns, length: messages, live, queued } = row;
    const key = this.#parts.texts.openThread(row);
    const cursor = `${updatedAt}:${row.thread}`;
    return { ...key, updatedAt, turns, messages, ...(live === undefined ? {} : { live }), queued, cursor };
  }

  #threadsOf({ callerId, id }: ThreadKey): readonly [string, ...string[]] {
    if (callerId !== '') checkThreadId(callerId, 'a caller');
    return this.#lookups(JSON.stringify([callerId, checkThreadId(id, 'a thread')]), 'thread');
  }

  #callersOf(callerId: string): readonly [string, ...string[]] {
    return this.#lookups(callerId, 'caller');
  }

  /** Hashes, so that ids of any length and content can be keys. */
  #lookups(text: string, what: string): readonly [string, ...string[]] {
    const found = this.#parts.encryption.lookups(sha256(text), what);
    if (found) return found;
    throw new UnsupportedError('threads need a codec with `lookups`, as `encrypt` makes one');
  }
}

/** Makes the threads of a store. */
export function threadGroup(threads: Threads): ThreadStore {
  return {
    admit: async (turn) => threads.admit(turn),
    read: async (key, options) => threads.read(key, options),
    history: async (key, upTo) => threads.history(key, upTo),
    turnOf: async (key, of) => threads.turnOf(key, of),
    queuedRun: async (runId) => threads.queuedRun(runId),
    turns: async (key, options) => threads.turns(key, options),
    list: async (options) => threads.list(options),
    rewind: async (key, to) => threads.rewind(key, to),
    fork: async (key, to) => threads.fork(key, to),
    delete: async (key) => threads.delete(key),
  };
}

/** Parses the cursor of a listed thread. @throws {TypeError} */
function cursorFrom(cursor: string): { readonly updatedAt: number; readonly thread: string } {
  const end = cursor.indexOf(':');
  const updatedAt = Number(cursor.slice(0, end));
  if (end > 0 && isAmount(updatedAt)) return { updatedAt, thread: cursor.slice(end + 1) };
  throw new TypeError('after must be the cursor of a listed thread');
}
