import { insideOf } from '../../executor/inside.ts';
import { hasCode } from '../../values/error-data.ts';
import { jsonAnswer, RequestError } from '../problem.ts';
import type { Call } from '../route.ts';
import { streamAnswer } from '../sse.ts';
import { type ChatSource, chatFrames, chatHeaders, nothingNew } from './chat-stream.ts';
import { liveRun, newestTurn, type OpenChat, openChat, turnOfAnswer } from './chat-thread.ts';
import { placeInFrame } from './frame-id.ts';

/** Streams the newest message of a chat from its beginning, or what a page lacks of a message; 204 if there is nothing. */
export async function followChat(call: Call): Promise<Response> {
  const { id: threadId = '' } = call.params;
  const chat = await openChat(call, { threadId, action: 'read' });
  const last = call.request.headers.get('last-event-id');
  if (last !== null && last !== '') return afterPlace(chat, last);
  const turn = await newestTurn(chat);
  if (!turn) return nothing();
  if (turn.state === 'ended' && !(await hasJustEnded(call, turn.runId))) return nothing();
  try {
    return await streamChat(chat, { runId: turn.runId }, { isOver: turn.state === 'ended' });
  } catch (error) {
    if (hasCode(error, 'JOURNAL_GONE')) return nothing();
    throw error;
  }
}

function nothing(): Response {
  return new Response(null, { status: 204, headers: { 'cache-control': 'no-store' } });
}

/** An ended run is replayed to a page that was away for as long as its events are sure to be there. */
async function hasJustEnded({ served: { executor, web } }: Call, runId: string): Promise<boolean> {
  const line = await executor.find(runId);
  if (line?.status !== 'ended') return line !== null;
  const { updatedAt, endedAt = updatedAt } = line;
  return endedAt === undefined || endedAt + insideOf(executor).lingerMs >= web.clock.now();
}

async function afterPlace(chat: OpenChat, last: string): Promise<Response> {
  const place = placeInFrame(last);
  if (!place) throw new RequestError('BAD_REQUEST', 'there is no such place in the stream');
  const turn = await chat.thread.turn({ runId: place.runId });
  if (!turn) throw new RequestError('NOT_FOUND');
  if (place.step === 'end') return nothing();
  const position = { kind: 'cut', step: place.step, asked: place.asked } as const;
  return streamChat(chat, { runId: place.runId, position }, { isOver: turn.state === 'ended' });
}

/** Streams the message of a run. @param isOver the run has ended: what is wrong with its events is known at once */
export function streamChat(
  chat: OpenChat,
  source: Omit<ChatSource, 'executor' | 'clock' | 'reading' | 'callerId'>,
  { isOver = false }: { readonly isOver?: boolean } = {},
): Promise<Response> {
  return streamFrames(chat, (signal) => chatFrames({ ...sourceOf(chat), ...source }, signal), { isOver });
}

/** Where the events of a chat come from, and who reads them. */
export function sourceOf({ call, grant }: OpenChat): Omit<ChatSource, 'runId'> {
  const { executor, web } = call.served;
  return { executor, clock: web.clock, reading: web.reading, callerId: grant.callerId };
}

/** Streams frames to the page of a chat. */
export function streamFrames(
  { call, grant, threadId, agentId }: OpenChat,
  open: (signal: AbortSignal) => AsyncIterable<string>,
  { isOver = false }: { readonly isOver?: boolean } = {},
): Promise<Response> {
  const { request, served, ask } = call;
  const details = { action: 'read', threadId, agentId } as const;
  return streamAnswer({ web: served.web, request, grant, ask, details, headers: chatHeaders }, open, { isOver });
}

/** Tells a page that it has all there is. */
export function streamNothing(chat: OpenChat): Promise<Response> {
  return streamFrames(chat, nothingNew);
}

/** Ends the live run of a chat; with the id of a message only if it is the run of that message. */
export async function stopChat(call: Call): Promise<Response> {
  const { id: threadId = '' } = call.params;
  const chat = await openChat(call, { threadId, action: 'cancel' });
  const runId = await liveRun(chat);
  const { messageId } = call.body;
  if (runId === undefined || !(await isRunOf(chat, runId, messageId))) return jsonAnswer({ state: 'ended' });
  try {
    const state = await call.served.executor.control(runId).cancel('stopped in the chat');
    return jsonAnswer({ runId, state }, state === 'ended' ? 200 : 202);
  } catch (error) {
    // It has just ended by itself.
    if (hasCode(error, 'RUN_NOT_FOUND')) return jsonAnswer({ runId, state: 'ended' });
    throw error;
  }
}

async function isRunOf(chat: OpenChat, runId: string, messageId: unknown): Promise<boolean> {
  if (typeof messageId !== 'string') return true;
  const turn = (await turnOfAnswer(chat, messageId)) ?? (await chat.thread.turn(messageId));
  return turn?.runId === runId;
}
