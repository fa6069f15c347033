import type { RunLine, RunState } from '../http/runs/run-line.ts';
import type { RunEndView } from '../http/runs/run-view.ts';
import type { ListedWait } from '../index.ts';
import type { ImageInput } from '../run/request.ts';
import type { JsonValue } from '../values/json.ts';
import { type ChatTransportOptions, chatTransportOn, type PawlChatTransport } from './chat-transport.ts';
import { type ClientOptions, Connection, type Page } from './connection.ts';
import { type ClientRun, runOn } from './run.ts';
import { type ClientThread, threadOn } from './thread.ts';

/** A run to start. */
export interface RunToStart {
  /** The id of an agent that the server offers. */
  readonly agent: string;
  readonly prompt: string;
  readonly inputs?: Readonly<Record<string, JsonValue>>;
  /** `data`: base64, or a URL. */
  readonly images?: readonly ImageInput[];
}

/** The answer to a start. */
export interface StartedRun {
  readonly runId: string;
  /** `started`, or what the server found of the run that the same key began before. */
  readonly accepted: 'started' | 'resumed' | 'joined' | 'ended';
  /** How it ended, if it has ended. */
  readonly result?: RunEndView;
}

/** Which runs a list has. */
export interface RunFilter {
  /** One state, or several. `you`: it waits for a person; `idle`: no process works on it; `ok`, `fail`, `cut`: it ended. */
  readonly state?: RunState | readonly RunState[];
  /** A text that its id, its prompt or the name of its agent has. */
  readonly q?: string;
  /** `name=text`; several must all fit. */
  readonly label?: string | readonly string[];
  /** Only runs that ended then or later, and before `until`: ISO dates with a time, or ms. */
  readonly since?: string;
  readonly until?: string;
  readonly after?: string;
  readonly limit?: number;
}

/** Which waits a list has. */
export interface WaitFilter {
  /** Only waits of this run and of the runs below it. */
  readonly runId?: string;
  /** Absent: all kinds but `child`. */
  readonly kind?: ListedWait['kind'] | readonly ListedWait['kind'][];
  readonly after?: string;
  readonly limit?: number;
}

/** Talks to one `httpHandler` of `pawl/http`. */
export interface Client {
  run(id: string): ClientRun;
  thread(id: string): ClientThread;
  /**
   * Starts a run. Started again with the same key, it is the same run; other content with it is RUN_ID_CONFLICT. Without a key a
   * random one is made, so that an answer that is lost on the way starts nothing twice.
   */
  start(run: RunToStart, options?: { readonly idempotencyKey?: string }): Promise<StartedRun>;
  /** Returns a page of the open waits that the caller may see. */
  waiting(filter?: WaitFilter): Promise<Page<ListedWait>>;
  /** Returns a page of the caller's runs. */
  runs(filter?: RunFilter): Promise<Page<RunLine>>;
  /** Makes a transport for `useChat` of the AI SDK. Its answers continue by themselves when a server dies. */
  chatTransport(options?: ChatTransportOptions): PawlChatTransport;
}

/**
 * Makes a client of a server that `httpHandler` of `pawl/http` runs. It needs nothing but `fetch` and streams: browsers, Node, Bun
 * and Deno have them.
 * @example
 * const client = createClient({ url: '/api' });
 * const { runId } = await client.start({ agent: 'helper', prompt: 'What is new?' });
 * for await (const event of client.run(runId).events()) if (event.type === 'model.delta') show(event.text);
 */
export function createClient(options: ClientOptions): Client {
  const connection = new Connection(options);
  return {
    run: (id) => runOn(connection, id),
    thread: (id) => threadOn(connection, id),
    async start(run, { idempotencyKey = connection.newId() } = {}) {
      const headers = { 'idempotency-key': idempotencyKey };
      return (await connection.call({
        method: 'POST',
        path: '/runs',
        body: run,
        headers,
        isRepeatable: true,
      })) as StartedRun;
    },
    waiting: (filter = {}) => connection.page<ListedWait>('/waiting', { ...filter }),
    runs: (filter = {}) => connection.page<RunLine>('/runs', { ...filter }),
    chatTransport: (chat) => chatTransportOn(connection, chat),
  };
}
