import { chatRoutes } from './chat/chat-routes.ts';
import { descriptionRoute } from './openapi.ts';
import type { Route } from './route.ts';
import { runRoutes } from './runs/run-routes.ts';
import { threadRoutes } from './threads/thread-routes.ts';

const described: readonly Route[] = [...runRoutes, ...threadRoutes, ...chatRoutes];

/**
 * The one table of routes: the dispatch, the actions for `authorize`, the checks of bodies and queries, the OpenAPI description
 * and the documentation come from it.
 */
export const routes: readonly Route[] = [...described, descriptionRoute(described)];
