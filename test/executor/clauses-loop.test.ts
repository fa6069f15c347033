import { type Message, memoryStore, type RunCheckpoint, type RunResult } from 'pawl';
import { callTool, callTools, hang, recordingCheckpointer, reply, type ScriptedRequest } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { listen, typesOf } from '../events/listening.ts';
import { type Execute, gate, hostOf, settle, toolOf, until } from '../fixtures/host.ts';
import { afterCrash, isWrite, onlyRecord, watchedStore } from '../fixtures/watched-store.ts';

const png = { mediaType: 'image/png', data: 'AQID' };
const filesIn = (messages: readonly Message[]) => JSON.stringify(messages).split('"image/png"').length - 1;

type Part = { readonly type: string; readonly toolCallId: string };
const idsOf = (message: Message | undefined, type: string): string[] =>
  typeof message?.content === 'object'
    ? (message.content as unknown as Part[]).filter((part) => part.type === type).map((part) => part.toolCallId)
    : [];
const isWhole = (messages: readonly Message[]) =>
  messages.every((message, i) => {
    const calls = idsOf(message, 'tool-call');
    const next = messages[i + 1];
    return calls.length > 0 ? idsOf(next, 'tool-result').join() === calls.join() : next?.role !== 'tool';
  });

/** Two reads and one call with a key a turn, three turns long; what it says goes by the transcript. */
const turn = ({ messages }: ScriptedRequest) => {
  const n = messages.filter(({ role }) => role === 'assistant').length;
  const call = (name: string, i: number) => ({ name, input: { n, i }, callId: `${n}.${i}` });
  return n < 3 ? callTools([call('look', 0), call('keyed', 1), call('look', 2)]) : reply('end');
};
const script = Array(9).fill(turn);
const tools = [
  toolOf('look', 'read', ({ n, i }) => ({ n, i })),
  toolOf('keyed', 'idempotent', async ({ n }) => ({ n })),
];

describe('a step', () => {
  test('adds exactly its message and its results to the transcript, and is the open step until its last result is in (executor 11)', async () => {
    const checkpointer = recordingCheckpointer();
    const { messages } = await hostOf({ script, tools }).run({}, { checkpointer });
    expect(messages.map(({ role }) => role)).toEqual([
      'user',
      ...Array(3).fill(['assistant', 'tool']).flat(),
      'assistant',
    ]);
    const open = checkpointer.states.filter(({ openStep }) => openStep);
    expect(open.length).toBeGreaterThan(2);
    for (const { messages: saved = [], openStep, iteration } of checkpointer.states) {
      expect(saved).toEqual(messages.slice(0, saved.length));
      if (!openStep) continue;
      expect(saved).toHaveLength(2 * iteration + 1);
      expect(openStep.message).toEqual(messages[saved.length]);
    }
  });

  test('that ends a run by a guard is recorded and reported before the end is (executor 10, 16)', async () => {
    const checkpointer = recordingCheckpointer();
    const failing = toolOf('look', 'read', () => Promise.reject(new Error('no')));
    const host = hostOf({ script: [1, 2, 3].map((n) => callTool('look', { n })), tools: [failing] });
    const run = await host.start({}, { checkpointer });
    const events = await listen(run);
    expect(await run.result).toMatchObject({ status: 'error', error: { code: 'TOOL_LOOP' }, iterations: 3 });
    const types = typesOf(events);
    expect(types.filter((type) => type === 'step.done')).toHaveLength(3);
    expect(types.lastIndexOf('step.done')).toBeLessThan(types.indexOf('run.ended'));
    expect(checkpointer.states.filter(({ outcome }) => !outcome).at(-1)).toMatchObject({ iteration: 3 });
  });

  test('takes no steered message in its middle: it stands after the results, once, in the saved transcript too (executor 10, 11)', async () => {
    const checkpointer = recordingCheckpointer();
    const called = gate<string>();
    const host = hostOf({
      script: [callTool('slow'), reply('done')],
      tools: [toolOf('slow', 'read', () => called.pass())],
    });
    const run = await host.start({}, { checkpointer });
    await called.reached;
    const receipt = run.steer('Hurry.');
    await settle();
    called.open('slow ok');
    expect(await receipt).toBe('durable');
    const { messages } = await run.result;
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user', 'assistant']);
    expect(messages[3]).toMatchObject({ content: [{ text: 'Hurry.' }] });
    const last = checkpointer.states.at(-1)?.messages ?? [];
    expect(JSON.stringify(last).split('Hurry.')).toHaveLength(2);
    expect(host.model.calls[1]?.messages).toEqual(messages.slice(0, 4));
  });
});

/** Each record that a process leaves when it dies right after one of its writes. */
async function leftAfterEachWrite(
  options: Parameters<typeof hostOf>[0],
): Promise<{ records: RunCheckpoint[]; result: RunResult }> {
  const records: RunCheckpoint[] = [];
  const store = watchedStore({
    after: async (call) => {
      if (isWrite(call)) records.push(await onlyRecord(await afterCrash(inner)));
    },
  });
  const inner = store;
  const result = await hostOf({ ...options, store }).run({ runId: 'r' });
  return { records, result };
}

