import { publicError } from '../http/problem.ts';
import type { Clock, JournalEvent, Usage } from '../index.ts';
import type { PostedAgUiMessage, PostedInput } from './input.ts';
import { Mapper } from './mapper.ts';
import { agUiMessagesOf, type RecordedMessage } from './messages.ts';
import { type AnsweredInterrupts, interruptsOf, type OpenWaits } from './open-waits.ts';
import { type AgUiEvent, type AgUiMessage, PROTOCOL } from './protocol.ts';
import { AgUiReader, needsAll } from './reader.ts';
import { type End, type Next, RunEvents, type Standing } from './run-events.ts';

/** A message of a person, and the run that answers it. */
export interface Turn {
  readonly runId: string;
  readonly state: 'queued' | 'live' | 'steered' | 'ended';
}

/** What a stream reads: a conversation and its runs. */
export interface Conversation {
  /** Waits until all of it may be in memory. @returns gives the place back; undefined if the signal was aborted */
  place(signal: AbortSignal): Promise<(() => void) | undefined>;
  messages(): Promise<readonly RecordedMessage[]>;
  /** Undefined if the conversation has no such turn, for example because it was removed. */
  turn(runId: string): Promise<Turn | undefined>;
  /** The newest turn that has begun. */
  newest(): Promise<Turn | undefined>;
  events(runId: string, signal: AbortSignal): AsyncIterable<JournalEvent>;
  waits(runId: string): Promise<OpenWaits>;
  standing(runId: string): Promise<Standing>;
}

/** What the events of a run said of its last step. */
type Said = Partial<Pick<Mapper, 'usage' | 'finishReason'>>;

/** What one stream is about. */
export interface Following {
  readonly conversation: Conversation;
  readonly input: PostedInput;
  /** The run to stream; undefined if the conversation has none. */
  readonly runId: string | undefined;
  /** The new message: the conversation does not show it before its turn. */
  readonly posted?: PostedAgUiMessage | undefined;
  readonly answered: AnsweredInterrupts;
  readonly signal: AbortSignal;
  readonly clock: Clock;
}

/** A pause of the events, ms: what came before it is the state to begin with. */
const PAUSE_MS = 50;
/** Longest time for the events that are there already, ms. */
const CATCH_UP_MS = 1_000;
/** How often a queue without a live run is looked at, ms. */
const QUEUE_MS = 200;

const none: AnsweredInterrupts = new Map();

/**
 * Makes the events of one stream: what there is so far as a snapshot, then what is new, up to the end of the run, or until only a
 * person can help. A throw means that the connection must break: a reader takes a clean end for success.
 */
export async function* followAgUi(following: Following): AsyncGenerator<AgUiEvent, void, undefined> {
  const { input, runId } = following;
  const { threadId, parentRunId } = input;
  yield {
    ...{ type: 'RUN_STARTED', threadId, runId: input.runId, protocolVersion: PROTOCOL },
    ...(parentRunId === undefined ? {} : { parentRunId }),
    ...(runId === undefined ? {} : { metadata: { pawl: { runId } } }),
  };
  const stream = new Stream(following);
  if (runId === undefined) yield* stream.finish({ kind: 'gone' });
  else if (yield* stream.queue(runId)) yield* stream.run(runId);
}

/** The stream of one reader. */
class Stream {
  readonly #following: Following;
  #reader: AgUiReader;
  #hasSnapshot = false;

  constructor(following: Following) {
    this.#following = following;
    this.#reader = new AgUiReader(following.input.had);
  }

