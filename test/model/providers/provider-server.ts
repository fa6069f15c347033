import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogleGenerativeAI } from '@ai-sdk/google';
import { createMistral } from '@ai-sdk/mistral';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { createGateway, simulateStreamingMiddleware, wrapLanguageModel } from 'ai';
import type { Model } from 'pawl';
import { anthropic, chat, gateway, google, mistral, responses, type Said, type Wire } from './wire-formats.ts';

/*
 * Providers on loopback. The packages are real, and so are their words for errors. Chat completions have the error bodies of OpenRouter.
 */

export const formats = ['anthropic', 'openai', 'google', 'mistral', 'compatible', 'gateway'] as const;
export type Format = (typeof formats)[number];
/** A streamed reply, or one body: the model then asks its provider without `stream`. */
export const modes = ['streamed', 'whole'] as const;
export type Mode = (typeof modes)[number];

interface ModelOptions {
  /** Undefined: the process has none. */
  readonly apiKey?: string | undefined;
  readonly mode?: Mode;
  readonly fetch?: typeof globalThis.fetch;
}

/** Returns a model of the real package, at an address on loopback. */
export function modelAt(format: Format, url: string, options: ModelOptions = {}): Model {
  const { apiKey, mode, fetch } = { apiKey: 'test', ...options };
  const given = { baseURL: `${url}/v1`, ...(apiKey === undefined ? {} : { apiKey }), ...(fetch ? { fetch } : {}) };
  const model = providerOf(format, given);
  if (mode !== 'whole') return model;
  return wrapLanguageModel({ model: model as never, middleware: simulateStreamingMiddleware() }) as Model;
}

function providerOf(format: Format, options: { readonly baseURL: string; readonly apiKey?: string }): Model {
  switch (format) {
    case 'anthropic':
      return createAnthropic(options)('claude-sonnet-4-5');
    case 'openai':
      return createOpenAI(options)('gpt-5');
    case 'google':
      return createGoogleGenerativeAI(options)('gemini-3-pro');
    case 'mistral':
      return createMistral(options)('magistral-medium-latest');
    case 'gateway':
      return createGateway(options)('anthropic/claude-sonnet-4.5') as Model;
    default:
      return createOpenAICompatible({ ...options, name: 'local', includeUsage: true })('llama');
  }
}

/** Serves a provider that answers each request with the next of these; the last one answers all that follow. */
export async function serveProvider(format: Format, answers: readonly Answer[], options: ModelOptions = {}) {
  const open = new Set<ServerResponse>();
  const bodies: string[] = [];
  const server = createServer(async (request, response) => {
    open.add(response);
    response.on('close', () => open.delete(response));
    let body = '';
    for await (const chunk of request) body += chunk;
    const asked = bodies.push(body);
    const answer = answers[Math.min(asked, answers.length) - 1] as Answer;
    answer({ response, format, mode: options.mode ?? 'streamed', body });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    model: modelAt(format, url, options),
    /** What it was asked, as the package wrote it. */
    bodies,
    /** Resolves when no client is connected to an answer any more. */
    async isLeft() {
      while (open.size > 0) await sleep(1);
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await once(server.close(), 'close');
    },
  };
}

/** An error, in no provider's words. */
export interface Refused {
  readonly status: number;
  readonly message: string;
  /** The word of providers that have one of their own for it: the code of OpenAI. */
  readonly code?: string;
}

const wires: { readonly [format in Format]: Wire } = {
  ...{ anthropic, openai: responses, google, mistral, compatible: chat, gateway },
};
const eventOf = (data: { readonly type?: unknown; readonly sequence_number?: number }) =>
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
  compatible: {},
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
      return { error: { code: status, message, status: type } };
    case 'mistral':
      return { object: 'error', message, type, param: null, code: '3000' };
    case 'compatible':
      return { error: { message, code: status, metadata: { provider_name: 'Some' } } };
    default:
      return { error: { message, type: type === 'error' ? 'internal_server_error' : type } };
  }
}

/** The same error as an event of a stream that began well. */
function errorEvent(format: Format, refused: Refused): string {
  const body = errorBody(format, refused);
  if (format === 'openai') return eventOf({ type: 'error', sequence_number: 1, ...body });
  return eventOf(format === 'gateway' ? { type: 'error', ...body } : body);
}

/** Where an answer goes, and as what. */
export interface Line {
  readonly response: ServerResponse;
  readonly format: Format;
  readonly mode: Mode;
  /** The request. */
  readonly body: string;
}

/** An answer of a server. */
export type Answer = (line: Line) => void;

const json = { 'content-type': 'application/json' };
const stream = { 'content-type': 'text/event-stream' };

/** Returns the answer with this reply. */
export function replies(said: Said): Answer {
  return ({ response, format, mode }) => {
    const wire = wires[format];
    if (mode === 'whole') response.writeHead(200, json).end(JSON.stringify(wire.body(said)));
    else response.writeHead(200, stream).end(wire.events(said).map(eventOf).join(''));
  };
}

/** Returns the answer with this error. */
export function refuses(refused: Refused, headers: Readonly<Record<string, string>> = {}): Answer {
  return ({ response, format }) =>
    response.writeHead(refused.status, { ...json, ...headers }).end(JSON.stringify(errorBody(format, refused)));
}

/** The events of a streamed reply as far as this text, or these arguments of a call; without one, those before any content. */
export function eventsUntil(format: Format, said: Omit<Said, 'end'>): string[] {
  const events = wires[format].events({ ...said, end: 'stop' });
  const last = said.text ?? said.call?.input;
  const end = last === undefined ? 0 : events.findIndex((event) => saysText(event, last));
  return events.slice(0, end + 1).map(eventOf);
}

function saysText(event: object, text: unknown): boolean {
  let isSaid = false;
  JSON.stringify(event, (_, value) => {
    isSaid ||= value === text;
    return value;
  });
  return isSaid;
}

/** Returns the answer whose stream begins well and then says this error. */
export function breaksWith(refused: Refused): Answer {
  return ({ response, format }) =>
    response.writeHead(200, stream).end(eventsUntil(format, { text: 'Half' }).join('') + errorEvent(format, refused));
}

/** How an answer stops before its end: its connection breaks, its stream ends, or nothing more comes. */
export type Stop = 'cut' | 'ended' | 'silent';

/** Returns the answer that stops after these words. */
export function stopsAfter(said: Omit<Said, 'end'>, stop: Stop): Answer {
  return ({ response, format }) => {
    response.writeHead(200, stream).write(eventsUntil(format, said).join(''), () => {
      if (stop === 'cut') response.destroy();
    });
    if (stop === 'ended') response.end();
  };
}

/** The answer whose connection breaks in the middle. */
export const isCut: Answer = (line) => {
  const { response, format, mode } = line;
  if (mode === 'streamed') return stopsAfter({ text: 'Half of it' }, 'cut')(line);
  const text = JSON.stringify(wires[format].body({ text: 'Half of it', end: 'stop' }));
  response.writeHead(200, { ...json, 'content-length': text.length });
  response.write(text.slice(0, text.length / 2), () => response.destroy());
};

/** The answer whose body is no JSON, as of a proxy. */
export const isUnparsable: Answer = ({ response, mode }) => {
  if (mode === 'whole') response.writeHead(200, json).end('<html>Please wait</html>');
  else response.writeHead(200, stream).end('data: {"choices": [<html>\n\n');
};
