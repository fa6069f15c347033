import { noteConnection } from '../http/connection.ts';
import { dispatch, pathBelow } from '../http/dispatch.ts';
import type { WebHandler } from '../http/node-listener.ts';
import type { Route } from '../http/route.ts';
import { checkSource } from '../http/walls.ts';
import type { Executor } from '../index.ts';
import { pageAnswer, safeHeaders } from './assets.ts';
import { studioRoutes } from './routes.ts';
import { checkSite } from './site.ts';
import { type Studio, type StudioOptions, studioOf } from './studio.ts';
import { troubleAnswer } from './trouble.ts';

/**
 * Makes a handler of web requests for Studio: a page on the runs of an executor, and the routes that the page uses. It takes
 * a `Request` and returns a `Response`; for `node:http` and Express see `toNodeListener` of `pawl/http`.
 *
 * `authorize` is asked about each request for data; the files of the page hold none, and are open. A caller sees the runs that
 * `httpHandler` would show: with `all` those of everyone.
 * @throws {TypeError} without `authorize`, for an unknown option
 * @example
 * const studio = studioHandler(executor, { basePath: '/studio', authorize: (request) => adminOf(request.headers), write: true });
 * createServer(toNodeListener(studio)).listen(3000);
 */
export function studioHandler(executor: Executor, options: StudioOptions): WebHandler {
  const studio = studioOf(executor, options);
  const table = studioRoutes(studio);
  const { web } = studio.served;
  const work = (request: Request) =>
    answer(studio, table, request).catch((error: unknown) => troubleAnswer(error, request, web));
  return async (request, connection) => {
    noteConnection(request, connection);
    return withHeaders(await web.answer(request, () => work(request)));
  };
}

async function answer({ served }: Studio, table: readonly Route[], request: Request): Promise<Response> {
  const { pathname } = checkSource(request, served.web);
  checkSite(request, served.web);
  // Without the slash at its end, the page would look for its files one level too high.
  if (pathname === served.web.basePath && pathname !== '')
    return new Response(null, { status: 308, headers: { location: `${pathname}/` } });
  const page = await pageAnswer(request, pathBelow(new URL(request.url), served.web.basePath));
  return page ?? dispatch(table, served, request);
}

/** Each answer has the headers: also an error may be opened as a page. */
function withHeaders(answer: Response): Response {
  for (const [name, value] of Object.entries(safeHeaders))
    if (!answer.headers.has(name)) answer.headers.set(name, value);
  return answer;
}
