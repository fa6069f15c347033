import {
  ask,
  createExecutor,
  defineAgent,
  defineTool,
  defineWorkflow,
  type Executor,
  memoryStore,
  step,
  type Tool,
  waitForSignal,
} from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { reply, scriptedModel, type TestClock } from 'pawl/testing';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { type AnyStateMachine, assign, setup } from 'xstate';
import { noted, worldOf } from './world.ts';

/** Waits in `a` for `go`, which may fail. */
const flowOf = (assigned: () => object = () => ({})) =>
  defineWorkflow({
    id: 'flow',
    machine: setup({}).createMachine({
      initial: 'a',
      states: { a: { on: { go: { target: 'b', actions: assign(assigned) } } }, b: { type: 'final' } },
    }),
  });

test('a workflow that was cancelled continues in its state after a retry, in the process that retried it (lab 4)', async () => {
  const flow = flowOf();
  const { boot, settle, pass, store } = worldOf([flow]);
  const first = boot();
  const run = await first.start(flow, { runId: 'r' });
  await settle();
  await run.cancel('too early');
  expect(await run.result).toMatchObject({ status: 'cancelled' });
  await first.shutdown();
  const second = boot();
  const next = await second.retry('r');
  expect(next.accepted).toBe('resumed');
  expect(await next.result).toMatchObject({ status: 'waiting' });
  expect(await store.load('r')).toMatchObject({ retries: [{ error: { code: 'CANCELLED' } }] });
  await second.control('r').send({ type: 'go' });
  await pass(4_000);
  expect(await store.outcomes.find('r')).toMatchObject({ status: 'ok' });
});

test('a workflow that was cancelled keeps the time of its timers after a retry (lab 4)', async () => {
  const machine = setup({}).createMachine({
    initial: 'a',
    states: { a: { after: { 3600000: 'b' } }, b: { type: 'final' } },
  });
  const flow = defineWorkflow({ id: 'flow', machine });
  const { boot, pass, store } = worldOf([flow]);
  const executor = boot();
  await executor.start(flow, { runId: 'r' });
  await pass(4_000);
  await executor.control('r').cancel();
  expect(await store.outcomes.find('r')).toMatchObject({ status: 'cancelled' });
  expect(await (await executor.retry('r')).result).toMatchObject({ status: 'waiting' });
  await pass(3_500_000);
  expect(await executor.find('r')).toMatchObject({ status: 'waiting' });
  await pass(100_000);
  expect(await store.outcomes.find('r')).toMatchObject({ status: 'ok' });
});

test('a workflow that failed at an event takes the event again after a retry (lab 4)', async () => {
  let isBroken = true;
  const flow = flowOf(() => {
    if (isBroken) throw new Error('no such order');
    return {};
  });
  const { boot, settle, pass, store } = worldOf([flow]);
  const executor = boot();
  await executor.start(flow, { runId: 'r' });
  await settle();
  await executor.control('r').send({ type: 'go' });
  await pass(4_000);
  expect(await store.outcomes.find('r')).toMatchObject({ status: 'error', error: { code: 'WORKFLOW_ERROR' } });
  isBroken = false;
  expect(await (await executor.retry('r')).result).toMatchObject({ status: 'ok' });
});

test('a workflow whose machine a failed call has ended is RUN_ENDED for a retry, and its call is not repeated (lab 6)', async () => {
  const pay = noted('pay', 'once', () => {
    throw new Error('refused');
  });
  const machine = setup({ actors: { pay: step(pay.tool) } }).createMachine({
    initial: 'a',
    states: { a: { invoke: { src: 'pay', input: {}, onDone: 'b' } }, b: { type: 'final' } },
  });
  const flow = defineWorkflow({ id: 'flow', machine });
  const executor = worldOf([flow]).boot();
  expect(await executor.run(flow, { runId: 'r' })).toMatchObject({ status: 'error' });
  const refused = { code: 'RUN_ENDED', message: expect.stringContaining('its machine is over (error)') };
  await expect(executor.retry('r')).rejects.toMatchObject(refused);
  expect(pay.calls).toHaveLength(1);
});

