import type { Model, Run, RunEvent } from 'pawl';

/** All events of a run, to its end. */
export async function listen(run: Run, options?: { readonly after?: number }): Promise<RunEvent[]> {
  const events: RunEvent[] = [];
  for await (const event of run.events(options)) events.push(event);
  return events;
}

export const typesOf = (events: readonly RunEvent[]): string[] => events.map(({ type }) => type);
export const seqsOf = (events: readonly RunEvent[]): number[] => events.map(({ seq }) => seq);
export const ofType = <Type extends RunEvent['type']>(events: readonly RunEvent[], type: Type) =>
  events.filter((event): event is Extract<RunEvent, { type: Type }> => event.type === type);

/** The numbers from one to another, both included. */
export const range = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, i) => from + i);

/** A model that says its answer in so many pieces. */
export function chattyModel(pieces: number): Model {
  const parts = [
    { type: 'text-start', id: 't' },
    ...Array.from({ length: pieces }, (_, i) => ({ type: 'text-delta', id: 't', delta: `${i} ` })),
    { type: 'text-end', id: 't' },
    {
      type: 'finish',
      finishReason: { unified: 'stop', raw: 'stop' },
      usage: { inputTokens: { total: 1 }, outputTokens: { total: pieces } },
    },
  ];
  const doStream = async () => ({ stream: ReadableStream.from(parts) });
  return { specificationVersion: 'v4', provider: 'test', modelId: 'test', supportedUrls: {}, doStream } as never;
}
