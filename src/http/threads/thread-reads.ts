import type { ThreadMessage, ThreadTurn } from '../../index.ts';
import { cursorText, limitIn, type Page, placeIn } from '../cursor.ts';
import { jsonAnswer, RequestError } from '../problem.ts';
import type { GrantedCall } from '../route.ts';
import { existingThread } from './thread-access.ts';

/** Most turns that one answer shows. */
const TURNS_SHOWN = 20;

/** Lists the threads of a caller, or all. */
export async function listThreads({ served, grant, query }: GrantedCall): Promise<Response> {
  const limit = limitIn(query.limit?.[0]);
  const place = placeIn<{ readonly at: string }>(query.after?.[0], isThreadPlace);
  const lines = await served.executor.threads({
    limit,
    ...(place ? { after: place.at } : {}),
    ...(grant.all ? {} : { callerId: grant.callerId }),
  });
  const last = lines.at(-1);
  const items = lines.map(({ cursor: _, ...line }) => line);
  return jsonAnswer({ items, ...(last && lines.length === limit ? { next: cursorText({ at: last.cursor }) } : {}) });
}

/** The place of a thread in its list begins with a time. */
function isThreadPlace({ at }: Record<string, unknown>): boolean {
  if (typeof at !== 'string') return false;
  const [time = ''] = at.split(':');
  return time.length < at.length && time !== '' && Number(time) >= 0;
}

/** Shows a thread: its newest turns, and its live run. */
export async function showThread(call: GrantedCall): Promise<Response> {
  const thread = await existingThread(call);
  const turns: readonly ThreadTurn[] = await thread.turns({ limit: TURNS_SHOWN });
  const live = turns.find(({ state }) => state === 'live');
  return jsonAnswer({ id: thread.id, ...(live ? { live: live.runId } : {}), turns });
}

/** Most characters of the messages of one page; the first message is always in it. */
const PAGE_CHARS = 4_000_000;

/** Lists messages of a thread. */
export async function listMessages(call: GrantedCall): Promise<Response> {
  const { after: [given] = [], limit: [length] = [] } = call.query;
  const limit = limitIn(length);
  const after = given === undefined ? undefined : indexIn(given);
  const thread = await existingThread(call);
  const messages = await thread.messages({ limit, ...(after === undefined ? {} : { after }) });
  return jsonAnswer(pageWithin(messages, limit));
}

/** Messages may hold files: a page ends early rather than being very large. */
function pageWithin(messages: readonly ThreadMessage[], limit: number): Page<ThreadMessage> {
  const items: ThreadMessage[] = [];
  let left = PAGE_CHARS;
  for (const message of messages) {
    left -= JSON.stringify(message).length;
    if (left < 0 && items.length > 0) break;
    items.push(message);
  }
  const last = items.at(-1);
  const isCut = items.length < messages.length || messages.length === limit;
  return { items, ...(last && isCut ? { next: String(last.index) } : {}) };
}

function indexIn(given: string): number {
  if (/^\d{1,15}$/.test(given)) return Number(given);
  throw new RequestError('BAD_REQUEST', 'the query has an `after` that is not the `next` of a page');
}
