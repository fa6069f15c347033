import type { ServerResponse } from 'node:http';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { createGateway, simulateStreamingMiddleware, wrapLanguageModel } from 'ai';
import type { Model } from 'pawl';

/*
 * What providers write. The packages of Anthropic, of chat completions and of the gateway are real. Google, Mistral and
 * OpenRouter answer in the format of chat completions, with error bodies of their own.
 */

export const formats = ['anthropic', 'openai', 'google', 'mistral', 'openrouter', 'gateway'] as const;
export type Format = (typeof formats)[number];
/** A streamed reply, or one body: the model then asks its provider without `stream`. */
export const modes = ['streamed', 'whole'] as const;
export type Mode = (typeof modes)[number];

/** A model of the real package, at an address on loopback. */
export function modelAt(url: string, format: Format, mode: Mode): Model {
  const model = providerOf(url, format)('claude-sonnet-4-5');
  if (mode === 'streamed') return model;
  return wrapLanguageModel({ model: model as never, middleware: simulateStreamingMiddleware() }) as Model;
}

function providerOf(url: string, format: Format): (id: string) => Model {
  const options = { baseURL: url, apiKey: 'k' };
  if (format === 'anthropic') return createAnthropic(options);
  return format === 'gateway' ? createGateway(options) : createOpenAICompatible({ ...options, name: format });
}

/** What a reply has, in no provider's words. */
export interface Said {
  readonly text?: string;
  readonly thought?: string;
  readonly call?: { readonly id: string; readonly name: string; readonly input: object };
  readonly end: 'stop' | 'calls' | 'length' | 'refused';
}

/** An error, in no provider's words. */
export interface Refused {
  readonly status: number;
  readonly message: string;
  /** The word of providers that have one of their own for it: the code of OpenAI. */
  readonly code?: string;
}

/** A wire format: the body of a reply, and the events of a streamed one. */
interface Wire {
  body(said: Said): object;
  events(said: Said): readonly object[];
}

const stopReasons = { stop: 'end_turn', calls: 'tool_use', length: 'max_tokens', refused: 'refusal' } as const;
const messageOf = (said: Said) => ({
  ...{ id: 'm', type: 'message', role: 'assistant', model: 'm', stop_sequence: null },
  stop_reason: stopReasons[said.end],
  content: [
    ...(said.thought === undefined ? [] : [{ type: 'thinking', thinking: said.thought, signature: 's' }]),
    ...(said.text === undefined ? [] : [{ type: 'text', text: said.text }]),
    ...(said.call ? [{ type: 'tool_use', ...said.call }] : []),
  ],
  usage: { input_tokens: 1, output_tokens: 1 },
});
const anthropic: Wire = {
  body: messageOf,
  events: (said) => {
    const { content, stop_reason, usage, ...rest } = messageOf(said);
    const blocks = (content as readonly Record<string, unknown>[]).flatMap((block, index) => {
      const { type, text, thinking, input } = block;
      const empty = { text: { text: '' }, thinking: { thinking: '', signature: '' }, tool_use: { input: {} } };
      const deltas = {
        text: [{ type: 'text_delta', text }],
        thinking: [
          { type: 'thinking_delta', thinking },
          { type: 'signature_delta', signature: 's' },
        ],
        tool_use: [{ type: 'input_json_delta', partial_json: JSON.stringify(input) }],
      };
      const kind = type as keyof typeof empty;
      return [
        { type: 'content_block_start', index, content_block: { ...block, ...empty[kind] } },
        ...deltas[kind].map((delta) => ({ type: 'content_block_delta', index, delta })),
        { type: 'content_block_stop', index },
      ];
    });
    return [
      { type: 'message_start', message: { ...rest, stop_reason: null, content: [], usage } },
      ...blocks,
      { type: 'message_delta', delta: { stop_reason }, usage: { output_tokens: 1 } },
      { type: 'message_stop' },
    ];
  },
};

const finishReasons = { stop: 'stop', calls: 'tool_calls', length: 'length', refused: 'content_filter' } as const;
const chatMessage = ({ text, thought, call }: Said) => ({
  role: 'assistant',
  content: text ?? '',
  ...(thought === undefined ? {} : { reasoning_content: thought }),
  ...(call === undefined
    ? {}
    : {
        tool_calls: [
          {
            index: 0,
            id: call.id,
            type: 'function',
            function: { name: call.name, arguments: JSON.stringify(call.input) },
          },
        ],
      }),
});
const chat: Wire = {
  body: (said) => ({
    id: 'm',
    choices: [{ index: 0, message: chatMessage(said), finish_reason: finishReasons[said.end] }],
    usage: { prompt_tokens: 1, completion_tokens: 1 },
  }),
  events: (said) => [
    { id: 'm', choices: [{ index: 0, delta: chatMessage(said), finish_reason: null }] },
    { id: 'm', choices: [{ index: 0, delta: {}, finish_reason: finishReasons[said.end] }] },
  ],
};

const unified = { stop: 'stop', calls: 'tool-calls', length: 'length', refused: 'content-filter' } as const;
const finishOf = ({ end }: Said) => ({
  finishReason: { unified: unified[end], raw: finishReasons[end] },
  usage: { inputTokens: { total: 1 }, outputTokens: { total: 1 } },
});
const callOf = ({ call }: Said) =>
  call ? [{ type: 'tool-call', toolCallId: call.id, toolName: call.name, input: JSON.stringify(call.input) }] : [];
