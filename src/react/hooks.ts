import {
  createContext,
  createElement,
  type ReactElement,
  type ReactNode,
  useCallback,
  useContext,
  useMemo,
  useSyncExternalStore,
} from 'react';
import {
  type ApproveAnswer,
  type Client,
  type ClientRun,
  newId,
  type ThreadMessageToSend,
  type WaitFilter,
} from '../client/index.ts';
import type { Answer, ThreadSent } from '../index.ts';
import type { RunState } from './run-state.ts';
import type { SharedSources } from './shared-sources.ts';
import { type Sources, sourcesOf, type ThreadState, type WaitsState } from './sources.ts';

/** What a page may do with a run. Each call rejects with a `ClientError`. */
export type RunActions = Pick<ClientRun, 'cancel' | 'steer' | 'answer' | 'approve' | 'deny'>;

/** What a page may do with a thread. Each call rejects with a `ClientError`. */
export interface ThreadActions {
  /** Sends a message; it is in `pending` at once. */
  send(message: string | ThreadMessageToSend): Promise<ThreadSent>;
  /** Cancels the live run. */
  cancel(reason?: string): Promise<void>;
  /** Drops the turns after a message; with `before`, also its own. */
  rewind(messageId: string, options?: { readonly before?: boolean }): Promise<void>;
  /** Reads the thread again: another page may have changed it. */
  refresh(): void;
}

/** What a page may do with waits. Each answer rejects with a `ClientError`. */
export interface WaitsActions {
  approve(wait: WaitOfRun, answer?: ApproveAnswer): Promise<void>;
  deny(wait: WaitOfRun, answer?: { readonly reason?: string }): Promise<void>;
  answer(wait: WaitOfRun, answer: Answer): Promise<void>;
  refresh(): void;
}

/** Names a wait. */
export interface WaitOfRun {
  readonly runId: string;
  readonly id: string;
}

const SourcesContext = createContext<Sources | undefined>(undefined);

/**
 * Gives the hooks below it their client.
 * @example
 * const client = createClient({ url: '/api' });
 * root.render(createElement(PawlProvider, { client }, createElement(Page)));
 */
export function PawlProvider({
  client,
  children,
}: {
  readonly client: Client;
  readonly children?: ReactNode;
}): ReactElement {
  return createElement(SourcesContext.Provider, { value: sourcesOf(client) }, children);
}

/** Returns the client of the `PawlProvider` above. */
export function useClient(): Client {
  return useSources('useClient').client;
}

/**
 * Follows a run: what the model writes, its calls, the open waits, the result. All components with one id have one connection; it
 * is closed a moment after the last of them has left. They change once a frame, however many events come.
 * @example
 * const { steps, waits, approve } = useRun(runId);
 */
export function useRun(id: string): RunState & RunActions {
  const { client, runs } = useSources('useRun');
  const state = useShared(runs, id);
  const actions = useMemo((): RunActions => {
    const { cancel, steer, answer, approve, deny } = client.run(id);
    return { cancel, steer, answer, approve, deny };
  }, [client, id]);
  return useMemo(() => ({ ...state, ...actions }), [state, actions]);
}

/**
 * Follows a conversation: its messages, and the run that answers now.
 * @param options.agent the agent that answers, if the server offers more than one
 * @example
 * const { messages, live, send } = useThread(threadId);
 */
export function useThread(id: string, { agent }: { readonly agent?: string } = {}): ThreadState & ThreadActions {
  const { client, threads } = useSources('useThread');
  const state = useShared(threads, id);
  const actions = useMemo((): ThreadActions => {
    const thread = client.thread(id);
    const changing = async (work: Promise<void>): Promise<void> => {
      await work;
      threads.nudge(id);
    };
    return {
      send: (message) => sendIn({ threads, client, id }, messageOf(message, agent)),
      cancel: (reason) => changing(thread.cancel(reason)),
      rewind: (messageId, options) => changing(thread.rewind(messageId, options)),
      refresh: () => threads.nudge(id),
    };
  }, [client, threads, id, agent]);
  return useMemo(() => ({ ...state, ...actions }), [state, actions]);
}

/**
 * Lists what waits for a person, or for anything else that the filter names. The list is read each 5 s while the page is shown, and
 * after each answer.
 * @example
 * const { waits, approve, deny } = useWaiting({ kind: 'approval' });
 */
export function useWaiting(filter: WaitFilter = {}): WaitsState & WaitsActions {
  const { client, waits } = useSources('useWaiting');
  const key = JSON.stringify(filter);
  const state = useShared(waits, key);
  const actions = useMemo((): WaitsActions => {
    const answering = async (work: Promise<unknown>): Promise<void> => {
      await work.finally(() => waits.nudge(key));
    };
    return {
      approve: ({ runId, id }, answer) => answering(client.run(runId).approve(id, answer)),
      deny: ({ runId, id }, answer) => answering(client.run(runId).deny(id, answer)),
      answer: ({ runId, id }, answer) => answering(client.run(runId).answer(id, answer)),
      refresh: () => waits.nudge(key),
    };
  }, [client, waits, key]);
  return useMemo(() => ({ ...state, ...actions }), [state, actions]);
}

function useSources(hook: string): Sources {
  const sources = useContext(SourcesContext);
  if (sources) return sources;
  throw new Error(`${hook} has no PawlProvider above it: wrap the page in one, with the client of createClient`);
}

function useShared<State>(shared: SharedSources<State>, key: string): State {
  const subscribe = useCallback((notify: () => void) => shared.subscribe(key, notify), [shared, key]);
  // On a server, and while the page of a server is taken over, nothing is known yet.
  return useSyncExternalStore(
    subscribe,
    () => shared.read(key),
    () => shared.initial,
  );
}

function messageOf(message: string | ThreadMessageToSend, agent: string | undefined): ThreadMessageToSend {
  const given = typeof message === 'string' ? { text: message } : message;
  return { ...(agent === undefined ? {} : { agent }), ...given };
}

interface ThreadPlace {
  readonly threads: SharedSources<ThreadState>;
  readonly client: Client;
  readonly id: string;
}

async function sendIn({ threads, client, id }: ThreadPlace, message: ThreadMessageToSend): Promise<ThreadSent> {
  const messageId = message.id ?? newId();
  const { text } = message;
  const others = ({ pending }: ThreadState) => pending.filter((each) => each.id !== messageId);
  threads.update(id, (state) => ({
    ...state,
    pending: [...others(state), { id: messageId, ...(text === undefined ? {} : { text }) }],
  }));
  try {
    const sent = await client.thread(id).send({ ...message, id: messageId });
    threads.nudge(id);
    return sent;
  } catch (error) {
    threads.update(id, (state) => ({ ...state, pending: others(state) }));
    throw error;
  }
}
