import { insideOf } from '../executor/inside.ts';
import { type AuthorizeDetails, askHost, type Grant } from '../http/authorize.ts';
import { readJson } from '../http/body.ts';
import { noteConnection } from '../http/connection.ts';
import type { WebHandler } from '../http/node-listener.ts';
import { RequestError } from '../http/problem.ts';
import { frameOf, streamAnswer } from '../http/sse.ts';
import { checkContentType, checkSource } from '../http/walls.ts';
import { type Web, type WebOptions, webOf } from '../http/web.ts';
import type { Agent, Executor } from '../index.ts';
import { isObject } from '../values/json.ts';
import { kindOf } from '../values/known-options.ts';
import { type ConversationNews, conversationOf, newsIn } from './conversation.ts';
import { followAgUi } from './follow.ts';
import { inputOfAgUi, type PostedAgUiMessage, type PostedInput } from './input.ts';
import { answerLate, decideInterrupt, ignoreLate, matchResume, mismatch } from './interrupts.ts';
import { type AnsweredInterrupts, agUiVotesOf, readWaits } from './open-waits.ts';
import type { AgUiEvent } from './protocol.ts';

/** The options of `agUiHandler`: those of every handler, and the agents. */
export interface AgUiHandlerOptions extends WebOptions {
  /**
   * The agents that may be started, by the last part of the path: `POST <basePath>/<id>`. With one agent, `POST <basePath>` is
   * enough.
   */
  readonly agents: { readonly [id: string]: Agent };
  /** Most bytes of a body; default 8 MiB: a reader of this protocol sends the whole conversation each time. */
  readonly maxBodyBytes?: number;
}

const DEFAULT_BODY_BYTES = 2 ** 23;

/**
 * Makes a handler for readers of the AG-UI protocol 1.0, for example the `HttpAgent` of `@ag-ui/client`. Each thread of the
 * protocol is a thread of the executor, each new message a turn of it; what waits for a person ends the stream with an interrupt,
 * and `resume` answers it. Threads and runs belong to the caller that `authorize` returns.
 * @throws {TypeError} without `authorize` or agents, and for an executor without a journal
 * @example
 * const handler = agUiHandler(executor, { agents: { support }, authorize: (request) => callerOf(request) });
 * export const POST = (request: Request) => handler(request);
 */
export function agUiHandler(executor: Executor, options: AgUiHandlerOptions): WebHandler {
  const web = webOf({ maxBodyBytes: DEFAULT_BODY_BYTES, ...options }, 'agUiHandler', { agents: true });
  const agents = agentsOf(options.agents);
  if (typeof executor?.find !== 'function') throw new TypeError('agUiHandler needs an executor, from createExecutor');
  if (!insideOf(executor).hasJournal)
    throw new TypeError('agUiHandler needs an executor with a journal: createExecutor({ journal: true, … })');
  return (request, connection) => {
    noteConnection(request, connection);
    return web.answer(request, () => new Post({ executor, web, agents, request }).answer());
  };
}

function agentsOf(given: unknown): ReadonlyMap<string, Agent> {
  if (!isObject(given)) throw new TypeError(`agUiHandler: agents must be an object of agents, not ${kindOf(given)}`);
  const agents = new Map(Object.entries(given as { [id: string]: Agent }));
  if (agents.size === 0) throw new TypeError('agUiHandler needs at least one agent');
  return agents;
}

interface PostOptions {
  readonly executor: Executor;
  readonly web: Web;
  readonly agents: ReadonlyMap<string, Agent>;
  readonly request: Request;
}

/** One request. */
class Post {
  readonly #options: PostOptions;

  constructor(options: PostOptions) {
    this.#options = options;
  }

  async answer(): Promise<Response> {
    const { request, web, executor } = this.#options;
    const { agentId, agent } = this.#agentAt(checkSource(request, web));
    if (request.method !== 'POST') throw new RequestError('METHOD_NOT_ALLOWED', '', { allow: 'POST' });
    checkContentType(request);
    // Without a grant nothing of the body is read; the thread is in it.
    await this.#ask({ action: 'read', agentId });
    const input = inputOfAgUi(await readJson(request, web));
    const { threadId } = input;
    const details = { action: 'read', threadId, agentId } as const;
    const grant = await this.#ask(details);
    const thread = executor.thread(threadId, { agent, callerId: grant.callerId });
    const news = await newsIn(input, thread);
    const asked = { input, news, agent, agentId, callerId: grant.callerId };
    const answered = await this.#answerWaits(asked);
    const runId = news.posted ? await this.#send(asked, news.posted) : news.turn?.runId;
    // A conversation of another caller looks like one that was never begun.
    if (runId === undefined) throw new RequestError('NOT_FOUND');
    const { callerId } = grant;
    const conversation = conversationOf(executor, thread, { reading: web.reading, callerId });
    const following = { conversation, input, runId, posted: news.posted, answered };
    const ask = (again: AuthorizeDetails) => this.#ask(again);
    return streamAnswer({ web, request, grant, ask, details }, (signal) =>
      frames(followAgUi({ ...following, signal, clock: web.clock })),
    );
  }

