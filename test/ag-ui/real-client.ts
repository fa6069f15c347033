import { HttpAgent, type Message } from '@ag-ui/client';
import { expect, vi } from 'vitest';
import type { AgUiEvent } from '../../src/ag-ui/protocol.ts';

/** The frame of a run around the events of a mapper. */
export function framed(events: readonly AgUiEvent[]): AgUiEvent[] {
  const run = { threadId: 'thread', runId: 'run' };
  return [{ type: 'RUN_STARTED', ...run }, ...events, { type: 'RUN_FINISHED', ...run, outcome: { type: 'success' } }];
}

/**
 * Gives events to the real client, as a server would send them, and returns its messages. The client validates each event,
 * gives all of them to the real `verifyEvents`, and applies them; it warns of fields that the protocol does not have.
 */
export async function applied(events: readonly AgUiEvent[], before: readonly Message[] = []): Promise<Message[]> {
  const warn = vi.spyOn(console, 'warn');
  const agent = new HttpAgent({
    url: 'http://agent.invalid/',
    threadId: 'thread',
    initialMessages: structuredClone([...before]),
    fetch: async () => streamOf(events),
  });
  await agent.runAgent({ runId: 'run' });
  expect(warn.mock.calls).toEqual([]);
  warn.mockRestore();
  return agent.messages;
}

function streamOf(events: readonly AgUiEvent[]): Response {
  const text = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
  return new Response(text, { headers: { 'content-type': 'text/event-stream' } });
}
