import { type Client, ClientError, type ThreadView, type WaitFilter } from '../client/index.ts';
import type { ListedWait, ThreadMessage } from '../index.ts';
import { type RunState, unknownRun, withEvent } from './run-state.ts';
import { SharedSources, type Source } from './shared-sources.ts';

/** What a page knows of a thread. */
export interface ThreadState {
  /** `running`: a run is live, also one that waits. `failed`: `error` says why the thread cannot be read. */
  readonly status: 'loading' | 'ready' | 'running' | 'failed';
  /** The messages that are recorded, but for the answers of the live run. */
  readonly messages: readonly ThreadMessage[];
  /** Messages on their way: the server has not listed them yet. */
  readonly pending: readonly PendingMessage[];
  /** The live run; its steps follow the messages. */
  readonly live?: RunState & { readonly runId: string };
  readonly error?: ClientError | Error;
}

/** A message on its way to the server. */
export interface PendingMessage {
  readonly id: string;
  /** Absent for one with parts. */
  readonly text?: string;
}

/** What a page knows of the open waits. */
export interface WaitsState {
  readonly status: 'loading' | 'ready';
  /** The first page of them. */
  readonly waits: readonly ListedWait[];
  /** Why the list is not of now. */
  readonly error?: ClientError | Error;
}

/** Everything of one server that components look at. */
export interface Sources {
  readonly client: Client;
  readonly runs: SharedSources<RunState>;
  readonly threads: SharedSources<ThreadState>;
  readonly waits: SharedSources<WaitsState>;
}

/** The sources of each client, however many providers it has. */
const known = new WeakMap<Client, Sources>();

/** Returns the sources of a client. */
export function sourcesOf(client: Client): Sources {
  const found = known.get(client);
  if (found) return found;
  const sources: Sources = {
    client,
    runs: new SharedSources<RunState>(unknownRun, (id, source) => followRun(client, id, source)),
    threads: new SharedSources<ThreadState>(unknownThread, (id, source) =>
      new ThreadFollower(client, id, source).follow(),
    ),
    waits: new SharedSources<WaitsState>(unknownWaits, (filter, source) =>
      pollWaits(client, JSON.parse(filter), source),
    ),
  };
  known.set(client, sources);
  return sources;
}

/** What a page knows of a thread before the first answer. */
export const unknownThread: ThreadState = Object.freeze({
  status: 'loading',
  messages: Object.freeze([]),
  pending: Object.freeze([]),
});

/** What a page knows of waits before the first answer. */
export const unknownWaits: WaitsState = Object.freeze({ status: 'loading', waits: Object.freeze([]) });

type Update<State> = (change: (state: State) => State) => void;

/** Follows a run to its end. Of one whose events are gone only the result is known. Never rejects. */
async function followRun(
  client: Client,
  id: string,
  { signal, update }: { readonly signal: AbortSignal; readonly update: Update<RunState> },
): Promise<void> {
  try {
    const onConnection = (connection: RunState['connection'], error?: ClientError): void =>
      update(({ error: _, ...state }) => ({ ...state, connection, ...(error ? { error } : {}) }));
    for await (const event of client.run(id).events({ signal, onConnection }))
      update((state) => withEvent(state, event));
    update(({ error: _, ...state }) => ({ ...state, connection: 'closed' }));
  } catch (error) {
    const known = isCode(error, 'JOURNAL_GONE') ? await endOf(client, id) : {};
    update((state) => ({ ...state, connection: 'closed', error: asError(error), ...known }));
  }
}

async function endOf(client: Client, id: string): Promise<Partial<RunState>> {
  try {
    const { result } = await client.run(id).get();
    return result ? { status: 'ended', result } : {};
  } catch {
    // The first error says more.
    return {};
  }
}

/** Most messages of a page. */
const PAGE = 100;
/** How soon a thread is read again after a failure that may pass, ms. */
const AGAIN_MS = 5_000;

