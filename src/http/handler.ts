import { insideOf } from '../executor/inside.ts';
import type { Agent, Executor } from '../index.ts';
import { isObject } from '../values/json.ts';
import { checkWord, type KnownKeys, kindOf } from '../values/known-options.ts';
import { noteConnection } from './connection.ts';
import { dispatch } from './dispatch.ts';
import type { WebHandler } from './node-listener.ts';
import type { Served } from './route.ts';
import { routes } from './routes.ts';
import { type WebOptions, webOf } from './web.ts';

/** The options of `httpHandler`. */
export interface HttpOptions extends WebOptions {
  /**
   * The agents that requests may start, by the id that they name.
   * @example agents: { support }
   */
  readonly agents: { readonly [id: string]: Agent };
  /**
   * What becomes of a conversation's run that waits for a person, if the next message comes: it is cancelled (`interrupt`), or
   * the message waits too (`queue`).
   * @default 'interrupt'
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
export function httpHandler(executor: Executor, options: HttpOptions): WebHandler {
  const served = servedBy(executor, options);
  return (request, connection) => {
    noteConnection(request, connection);
    return served.web.answer(request, () => dispatch(routes, served, request));
  };
}

function servedBy(executor: Executor, options: HttpOptions): Served {
  const web = webOf(options, 'httpHandler', ownKeys);
  if (typeof executor?.find !== 'function') throw new TypeError('httpHandler needs an executor, from createExecutor');
  if (!insideOf(executor).hasJournal)
    throw new TypeError('httpHandler needs an executor with a journal: createExecutor({ journal: true, store })');
  const { agents, onWaiting = 'interrupt' } = options;
  checkWord('httpHandler: onWaiting', onWaiting, ['interrupt', 'queue']);
  if (!isObject(agents)) throw new TypeError(`httpHandler: agents must be an object of agents, not ${kindOf(agents)}`);
  for (const [id, agent] of Object.entries(agents)) {
    if (!isObject(agent) || typeof agent.id !== 'string')
      throw new TypeError(`httpHandler: agents.${id} must be an agent, from defineAgent`);
  }
  return { executor, web, onWaiting, agents: new Map(Object.entries(agents)) };
}