  /** Waits until the turn of a message begins. @returns false if the stream is over instead */
  async *queue(runId: string): AsyncGenerator<AgUiEvent, boolean, undefined> {
    const { conversation } = this.#following;
    for (;;) {
      const turn = await conversation.turn(runId);
      if (turn && turn.state !== 'queued') return true;
      if (!this.#hasSnapshot) yield* this.#show(new AgUiReader(await this.#readRecorded()));
      // A message that was removed from the queue has no answer.
      const end: End | undefined = turn ? await this.#runBefore() : { kind: 'ended', status: 'cancelled', output: '' };
      // A message behind a parked run ends that.
      if (end?.kind === 'gone' || end?.kind === 'parked') await this.#pause();
      else if (end && (!turn || end.kind !== 'ended')) {
        yield* this.finish(end);
        return false;
      }
    }
  }

  /** Waits for the end of the run before a queued message, or until it needs a person. */
  async #runBefore(): Promise<End> {
    const { conversation } = this.#following;
    const before = await conversation.newest();
    if (before?.state !== 'live') return { kind: 'gone' };
    const events = this.#eventsOf(before.runId, none);
    try {
      for (;;) {
        const next = await events.next();
        if (next.kind !== 'event' && next.kind !== 'pause') return next;
      }
    } finally {
      events.close();
    }
  }

  /** Streams a run: what there is of it in one snapshot, then its events as they come. */
  async *run(runId: string): AsyncGenerator<AgUiEvent, void, undefined> {
    for (let from: number | undefined = 0; from !== undefined; ) from = yield* this.#part(runId, from);
  }

