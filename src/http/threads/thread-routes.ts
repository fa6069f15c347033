import type { Labels, OnBusy, ThreadSend } from '../../index.ts';
import type { JsonObject } from '../../values/json.ts';
import { jsonAnswer, RequestError } from '../problem.ts';
import type { GrantedCall, Route } from '../route.ts';
import { publicWait } from '../runs/run-line.ts';
import { agentNamed, refuseUrls } from '../runs/start-run.ts';
import {
  answerSchemaOf,
  anything,
  countSchema,
  objectOf,
  pageQuery,
  pageSchemaOf,
  text,
  time,
  upTo,
} from '../schemas.ts';
import { callerQuery, existingThread, threadIn } from './thread-access.ts';
import { listMessages, listThreadsRoute, showThread } from './thread-reads.ts';

const id = upTo(512, 1);
const turnSchema = answerSchemaOf({
  messageId: text,
  runId: text,
  state: { enum: ['queued', 'live', 'steered', 'ended'] },
});

const lineSchema = answerSchemaOf(
  {
    id: text,
    callerId: text,
    updatedAt: time,
    turns: countSchema,
    messages: countSchema,
    live: text,
    queued: countSchema,
  },
  ['id', 'callerId', 'updatedAt', 'turns', 'messages', 'queued'],
);

const partSchema: JsonObject = {
  anyOf: [
    objectOf({ type: { enum: ['text'] }, text }, ['type', 'text']),
    objectOf(
      {
        type: { enum: ['file'] },
        mediaType: upTo(128, 1),
        data: { type: 'string', description: 'Base64.' },
        filename: upTo(512),
      },
      ['type', 'mediaType', 'data'],
    ),
  ],
};

const sendBody: JsonObject = {
  ...objectOf(
    {
      id: { ...id, description: 'Sent again with the same content, it is the same message.' },
      text: { type: 'string', description: 'Either this, or `parts`.' },
      parts: { type: 'array', minItems: 1, maxItems: 100, items: partSchema },
      agent: { ...id, description: 'Needed if the server has more than one.' },
      onBusy: { enum: ['queue', 'steer', 'reject', 'interrupt'] },
    },
    ['id'],
  ),
  examples: [{ id: 'm1', text: 'Hello.' }],
};

const placeFields: JsonObject = {
  messageId: { ...id, description: 'The id of a message of the thread; `<runId>:m` is the answer of a run.' },
  before: { type: 'boolean', description: 'The turn of the message is not kept either.' },
};

const sentSchema = answerSchemaOf(
  {
    runId: text,
    state: { enum: ['started', 'queued', 'steered', 'known'] },
    waits: { type: 'array', items: { type: 'object' } },
  },
  ['runId', 'state'],
);

const messageSchema: JsonObject = {
  anyOf: [
    answerSchemaOf({ id: text, runId: text, index: countSchema, message: anything }),
    answerSchemaOf({
      id: text,
      role: { enum: ['user', 'assistant'] },
      parts: { type: 'array', items: { type: 'object' } },
    }),
  ],
};

const formatQuery = {
  format: {
    description:
      '`model`: as models get them, the default. `ui`: as `useChat` has them; a page ends behind a whole answer.',
    schema: { enum: ['model', 'ui'] },
  },
} as const;

