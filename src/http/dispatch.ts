import type { JsonObject } from '../values/json.ts';
import { type AuthorizeDetails, askHost } from './authorize.ts';
import { readJson } from './body.ts';
import { RequestError } from './problem.ts';
import { type Call, checkBody, type Match, matchRoute, queryOf, type Route, type Served } from './route.ts';
import { checkOwnRun } from './run-access.ts';
import { checkContentType, checkSource } from './walls.ts';

/**
 * Answers a request by the route that fits it: checks where it comes from, asks the host, checks query and body, finds its run.
 * @throws {RequestError} for a request that is refused
 */
export async function dispatch(table: readonly Route[], served: Served, request: Request): Promise<Response> {
  const { web } = served;
  const url = checkSource(request, web);
  const match = matchRoute(table, request.method, pathBelow(url, web.basePath));
  return run(served, request, { url, match });
}

/** Returns the path of a route. @throws {RequestError} NOT_FOUND for a path outside the base path */
export function pathBelow({ pathname }: URL, basePath: string): string {
  if (!pathname.startsWith(`${basePath}/`)) throw new RequestError('NOT_FOUND');
  return pathname.slice(basePath.length);
}

async function run(
  served: Served,
  request: Request,
  at: { readonly url: URL; readonly match: Match },
): Promise<Response> {
  const { route, params } = at.match;
  if (route.method === 'POST') checkContentType(request);
  const ask = (details: AuthorizeDetails) => askHost(served.web, request, details);
  const query = queryOf(at.url, route);
  const call: Call = { request, url: at.url, served, params, query, body: {}, ask };
  const ids = idsIn(params);
  if ('actions' in route) {
    if (route.method === 'POST') await ask({ action: route.actions[0], ...ids });
    return route.handle({ ...call, body: await bodyOf(served, request, route) });
  }
  const named = { action: route.action, ...ids };
  const grant = await ask(named);
  const body = await bodyOf(served, request, route);
  if (route.of === 'run') {
    const own = await checkOwnRun(served, params.runId ?? '', grant);
    return route.handle({ ...call, body, grant, details: named, run: own });
  }
  const more = route.detailsOf?.(body) ?? {};
  const details = { ...named, ...more };
  const isSame = Object.keys(more).length === 0;
  return route.handle({ ...call, body, grant: isSame ? grant : await ask(details), details });
}

/** The ids in a path. A chat is a thread of its caller. */
function idsIn({ runId, id, threadId = id }: Match['params']): Partial<AuthorizeDetails> {
  return { ...(runId === undefined ? {} : { runId }), ...(threadId === undefined ? {} : { threadId }) };
}

const noFields: JsonObject = { type: 'object', additionalProperties: false };

async function bodyOf(served: Served, request: Request, route: Route): Promise<JsonObject> {
  if (route.method !== 'POST') return {};
  const body = await readJson(request, served.web);
  await checkBody(route.body ?? noFields, body, route);
  return body;
}
