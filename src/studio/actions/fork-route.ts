import { insideOf } from '../../executor/inside.ts';
import { jsonAnswer, RequestError } from '../../http/problem.ts';
import type { Route, RunCall } from '../../http/route.ts';
import { stateSchemaOf } from '../../http/runs/run-schemas.ts';
import { countSchema, objectOf } from '../../http/schemas.ts';
import type { ForkOptions } from '../../index.ts';
import { hasCode } from '../../values/error-data.ts';
import { NPX_PAWL } from '../../values/texts/command-name.ts';

/** The route that begins another run with the first steps of one. No process of Studio works on it. */
export const forkRoute: Route = {
  method: 'POST',
  path: '/runs/:runId/fork',
  summary: 'Stores another run with the first steps of this one: any process with its agent continues it.',
  action: 'start',
  of: 'run',
  body: objectOf({ at: countSchema, effects: { enum: ['live', 'ask', 'refuse'] } }, ['at', 'effects']),
  answers: { 201: { description: 'It is stored; `runId` is its own.', schema: stateSchemaOf('due') } },
  handle: fork,
};

async function fork({ run, body, served }: RunCall): Promise<Response> {
  const { at, effects } = body as Required<Pick<ForkOptions, 'at' | 'effects'>>;
  try {
    const runId = await insideOf(served.executor).forkStored(run.runId, { at, effects });
    return jsonAnswer({ runId, state: 'due' }, 201);
  } catch (error) {
    if (hasCode(error, 'AGENT_NOT_FOUND')) throw new RequestError('BAD_REQUEST', UNKNOWN_AGENT);
    if (error instanceof TypeError || hasCode(error, 'UNSUPPORTED') || hasCode(error, 'DEFINITION_CHANGED'))
      throw new RequestError('BAD_REQUEST', error instanceof Error ? error.message : '');
    throw error;
  }
}

const UNKNOWN_AGENT = `this Studio does not know the agent of the run: start it with --agent <module>, or fork the run with \`${NPX_PAWL} fork\``;