test('a workflow that ended ok, and one that a call began, are RUN_ENDED for a retry, which names no fork: there is none (lab 6, 10)', async () => {
  const throwing = setup({ guards: { no: thrown } }).createMachine({
    initial: 'a',
    states: { a: { always: { target: 'b', guard: 'no' } }, b: {} },
  });
  const child = defineWorkflow({ id: 'child', machine: throwing });
  const machine = setup({ actors: { child: step(child) } }).createMachine({
    initial: 'a',
    states: { a: { invoke: { src: 'child', onDone: 'b', onError: 'b' } }, b: { type: 'final' } },
  });
  const flow = defineWorkflow({ id: 'flow', machine });
  const executor = worldOf([flow, child], { retention: { records: '1h' } }).boot();
  expect(await executor.run(flow, { runId: 'r' })).toMatchObject({ status: 'ok' });
  const message = 'run r has ended with status ok: it has its answer, and does not continue';
  await expect(executor.retry('r')).rejects.toMatchObject({ code: 'RUN_ENDED', message });
  await expect(executor.fork('r', { at: 0 })).rejects.toMatchObject({ code: 'UNSUPPORTED' });
  const below = (await executor.history()).find(({ runId }) => runId !== 'r');
  await expect(executor.retry(below?.runId ?? '')).rejects.toThrow(/read its end; retry that one, r$/);
});

function thrown(): boolean {
  throw new Error('no');
}

/** Whether the machine has its fault still. */
let isFaulty = true;
beforeEach(() => {
  isFaulty = true;
});

function faults(): boolean {
  if (isFaulty) throw new Error('no such field');
  return true;
}

const got = assign({ got: ({ event }) => (event as { readonly output?: unknown }).output });
const date = () => (isFaulty ? new Date(0) : 1);

/** How a machine fails while it takes a result. What it has taken is in its context once it is mended. */
const faultyTaking = {
  'a guard throws': { onDone: { target: 'b', guard: faults, actions: got } },
  'an assign throws': { onDone: { target: 'b', actions: [got, assign({ ok: faults })] } },
  'an assign gives a Date': { onDone: { target: 'b', actions: [got, assign({ at: date })] } },
  'the next input throws': { onDone: { target: 'c', actions: got }, input: () => ({ ok: faults() }) },
  'the next input has a Date': { onDone: { target: 'c', actions: got }, input: () => ({ at: date() }) },
};

function faultyFlow(src: unknown, fault: keyof typeof faultyTaking = 'a guard throws') {
  const { onDone, ...next } = { input: {}, ...faultyTaking[fault] };
  const actors = { src, next: step(noted('next', 'read', () => 'next').tool) };
  const machine = setup({ actors } as never).createMachine({
    context: {},
    initial: 'a',
    states: {
      a: { invoke: { src: 'src', input: { prompt: 'Go.' }, onDone } },
      b: { type: 'final' },
      c: { invoke: { src: 'next', ...next, onDone: 'b' } },
    },
    output: ({ context }: { context: { readonly got?: unknown } }) => context.got ?? null,
  } as never);
  return defineWorkflow({ id: 'flow', machine: machine as unknown as AnyStateMachine });
}

type MakeStore = (options: { readonly clock: TestClock }) => ReturnType<typeof memoryStore>;

const onStores: readonly (readonly [string, MakeStore])[] = [
  ['memory', memoryStore],
  [
    'SQLite',
    ({ clock }) => {
      const store = sqliteStore({ path: ':memory:', clock });
      onTestFinished(() => store.close());
      return store;
    },
  ],
];

