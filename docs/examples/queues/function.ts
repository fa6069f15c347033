// Runs on functions that end after minutes, and a cron: a request is one slice. The handler takes Request and gives Response.
import { timingSafeEqual } from 'node:crypto';
import type { Agent, Executor } from 'pawl';

export interface FunctionOptions {
  readonly executor: Executor;
  readonly agent: Agent;
  /** Of this function. */
  readonly url: string;
  readonly secret: string;
  /** When the platform ends a request, ms. */
  readonly limitMs: number;
  readonly fetch?: typeof fetch;
}

/** Asks the function for a slice, and does not wait for it. A request that is lost is a matter for the cron. Give it to `onDue`. */
export const asking =
  ({ url, secret, fetch = globalThis.fetch }: Pick<FunctionOptions, 'url' | 'secret' | 'fetch'>) =>
  async (runId: string, at: number): Promise<void> => {
    if (at > Date.now()) return;
    const headers = { authorization: `Bearer ${secret}` };
    const signal = AbortSignal.timeout(1_000);
    await fetch(`${url}/drive?run=${encodeURIComponent(runId)}`, { method: 'POST', headers, signal }).catch(() => {});
  };

export function runsOnFunction(options: FunctionOptions): (request: Request) => Promise<Response> {
  const { executor, agent, secret, limitMs } = options;
  // A quarter of the limit is for the calls that the end of the budget finds under way, and a tenth for the saves.
  const limits = { budgetMs: limitMs * 0.65, graceMs: limitMs * 0.25 };
  const expected = Buffer.from(`Bearer ${secret}`);
  const isAllowed = ({ headers }: Request) => {
    const given = Buffer.from(headers.get('authorization') ?? '');
    return given.length === expected.length && timingSafeEqual(given, expected);
  };
  return async (request) => {
    if (request.method !== 'POST' || !isAllowed(request)) return new Response(null, { status: 401 });
    const { pathname, searchParams } = new URL(request.url);
    // The platform's cron asks for this each minute: it finds every run that is due.
    if (pathname.endsWith('/cron')) return Response.json(await executor.drive('due', limits));
    if (pathname.endsWith('/drive')) {
      const driven = await executor.drive(searchParams.get('run') ?? '', limits);
      if (driven.state === 'more') await asking(options)(driven.runId ?? '', Date.now());
      return Response.json(driven);
    }
    const { id, prompt } = (await request.json()) as { id: string; prompt: string };
    const { runId } = await executor.start(agent, { runId: id, prompt }, { drive: 'later' });
    return Response.json({ runId }, { status: 202 });
  };
}
