import type { Executor, Health } from '../index.ts';
import type { WebHandler } from './node-listener.ts';

/** The reasons that a restart mends. */
const deadly: ReadonlySet<string> = new Set(['LOOP_BLOCKED', 'NOT_POLLING']);

/** The paths, and what each says of the health of an executor. */
const answers: { readonly [path: string]: (health: Health) => { ok: boolean; reasons: readonly string[] } } = {
  healthz: ({ live, reasons }) => ({ ok: live, reasons: reasons.filter((reason) => deadly.has(reason)) }),
  readyz: ({ ready, reasons }) => ({ ok: ready, reasons }),
};

/**
 * Makes a handler of web requests for the probes of a supervisor: `GET /healthz` says whether the process is live, `GET /readyz`
 * whether it should get work. 200 or 503, with `{ ok, reasons }` and nothing else; no authentication.
 * @throws {TypeError} for a value that is no executor
 * @example createServer(toNodeListener(healthHandler(executor))).listen(8080, '127.0.0.1');
 */
export function healthHandler(executor: Pick<Executor, 'health'>): WebHandler {
  if (typeof executor?.health !== 'function')
    throw new TypeError('healthHandler needs an executor, from createExecutor');
  return async ({ method, url }) => {
    const path = new URL(url).pathname.split('/').at(-1) ?? '';
    const answer = Object.hasOwn(answers, path) ? answers[path] : undefined;
    if (!answer) return empty(404);
    if (method !== 'GET' && method !== 'HEAD') return empty(405, { allow: 'GET, HEAD' });
    const { ok, reasons } = answer(await executor.health());
    const headers = { 'content-type': 'application/json', ...common };
    return new Response(method === 'HEAD' ? null : JSON.stringify({ ok, reasons }), {
      status: ok ? 200 : 503,
      headers,
    });
  };
}

const common = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' };
const empty = (status: number, more = {}) => new Response(null, { status, headers: { ...common, ...more } });