const gateway: Wire = {
  body: (said) => ({
    content: [
      ...(said.thought === undefined ? [] : [{ type: 'reasoning', text: said.thought }]),
      ...(said.text === undefined ? [] : [{ type: 'text', text: said.text }]),
      ...callOf(said),
    ],
    ...finishOf(said),
    warnings: [],
  }),
  events: (said) => [
    ...(['reasoning', 'text'] as const).flatMap((id) => {
      const delta = id === 'text' ? said.text : said.thought;
      return delta === undefined
        ? []
        : [
            { type: `${id}-start`, id },
            { type: `${id}-delta`, id, delta },
            { type: `${id}-end`, id },
          ];
    }),
    ...callOf(said),
    { type: 'finish', ...finishOf(said) },
  ],
};

const wireOf = (format: Format): Wire => (format === 'anthropic' ? anthropic : format === 'gateway' ? gateway : chat);
const eventOf = (data: { readonly type?: unknown }) =>
  `${typeof data.type === 'string' ? `event: ${data.type}\n` : ''}data: ${JSON.stringify(data)}\n\n`;

/** Each provider's own words for a status. */
const words: { readonly [format in Format]: { readonly [status: number]: string } } = {
  anthropic: {
    400: 'invalid_request_error',
    401: 'authentication_error',
    403: 'permission_error',
    404: 'not_found_error',
    408: 'timeout_error',
    413: 'request_too_large',
    429: 'rate_limit_error',
    500: 'api_error',
    529: 'overloaded_error',
  },
  openai: {
    400: 'invalid_request_error',
    401: 'invalid_request_error',
    403: 'invalid_request_error',
    404: 'invalid_request_error',
    413: 'invalid_request_error',
    429: 'requests',
    500: 'server_error',
  },
  google: {
    400: 'INVALID_ARGUMENT',
    401: 'UNAUTHENTICATED',
    403: 'PERMISSION_DENIED',
    404: 'NOT_FOUND',
    408: 'DEADLINE_EXCEEDED',
    413: 'INVALID_ARGUMENT',
    429: 'RESOURCE_EXHAUSTED',
    500: 'INTERNAL',
    529: 'UNAVAILABLE',
  },
  mistral: { 400: 'invalid_request_error', 401: 'unauthorized', 404: 'invalid_model', 429: 'rate_limited' },
  openrouter: {},
  gateway: {
    400: 'invalid_request_error',
    401: 'authentication_error',
    403: 'forbidden',
    404: 'model_not_found',
    413: 'invalid_request_error',
    429: 'rate_limit_exceeded',
  },
};

function errorBody(format: Format, { status, message, code }: Refused): object {
  const type = words[format][status] ?? 'error';
  switch (format) {
    case 'anthropic':
      return { type: 'error', error: { type, message }, request_id: 'req_1' };
    case 'openai':
      return { error: { message, type, param: null, code: code ?? null } };
    case 'google':
      return [{ error: { code: status, message, status: type } }];
    case 'mistral':
      return { object: 'error', message, type, param: null, code: '3000' };
    case 'openrouter':
      return { error: { message, code: status, metadata: { provider_name: 'Some' } } };
    default:
      return { error: { message, type: type === 'error' ? 'internal_server_error' : type } };
  }
}

/** The same error as an event of a stream that began well. */
function errorEvent(format: Format, refused: Refused): string {
  const body = errorBody(format, refused);
  if (format === 'gateway') return eventOf({ type: 'error', ...body });
  return format === 'google' ? `data: ${JSON.stringify((body as unknown[])[0])}\n\n` : eventOf(body);
}

/** Where an answer goes, and as what. */
export interface Line {
  readonly response: ServerResponse;
  readonly format: Format;
  readonly mode: Mode;
}

/** An answer of a server. */
export type Answer = (line: Line) => void;

const json = { 'content-type': 'application/json' };
const stream = { 'content-type': 'text/event-stream' };

/** Returns the answer with this reply. */
export function replies(said: Said): Answer {
  return ({ response, format, mode }) => {
    const wire = wireOf(format);
    if (mode === 'whole') response.writeHead(200, json).end(JSON.stringify(wire.body(said)));
    else response.writeHead(200, stream).end(wire.events(said).map(eventOf).join(''));
  };
}

/** Returns the answer with this error. */
export function refuses(refused: Refused, headers: Readonly<Record<string, string>> = {}): Answer {
  return ({ response, format }) =>
    response.writeHead(refused.status, { ...json, ...headers }).end(JSON.stringify(errorBody(format, refused)));
}

/** Returns the answer whose stream begins well and then says this error. */
export function breaksWith(refused: Refused): Answer {
  return ({ response, format }) => {
    const begun = wireOf(format).events({ text: 'Half', end: 'stop' }).slice(0, -2);
    response.writeHead(200, stream).end(begun.map(eventOf).join('') + errorEvent(format, refused));
  };
}

/** The answer whose connection breaks in the middle. */
export const isCut: Answer = ({ response, format, mode }) => {
  const wire = wireOf(format);
  const said = { text: 'Half of it', end: 'stop' } as const;
  const text = mode === 'whole' ? JSON.stringify(wire.body(said)) : wire.events(said).map(eventOf).join('');
  response.writeHead(200, mode === 'whole' ? { ...json, 'content-length': text.length } : stream);
  response.write(text.slice(0, text.length / 2), () => response.destroy());
};

/** The answer whose body is no JSON, as of a proxy. */
export const isUnparsable: Answer = ({ response, mode }) => {
  if (mode === 'whole') response.writeHead(200, json).end('<html>Please wait</html>');
  else response.writeHead(200, stream).end('data: {"choices": [<html>\n\n');
};