  /**
   * Streams a run until its end, or until the reader needs all messages again. They are read again then: a stream does not keep them.
   * @param from the time up to which events belong to the snapshot @returns the time for the next part; undefined at the end
   */
  async *#part(runId: string, from: number): AsyncGenerator<AgUiEvent, number | undefined, undefined> {
    const events = this.#eventsOf(runId, this.#following.answered);
    try {
      const begun = yield* this.#begin(runId, events, from);
      const { mapper } = begun;
      let { next } = begun;
      let at: number | undefined;
      while (next.kind === 'event' || next.kind === 'pause') {
        if (next.kind === 'event') {
          at = next.event.at;
          const made = mapper.map(next.event);
          yield* made.filter((each) => each !== needsAll);
          if (made.includes(needsAll)) {
            yield* mapper.close();
            return at;
          }
        }
        next = await events.next();
      }
      yield* mapper.close();
      // A reader has all messages before it is asked.
      if (next.kind === 'interrupt' && at !== undefined) return at;
      yield* this.finish(next, mapper);
      return undefined;
    } finally {
      events.close();
    }
  }

  /** Shows what there is of a run. @returns what maps its next events, and the first of them */
  async *#begin(
    runId: string,
    events: RunEvents,
    from: number,
  ): AsyncGenerator<AgUiEvent, { readonly mapper: Mapper; readonly next: Next }, undefined> {
    const { signal, conversation } = this.#following;
    const leave = await conversation.place(signal);
    try {
      const now = new AgUiReader(await this.#before(runId));
      const mapper = new Mapper(runId, now);
      const next = await this.#catchUp(events, mapper, from);
      yield* this.#show(now);
      return { mapper, next };
    } finally {
      leave?.();
    }
  }

  /** Takes in the events from before this stream. @returns the first one after them, a pause, or the end of the run */
  async #catchUp(events: RunEvents, mapper: Mapper, from: number): Promise<Next> {
    const { clock } = this.#following;
    const [began, until] = [clock.now(), clock.monotonic() + CATCH_UP_MS];
    const isBefore = (at: number) => at <= from || (at <= began && clock.monotonic() < until);
    let next = await events.next(from === 0 ? PAUSE_MS : undefined);
    while (next.kind === 'event' && isBefore(next.event.at)) {
      const { at } = next.event;
      mapper.map(next.event);
      next = await events.next(at < from ? undefined : PAUSE_MS);
    }
    // The snapshot has the beginning of an open message; its next piece opens the message again.
    mapper.close();
    return next;
  }

  /** The conversation before the answers of a run. Those come from the run's events: records lack the step that is in progress. */
  async #before(runId: string): Promise<AgUiMessage[]> {
    const recorded = await this.#following.conversation.messages();
    const first = recorded.findIndex((each) => each.runId === runId);
    if (first === -1) return this.#withPosted(agUiMessagesOf(recorded));
    const own = recorded.slice(first).filter((each) => each.runId === runId);
    const answer = own.findIndex(({ message }) => message.role !== 'user');
    const asked = answer === -1 ? own : own.slice(0, answer);
    return this.#withPosted(agUiMessagesOf([...recorded.slice(0, first), ...asked]));
  }

  async #readRecorded(): Promise<AgUiMessage[]> {
    return this.#withPosted(agUiMessagesOf(await this.#following.conversation.messages()));
  }

  /** Adds the new message, if it is not recorded yet. */
  #withPosted(messages: AgUiMessage[]): AgUiMessage[] {
    const { posted } = this.#following;
    if (!posted || messages.some(({ id }) => id === posted.id)) return messages;
    const message = { role: 'user' as const, content: [...posted.parts] as never };
    return [...messages, ...agUiMessagesOf([{ id: posted.id, runId: '', message }])];
  }

  /** Shows all messages. They are not in memory any more then. */
  *#show(now: AgUiReader): Generator<AgUiEvent, void, undefined> {
    this.#hasSnapshot = true;
    yield* this.#reader.snapshots(now.messages);
    this.#reader = now;
    now.noteSent();
  }

  /** Puts the reader right, and ends the stream. */
  async *finish(end: End, said: Said = {}): AsyncGenerator<AgUiEvent, void, undefined> {
    // The messages of a run in progress are not all recorded.
    const isOver = end.kind === 'ended' || end.kind === 'gone';
    const wanted = isOver || !this.#hasSnapshot ? await this.#readRecorded() : undefined;
    if (wanted && !(this.#hasSnapshot && this.#reader.has(wanted))) yield* this.#show(new AgUiReader(wanted));
    yield this.#last(end, said);
  }

  #last(end: End, { usage: total, finishReason }: Said): AgUiEvent {
    const { threadId, runId } = this.#following.input;
    const run = { type: 'RUN_FINISHED', threadId, runId } as const;
    const usage = total ? { usage: [tokensOf(total)] } : {};
    if (end.kind === 'interrupt') {
      const interrupts = interruptsOf(end.waits);
      return { ...run, outcome: { type: 'interrupt', interrupts }, ...usage };
    }
    if (end.kind === 'parked') return { type: 'RUN_ERROR', ...publicError({ code: 'RUN_PARKED' }), ...usage };
    if (end.kind === 'gone') return { ...run, outcome: { type: 'success' }, ...usage };
    if (end.status === 'cancelled') return { ...run, outcome: { type: 'cancelled' }, ...usage };
    if (end.status === 'ok') {
      const metadata = finishReason === undefined ? {} : { metadata: { pawl: { finishReason } } };
      return { ...run, result: end.output, outcome: { type: 'success' }, ...usage, ...metadata };
    }
    return { type: 'RUN_ERROR', ...publicError({ code: end.error?.code ?? '' }), ...usage };
  }

  #eventsOf(runId: string, answered: AnsweredInterrupts): RunEvents {
    const { conversation, signal, clock } = this.#following;
    return new RunEvents({
      ...{ runId, clock, answered },
      events: () => conversation.events(runId, signal),
      waits: () => conversation.waits(runId),
      standing: () => conversation.standing(runId),
    });
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      this.#following.clock.setTimeout(resolve, QUEUE_MS);
    });
  }
}

function tokensOf(usage: Usage) {
  const { inputTokens, outputTokens, reasoningTokens, cacheReadTokens, cacheWriteTokens } = usage;
  const cache = { cachedInputTokens: cacheReadTokens, cacheWriteInputTokens: cacheWriteTokens };
  return { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens, reasoningTokens, ...cache };
}
