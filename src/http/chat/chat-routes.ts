import type { JsonObject } from '../../values/json.ts';
import type { Route } from '../route.ts';
import { answerSchemaOf, anything, objectOf, text, upTo } from '../schemas.ts';
import { followChat, stopChat } from './follow-chat.ts';
import { postChat } from './post-chat.ts';

const id = upTo(512, 1);

/** What `useChat` posts. It may have fields of the page's own. */
const chatBody: JsonObject = {
  type: 'object',
  properties: {
    id,
    messages: {
      type: 'array',
      items: anything,
      description: 'Only the messages of the user at the end count, and answers.',
    },
    message: { type: 'object', description: 'In place of messages.' },
    trigger: { enum: ['submit-message', 'regenerate-message'] },
    messageId: { anyOf: [id, { type: 'null' }] },
    agent: { type: 'string', description: 'The agent; without it, the first one.' },
  },
  required: ['id'],
  additionalProperties: true,
  examples: [{ id: 'chat', messages: [{ id: '1', role: 'user', parts: [{ type: 'text', text: 'Hello' }] }] }],
};

const streamed = {
  description:
    'The chunks of one message, as the UI message stream of AI SDK 7; the id of each is the place to continue from.',
  type: 'text/event-stream',
} as const;

/** The rows of `/chat`: what `useChat` of the AI SDK asks with its stock transport, and a stop. */
export const chatRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: '/chat',
    summary: 'Takes a message, or answers, of `useChat`, and streams the answer.',
    actions: ['read', 'start', 'answer', 'delete'],
    body: chatBody,
    headers: {
      'idempotency-key':
        'Of a `regenerate-message` or an edit: repeated with the same key it finds its run, with other content it is 409. Any other message is known by its id.',
    },
    answers: { 200: streamed },
    problems: ['THREAD_FULL', 'THREAD_BUSY', 'THREAD_MESSAGE_CONFLICT', 'TOO_MANY_STREAMS'],
    handle: postChat,
  },
  {
    method: 'GET',
    path: '/chat/:id/stream',
    summary: 'Streams the newest message of a chat from its beginning, or the rest of one.',
    actions: ['read'],
    headers: { 'last-event-id': 'The id of the last chunk that the page has: it gets that step again, and the rest.' },
    answers: {
      200: streamed,
      204: { description: 'No run is live, and none has just ended; or the page has the end.' },
    },
    problems: ['JOURNAL_GONE', 'TOO_MANY_STREAMS'],
    handle: followChat,
  },
  {
    method: 'POST',
    path: '/chat/:id/stop',
    summary: 'Cancels the live run of a chat.',
    actions: ['cancel'],
    body: objectOf({ messageId: id }),
    answers: {
      200: {
        description: 'It is over, or no such run is live.',
        schema: answerSchemaOf({ runId: text, state: { enum: ['ended'] } }, ['state']),
      },
      202: {
        description: 'The process that works on it ends it.',
        schema: answerSchemaOf({ runId: text, state: { enum: ['sent'] } }),
      },
    },
    handle: stopChat,
  },
];
