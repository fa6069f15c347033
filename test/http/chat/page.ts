import { safeValidateTypes } from '@ai-sdk/provider-utils';
import { readUIMessageStream, type UIMessage, type UIMessageChunk, uiMessageChunkSchema } from 'ai';
import { expect } from 'vitest';
import { RunChunks } from '../../../src/http/chat/chunks.ts';
import { type PagePosition, viewFrom } from '../../../src/http/chat/page-position.ts';
import type { UiChunk } from '../../../src/http/chat/ui-chunk.ts';
import type { RunEvent } from '../../../src/run/events/body.ts';

/** What a page has after some chunks: its message, and the error that ended the stream. */
export interface Page {
  readonly message: UIMessage | undefined;
  readonly error?: string;
}

/** The chunks of a history, for a page that has nothing or is at a position. */
export function chunksOf(events: readonly RunEvent[], position?: PagePosition): UiChunk[] {
  const chunks = new RunChunks('r');
  const view = viewFrom(position);
  return events.flatMap((event) => view(chunks.map(event)).map(({ chunk }) => chunk));
}

/** Feeds chunks, as they come over the wire, to the package's own reader. Each must fit the package's own schema. */
export async function read(chunks: readonly UiChunk[], message?: UIMessage): Promise<Page> {
  let error: string | undefined;
  let last = message;
  const wire: UIMessageChunk[] = [];
  for (const chunk of chunks) {
    const value: unknown = JSON.parse(JSON.stringify(chunk));
    await validate(chunk, value);
    wire.push(value as UIMessageChunk);
  }
  const stream = new ReadableStream<UIMessageChunk>({
    start(controller) {
      for (const chunk of wire) controller.enqueue(chunk);
      controller.close();
    },
  });
  const given = message && (structuredClone(message) as UIMessage);
  const onError = (thrown: unknown) => {
    error ??= String((thrown as Error).message);
  };
  for await (const state of readUIMessageStream({ stream, onError, ...(given ? { message: given } : {}) }))
    last = state;
  return { message: last, ...(error === undefined ? {} : { error }) };
}

/** Chunks of a form that has passed: the schema is slow, and random runs repeat the same few forms. */
const valid = new Set<string>();

async function validate(chunk: UiChunk, value: unknown): Promise<void> {
  const form = JSON.stringify(chunk, (key, field) => (key !== 'type' && typeof field === 'string' ? '' : field));
  if (valid.has(form)) return;
  const checked = await safeValidateTypes({ value, schema: uiMessageChunkSchema });
  expect(checked, JSON.stringify(chunk)).toMatchObject({ success: true });
  valid.add(form);
}

/** The message of a history that arrives without a cut. */
export async function messageOf(events: readonly RunEvent[]): Promise<UIMessage | undefined> {
  return (await read(chunksOf(events))).message;
}