/** Starts a workflow whose machine fails at a result, mends it and retries it in another process. */
async function mended(
  flow: ReturnType<typeof faultyFlow>,
  { boot, pass, store }: ReturnType<typeof worldOf>,
  act?: (executor: Executor) => Promise<unknown>,
  retry: (executor: Executor) => Promise<unknown> = (executor) => executor.retry('r'),
) {
  const first = boot();
  await first.start(flow, { runId: 'r' });
  await pass(1);
  await act?.(first);
  await pass(4_000);
  expect(await store.outcomes.find('r')).toMatchObject({
    status: 'error',
    error: { code: expect.stringMatching(/^WORKFLOW_/) },
  });
  await first.shutdown();
  isFaulty = false;
  const second = boot();
  await retry(second);
  await pass(4_000);
  return second;
}

describe('a workflow that failed at a result', () => {
  const faultsOnStores = onStores.flatMap(([name, make]) =>
    Object.keys(faultyTaking).map((fault) => [fault as keyof typeof faultyTaking, name, make] as const),
  );

  test.for(faultsOnStores)('takes that of a once call again where %s, on %s (lab 4)', async ([fault, , make]) => {
    const pay = noted('pay', 'once', () => 'paid');
    const flow = faultyFlow(step(pay.tool), fault);
    const world = worldOf([flow], {}, make);
    await mended(flow, world);
    expect(await world.store.outcomes.find('r')).toMatchObject({ status: 'ok', data: 'paid' });
    expect(pay.calls).toHaveLength(1);
  });

  const growing = (id: string, ms: number) =>
    defineWorkflow({
      id,
      machine: setup({ types: { output: {} as string } }).createMachine({
        initial: 'a',
        states: { a: { after: { [ms]: 'b' } }, b: { type: 'final' } },
        output: () => 'grown',
      }),
    });
  const [kid, old] = [growing('kid', 20), growing('old', 3_000_000)];
  const answer = async (executor: Executor) => {
    const [wait] = await executor.waiting({ kind: 'question' });
    await executor.control('r').answer(wait?.id ?? '', 'yes');
  };
  const sources = [
    ['the answer of a person', () => ask({ question: 'Build it?', options: ['yes', 'no'] }), 'yes', answer],
    ['a signal', () => waitForSignal('s'), 'sent', (executor: Executor) => executor.signal('s', 'sent', { id: 'i' })],
    ['the end of a child workflow', () => step(kid), { data: 'grown' }, async () => {}],
    [
      'the answer of an agent',
      () => step(defineAgent({ id: 'clerk', instructions: '', model: scriptedModel([reply('hi')]) })),
      { output: 'hi' },
      async () => {},
    ],
  ] as const;
  const sourcesOnStores = onStores.flatMap(([name, make]) =>
    sources.map((source) => [source[0], name, make, source] as const),
  );

  test.for(sourcesOnStores)('takes %s again, on %s (lab 4)', async ([, , make, [, src, data, act]]) => {
    const flow = faultyFlow(src());
    const world = worldOf([flow, kid], {}, make);
    const second = await mended(flow, world, act);
    expect(await world.store.outcomes.find('r')).toMatchObject({ status: 'ok', data });
    expect(await second.waiting()).toEqual([]);
  });

  interface Ended {
    readonly type: string;
    readonly output?: unknown;
    readonly error?: { readonly code: string };
  }

  const retriesOnStores = onStores.flatMap(([name, make]) => [
    [name, 'retry', make] as const,
    [name, 'control().retry', make] as const,
  ]);

  /** One region fails at its result; each other one has something under way, and keeps what it gets. */
  function parallelFlow(actors: { readonly [name: string]: unknown }) {
    const into = (name: string) =>
      assign({ [name]: ({ event }: { event: Ended }) => event.output ?? event.error?.code ?? event.type } as never);
    const region = (name: string, more: object = {}) => {
      const end = { target: 'b', actions: into(name) };
      const invoke = { src: name, input: {}, onDone: { ...end, ...more }, onError: end };
      return { initial: 'a', states: { a: { invoke }, b: { type: 'final' } } };
    };
    const regions = Object.keys(actors).map((name) => [name, region(name, name === 'pay' ? { guard: faults } : {})]);
    const late = {
      initial: 'a',
      states: { a: { after: { 3600000: { target: 'b', actions: into('late') } } }, b: { type: 'final' } },
    };
    const machine = setup({ actors } as never).createMachine({
      type: 'parallel',
      context: {},
      states: { ...Object.fromEntries(regions), late },
      output: ({ context }: { context: unknown }) => context,
    } as never);
    return defineWorkflow({ id: 'flow', machine: machine as unknown as AnyStateMachine });
  }

  test.for(retriesOnStores)(
    'keeps what other regions have under way: results, open calls, questions, children and timers, on %s, by %s (lab 4)',
    async ([, by, make]) => {
      const unfinished = <T>(value: T) => (isFaulty ? new Promise<T>(() => {}) : value);
      const tools = [
        noted('pay', 'once', () => 'paid'),
        noted('quick', 'once', () => 'quick'),
        noted('sent', 'once', () => unfinished('sent')),
        noted('looked', 'idempotent', () => unfinished('looked')),
      ] as const;
      const board = ask({ question: 'Build it?', options: ['yes', 'no'] });
      const calls = Object.fromEntries(tools.map(({ tool }) => [tool.name, step(tool as Tool)]));
      const flow = parallelFlow({ ...calls, board, old: step(old) });
      const world = worldOf([flow, old], {}, make);
      const retry = (executor: Executor) =>
        by === 'retry'
          ? executor.retry('r')
          : executor
              .control('r')
              .retry()
              .then(() => executor.recover());
      const second = await mended(flow, world, undefined, retry);
      expect(await second.find('r')).toMatchObject({ status: 'waiting' });
      expect((await world.store.load('r'))?.waiting?.waits).toMatchObject([
        { kind: 'timer', dueAt: 1_000_000 + 3_600_000 },
        { kind: 'question' },
        { kind: 'child' },
      ]);
      const [wait] = await second.waiting({ kind: 'question' });
      await second.control('r').answer(wait?.id ?? '', 'yes');
      await world.pass(4_000);
      expect(await second.find('r')).toMatchObject({ status: 'waiting' });
      await world.pass(3_600_000);
      expect(await world.store.outcomes.find('r')).toMatchObject({
        status: 'ok',
        data: {
          ...{ pay: 'paid', quick: 'quick', sent: 'OUTCOME_UNKNOWN', looked: 'looked', board: 'yes' },
          old: { data: 'grown' },
          late: 'xstate.after.3600000.(machine).late.a',
        },
      });
      expect(tools.map((tool) => tool.calls.length)).toEqual([1, 1, 1, 2]);
      expect(new Set(tools[3].keys).size).toBe(1);
    },
  );

  test('begins no call with its end that had no place before, and makes it once after a retry (lab 4)', async () => {
    const calls: unknown[] = [];
    const execute = () => `${calls.push(0)}`;
    const parts = { name: 'pay', description: '', effect: 'once', input: { type: 'object' }, concurrency: 1 } as const;
    const pay = step(defineTool({ ...parts, execute }));
    const flow = parallelFlow({ pay, next: pay });
    const world = worldOf([flow]);
    expect(await createExecutor({ workflows: [flow] }).run(flow, {})).toMatchObject({ status: 'error' });
    expect(calls.splice(0)).toHaveLength(1);
    const idle = async () => {};
    await mended(flow, world, idle, async (executor) => {
      expect(calls).toHaveLength(1);
      await executor.retry('r');
    });
    await world.pass(3_600_000);
    expect(await world.store.outcomes.find('r')).toMatchObject({ status: 'ok', data: { pay: '1', next: '2' } });
  });
});
