import { jsonAnswer } from '../../http/problem.ts';
import type { Route, RunCall } from '../../http/route.ts';
import { stateSchemaOf } from '../../http/runs/run-schemas.ts';
import { objectOf, upTo } from '../../http/schemas.ts';

const REASON_CHARS = 4_096;
const problems = ['RUN_OWNED_ELSEWHERE'] as const;

/** The routes that set runs aside, and free them. They claim a run for that one write. */
export const parkRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: '/runs/:runId/park',
    summary: 'Sets a run aside: no process continues it until it is unparked.',
    action: 'park',
    of: 'run',
    body: objectOf({ reason: upTo(REASON_CHARS) }),
    answers: { 200: { description: 'It is parked.', schema: stateSchemaOf('parked') } },
    problems,
    handle: park,
  },
  {
    method: 'POST',
    path: '/runs/:runId/unpark',
    summary: 'Frees a parked run, with all its attempts.',
    action: 'park',
    of: 'run',
    answers: { 200: { description: 'The next recovery continues it.', schema: stateSchemaOf('unparked') } },
    problems,
    handle: unpark,
  },
];

async function park({ run, body, grant, served }: RunCall): Promise<Response> {
  const { reason = '' } = body as { readonly reason?: string };
  const { by } = grant;
  await served.executor.park(run.runId, reason.trim() || 'parked by hand', by ? { by } : {});
  return jsonAnswer({ runId: run.runId, state: 'parked' });
}

async function unpark({ run, grant, served }: RunCall): Promise<Response> {
  const { by } = grant;
  await served.executor.unpark(run.runId, by ? { by } : {});
  return jsonAnswer({ runId: run.runId, state: 'unparked' });
}
