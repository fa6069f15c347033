import { createExecutor, defineAgent, defineTool, defineWorkflow, type JournalEvent, memoryStore, step } from 'pawl';
import { describe, expect, test } from 'vitest';
import { type AnyStateMachine, assign, setup } from 'xstate';
import { z } from 'zod';
import { noted, worldOf } from './world.ts';

const helper = defineAgent({ id: 'helper', instructions: '' });
const count = defineTool({
  name: 'count_all',
  description: '',
  effect: 'read',
  input: z.object({ n: z.number() }),
  execute: ({ n }) => {
    if (n < 0) throw new Error('the shop is closed');
    return n;
  },
});
const actors = { helper: step(helper), count: step(count) };

const flowOf = (a: object, more: object = {}, others: object = {}) =>
  defineWorkflow({
    id: 'flow',
    machine: setup({ actors: { ...actors, ...others }, types: { context: {} as object } }).createMachine({
      context: {},
      initial: 'a',
      states: { a, b: { type: 'final' } },
      output: ({ context }: { context: object }) => context,
      ...more,
    } as never) as unknown as AnyStateMachine,
  });

/** The error that the machine gets of a call with this input. */
async function errorOf(src: string, input?: unknown) {
  const taken = {
    target: 'b',
    actions: assign({ error: ({ event }: { event: { error?: unknown } }) => event.error } as never),
  };
  const flow = flowOf({
    invoke: { src, id: 'first', ...(input === undefined ? {} : { input }), onDone: 'b', onError: taken },
  });
  const run = await worldOf([flow]).boot().start(flow, { runId: 'r' });
  return ((await run.result).data as { error: { code: string; message: string } }).error;
}

describe('what a workflow says of a mistake', () => {
  test.each([
    ['count', undefined, 'the input of actor first, invoke.input gave none, does not fit:'],
    ['count', { n: 'one' }, 'the input of actor first, which invoke.input gave, does not fit:'],
    ['helper', 'Say hi', 'does not fit (an agent takes { prompt: string }):'],
    ['helper', undefined, 'invoke.input gave none, does not fit (an agent takes { prompt: string }):'],
  ])(
    'an input that does not fit %s (%j) names the actor and invoke.input, and no inner name (workflow 8)',
    async (src, input, says) => {
      const { code, message } = await errorOf(src, input);
      expect({ code, message }).toEqual({ code: 'TOOL_FAILED', message: expect.stringContaining(says) });
      expect(message).not.toMatch(/count_all|agent__/);
    },
  );

  test('an error of a tool without a code has the code TOOL_FAILED (workflow 8)', async () => {
    expect(await errorOf('count', { n: -1 })).toMatchObject({ code: 'TOOL_FAILED', message: 'the shop is closed' });
  });

  test('an error that no state takes names its actor, and that no onError takes it (workflow 8)', async () => {
    const flow = flowOf({ invoke: { src: 'count', id: 'first', input: { n: -1 }, onDone: 'b' } });
    const { error } = await worldOf([flow]).boot().run(flow, { runId: 'r' });
    expect(error).toMatchObject({
      code: 'WORKFLOW_ERROR',
      message: 'the workflow failed in state "a": actor first failed, and no onError takes it: the shop is closed',
    });
  });

  test('a context that reads an input that was not given names the context, and the missing input (workflow 17)', async () => {
    const flow = flowOf(
      { always: 'b' },
      { context: ({ input }: { input: { cents: number } }) => ({ cents: input.cents }) },
    );
    const { error } = await worldOf([flow]).boot().run(flow, { runId: 'r' });
    expect(error?.code).toBe('WORKFLOW_ERROR');
    expect(error?.message).toMatch(/^the workflow failed in its context: .*cents.*; it was started without input$/);
  });

  test.each([
    ['refuses', () => false, 'does not take go: its guard refuses it'],
    [
      'throws',
      () => {
        throw new Error('no such field');
      },
      'no such field',
    ],
  ])('mustTake of an event whose guard %s says so (workflow 18)', async (_, guard, says) => {
    const flow = flowOf({ on: { go: { guard, target: 'b' } } });
    const executor = worldOf([flow]).boot();
    await executor.start(flow, { runId: 'r' });
    await expect(executor.control('r').send({ type: 'go' }, { mustTake: true })).rejects.toMatchObject({
      code: 'EVENT_NOT_TAKEN',
      message: expect.stringContaining(says),
    });
    await executor.shutdown();
  });

  test('a signal without options names the id that it needs', async () => {
    const executor = createExecutor({ store: memoryStore() });
    for (const keys of [undefined, {}, { key: 'order 7' }])
      await expect(executor.signal('paid', 1, keys as never)).rejects.toThrow(
        'signal needs an id, a text of 1 to 128 characters: signal(name, value, { id })',
      );
    await executor.shutdown();
  });
});

