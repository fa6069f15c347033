import type { Thread, ThreadMessage, ThreadTurn } from '../../index.ts';
import { type UiMessage, uiMessagesOf } from '../chat/ui-messages.ts';
import { cursorText, limitIn, type PageQuery, placeInCursor } from '../cursor.ts';
import { jsonAnswer, RequestError } from '../problem.ts';
import type { GrantedCall } from '../route.ts';
import { existingThread } from './thread-access.ts';

/** Most turns that one answer shows. */
const TURNS_SHOWN = 20;

/** Lists the threads of a caller, or all. */
export async function listThreadsRoute({ served, grant, query }: GrantedCall): Promise<Response> {
  const limit = limitIn(query.limit?.[0]);
  const place = placeInCursor<{ readonly at: string }>(query.after?.[0], isThreadPlace);
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

/** Shows a thread: its newest turns, and its live run; if no process works on that, whether it waits or is parked. */
export async function showThread(call: GrantedCall): Promise<Response> {
  const thread = await existingThread(call);
  const turns: readonly ThreadTurn[] = await thread.turns({ limit: TURNS_SHOWN });
  const live = turns.find(({ state }) => state === 'live');
  const run = live ? await call.served.executor.find(live.runId) : null;
  const status = run?.status === 'waiting' || run?.status === 'parked' ? { status: run.status } : {};
  return jsonAnswer({ id: thread.id, ...(live ? { live: live.runId } : {}), ...status, turns });
}

/** Most characters of the messages of one page; the first message is always in it. */
const PAGE_CHARS = 4_000_000;

/** Lists messages of a thread. */
export async function listMessages(call: GrantedCall): Promise<Response> {
  const { after: [given] = [], limit: [length] = [], format: [format = 'model'] = [] } = call.query;
  const limit = limitIn(length);
  const after = given === undefined ? undefined : indexIn(given);
  if (format !== 'model' && format !== 'ui')
    throw new RequestError('BAD_REQUEST', 'the query has an unknown format; known: model, ui');
  const thread = await existingThread(call);
  if (format === 'ui') return jsonAnswer(await uiPage(thread, { limit, after }));
  const messages = await thread.messages({ limit, ...(after === undefined ? {} : { after }) });
  return jsonAnswer(pageWithin(messages, limit));
}

/** Most recorded messages of a page whose runs are whole; a longer run is cut. */
const MAX_RECORDED = 1_000;

/** A page of whole runs: a part of an answer would be another message. */
async function uiPage(
  thread: Thread,
  { limit, after }: { readonly limit: number; readonly after: number | undefined },
): Promise<PageQuery<UiMessage>> {
  const found: ThreadMessage[] = [];
  let isLast = false;
  while (!isLast && found.length < MAX_RECORDED) {
    const from = found.at(-1)?.index ?? after;
    const more = pageWithin(await thread.messages({ limit, ...(from === undefined ? {} : { after: from }) }), limit);
    found.push(...more.items);
    isLast = more.next === undefined;
    const runId = found.at(-1)?.runId;
    if (!isLast && found[0]?.runId !== runId) {
      const whole = found.filter((message) => message.runId !== runId);
      return { items: uiMessagesOf(whole), next: String(whole.at(-1)?.index) };
    }
  }
  const last = found.at(-1);
  return { items: uiMessagesOf(found), ...(!isLast && last ? { next: String(last.index) } : {}) };
}

/** Messages may hold files: a page ends early rather than being very large. */
function pageWithin(messages: readonly ThreadMessage[], limit: number): PageQuery<ThreadMessage> {
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
