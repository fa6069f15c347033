import type { Agent, Executor, Thread, ThreadTurn } from '../../index.ts';
import type { Action, Grant } from '../authorize.ts';
import { RequestError } from '../problem.ts';
import type { Call } from '../route.ts';
import { messageIdOfChunk } from './chunks.ts';

/** A request about one chat, by a caller who may read it. A chat is the thread of this caller with its id. */
export interface OpenChat {
  readonly call: Call;
  readonly threadId: string;
  readonly grant: Grant;
  readonly agentId: string;
  readonly agent: Agent;
  readonly thread: Thread;
}

/**
 * Opens the chat of a request.
 * @param action what is asked first
 * @param agentId absent: the only agent
 * @throws {RequestError} UNAUTHORIZED, BAD_REQUEST
 */
export async function openChat(
  call: Call,
  { threadId, action, agentId: named }: { threadId: string; action: Action; agentId?: unknown },
): Promise<OpenChat> {
  const { agents, executor } = call.served;
  const agentId = typeof named === 'string' ? named : (agents.keys().next().value ?? '');
  const grant = await call.ask({ action, threadId, agentId });
  const agent = agents.get(agentId);
  if (!agent) throw new RequestError('BAD_REQUEST', 'there is no such agent');
  return { call, threadId, grant, agentId, agent, thread: threadOfChat({ executor, threadId, agent, grant }) };
}

interface ThreadFacts {
  readonly executor: Executor;
  readonly threadId: string;
  readonly agent: Agent;
  readonly grant: Grant;
}

/** The thread of the caller; `labels` are added to those of the grant. */
export function threadOfChat({ executor, threadId, agent, grant }: ThreadFacts, labels: Grant['labels'] = {}): Thread {
  const all = { ...grant.labels, ...labels };
  const labelled = Object.keys(all).length > 0 ? { labels: all } : {};
  return executor.thread(threadId, { agent, callerId: grant.callerId, ...labelled });
}

/**
 * Asks for one more thing that a request does.
 * @throws {RequestError} UNAUTHORIZED, also if the host names another caller than before
 */
export async function alsoAsk({ call, threadId, agentId, grant }: OpenChat, action: Action): Promise<Grant> {
  const more = await call.ask({ action, threadId, agentId });
  if (more.callerId !== grant.callerId) throw new RequestError('UNAUTHORIZED');
  return more;
}

/** The newest turn that has begun; undefined if none has. */
export async function newestTurn({ thread }: OpenChat): Promise<ThreadTurn | undefined> {
  const [newest] = await thread.turns({ limit: 1 });
  return newest;
}

/** The live run of a chat; undefined if none is. */
export async function liveRun(chat: OpenChat): Promise<string | undefined> {
  const newest = await newestTurn(chat);
  return newest?.state === 'live' ? newest.runId : undefined;
}

/** The turn of a message of the assistant; undefined if this chat has none. */
export async function turnOfAnswer({ thread }: OpenChat, messageId: string): Promise<ThreadTurn | undefined> {
  const runId = messageId.slice(0, -2);
  return messageId === messageIdOfChunk(runId) ? thread.turn({ runId }) : undefined;
}
