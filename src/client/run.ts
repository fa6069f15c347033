import type { RunView } from '../http/runs/run-view.ts';
import type { AnswerState } from '../index.ts';
import type { Answer } from '../run/command.ts';
import type { JournalEvent } from '../run/journal/reader.ts';
import type { MachineEvent } from '../run/workflow/event.ts';
import type { JsonValue } from '../values/json.ts';
import { type Connection, pathOf } from './connection.ts';
import type { ClientError } from './error.ts';
import { type ConnectionState, followFeed } from './follow.ts';
import type { SseEvent } from './sse-parser.ts';

/** From where, and for how long, events are read. */
export interface FollowEventsOptions {
  /** The cursor of the last event that the reader has. Default: from the beginning. */
  readonly after?: string;
  /** Ends the events: the loop over them then ends without an error. */
  readonly signal?: AbortSignal;
  /** Called when the connection opens, breaks, and opens again. `error` says why it waits. */
  readonly onConnection?: (state: ConnectionState, error?: ClientError) => void;
}

/** What an approval may hold. */
export interface ApproveAnswer {
  /** For those who read the decision later: the record and the events keep it, the model does not read it. */
  readonly note?: string;
  /** The input of the call as the person changed it. */
  readonly input?: JsonValue;
  /** The digest of the wait that the person saw: an approval of another input is refused. */
  readonly digest?: string;
}

/** A run on the server. */
export interface ClientRun {
  readonly id: string;
  /**
   * Follows the run until it has ended, over lost connections and other servers. The last event is `run.ended`. There is none if
   * the reader's cursor is that of the end.
   * @throws {ClientError} JOURNAL_GONE if the events are not kept any more; an error that a new connection does not cure
   */
  events(options?: FollowEventsOptions): AsyncIterableIterator<JournalEvent>;
  /** Returns what the server knows of the run. */
  get(): Promise<RunView>;
  /** Cancels the run, and the runs below it. Returns whether it is over, or another process will end it. */
  cancel(reason?: string): Promise<'ended' | 'sent'>;
  /**
   * Continues a run that ended badly after its last recorded step. `live`: on this server. `due`: in a process that has its agent.
   * @throws {ClientError} RUN_ENDED if it has its answer, RECORD_GONE if its record is not kept any more
   */
  retry(): Promise<'live' | 'due'>;
  /**
   * Sends a message that the model reads in its next turn.
   * @throws {ClientError} UNDELIVERED if the run is over
   */
  steer(text: string): Promise<void>;
  /**
   * Sends an event to the machine of a workflow. `recorded`: its record has it. `sent`: it waits for the process that has the run.
   * @param options.id names the event: sent again with the same id, it counts once. Default: a random id
   * @throws {ClientError} EVENT_INVALID, RUN_NOT_FOUND if the run is over, UNSUPPORTED for a run of an agent
   */
  send(event: MachineEvent, options?: { readonly id?: string }): Promise<'recorded' | 'sent'>;
  /**
   * Answers a wait of the run, or of a run below it; the same answer again has the same effect as once.
   * @throws {ClientError} WAIT_GONE, ALREADY_ANSWERED, ANSWER_REFUSED
   */
  answer(waitId: string, answer: Answer): Promise<AnswerState>;
  approve(waitId: string, answer?: ApproveAnswer): Promise<AnswerState>;
  deny(waitId: string, answer?: { readonly reason?: string }): Promise<AnswerState>;
}

/** Makes the handle of a run. Nothing is sent before a method is called. */
export function runOn(connection: Connection, id: string): ClientRun {
  const path = pathOf('runs', id);
  const post = async <State>(action: string, body: unknown, isRepeatable = true): Promise<State> => {
    const answer = await connection.call({ method: 'POST', path: path + action, body, isRepeatable });
    return (answer as { readonly state: State } | undefined)?.state as State;
  };
  const answer = (waitId: string, body: Answer): Promise<AnswerState> => post(pathOf('answers', waitId), body);
  return {
    id,
    events: (options) => eventsOf(connection, `${path}/events`, options),
    get: async () => (await connection.call({ path, isRepeatable: true })) as RunView,
    cancel: (reason) => post('/cancel', { reason }),
    retry: () => post('/retry', {}),
    // Sent twice, the model would read it twice.
    steer: async (text) => void (await post('/steer', { text }, false)),
    send: (event, { id = connection.newId() } = {}) => post('/events', { event, id }),
    answer,
    approve: (waitId, given) => answer(waitId, { ...given, how: 'approve' }),
    deny: (waitId, given) => answer(waitId, { ...given, how: 'deny' }),
  };
}

function eventsOf(
  connection: Connection,
  path: string,
  { after, signal, onConnection }: FollowEventsOptions = {},
): AsyncIterableIterator<JournalEvent> {
  return closable(signal, (closed) =>
    untilEnded(
      followFeed(connection, {
        request: (lastId) => ({ path, headers: streamHeaders(lastId) }),
        parse: journalEvent,
        signal: closed,
        after,
        onConnection,
      }),
    ),
  );
}

async function* untilEnded(events: AsyncGenerator<JournalEvent>): AsyncGenerator<JournalEvent, void, undefined> {
  for await (const event of events) {
    yield event;
    if (event.type === 'run.ended') return;
  }
}

/** The headers of a request for an event stream. */
export function streamHeaders(lastId: string | undefined): Record<string, string> {
  return { accept: 'text/event-stream', ...(lastId === undefined ? {} : { 'last-event-id': lastId }) };
}

function journalEvent({ data, id }: SseEvent): JournalEvent {
  const event = JSON.parse(data);
  if (typeof event?.type !== 'string' || id === undefined) throw new TypeError('The data is no event of a run');
  return { ...event, cursor: id };
}

/**
 * An iterator that ends by returning when its signal is aborted or its reader leaves, also while it waits for an event: a
 * generator alone would finish its wait first.
 */
function closable<T>(
  signal: AbortSignal | undefined,
  start: (closed: AbortSignal) => AsyncGenerator<T, void, undefined>,
): AsyncIterableIterator<T> {
  const closed = new AbortController();
  const close = (): void => closed.abort();
  signal?.addEventListener('abort', close);
  if (signal?.aborted) close();
  const items = start(closed.signal);
  const end = (): IteratorResult<T, undefined> => {
    signal?.removeEventListener('abort', close);
    return { done: true, value: undefined };
  };
  return {
    async next() {
      try {
        const result = await items.next();
        return result.done ? end() : result;
      } catch (error) {
        const ended = end();
        if (closed.signal.aborted) return ended;
        throw error;
      }
    },
    async return() {
      close();
      // What the connection says of being closed is of no interest.
      await items.return().catch(() => undefined);
      return end();
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
