import { type Middleware, memoryStore, type Run, type RunEvent } from 'pawl';
import { callTool, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { hostOf, toolOf } from '../fixtures/host.ts';
import { finish, finishedBy, modelOf, streamOf, text } from '../model/fake-model.ts';
import { listen, ofType, typesOf } from './listening.ts';

const source = { type: 'source', sourceType: 'url', id: 's', url: 'https://a.example' };
const call = { type: 'tool-call', toolCallId: 'c', toolName: 'look', input: '{"a":1}' };
const streamedCall = [
  { type: 'tool-input-start', id: 'c', toolName: 'look' },
  { type: 'tool-input-delta', id: 'c', delta: '{"a"' },
  { type: 'tool-input-delta', id: 'c', delta: ':1}' },
  call,
];

/** A model that streams one list of parts a call. A list without a finish part breaks off. */
function streams(...replies: (readonly unknown[])[]) {
  let calls = 0;
  return modelOf(async () => ({ stream: streamOf(replies[calls++] ?? []) }));
}

type Options = NonNullable<Parameters<typeof hostOf>[0]>;
const started = (model: unknown, options: Options = {}): Promise<Run> =>
  hostOf({ models: { fast: model } as never, tools: [toolOf('look')], random: () => 0, ...options }).start();

/** What a reader shows of one step: its pieces since the last reset. */
function shownIn(events: readonly RunEvent[], step: number): string[] {
  let blocks: string[] = [];
  for (const event of events) {
    if (event.type === 'step.reset' && event.step <= step) blocks = [];
    if ((event.type === 'model.delta' || event.type === 'tool.input') && event.step === step) {
      const { block, offset } = event;
      expect(blocks[block] ?? '').toHaveLength(offset);
      blocks[block] = (blocks[block] ?? '') + event.text;
    }
  }
  return blocks;
}

describe('the events of a reply that arrives', () => {
  test('of failed attempts have the characters of one reply in all, and the last attempt is whole (edges 29)', async () => {
    const long = (letter: string) => text(letter.repeat(400));
    const attempts = [...'abcd'].map(long);
    const model = streams(...attempts, [...long('e'), finish]);
    const run = await started(model, { defaults: { maxReplyChars: 1_000, modelAttempts: 5 } });
    const events = await listen(run);
    expect((await run.result).output).toBe('e'.repeat(400));
    const shown = ofType(events, 'model.delta').reduce((chars, piece) => chars + piece.text.length, 0);
    expect(shown).toBeLessThanOrEqual(1_000);
    expect(ofType(events, 'model.retry')).toHaveLength(4);
  });

  test('of a second attempt arrive one by one while there is room for them (edges 29)', async () => {
    const run = await started(streams(text('Half'), [...text('Whole.'), finish]));
    const events = await listen(run);
    expect(shownIn(events, 1)).toEqual(['Whole.']);
  });

  test('have the place of each piece: step, block and offset (web 3)', async () => {
    const run = await started(
      streams(
        [...text('I look.'), ...streamedCall, finishedBy('tool-calls')],
        [{ type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'aGk=' } }, ...text('Found.'), finish],
      ),
    );
    const events = await listen(run);
    const pieces = events.filter(({ type }) => ['model.delta', 'tool.input', 'model.file'].includes(type));
    expect(pieces).toMatchObject([
      { type: 'model.delta', step: 1, block: 0, offset: 0, kind: 'text', text: 'I look.' },
      { type: 'tool.input', step: 1, block: 1, offset: 0, callId: 'c', name: 'look', text: '{"a"' },
      { type: 'tool.input', step: 1, block: 1, offset: 4, callId: 'c', name: 'look', text: ':1}' },
      { type: 'model.file', step: 2, block: 0, mediaType: 'image/png' },
      { type: 'model.delta', step: 2, block: 1, offset: 0, kind: 'text', text: 'Found.' },
    ]);
    const { messages } = await run.result;
    expect(messages[1]?.content).toMatchObject([{ text: 'I look.' }, { toolCallId: 'c' }]);
    expect(messages[3]?.content).toMatchObject([{ type: 'file' }, { text: 'Found.' }]);
  });

  test('begin again from offset 0 after step.reset, which comes between two attempts only if the first showed something (web 5)', async () => {
    const run = await started(
      streams([{ type: 'text-delta', id: 't', delta: 'Half an an' }], [], [...text('The whole.'), finish]),
    );
    const events = await listen(run);
    expect(typesOf(events).filter((type) => /^(step|model)/.test(type))).toEqual([
      ...['step.started', 'model.delta', 'model.retry', 'step.reset', 'model.retry', 'model.delta', 'step.done'],
    ]);
    expect(shownIn(events, 1)).toEqual(['The whole.']);
  });

  test('are voided before a step that begins again after an outage, or in the next phase (web 5)', async () => {
    const broken = [
      { type: 'text-delta', id: 't', delta: 'Half' },
      { type: 'error', error: 'down' },
    ];
    const phases = [
      { name: 'a', instructions: 'A.', optional: true },
      { name: 'b', instructions: 'B.' },
    ];
    const run = await started(streams(broken, [...text('b'), finish]), {
      agent: { phases } as never,
      defaults: { modelAttempts: 1 },
    });
    const events = await listen(run);
    const order = typesOf(events).filter((type) => ['model.delta', 'step.reset', 'step.started'].includes(type));
    expect(order).toEqual(['step.started', 'model.delta', 'step.reset', 'step.started', 'model.delta']);
    expect((await run.result).status).toBe('ok');
  });

  test('are replaced by the texts of the message when a middleware records another one (web 5)', async () => {
    const shout: Middleware = {
      model: async (_, next) => {
        const answer = await next();
        return { ...answer, message: { role: 'assistant', content: [{ type: 'text', text: 'HELLO' }] } };
      },
    };
    const model = streams([source, ...text('he'), ...text('llo'), finish]);
    const events = await listen(await started(model, { middleware: [shout] }));
    expect(shownIn(events, 1)).toEqual(['HELLO']);
    expect(ofType(events, 'step.reset')).toHaveLength(1);
    expect(ofType(events, 'model.source')).toEqual([]);
  });

  test('stay when a middleware changes only the usage (web 5)', async () => {
    const free: Middleware = { model: async (_, next) => ({ ...(await next()), usage: undefined }) as never };
    const events = await listen(await started(streams([source, ...text('hello'), finish]), { middleware: [free] }));
    expect(ofType(events, 'step.reset')).toEqual([]);
    expect(ofType(events, 'model.source')).toHaveLength(1);
  });

  test('are replaced when a block stayed empty, so that each block is a part of the message (web 3)', async () => {
    const moved = [{ type: 'text-start', id: 'e' }, { type: 'reasoning-delta', id: 'r', delta: 'hm' }, ...text('yes')];
    const run = await started(streams([...moved, finish]));
    const events = await listen(run);
    expect(shownIn(events, 1)).toEqual(['hm', 'yes']);
    expect((await run.result).messages.at(-1)?.content).toMatchObject([{ text: 'hm' }, { text: 'yes' }]);
    expect(ofType(events, 'step.reset')).toHaveLength(1);
  });

  test('come in the order of blocks, so that one place tells what a reader has: texts that interleave come again at the end (web 6)', async () => {
    const say = (id: string, delta: string) => ({ type: 'text-delta', id, delta });
    const run = await started(streams([say('a', '1'), say('b', '2'), say('a', '3'), say('b', '4'), finish]));
    const events = await listen(run);
    const shown = events.flatMap((event) =>
      event.type === 'model.delta' ? [`${event.block}:${event.text}`] : event.type === 'step.reset' ? ['reset'] : [],
    );
    expect(shown).toEqual(['0:1', '1:2', '1:4', 'reset', '0:13', '1:24']);
  });

  test('have no arguments of calls that the provider runs itself (web 3)', async () => {
    const theirs = [
      { type: 'tool-input-start', id: 'p', toolName: 'search', providerExecuted: true },
      { type: 'tool-input-delta', id: 'p', delta: '{}' },
      { type: 'tool-call', toolCallId: 'p', toolName: 'search', input: '{}', providerExecuted: true },
      { type: 'tool-result', toolCallId: 'p', toolName: 'search', result: 'found' },
    ];
    const events = await listen(await started(streams([...theirs, ...text('ok'), finish])));
    expect(ofType(events, 'tool.input')).toEqual([]);
    expect(ofType(events, 'model.delta')).toMatchObject([{ block: 2, text: 'ok' }]);
  });

  test('have each source once, with the step that is recorded, also if an earlier attempt named it (web 3)', async () => {
    const run = await started(
      streams(
        [source, { type: 'text-delta', id: 't', delta: 'Half' }],
        [source, ...streamedCall, finishedBy('tool-calls')],
        [{ ...source, id: 's2' }, ...text('Found.'), finish],
      ),
    );
    const events = await listen(run);
    const order = events.filter(({ type }) => type === 'model.source' || type === 'step.done');
    expect(order).toMatchObject([
      { type: 'model.source', step: 1, source: { sourceType: 'url', id: 's', url: 'https://a.example' } },
      { type: 'step.done', step: 1 },
      { type: 'model.source', step: 2, source: { id: 's2' } },
      { type: 'step.done', step: 2 },
    ]);
  });

  test('have at most 1,000 sources of a reply (web 3)', async () => {
    const many = Array.from({ length: 1_005 }, (_, i) => ({ ...source, id: `${i}` }));
    const observed: RunEvent[] = [];
    const run = await started(streams([...many, ...text('ok'), finish]), {
      observers: [{ onEvent: (event) => void observed.push(event) }],
    });
    await run.result;
    expect(ofType(observed, 'model.source')).toHaveLength(1_000);
  });

  test('do not flood a slow consumer: pieces of arguments are dropped before anything else (web 3)', async () => {
    const deltas = Array.from({ length: 3_000 }, () => ({ type: 'tool-input-delta', id: 'c', delta: ' ' }));
    const run = await started(
      streams([...streamedCall.slice(0, 1), ...deltas, call, finishedBy('tool-calls')], [...text('ok'), finish]),
    );
    const consumer = run.events();
    await run.result;
    const events: RunEvent[] = [];
    for await (const event of consumer) events.push(event);
    expect(ofType(events, 'events.dropped')).toHaveLength(1);
    expect(typesOf(events)).toEqual(
      expect.arrayContaining(['run.started', 'step.started', 'tool.started', 'tool.done', 'step.done', 'run.ended']),
    );
    expect(ofType(events, 'tool.input').length).toBeLessThan(1_000);
  });

  test('are a sign of life for the critic, streamed arguments as well (web 3)', async () => {
    const seen: string[] = [];
    const critic = {
      monitor: () => ({ onActivity: ({ type }: { type: string }) => void seen.push(type), stop: () => {} }),
    };
    const run = await started(streams([...streamedCall, finishedBy('tool-calls')], [...text('ok'), finish]), {
      ports: { critic: critic as never },
    });
    await run.result;
    expect(seen).toEqual(['delta', 'delta', 'tool', 'step', 'delta', 'step']);
  });
});

describe('the process that published an event (web 3)', () => {
  test('stands on kept starts and tool calls of a recorded run, with the newest stored revision', async () => {
    const script = [callTool('look'), callTool('send'), reply('done')];
    const tools = [toolOf('look'), toolOf('send', 'idempotent')];
    const run = await hostOf({ script, tools, store: memoryStore() }).start();
    const events = await listen(run);
    const named = events.flatMap((event) =>
      'owner' in event ? [[event.type, 'name' in event ? event.name : '', event.revision]] : [],
    );
    expect(named).toEqual([
      ['run.started', '', 1],
      ['tool.done', 'look', 1],
      ['tool.started', 'send', 3],
      ['tool.done', 'send', 3],
    ]);
    const owners = new Set(events.flatMap((event) => ('owner' in event ? [event.owner] : [])));
    expect(owners.size).toBe(1);
  });

  test('is not known of a run without a record', async () => {
    const run = await hostOf({ script: [callTool('look'), reply('done')], tools: [toolOf('look')] }).start();
    expect((await listen(run)).filter((event) => 'owner' in event || 'revision' in event)).toEqual([]);
  });
});
