import type { Agent, Executor } from '../index.ts';
import type { JsonObject } from '../values/json.ts';
import { isObject } from '../values/json.ts';
import { checkWord, type KnownKeys, kindOf } from '../values/known-options.ts';
import { type AuthorizeDetails, askHost } from './authorize.ts';
import { readJson } from './body.ts';
import { RequestError } from './problem.ts';
import { type Call, checkForm, type Match, matchRoute, queryOf, type Route, type Served } from './route.ts';
import { routes } from './routes.ts';
import { ownRun } from './run-access.ts';
import { checkContentType, checkSource } from './walls.ts';
import { type WebOptions, webOf } from './web.ts';

/** The options of `httpHandler`. */
export interface HttpOptions extends WebOptions {
  /** The agents that requests may start, by the id that they name. */
  readonly agents: { readonly [id: string]: Agent };
  /**
   * What becomes of a conversation's run that waits for a person, if the next message comes: it is cancelled (`interrupt`, the
   * default), or the message waits too (`queue`).
   */
  readonly onWaiting?: 'interrupt' | 'queue';
}

const ownKeys: Omit<KnownKeys<HttpOptions>, keyof WebOptions> = { agents: true, onWaiting: true };

/**
 * Makes a handler of web requests for the runs of an executor: start, read, follow, answer, steer, cancel. It takes a `Request`
 * and returns a `Response`, so it runs in each server that has these; for `node:http` and Express see `toNodeListener`.
 *
 * Each request is authorised by the host; a caller sees only its own runs. See `GET /openapi.json` for the routes.
 * @throws {TypeError} without `authorize`, without a journal, for an unknown option
 * @example
 * const handler = httpHandler(executor, { agents: { support }, authorize: (request) => userOf(request.headers) });
 * createServer(toNodeListener(handler)).listen(3000);
 */
export function httpHandler(executor: Executor, options: HttpOptions): (request: Request) => Promise<Response> {
  const served = servedBy(executor, options);
  return (request) => served.web.answer(request, () => dispatch(served, request));
}

function servedBy(executor: Executor, options: HttpOptions): Served {
  const web = webOf(options, 'httpHandler', ownKeys);
  if (typeof executor?.find !== 'function') throw new TypeError('httpHandler needs an executor, from createExecutor');
  if (!executor.hasJournal)
    throw new TypeError('httpHandler needs an executor with a journal: createExecutor({ journal: true, checkpoints })');
  const { agents, onWaiting = 'interrupt' } = options;
  checkWord('httpHandler: onWaiting', onWaiting, ['interrupt', 'queue']);
  if (!isObject(agents)) throw new TypeError(`httpHandler: agents must be an object of agents, not ${kindOf(agents)}`);
  for (const [id, agent] of Object.entries(agents)) {
    if (!isObject(agent) || typeof agent.id !== 'string')
      throw new TypeError(`httpHandler: agents.${id} must be an agent, from defineAgent`);
  }
  return { executor, web, onWaiting, agents: new Map(Object.entries(agents)) };
}

async function dispatch(served: Served, request: Request): Promise<Response> {
  const { web } = served;
  const url = checkSource(request, web);
  const match = matchRoute(routes, request.method, pathBelow(url, web.basePath));
  return run(served, request, { url, match });
}

/** Returns the path of a route. @throws {RequestError} NOT_FOUND for a path outside the base path */
function pathBelow({ pathname }: URL, basePath: string): string {
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
    const own = await ownRun(served, params.runId ?? '', grant);
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
  await checkForm(route.body ?? noFields, body, 'body');
  return body;
}