/** Reads a thread, follows its live run, reads what that has added, and so on. */
class ThreadFollower {
  readonly #client: Client;
  readonly #id: string;
  readonly #source: Source<ThreadState>;
  /** All that were read, in order. */
  #messages: readonly ThreadMessage[] = [];

  constructor(client: Client, id: string, source: Source<ThreadState>) {
    this.#client = client;
    this.#id = id;
    this.#source = source;
  }

  /** Never rejects. */
  async follow(): Promise<void> {
    const { signal, update } = this.#source;
    while (!signal.aborted) {
      try {
        const live = await this.#read();
        if (live === undefined) await this.#source.nudged();
        else await this.#followLive(live);
      } catch (error) {
        const isPassing = error instanceof ClientError && error.retry === 'later';
        update((state) => ({ ...state, status: isPassing ? state.status : 'failed', error: asError(error) }));
        await this.#source.nudged(isPassing ? AGAIN_MS : undefined);
      }
    }
  }

  /** Reads what is new, or all if another page has rewound the thread. Returns the live run. */
  async #read(): Promise<string | undefined> {
    const thread = this.#client.thread(this.#id);
    const { live, turns } = await thread.get().catch(ofNewThread);
    const last = this.#messages.at(-1);
    if (last && !turns.some(({ runId }) => runId === last.runId)) this.#messages = [];
    for (let isMore = turns.length > 0; isMore && !this.#source.signal.aborted; ) {
      const after = this.#messages.at(-1)?.index;
      const page = await thread.messages({ limit: PAGE, ...(after === undefined ? {} : { after }) });
      this.#messages = [...this.#messages, ...page.items];
      isMore = page.next !== undefined && page.items.length > 0;
    }
    this.#show(live);
    return live;
  }

  #show(live: string | undefined): void {
    const messages = this.#messages.filter(({ runId, message }) => runId !== live || message.role === 'user');
    const ids = new Set(messages.map(({ id }) => id));
    this.#source.update(({ live: before, error: _, ...state }) => ({
      ...state,
      status: live === undefined ? 'ready' : 'running',
      messages,
      pending: state.pending.filter(({ id }) => !ids.has(id)),
      ...(live === undefined ? {} : { live: before?.runId === live ? before : { ...unknownRun, runId: live } }),
    }));
  }

  /** Follows the live run to its end. What comes after it is read then, in one change. */
  async #followLive(runId: string): Promise<void> {
    const { signal, update } = this.#source;
    let last: RunState = unknownRun;
    await followRun(this.#client, runId, {
      signal,
      update: (change) =>
        update((state) => {
          last = change(state.live?.runId === runId ? state.live : unknownRun);
          return { ...state, live: { ...last, runId } };
        }),
    });
    // A run that cannot be followed may stay live for long.
    if (last.status !== 'ended' && !signal.aborted) await this.#source.nudged(AGAIN_MS);
  }
}

/** A thread exists from its first message on. */
function ofNewThread(error: unknown): Pick<ThreadView, 'live' | 'turns'> {
  if (isCode(error, 'NOT_FOUND')) return { turns: [] };
  throw error;
}

/** How often the open waits are read, ms. */
const POLL_MS = 5_000;

/** Reads the open waits now and then, while the page is shown. Never rejects. */
async function pollWaits(client: Client, filter: WaitFilter, source: Source<WaitsState>): Promise<void> {
  while (!source.signal.aborted) {
    if ((globalThis as { document?: { readonly hidden: boolean } }).document?.hidden !== true) {
      try {
        const { items } = await client.waiting(filter);
        source.update(() => ({ status: 'ready', waits: items }));
      } catch (error) {
        source.update((state) => ({ ...state, error: asError(error) }));
      }
    }
    await source.nudged(POLL_MS);
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof ClientError && error.code === code;
}

/** A host's `headers` may throw anything. */
function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
