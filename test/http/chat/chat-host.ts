import { defineTool, type JournalOptions, memoryStore, type Tool } from 'pawl';
import { type HttpOptions, httpHandler } from 'pawl/http';
import { afterEach } from 'vitest';
import type { UiChunk } from '../../../src/http/chat/ui-chunk.ts';
import { type HostOptions, hostOf } from '../../fixtures/host.ts';
import { byToken, requestTo, type Sent } from '../web-host.ts';

const left: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const leave of left.splice(0)) await leave();
});

/** Sends a mail, with the approval of a person. */
export function mailTool(send: () => unknown = () => 'sent'): Tool {
  return defineTool({
    name: 'mail',
    description: 'Sends a mail.',
    effect: 'once',
    needsApproval: true,
    input: { type: 'object', properties: { to: { type: 'string' } } },
    execute: async () => send(),
  }) as unknown as Tool;
}

/** Asks the person which one. */
export const chooseTool: Tool = defineTool({
  name: 'choose',
  description: 'Asks a person.',
  effect: 'read',
  input: { type: 'object' },
  execute: async (_, context) => `chosen: ${JSON.stringify(await context.ask({ question: 'Which one?' }))}`,
}) as unknown as Tool;

export type ChatHostOptions = Omit<HostOptions, 'journal'> & {
  readonly http?: Partial<HttpOptions>;
  readonly journal?: Partial<JournalOptions>;
};

/** A host with a memory store, a journal and a handler of web requests. */
export function chatHost({ http = {}, journal = {}, ...options }: ChatHostOptions = {}) {
  const host = hostOf({
    store: memoryStore(),
    journal: { flushMs: 1, ...journal },
    ...options,
    defaults: { waitLingerMs: 1, dueMs: 20, controlMs: 20, ...options.defaults },
  });
  left.push(() => host.executor.shutdown({ drainMs: 1_000 }));
  const httpWarned: string[] = [];
  const handler = httpHandler(host.executor, {
    agents: { worker: host.agent },
    authorize: byToken,
    logger: { warn: (message, fields) => httpWarned.push(`${message} ${JSON.stringify(fields)}`) },
    ...http,
  });
  return { ...host, handler, httpWarned, ask: (path: string, sent?: Sent) => handler(requestTo(path, sent)) };
}
export type ChatHost = ReturnType<typeof chatHost>;

/** One chunk of a stream, with the id that a page would send to continue after it. */
export interface Received {
  readonly id?: string;
  readonly chunk: UiChunk;
}

/** Reads a stream to its end. `isDone`: it ended with `[DONE]`. */
export async function received(
  response: Response,
): Promise<{ readonly all: readonly Received[]; readonly isDone: boolean }> {
  const text = await response.text();
  const all: Received[] = [];
  let isDone = false;
  for (const block of text.split('\n\n')) {
    const lines = block.split('\n');
    const data = lines.find((line) => line.startsWith('data: '))?.slice(6);
    const id = lines.find((line) => line.startsWith('id: '))?.slice(4);
    if (data === '[DONE]') isDone = true;
    else if (data !== undefined) all.push({ chunk: JSON.parse(data) as UiChunk, ...(id === undefined ? {} : { id }) });
  }
  return { all, isDone };
}

/** The chunks of a stream. */
export async function chunksIn(response: Response): Promise<UiChunk[]> {
  return (await received(response)).all.map(({ chunk }) => chunk);
}

/** A message of the user, as `useChat` posts it. */
export function said(id: string, text: string) {
  return { id, role: 'user', parts: [{ type: 'text', text }] };
}
