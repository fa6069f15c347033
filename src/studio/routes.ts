import type { Route } from '../http/route.ts';
import { runRoutes } from '../http/runs/run-routes.ts';
import { threadRoutes } from '../http/threads/thread-routes.ts';
import { forkRoute } from './actions/fork-route.ts';
import { namingWhoCancels } from './actions/named-cancel.ts';
import { parkRoutes } from './actions/park-routes.ts';
import { fanOutRoutes } from './fan-outs/fan-out-routes.ts';
import { recordRoutes } from './record/record-routes.ts';
import { storeRoutes } from './store-view.ts';
import type { Studio } from './studio.ts';
import { withShownWaits } from './waits.ts';
import { watchRoute } from './watch/watch-route.ts';
import { Watcher } from './watch/watcher.ts';

/** What a reader needs of the routes for clients. */
const reading = ['GET /runs', 'GET /runs/:runId', 'GET /runs/:runId/events', 'GET /waiting', 'GET /threads'];
const readingThreads = ['GET /threads/:threadId', 'GET /threads/:threadId/messages'];
/** What a person may do to a run. Studio starts none. */
const writing = [
  'POST /runs/:runId/answers/:waitId',
  'POST /runs/:runId/steer',
  'POST /runs/:runId/events',
  'POST /runs/:runId/cancel',
  'POST /runs/:runId/retry',
];

/** The routes of a Studio. One that may not write has no route that does. */
export function studioRoutes(studio: Studio): readonly Route[] {
  const wanted = new Set([...reading, ...readingThreads, ...(studio.write ? writing : [])]);
  const known = [...runRoutes, ...threadRoutes].filter(({ method, path }) => wanted.has(`${method} ${path}`));
  const watcher = new Watcher(studio.served);
  const ofRuns = [...(studio.write ? [...parkRoutes, forkRoute] : []), ...recordRoutes(studio)];
  return [
    ...known.map(namingWhoCancels).map(withShownWaits),
    ...ofRuns,
    ...fanOutRoutes(studio),
    ...storeRoutes(studio, watcher),
    watchRoute(watcher),
  ];
}
