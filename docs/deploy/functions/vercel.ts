// A function of Vercel, for example `app/api/pawl/route.ts` of Next.js: `vercel.json` calls GET each minute.
import type { Agent, Executor } from 'pawl';
import { isAllowed, sliceBelow } from './slice.ts';

/** Seconds after which Vercel kills a request of this route. It must be written as a number. */
export const maxDuration = 60;

export interface VercelOptions {
  readonly executor: Executor;
  readonly agent: Agent;
  /** `process.env.CRON_SECRET`: Vercel sends it with each call of a cron. */
  readonly secret: string;
  /** That of `@vercel/functions`: the request is answered, and the function lives until the promise settles. */
  readonly waitUntil: (work: Promise<unknown>) => void;
}

/** The route: `export const { GET, POST } = routeOf({ … })`. */
export function routeOf({ executor, agent, secret, waitUntil }: VercelOptions) {
  const slice = sliceBelow(maxDuration * 1_000);
  return {
    /** The cron: works on runs that are due. */
    GET: async (request: Request): Promise<Response> => {
      if (!isAllowed(request, secret)) return new Response(null, { status: 401 });
      return Response.json(await executor.drive('due', slice));
    },
    /** Begins a run, and works on it after the answer. What the slice leaves is a matter for the cron. */
    POST: async (request: Request): Promise<Response> => {
      if (!isAllowed(request, secret)) return new Response(null, { status: 401 });
      const { id, prompt } = (await request.json()) as { id: string; prompt: string };
      const { runId } = await executor.start(agent, { runId: id, prompt }, { drive: 'later' });
      waitUntil(executor.drive(runId, slice).catch((error) => console.error('the cron continues it', error)));
      return Response.json({ runId }, { status: 202 });
    },
  };
}
