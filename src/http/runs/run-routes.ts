import type { MachineEvent } from '../../index.ts';
import { hasCode } from '../../values/error-data.ts';
import { RunWaitsError, UndeliveredError } from '../../values/errors.ts';
import { jsonAnswer, RequestError } from '../problem.ts';
import type { GrantedCall, Route, RunCall } from '../route.ts';
import { answerSchemaOf, pageQuery, pageSchemaOf, text } from '../schemas.ts';
import { streamEvents } from './run-events.ts';
import { runStates } from './run-line.ts';
import { listRunLines } from './run-list.ts';
import {
  answerBody,
  cancelBody,
  endSchema,
  eventBody,
  lineSchema,
  listedWaitSchema,
  startBody,
  stateSchemaOf,
  steerBody,
  viewSchema,
} from './run-schemas.ts';
import { runViewOf } from './run-view.ts';
import { startRunRoute } from './start-run.ts';
import { answerWaitRoute, listWaitViews, waitKinds } from './waits.ts';

const listQuery = {
  ...pageQuery,
  state: { description: 'Only runs in this state.', schema: { enum: [...runStates] }, isList: true },
  q: { description: 'Only runs with this text in id, prompt or name of the agent.', schema: text },
  label: { description: 'Only runs with this label, as name=text.', schema: text, isList: true },
  since: {
    description: 'Only runs that ended at this time or later, as an ISO date with a time, or in ms.',
    schema: text,
  },
  until: { description: 'Only runs that ended before this time.', schema: text },
} as const;

const waitingQuery = {
  ...pageQuery,
  kind: {
    description: 'Only waits of this kind; without it all kinds but `child`.',
    schema: { enum: [...waitKinds] },
    isList: true,
  },
  runId: { description: 'Only waits of this run and of the runs below it.', schema: text },
} as const;

const eventsQuery = {
  after: {
    description: 'The id of the last event that the reader has; the header Last-Event-ID counts more.',
    schema: text,
  },
} as const;

/** The routes of runs, their events and their waits. */
export const runRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: '/runs',
    summary: 'Starts a run.',
    action: 'start',
    body: startBody,
    headers: {
      'idempotency-key': 'Sent again with the same key, the request finds its run instead of starting another.',
    },
    detailsOf: ({ agent }) => (typeof agent === 'string' ? { agentId: agent } : {}),
    answers: {
      202: {
        description: 'The run is recorded, or was: `started`, `resumed` or `joined`.',
        schema: answerSchemaOf({ runId: text, accepted: { enum: ['started', 'resumed', 'joined'] } }),
      },
      200: {
        description: 'The run of this key has ended.',
        schema: answerSchemaOf({ runId: text, accepted: { enum: ['ended'] }, result: endSchema }),
      },
    },
    problems: ['RUN_ID_CONFLICT', 'RUN_PARKED', 'BUDGET_EXCEEDED'],
    handle: startRunRoute,
  },
  {
    method: 'GET',
    path: '/runs',
    summary: "Lists the caller's runs, by pages.",
    action: 'list',
    query: listQuery,
    answers: { 200: { description: 'A page of runs.', schema: pageSchemaOf(lineSchema) } },
    handle: async (call: GrantedCall) => jsonAnswer(await listRunLines(call)),
  },
  {
    method: 'GET',
    path: '/runs/:runId',
    summary: 'Shows a run: where it is, what it waits for, how it ended.',
    action: 'read',
    of: 'run',
    answers: { 200: { description: 'The run.', schema: viewSchema } },
    handle: async (call) => jsonAnswer(await runViewOf(call)),
  },
  {
    method: 'GET',
    path: '/runs/:runId/events',
    summary: 'Streams the events of a run until its end, from any process that works on it.',
    action: 'read',
    of: 'run',
    query: eventsQuery,
    headers: { 'last-event-id': 'The id of the last event that the reader has.' },
    answers: {
      200: { description: 'Each event as JSON; its id is the place to continue from.', type: 'text/event-stream' },
      204: { description: 'The reader has the end.' },
    },
    problems: ['JOURNAL_GONE', 'TOO_MANY_STREAMS'],
    handle: streamEvents,
  },
  {
    method: 'POST',
    path: '/runs/:runId/cancel',
    summary: 'Ends a run for good.',
    action: 'cancel',
    of: 'run',
    body: cancelBody,
    answers: {
      200: { description: 'It is over.', schema: stateSchemaOf('ended') },
      202: { description: 'The process that works on it ends it.', schema: stateSchemaOf('sent') },
    },
    problems: ['RUN_WAITS'],
    handle: cancelRun,
  },
  {
    method: 'POST',
    path: '/runs/:runId/retry',
    summary: 'Continues a run that ended badly after its last recorded step.',
    action: 'retry',
    of: 'run',
    answers: {
      202: {
        description: 'It continues: `live` here, or `due` for a process that has its agent.',
        schema: stateSchemaOf('live', 'due'),
      },
    },
    problems: ['RUN_ENDED', 'RECORD_GONE', 'RUN_OWNED_ELSEWHERE', 'RUN_WAITS', 'UNSUPPORTED'],
    handle: retryRun,
  },
  {
    method: 'POST',
    path: '/runs/:runId/steer',
    summary: 'Sends a message to the model before its next turn.',
    action: 'steer',
    of: 'run',
    body: steerBody,
    answers: { 202: { description: 'The message is on its way.', schema: stateSchemaOf('durable', 'queued', 'sent') } },
    problems: ['UNDELIVERED', 'RUN_WAITS'],
    handle: steerRun,
  },
  {
    method: 'POST',
    path: '/runs/:runId/events',
    summary: 'Sends an event to the machine of a workflow.',
    action: 'send',
    of: 'run',
    body: eventBody,
    answers: {
      200: { description: 'The record of the run has the event.', schema: stateSchemaOf('recorded') },
      202: { description: 'The event waits for the process that takes up the run.', schema: stateSchemaOf('sent') },
    },
    problems: [
      'EVENT_INVALID',
      'EVENT_NOT_TAKEN',
      'NOT_JSON',
      'ANSWER_REDACTED',
      'RUN_NOT_FOUND',
      'UNDELIVERED',
      'UNSUPPORTED',
    ],
    handle: sendEvent,
  },
  {
    method: 'POST',
    path: '/runs/:runId/answers/:waitId',
    summary: 'Answers a wait of a run, or of a run below it.',
    action: 'answer',
    of: 'run',
    body: answerBody,
    answers: {
      200: { description: 'The record of the run has the answer.', schema: answered('recorded') },
      202: {
        description: 'The answer waits for the process that takes up the run; `pending`: that process may refuse it.',
        schema: answered('sent', 'pending'),
      },
    },
    problems: ['WAIT_GONE', 'ALREADY_ANSWERED', 'ANSWER_REFUSED', 'ANSWER_REDACTED', 'PERSON_REQUIRED'],
    handle: answerWaitRoute,
  },
  {
    method: 'GET',
    path: '/waiting',
    summary: "Lists what the caller's runs wait for, by pages.",
    action: 'list',
    query: waitingQuery,
    answers: { 200: { description: 'A page of waits.', schema: pageSchemaOf(listedWaitSchema) } },
    handle: async (call: GrantedCall) => jsonAnswer(await listWaitViews(call)),
  },
];

