import { defineTool, memoryStore, type Tool } from 'pawl';
import { type Authorize, type HttpOptions, httpHandler } from 'pawl/http';
import { afterEach } from 'vitest';
import { type HostOptions, hostOf } from '../fixtures/host.ts';

/** Where the tests' requests go. */
export const base = 'http://pawl.test';

const left: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const leave of left.splice(0)) await leave();
});

/** The caller is the token: `Bearer ada` is ada. No token is refused. `Bearer root:ada` is ada, and sees everything. */
export const byToken: Authorize = (request) => {
  const [, token = ''] = (request.headers.get('authorization') ?? '').split('Bearer ');
  if (token === '') return null;
  const isRoot = token.startsWith('root:');
  const callerId = isRoot ? token.slice('root:'.length) : token;
  return { callerId, by: { id: callerId }, ...(isRoot ? { all: true } : {}) };
};

export interface Sent {
  readonly as?: string;
  readonly method?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** A request as a client of the API sends it. */
export function requestTo(path: string, { as = 'ada', method, body, headers = {}, signal }: Sent = {}): Request {
  const isPost = (method ?? (body === undefined ? 'GET' : 'POST')) === 'POST';
  const text = body === undefined && isPost ? {} : body;
  return new Request(`${base}${path}`, {
    method: method ?? (isPost ? 'POST' : 'GET'),
    headers: {
      ...(as === '' ? {} : { authorization: `Bearer ${as}` }),
      ...(isPost ? { 'content-type': 'application/json' } : {}),
      ...headers,
    },
    ...(text === undefined || !isPost ? {} : { body: typeof text === 'string' ? text : JSON.stringify(text) }),
    ...(signal ? { signal } : {}),
  });
}

/** An answer, read. */
export interface Answered {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: the tests say what is in it
  readonly body: any;
}

export async function read(response: Response): Promise<Answered> {
  const text = await response.text();
  const isJson = (response.headers.get('content-type') ?? '').includes('json');
  return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
}

/** A tool that waits for a person's answer. */
export const askTool: Tool = defineTool({
  name: 'ask',
  description: 'Asks a person.',
  effect: 'read',
  input: { type: 'object' },
  execute: (_, context) => context.ask({ question: 'Which one?' }),
}) as unknown as Tool;

/** A tool that needs an approval. */
export const mailTool: Tool = defineTool({
  name: 'mail',
  description: 'Sends a mail.',
  effect: 'once',
  needsApproval: true,
  input: { type: 'object', properties: { to: { type: 'string' } } },
  execute: () => 'sent',
}) as unknown as Tool;

export type WebHostOptions = HostOptions & { readonly http?: Partial<HttpOptions> };

/** A host with a memory store and a handler of web requests on it. */
export function webHost({ http = {}, ...options }: WebHostOptions = {}) {
  const host = hostOf({ store: memoryStore(), journal: { flushMs: 5 }, ...options });
  left.push(() => host.executor.shutdown());
  const warned: string[] = [];
  const { executor } = host;
  const handler = httpHandler(executor, {
    agents: { worker: host.agent },
    authorize: byToken,
    logger: { warn: (message, fields) => warned.push(`${message} ${JSON.stringify(fields)}`) },
    ...http,
  });
  return {
    ...host,
    handler,
    httpWarned: warned,
    open: (path: string, sent?: Sent) => handler(requestTo(path, sent)),
    ask: async (path: string, sent?: Sent) => read(await handler(requestTo(path, sent))),
  };
}
export type WebHost = ReturnType<typeof webHost>;
