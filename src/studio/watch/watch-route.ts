import { insideOf } from '../../executor/inside.ts';
import { RequestError } from '../../http/problem.ts';
import type { GrantedCall, Route } from '../../http/route.ts';
import { checkOwnRun } from '../../http/run-access.ts';
import { publicEvent } from '../../http/runs/run-events.ts';
import { text } from '../../http/schemas.ts';
import { streamAnswer } from '../../http/sse.ts';
import { pause } from '../../values/backoff.ts';
import { hasCode } from '../../values/error-data.ts';
import { shownEvent } from './shown-event.ts';
import { Tab } from './tab.ts';
import type { Watcher } from './watcher.ts';

const MAX_PLACE_CHARS = 1_024;

/** `GET /watch`: all that a tab wants to know, in one stream. */
export function watchRoute(watcher: Watcher): Route {
  return {
    method: 'GET',
    path: '/watch',
    summary: 'Streams the runs whose lines have changed, and the events of one run.',
    action: 'inspect',
    query: {
      runs: { description: '1: the lines of runs, those that are there first.', schema: { enum: ['1'] } },
      run: { description: 'The run whose events are wanted.', schema: text },
      after: { description: 'The id of the last event of the run that the reader has.', schema: text },
      all: {
        description: '1: all events of the run. Else only the newest, and those that come.',
        schema: { enum: ['1'] },
      },
    },
    answers: { 200: { description: 'Frames as JSON.', type: 'text/event-stream' } },
    problems: ['TOO_MANY_STREAMS'],
    handle: (call: GrantedCall) => watch(call, watcher),
  };
}

async function watch(call: GrantedCall, watcher: Watcher): Promise<Response> {
  const { served, grant, request, details, ask, query } = call;
  const { runs: [runs] = [], run: [runId] = [], after: [given] = [], all: [all] = [] } = query;
  if (runs !== '1' && runId === undefined) throw new RequestError('BAD_REQUEST', 'the query needs runs=1 or a run');
  const after = given === '' ? undefined : given;
  if ((after?.length ?? 0) > MAX_PLACE_CHARS) throw new RequestError('BAD_REQUEST', 'there is no such place');
  const isThere = runId === undefined || (await mayWatch(call, runId));
  // A tab asks for the runs as well: its stream says that this one is gone.
  if (!isThere && runs !== '1') throw new RequestError('NOT_FOUND');
  const open = (signal: AbortSignal) => {
    const tab = new Tab();
    const leave = watcher.add({ tab, grant, hasRuns: runs === '1', runId: isThere ? runId : undefined });
    signal.addEventListener('abort', leave, { once: true });
    if (runId !== undefined && isThere) void followRun(call, { runId, after, isAll: all === '1', tab, signal });
    else if (runId !== undefined) tab.lines([], [runId]);
    return tab.frames(signal);
  };
  return streamAnswer({ web: served.web, request, grant, details, ask }, open);
}

/** Returns whether there is such a run for this reader. One that cannot be read has a view, too. @throws the store's error */
async function mayWatch({ served, grant }: GrantedCall, runId: string): Promise<boolean> {
  try {
    await checkOwnRun(served, runId, grant);
    return true;
  } catch (error) {
    if (['NOT_FOUND', 'INVALID_RUN_ID'].some((code) => hasCode(error, code))) return false;
    const isUnreadable = ['CHECKPOINT_CORRUPT', 'CHECKPOINT_TOO_NEW', 'KEY_MISMATCH'].some((code) =>
      hasCode(error, code),
    );
    if (!grant.all || !isUnreadable) throw error;
    return true;
  }
}

interface Following {
  readonly runId: string;
  readonly after: string | undefined;
  readonly isAll: boolean;
  readonly tab: Tab;
  readonly signal: AbortSignal;
}

/** How many writes of a journal a tab gets at first: it shows the last steps, and asks for all of them when a person does. */
const NEWEST_WRITES = 300;
/** The pause after the store did not answer, ms. */
const AGAIN_MS = 2_000;

/** Passes the events of a run on. What ends them (no journal, a run that is gone) leaves the rest of the stream open. */
async function followRun({ served, grant }: GrantedCall, following: Following): Promise<void> {
  const { runId, after, isAll, tab, signal } = following;
  const { executor, web } = served;
  if (!insideOf(executor).hasJournal) return;
  // A reader that has left by its turn costs no reading: it may have opened a thousand streams.
  const { callerId } = grant;
  await web.reading.turn(callerId);
  let place = after;
  let isGiven = after !== undefined;
  while (!signal.aborted) {
    try {
      const begin = place === undefined && !isAll ? { newest: NEWEST_WRITES } : { after: place };
      for await (const event of web.reading.each(executor, runId, { callerId, signal, ...begin })) {
        const shown = shownEvent(publicEvent(event, grant.all === true));
        await tab.event(event.cursor, { type: 'run', ...shown });
        place = event.cursor;
      }
      return;
    } catch (error) {
      // A place that is none: the reader begins again, and gets all of them. But once: an event that cannot be read says the same.
      const isNoPlace = error instanceof TypeError && isGiven && place === after;
      isGiven &&= !isNoPlace;
      if (isNoPlace) place = undefined;
      else if (ends.some((code) => hasCode(error, code))) return;
      else if (hasCode(error, 'ERR_SHUTDOWN')) return tab.fail(error);
      // A tab that leaves meanwhile leaves no timer.
      else await pause(AGAIN_MS, web.clock, signal);
    }
  }
}

const ends = ['JOURNAL_GONE', 'UNSUPPORTED', 'CHECKPOINT_CORRUPT', 'CHECKPOINT_TOO_NEW', 'KEY_MISMATCH'];
