import type { ErrorData, JournalEvent, OpenWait } from '../../index.ts';
import { isEndCursor } from '../../run/journal/reader.ts';
import { publicError, RequestError } from '../problem.ts';
import type { RunCall } from '../route.ts';
import { frameOf, streamAnswer } from '../sse.ts';
import { publicParking, publicWait } from './run-line.ts';

/** Streams the events of a run, after those that the reader has. */
export function streamEvents(call: RunCall): Promise<Response> {
  const { run, served, request, grant, details, ask } = call;
  const after = placeOf(call);
  const isOver = run.line.status === 'ended';
  if (!isOver && after !== undefined && isEndCursor(after)) throw noPlace();
  const open = (signal: AbortSignal, place = after) => {
    try {
      const { callerId } = grant;
      const events = served.web.reading.events(served.executor, run.runId, { callerId, signal, after: place });
      return framesOf(events, { isOver, all: grant.all === true });
    } catch (error) {
      if (error instanceof TypeError) throw noPlace();
      throw error;
    }
  };
  return streamAnswer({ web: served.web, request, grant, details, ask, isPlaced: true }, open, { isOver });
}

const MAX_PLACE_CHARS = 1_024;

/** What the browser read last counts more than the place at which the page began. */
function placeOf({ request, query }: RunCall): string | undefined {
  const { after: [given] = [] } = query;
  const place = request.headers.get('last-event-id') ?? given;
  if (place === undefined || place === '') return undefined;
  if (place.length <= MAX_PLACE_CHARS) return place;
  throw noPlace();
}

function noPlace(): RequestError {
  return new RequestError('BAD_REQUEST', 'there is no such place in the events');
}

/**
 * The events as frames.
 * @param of.isOver whether the run had ended before: then a reader may have all of its events
 * @throws if the events end before the run: this host leaves, and the reader must connect again
 */
async function* framesOf(
  events: AsyncIterable<JournalEvent>,
  { isOver, all }: { readonly isOver: boolean; readonly all: boolean },
): AsyncGenerator<string, void, undefined> {
  let isEnd = isOver;
  for await (const event of events) {
    isEnd = event.type === 'run.ended' && event.status !== 'interrupted' && event.status !== 'waiting';
    yield frameOf({ id: event.cursor, data: JSON.stringify(publicEvent(event, all)) });
  }
  if (!isEnd) throw new Error('the events ended before the run');
}

/**
 * Returns an event as clients see it. The message of a provider's or a host's error stays in the server. So do the name of the
 * process, and the reason of a parking and the operator who parked or unparked the run, but for a caller who sees everything.
 */
export function publicEvent<E extends object>(event: E, all = false): E {
  const hidden = event as E & { readonly owner?: string; readonly revision?: number; readonly by?: unknown };
  const { error, wait } = event as { readonly error?: ErrorData; readonly wait?: OpenWait };
  const { type, code } = event as { readonly type?: string; readonly code?: string };
  const { owner, revision, ...own } = hidden;
  const { by: operator, ...withoutOperator } = own;
  const rest = type === 'run.parked' || type === 'run.unparked' ? withoutOperator : own;
  const parking = !all && type === 'run.parked' ? publicParking(code ?? '') : undefined;
  return {
    ...(all ? event : rest),
    ...(parking ? { code: parking.code, reason: parking.why } : {}),
    ...(error ? { error: { name: 'Error', ...publicError(error) } } : {}),
    ...(wait ? { wait: publicWait(wait) } : {}),
  } as E;
}