describe('a run that dies', () => {
  test('after any of its writes ends with the transcript and the totals of a run that did not, and each request was whole (executor 12, 13, 17)', async () => {
    const { records, result } = await leftAfterEachWrite({ script, tools });
    expect(records.length).toBeGreaterThanOrEqual(8);
    for (const record of records) {
      const store = memoryStore();
      await store.save(record);
      const host = hostOf({ script, tools, store });
      const { messages, ...totals } = await host.run({ runId: 'r' });
      const { messages: expected, ...expectedTotals } = result;
      expect(totals).toEqual(expectedTotals);
      if (!record.outcome) expect(messages).toEqual(expected);
      expect(host.model.calls.every((call) => isWhole(call.messages))).toBe(true);
      const saved = record.messages.filter(({ role }) => role === 'assistant').length;
      expect(host.model.calls).toHaveLength(record.outcome ? 0 : 4 - saved - (record.openStep ? 1 : 0));
    }
  });

  test('leaves nothing of its system prompt behind: today’s is used (executor 12)', async () => {
    const { records } = await leftAfterEachWrite({ script, tools, agent: { instructions: 'Be very secretive.' } });
    expect(JSON.stringify(records)).not.toContain('secretive');
  });

  test('gives its tools the tallies that it had come to (executor 13, 18)', async () => {
    const seen: object[] = [];
    const look = toolOf('look', 'read', (_, { runState }) => {
      seen.push({ ...runState });
    });
    const store = memoryStore();
    await hostOf({ script: [callTool('look', { n: 1 }), hang()], tools: [look], store }).start({
      runId: 'r',
    });
    await until(async () => (await store.load('r'))?.iteration === 1);
    const second = {
      script: [callTool('look', { n: 2 }), reply('done')],
      tools: [look],
      store: await afterCrash(store),
    };
    await hostOf(second).run({ runId: 'r' });
    expect(seen).toMatchObject([
      { iteration: 0, messages: 1, usage: { inputTokens: 10, outputTokens: 5 } },
      { iteration: 1, messages: 3, usage: { inputTokens: 20, outputTokens: 10 } },
    ]);
  });

  test.for([
    ['before its sibling has answered', true],
    ['after its step', false],
  ] as const)(
    '%s shows an image that a tool attached to the next process’s model, once (executor 18)',
    async ([, isOpen]) => {
      const snap: Execute = (_, { attachImages }) => {
        attachImages([png, { mediaType: 'image/png', data: new URL('https://example.com/b.png') }]);
        return 'snap';
      };
      const camera = toolOf('camera', 'idempotent', snap, { allowUrls: true });
      const sibling = gate<string>();
      const slow = toolOf('slow', 'read', () => (isOpen ? sibling.pass() : 'slow ok'));
      const calls = callTools([
        { name: 'camera', input: {} },
        { name: 'slow', input: {} },
      ]);
      const store = memoryStore();
      await hostOf({ script: [calls, hang()], tools: [camera, slow], store }).start({ runId: 'r' });
      await until(async () => {
        const record = await store.load('r');
        return isOpen ? record?.openStep?.calls[0]?.state === 'done' : record?.iteration === 1;
      });
      let snaps = 0;
      const again = toolOf('camera', 'idempotent', () => (snaps += 1));
      const second = hostOf({
        script: [callTool('slow'), reply('done')],
        tools: [again, toolOf('slow')],
        store: await afterCrash(store),
      });
      const { messages, status } = await second.run({ runId: 'r' });
      expect([status, snaps]).toEqual(['ok', 0]);
      expect(second.model.calls.map((call) => filesIn(call.messages))).toEqual([2, 2]);
      expect(filesIn(messages)).toBe(2);
    },
  );
});

test('reasoning and what its provider signed it with go through a crash byte for byte, in the order in which they came (executor 17)', async () => {
  const signed = {
    anthropic: { signature: 'Ab+/=\ud83d', nested: { z: 1, a: [1.5e-7, null, ''] }, redacted: 'é\u2028' },
  };
  const parts = [
    { type: 'reasoning-start', id: 'r', providerMetadata: { anthropic: { first: true } } },
    { type: 'reasoning-delta', id: 'r', delta: ' I think\n\t\ud83d' },
    { type: 'reasoning-end', id: 'r', providerMetadata: signed },
    { type: 'tool-call', toolCallId: 'c', toolName: 'look', input: '{"b":1,"a":2}', providerMetadata: signed },
    {
      type: 'finish',
      finishReason: { unified: 'tool-calls', raw: 'x' },
      usage: { inputTokens: { total: 1 }, outputTokens: { total: 1 } },
    },
  ];
  let turns = 0;
  const doStream = async () => ({ stream: turns++ === 0 ? ReadableStream.from(parts) : new ReadableStream() });
  const model = {
    specificationVersion: 'v4',
    provider: 'scripted',
    modelId: 'test',
    supportedUrls: {},
    doStream,
  } as never;
  const store = memoryStore();
  const first = hostOf({
    tools: [toolOf('look')],
    models: { fast: model },
    store,
  });
  await first.start({ runId: 'r' });
  await until(async () => (await store.load('r'))?.iteration === 1);
  const second = hostOf({ tools: [toolOf('look')], store: await afterCrash(store) });
  await second.run({ runId: 'r' });
  expect(JSON.stringify(second.model.calls[0]?.messages[1])).toBe(
    JSON.stringify({
      role: 'assistant',
      content: [
        { type: 'reasoning', text: ' I think\n\t\ud83d', providerOptions: signed },
        { type: 'tool-call', toolCallId: 'c', toolName: 'look', input: { b: 1, a: 2 }, providerOptions: signed },
      ],
    }),
  );
});