/** The routes of threads: conversations of a caller. */
export const threadRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/threads',
    summary: "Lists the caller's threads by pages, the last changed first.",
    action: 'list',
    query: pageQuery,
    answers: { 200: { description: 'A page of threads.', schema: pageSchemaOf(lineSchema) } },
    handle: listThreadsRoute,
  },
  {
    method: 'GET',
    path: '/threads/:threadId',
    summary: 'Shows a thread: its newest turns, and the live run, with its status if it waits or is parked.',
    action: 'read',
    query: callerQuery,
    answers: {
      200: {
        description: 'The thread.',
        schema: answerSchemaOf(
          {
            id: text,
            live: text,
            status: { enum: ['waiting', 'parked'] },
            turns: { type: 'array', items: turnSchema },
          },
          ['id', 'turns'],
        ),
      },
    },
    problems: ['NOT_FOUND'],
    handle: showThread,
  },
  {
    method: 'DELETE',
    path: '/threads/:threadId',
    summary: 'Cancels the live run of a thread and removes it, with all that no fork uses.',
    action: 'delete',
    query: callerQuery,
    answers: { 204: { description: 'It is gone.' } },
    problems: ['NOT_FOUND', 'THREAD_BUSY'],
    handle: deleteThread,
  },
  {
    method: 'GET',
    path: '/threads/:threadId/messages',
    summary: 'Lists the messages of a thread by pages, in order.',
    action: 'read',
    query: { ...pageQuery, ...callerQuery, ...formatQuery },
    answers: {
      200: {
        description: 'A page of messages, as models get them; with `format=ui` as `useChat` has them: id, role, parts.',
        schema: pageSchemaOf(messageSchema),
      },
    },
    problems: ['NOT_FOUND'],
    handle: listMessages,
  },
  {
    method: 'POST',
    path: '/threads/:threadId/messages',
    summary: 'Sends a message: it begins a run, waits for its turn, or reaches the live run.',
    action: 'start',
    body: sendBody,
    detailsOf: ({ agent }) => (typeof agent === 'string' ? { agentId: agent } : {}),
    answers: {
      202: { description: 'The message is recorded.', schema: sentSchema },
      200: { description: 'The thread has it already.', schema: sentSchema },
    },
    problems: ['THREAD_BUSY', 'THREAD_FULL', 'THREAD_MESSAGE_CONFLICT', 'RECORD_TOO_LARGE'],
    handle: sendMessage,
  },
  {
    method: 'POST',
    path: '/threads/:threadId/cancel',
    summary: 'Cancels the live run of a thread; then the next message has its turn.',
    action: 'cancel',
    query: callerQuery,
    body: objectOf({ reason: upTo(4_096) }),
    answers: {
      200: { description: 'The run that was live, if there was one.', schema: answerSchemaOf({ runId: text }, []) },
    },
    problems: ['NOT_FOUND'],
    handle: cancelThread,
  },
  {
    method: 'POST',
    path: '/threads/:threadId/rewind',
    summary: 'Drops the turns after a message.',
    action: 'delete',
    query: callerQuery,
    body: objectOf(placeFields, ['messageId']),
    answers: { 204: { description: 'They are gone.' } },
    problems: ['NOT_FOUND', 'THREAD_BUSY'],
    handle: rewindThread,
  },
  {
    method: 'POST',
    path: '/threads/:threadId/fork',
    summary: 'Makes another thread that shares the turns up to a message.',
    action: 'start',
    query: callerQuery,
    body: objectOf({ ...placeFields, newId: id }, ['messageId', 'newId']),
    answers: { 201: { description: 'The new thread.', schema: answerSchemaOf({ id: text }) } },
    problems: ['NOT_FOUND', 'THREAD_BUSY', 'THREAD_EXISTS'],
    handle: forkThread,
  },
];

async function deleteThread(call: GrantedCall): Promise<Response> {
  await (await existingThread(call)).delete();
  return nothing();
}

function nothing(): Response {
  return new Response(null, { status: 204, headers: { 'cache-control': 'no-store' } });
}

type SendBody = Pick<ThreadSend, 'id'> & { readonly agent?: string; readonly onBusy?: OnBusy } & Record<
    string,
    unknown
  >;

async function sendMessage(call: GrantedCall): Promise<Response> {
  const { agent: named, ...message } = call.body as unknown as SendBody;
  const { agents } = call.served;
  const [only] = agents.size === 1 ? agents.values() : [];
  const agent = named === undefined && only ? only : agentNamed(call.served, named);
  const labels: { labels?: Labels } = call.grant.labels ? { labels: call.grant.labels } : {};
  refuseUrls(message.parts as readonly { readonly data?: unknown }[] | undefined);
  const thread = threadIn(call, { agent, ...labels });
  const sent = await thread.send(message as unknown as ThreadSend).catch((error: unknown) => {
    // The rest of the call is the server's: so the message is wrong.
    throw error instanceof TypeError ? new RequestError('BAD_REQUEST', 'the message is not valid') : error;
  });
  const { runId, state, waits } = sent;
  return jsonAnswer(
    { runId, state, ...(waits ? { waits: waits.map(publicWait) } : {}) },
    state === 'known' ? 200 : 202,
  );
}

async function cancelThread(call: GrantedCall): Promise<Response> {
  const { reason } = call.body as { readonly reason?: string };
  const runId = await (await existingThread(call)).cancel(reason);
  return jsonAnswer(runId === undefined ? {} : { runId });
}

interface Place {
  readonly messageId: string;
  readonly newId: string;
  readonly before?: boolean;
}

async function rewindThread(call: GrantedCall): Promise<Response> {
  const { messageId, before = false } = call.body as unknown as Place;
  await (await existingThread(call)).rewind(messageId, { before });
  return nothing();
}

async function forkThread(call: GrantedCall): Promise<Response> {
  const { messageId, newId, before = false } = call.body as unknown as Place;
  await (await existingThread(call)).fork(messageId, newId, { before });
  return jsonAnswer({ id: newId }, 201);
}