function answered(...states: readonly string[]) {
  return answerSchemaOf({ runId: text, waitId: text, state: { enum: states } });
}

async function cancelRun({ run, body, served }: RunCall): Promise<Response> {
  const { runId } = run;
  if (run.line.status === 'ended') return jsonAnswer({ runId, state: 'ended' });
  checkBegun(run);
  const { reason } = body as { readonly reason?: string };
  try {
    const state = await served.executor.control(runId).cancel(reason);
    return jsonAnswer({ runId, state }, state === 'ended' ? 200 : 202);
  } catch (error) {
    // It ended meanwhile.
    if (hasCode(error, 'RUN_NOT_FOUND')) return jsonAnswer({ runId, state: 'ended' });
    throw error;
  }
}

async function retryRun({ run, grant: { by }, served: { executor } }: RunCall): Promise<Response> {
  checkBegun(run);
  const { runId } = run;
  const who = by ? { by } : {};
  try {
    const { accepted, error } = await executor.retry(runId, who);
    if (accepted === 'refused' && error) throw error;
    return jsonAnswer({ runId, state: 'live' }, 202);
  } catch (error) {
    if (!hasCode(error, 'AGENT_NOT_FOUND')) throw error;
    await executor.control(runId).retry(who);
    return jsonAnswer({ runId, state: 'due' }, 202);
  }
}

/** A message that waits is removed with its conversation. @throws {RUN_WAITS} */
function checkBegun({ line }: RunCall['run']): void {
  if (line.status === 'queued') throw new RunWaitsError('the run waits for its turn in its conversation');
}

async function sendEvent({ run: { runId }, body, served }: RunCall): Promise<Response> {
  const { event, ...options } = body as {
    readonly event: MachineEvent;
    readonly id?: string;
    readonly mustTake?: boolean;
  };
  const state = await served.executor.control(runId).send(event, options);
  return jsonAnswer({ runId, state }, state === 'recorded' ? 200 : 202);
}

async function steerRun({ run, body, served, grant: { by } }: RunCall): Promise<Response> {
  const { text: said, children = false } = body as { readonly text: string; readonly children?: boolean };
  if (said.trim() === '') throw new RequestError('BAD_REQUEST', 'the body needs a text');
  checkBegun(run);
  const { runId } = run;
  try {
    const state = await served.executor.control(runId).steer(said, { children, ...(by ? { by } : {}) });
    return jsonAnswer({ runId, state }, 202);
  } catch (error) {
    if (hasCode(error, 'RUN_NOT_FOUND')) throw new UndeliveredError('the run is over');
    throw error;
  }
}