  /** The agent that the path names. @throws {RequestError} NOT_FOUND */
  #agentAt({ pathname }: URL): { readonly agentId: string; readonly agent: Agent } {
    const { agents, web } = this.#options;
    const path = pathname.endsWith('/') ? pathname.slice(0, -1) : pathname;
    const [only] = agents.keys();
    const isBase = path === web.basePath;
    if (isBase && agents.size > 1) throw new RequestError('NOT_FOUND');
    const agentId = isBase ? only : agentIdIn(path, web.basePath);
    const agent = agentId === undefined ? undefined : agents.get(agentId);
    if (agentId === undefined || !agent) throw new RequestError('NOT_FOUND');
    return { agentId, agent };
  }

  #ask(details: AuthorizeDetails): Promise<Grant> {
    return askHost(this.#options.web, this.#options.request, details);
  }

  /** Asks about one more thing that the request does. */
  async #askAlso(details: AuthorizeDetails, callerId: string): Promise<Grant> {
    const grant = await this.#ask(details);
    if (grant.callerId !== callerId) throw new Error('authorize named two callers for one request');
    return grant;
  }

  async #send(
    { agent, agentId, callerId, input: { threadId } }: Asked,
    { id, parts }: PostedAgUiMessage,
  ): Promise<string> {
    const { labels } = await this.#askAlso({ action: 'start', threadId, agentId }, callerId);
    const thread = this.#options.executor.thread(threadId, { agent, callerId, ...(labels ? { labels } : {}) });
    return (await thread.send({ id, parts })).runId;
  }

  /**
   * Gives the answers of the request to the run that waits. @returns the waits that it answered
   * @throws {RequestError} RESUME_MISMATCH unless each open interrupt has one answer
   */
  async #answerWaits({ input, news: { posted, turn }, agentId, callerId }: Asked): Promise<AnsweredInterrupts> {
    const { executor, web } = this.#options;
    const { resume = [], threadId } = input;
    const live = turn?.state === 'live' ? turn.runId : undefined;
    const open = live === undefined ? [] : (await readWaits(executor, live)).persons.map(({ wait }) => wait);
    if (resume.length === 0) {
      if (posted && open.length > 0) throw mismatch('the conversation waits for answers to its open interrupts');
      return new Map();
    }
    const { by } = await this.#askAlso(
      { action: 'answer', ...(live ? { runId: live } : {}), threadId, agentId },
      callerId,
    );
    // The run is over: no answer can change anything, and the stream says so.
    if (live === undefined) return new Map();
    const { decisions, late } = matchResume(resume, open);
    const control = executor.control(live);
    if (!by && open.some(({ kind }) => kind === 'approval')) throw new RequestError('PERSON_REQUIRED');
    await refusingPersons(async () => {
      for (const entry of late) await answerLate(control, entry, by);
      for (const decision of decisions) await decideInterrupt(control, decision, by).catch(ignoreLate);
    });
    return new Map(decisions.map(({ wait }) => [wait.id, { votes: agUiVotesOf(wait), at: web.clock.now() }]));
  }
}

/** Gives answers. The payloads are checked, so what the executor calls a wrong call is an answer without a person. */
async function refusingPersons(give: () => Promise<void>): Promise<void> {
  try {
    await give();
  } catch (error) {
    if (error instanceof TypeError) throw new RequestError('PERSON_REQUIRED');
    throw error;
  }
}

/** A request whose reader is known. */
interface Asked {
  readonly input: PostedInput;
  readonly news: ConversationNews;
  readonly agent: Agent;
  readonly agentId: string;
  readonly callerId: string;
}

/** The last part of a path, decoded; undefined if the path is not one below `basePath`. */
function agentIdIn(path: string, basePath: string): string | undefined {
  const rest = path.startsWith(`${basePath}/`) ? path.slice(basePath.length + 1) : '';
  if (rest === '' || rest.includes('/')) return undefined;
  try {
    return decodeURIComponent(rest);
  } catch {
    return undefined;
  }
}

async function* frames(events: AsyncIterable<AgUiEvent>): AsyncGenerator<string, void, undefined> {
  for await (const event of events) yield frameOf({ data: JSON.stringify(event) });
}