test('the end of a workflow during a `once` call is said, in a log line too: it may have taken effect; a call that only reads is not (workflow 9, operations 10)', async () => {
  for (const effect of ['once', 'read'] as const) {
    const pay = noted('pay', effect, () => new Promise(() => {}));
    const machine = setup({ actors: { pay: step(pay.tool) } }).createMachine({
      initial: 'a',
      states: { a: { invoke: { src: 'pay', input: {}, onDone: 'b' }, on: { leave: 'b' } }, b: { type: 'final' } },
    });
    const flow = defineWorkflow({ id: 'flow', machine });
    const { boot, settle, warnings } = worldOf([flow], { journal: true });
    const executor = boot();
    const run = await executor.start(flow, { runId: 'r' });
    while (pay.calls.length === 0) await settle();
    await executor.control('r').send({ type: 'leave' });
    expect((await run.result).status).toBe('ok');
    const events: JournalEvent[] = [];
    for await (const event of executor.events('r')) events.push(event);
    const said = events.filter(({ type }) => type === 'tool.started' || type === 'call.unknown');
    const call = { step: 2, callId: '1.1', name: 'pay', attempt: 1 };
    const both = [
      { type: 'tool.started', ...call },
      { type: 'call.unknown', ...call },
    ];
    expect(said).toMatchObject(effect === 'once' ? both : []);
    const line = { event: 'call.unknown', runId: 'r', agentId: 'flow', callId: '1.1', tool: 'pay' };
    const lines = warnings.map(({ fields }) => fields as { readonly event: string });
    expect(lines.filter(({ event }) => event === 'call.unknown')).toMatchObject(effect === 'once' ? [line] : []);
    expect(events.at(-1)?.type).toBe('run.ended');
  }
});

test.each([
  ['its result', (input: unknown) => input, { got: { cents: 2 } }],
  [
    'its unknown outcome',
    () => Promise.reject(Object.assign(new Error('it broke'), { code: 'ECONNRESET' })),
    { got: { code: 'OUTCOME_UNKNOWN', message: expect.stringMatching(/^Outcome unknown: /) } },
  ],
])(
  'a machine gets %s of a call whose input a person changed without the note for models (workflow 7, 8)',
  async (_, execute, data) => {
    const pay = defineTool({
      ...{ name: 'pay', description: '', effect: 'once', input: { type: 'object' } },
      ...{ needsApproval: true, approval: { editable: true }, execute },
    });
    const got = ({ event }: { event: { output?: unknown; error?: unknown } }) => event.output ?? event.error;
    const taken = { target: 'b', actions: assign({ got } as never) };
    const a = { invoke: { src: 'pay', input: { cents: 1 }, onDone: taken, onError: taken } };
    const flow = flowOf(a, {}, { pay: step(pay) });
    const { boot, settle } = worldOf([flow]);
    const executor = boot();
    const run = await executor.start(flow, { runId: 'r' });
    await settle();
    const [wait] = await executor.waiting();
    await executor.control('r').approve(wait?.id ?? '', { input: { cents: 2 } });
    expect((await run.result).data).toMatchObject(data);
  },
);
