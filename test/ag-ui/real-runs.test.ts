import type { LanguageModelV4, LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { createExecutor, defineAgent, type JournalEvent, memoryStore } from 'pawl';
import { describe, expect, test } from 'vitest';
import { Mapper } from '../../src/ag-ui/mapper.ts';
import { agUiMessagesOf } from '../../src/ag-ui/messages.ts';
import type { AgUiEvent, AgUiMessage } from '../../src/ag-ui/protocol.ts';
import { AgUiReader } from '../../src/ag-ui/reader.ts';
import { toolOf } from '../fixtures/host.ts';
import { applied, framed } from './real-client.ts';

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

/** A model that streams these parts, one list a call. */
function streaming(...turns: readonly LanguageModelV4StreamPart[][]): LanguageModelV4 {
  const left = [...turns];
  return {
    ...{ specificationVersion: 'v4', provider: 'test', modelId: 'test', supportedUrls: {} },
    doGenerate: () => Promise.reject(new Error('it only streams')),
    doStream: async () => {
      const parts = left.shift() ?? [];
      const finish = {
        type: 'finish',
        usage,
        finishReason: { unified: 'stop', raw: 'stop' },
      } as LanguageModelV4StreamPart;
      return {
        stream: ReadableStream.from([
          { type: 'stream-start', warnings: [] } as LanguageModelV4StreamPart,
          ...parts,
          finish,
        ]),
      };
    },
  };
}

const said = (kind: 'text' | 'reasoning', id: string, ...pieces: string[]): LanguageModelV4StreamPart[] => [
  { type: `${kind}-start`, id },
  ...pieces.map((delta): LanguageModelV4StreamPart => ({ type: `${kind}-delta`, id, delta })),
  { type: `${kind}-end`, id },
];
const called = (id: string, ...pieces: string[]): LanguageModelV4StreamPart[] => [
  { type: 'tool-input-start', id, toolName: 'look' },
  ...pieces.map((delta): LanguageModelV4StreamPart => ({ type: 'tool-input-delta', id, delta })),
  { type: 'tool-input-end', id },
  { type: 'tool-call', toolCallId: id, toolName: 'look', input: pieces.join('') },
];

/** What a turn of a model gives: its recorded messages, and its events for a reader from the beginning, and for one at the end. */
interface Ran {
  readonly wanted: readonly AgUiMessage[];
  readonly live: readonly JournalEvent[];
  readonly later: readonly JournalEvent[];
}

async function ran(model: LanguageModelV4): Promise<Ran> {
  const look = toolOf('look', 'read', async ({ id }) => `found ${String(id)}`);
  const agent = defineAgent({ id: 'worker', instructions: 'Look.', tools: [look] });
  await using executor = createExecutor({
    ...{ models: { fast: model }, agents: [agent], store: memoryStore(), journal: { flushMs: 1 } },
  });
  const thread = executor.thread('t', { agent, callerId: 'ada' });
  const { runId } = await thread.send({ id: 'm', text: 'Go.' });
  const live: JournalEvent[] = [];
  for await (const event of executor.events(runId)) live.push(event);
  const later: JournalEvent[] = [];
  for await (const event of executor.events(runId)) later.push(event);
  return { wanted: agUiMessagesOf(await thread.messages()).slice(1), live, later };
}

function mapped(events: readonly JournalEvent[]): AgUiEvent[] {
  const mapper = new Mapper(events[0]?.runId ?? '', new AgUiReader());
  return [...events.flatMap((event) => mapper.map(event)), ...mapper.close()];
}

/** With the arguments of calls as JSON: a reader has the spaces of the model. */
const plain = (messages: readonly object[]) =>
  JSON.parse(
    JSON.stringify(messages).replaceAll(
      /"arguments":"((?:[^"\\]|\\.)*)"/g,
      (_, text: string) => `"arguments":${JSON.parse(`"${text}"`)}`,
    ),
  );

describe('the events of a real run', () => {
  test('give the real client the messages of its transcript, live and at the end (web 34)', async () => {
    const { wanted, live, later } = await ran(
      streaming(
        [
          ...said('reasoning', 'r', 'Two ', 'of them.'),
          ...said('text', 't', 'Let me ', 'look.'),
          ...called('a', '{"id": ', '1}'),
          ...called('b', '{"id":2}'),
        ],
        [...said('text', 't', 'Both ', 'are there.'), ...said('text', 'u', 'Bye.')],
      ),
    );
    const messages = await applied(framed(mapped(live)));
    expect(messages.map(({ role }) => role)).toEqual([
      ...['reasoning', 'assistant', 'assistant', 'tool', 'assistant', 'tool', 'assistant', 'assistant'],
    ]);
    expect(plain(messages)).toEqual(plain(wanted));
    expect(await applied(framed(mapped(later)))).toEqual(wanted);
  });

  test('name a call whose arguments the model did not stream (web 34)', async () => {
    const whole: LanguageModelV4StreamPart = {
      type: 'tool-call',
      toolCallId: 'a',
      toolName: 'look',
      input: '{"id":1}',
    };
    const { wanted, live } = await ran(streaming([...said('text', 't', 'Hm.'), whole], said('text', 't', 'Done.')));
    expect(await applied(framed(mapped(live)))).toEqual(wanted);
  });
});
