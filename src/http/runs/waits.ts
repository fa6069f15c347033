import type { Answer, AnswerState, ListedWait, WaitCursor } from '../../index.ts';
import { WaitGoneError } from '../../values/errors.ts';
import { cursorText, limitIn, type PageQuery, placeInCursor } from '../cursor.ts';
import { jsonAnswer, RequestError } from '../problem.ts';
import type { GrantedCall, RunCall } from '../route.ts';
import { ownRoots } from '../run-access.ts';
import { waitView } from './run-view.ts';

/** Kinds of waits, as a query names them. */
export const waitKinds: readonly ListedWait['kind'][] = [
  'approval',
  'question',
  'event',
  'timer',
  'child',
  'retry',
  'limit',
];

/** A run that waits for a run below it waits for what that one waits for, which is in the list. */
const usualKinds = waitKinds.filter((kind) => kind !== 'child');

/** Lists the open waits of a caller's runs, and of the runs below them. */
export async function listWaitViews({ served, grant, query }: GrantedCall): Promise<PageQuery<ListedWait>> {
  const { kind: kinds = [], runId: [rootRunId] = [], limit: [given] = [], after: [after] = [] } = query;
  if (kinds.some((kind) => !waitKinds.includes(kind as ListedWait['kind'])))
    throw new RequestError('BAD_REQUEST', `the query has an unknown kind; known: ${waitKinds.join(', ')}`);
  const limit = limitIn(given);
  const from = placeInCursor<WaitCursor>(after, isWaitCursor);
  const waits = await served.executor.waiting({
    limit,
    answers: true,
    ...(from ? { after: from } : {}),
    kind: kinds.length > 0 ? (kinds as readonly ListedWait['kind'][]) : usualKinds,
    ...(rootRunId === undefined ? {} : { rootRunId }),
    // Runs below a run have its caller.
    ...(grant.all ? {} : { callerId: grant.callerId }),
  });
  const items = (await ownWaits(waits, { served, grant })).map(waitView);
  const last = waits.at(-1);
  return last && waits.length === limit ? { items, next: cursorText(placeOf(last)) } : { items };
}

/** The waits whose root is the caller's. */
async function ownWaits(
  waits: readonly ListedWait[],
  { served, grant }: Pick<GrantedCall, 'served' | 'grant'>,
): Promise<readonly ListedWait[]> {
  if (grant.all) return waits;
  const roots = waits.flatMap((wait) => (wait.rootRunId === wait.runId ? [] : [wait.rootRunId]));
  const own = await ownRoots(roots, { served, grant });
  return waits.filter(({ runId, rootRunId }) => rootRunId === runId || own.has(rootRunId));
}

function placeOf({ runId, id, createdAt, updatedAt }: ListedWait): WaitCursor {
  return { runId, id, createdAt, ...(updatedAt === undefined ? {} : { updatedAt }) };
}

function isWaitCursor({ runId, id, createdAt, updatedAt }: Record<string, unknown>): boolean {
  const isNamed = typeof runId === 'string' && typeof id === 'string' && Number.isFinite(createdAt);
  return isNamed && (updatedAt === undefined || Number.isFinite(updatedAt));
}

/** Longest id of a wait that a command can name. */
const MAX_WAIT_ID = 128;

/** Gives an answer to a wait of a run, or of a run below it. The person comes from the grant, never from the body. */
export async function answerWaitRoute({ run, params, body, grant, served }: RunCall): Promise<Response> {
  const control = served.executor.control(run.runId);
  const { waitId = '' } = params;
  if (waitId.length > MAX_WAIT_ID) throw new WaitGoneError('there is no wait of this id');
  const { how, value, input, note, reason, digest } = body as unknown as Answer;
  const by = grant.by ? { by: grant.by } : {};
  // A key without a person, such as that of a webhook or of the agent itself, must not approve.
  if (!grant.by && (how === 'approve' || how === 'deny')) throw new RequestError('PERSON_REQUIRED');
  const give = (): Promise<AnswerState> => {
    switch (how) {
      case 'approve':
        return control.approve(waitId, {
          ...by,
          ...(input === undefined ? {} : { input }),
          ...(note === undefined ? {} : { note }),
          ...(digest === undefined ? {} : { digest }),
        });
      case 'deny':
        return control.deny(waitId, { ...by, ...(reason === undefined ? {} : { reason }) });
      case 'answer':
        if (value === undefined) throw new RequestError('BAD_REQUEST', 'the body needs a value');
        return control.answer(waitId, value, by);
      case 'wake':
        return control.wake(waitId);
    }
  };
  const state = await refusingPersons(give);
  return jsonAnswer({ runId: run.runId, waitId, state }, state === 'recorded' ? 200 : 202);
}

/** The body is checked, so what the executor calls a wrong call is an answer without a person. */
async function refusingPersons(give: () => Promise<AnswerState>): Promise<AnswerState> {
  try {
    return await give();
  } catch (error) {
    if (error instanceof TypeError) throw new RequestError('PERSON_REQUIRED');
    throw error;
  }
}
