import { defineAgent, defineWorkflow, step } from 'pawl';
import { callTool, hang, reply, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { type AnyStateMachine, assign, fromPromise, log, raise, setup, spawnChild, stopChild } from 'xstate';
import { gate, settle } from '../fixtures/host.ts';
import { noted, worldOf } from './world.ts';

const HOUR = 3_600_000;

describe('an agent in a workflow', () => {
  const workflowWith = (agent: ReturnType<typeof defineAgent>) =>
    defineWorkflow({
      id: 'desk',
      machine: setup({
        types: { context: {} as { got: unknown }, output: {} as unknown },
        actors: { clerk: step(agent) },
      }).createMachine({
        context: { got: null },
        initial: 'asking',
        states: {
          asking: {
            invoke: {
              src: 'clerk',
              input: { prompt: 'Read it.' },
              onDone: { target: 'done', actions: assign({ got: ({ event }) => event.output }) },
              onError: { target: 'done', actions: assign({ got: ({ event }) => event.error }) },
            },
          },
          done: { type: 'final' },
        },
        output: ({ context }: { context: { got: unknown } }) => context.got,
      }),
    });

  test('is a child run, and its result without messages is the output of its actor (workflow 10)', async () => {
    const clerk = defineAgent({ id: 'clerk', instructions: 'Read.' });
    const desk = workflowWith(clerk);
    const { boot } = worldOf([desk], { models: { fast: scriptedModel([reply('all is well')]) } });
    const { data } = await boot().run(desk, { runId: 'r' });
    expect(data).toMatchObject({ status: 'ok', output: 'all is well', usage: { outputTokens: expect.any(Number) } });
    expect(Object.keys(data as object)).not.toContain('messages');
  });

  test('that fails is the error of its actor, with its code (workflow 10)', async () => {
    const clerk = defineAgent({
      id: 'clerk',
      instructions: 'Read.',
      maxSteps: 1,
      tools: [noted('look', 'read', () => 1).tool],
    });
    const desk = workflowWith(clerk);
    const { boot } = worldOf([desk], {
      models: { fast: scriptedModel([callTool('look'), reply('never')]) },
    });
    const { data } = await boot().run(desk, { runId: 'r' });
    expect(data).toMatchObject({ code: expect.any(String), message: expect.any(String) });
  });

  test('is cancelled when the machine leaves its state (workflow 9)', async () => {
    const clerk = defineAgent({ id: 'clerk', instructions: 'Read.' });
    const desk = defineWorkflow({
      id: 'desk',
      machine: setup({ actors: { clerk: step(clerk) }, types: { events: {} as { type: 'enough' } } }).createMachine({
        initial: 'asking',
        states: {
          asking: { invoke: { src: 'clerk', input: { prompt: 'Read it.' } }, on: { enough: 'done' } },
          done: { type: 'final' },
        },
      }),
    });
    const model = scriptedModel([hang()]);
    const { boot, settle, store, pass } = worldOf([desk], { models: { fast: model } });
    const executor = boot();
    const run = await executor.start(desk, { runId: 'r' });
    await settle();
    expect(model.calls).toHaveLength(1);
    await executor.control('r').send({ type: 'enough' });
    expect((await run.result).status).toBe('ok');
    await pass(2_000);
    expect(model.calls[0]?.signal?.aborted).toBe(true);
    expect(await store.listInterrupted()).toEqual([]);
  });
});

test('a workflow in a workflow is a child run, and its actor has the output of its machine as data (workflow 10)', async () => {
  const inner = defineWorkflow({
    id: 'inner',
    machine: setup({
      types: { input: {} as { n: number }, context: {} as { n: number }, output: {} as { twice: number } },
    }).createMachine({
      context: ({ input }) => ({ n: input.n }),
      initial: 'a',
      states: { a: { after: { [HOUR]: 'b' } }, b: { type: 'final' } },
      output: ({ context }) => ({ twice: 2 * context.n }),
    }),
  });
  const outer = defineWorkflow({
    id: 'outer',
    machine: setup({
      types: { context: {} as { got: number }, output: {} as { got: number } },
      actors: { inner: step(inner) },
    }).createMachine({
      context: { got: 0 },
      initial: 'a',
      states: {
        a: {
          invoke: {
            src: 'inner',
            input: { n: 21 },
            onDone: { target: 'b', actions: assign({ got: ({ event }) => event.output.data.twice }) },
          },
        },
        b: { type: 'final' },
      },
      output: ({ context }) => context,
    }),
  });
  const { boot, pass, store } = worldOf([outer, inner]);
  const first = boot();
  const run = await first.start(outer, { runId: 'r' });
  await pass(4_000);
  expect((await run.result).status).toBe('waiting');
  await first.shutdown();
  await boot().recover();
  await pass(HOUR);
  await pass(8_000);
  expect(await store.outcomes.find('r')).toMatchObject({ status: 'ok', data: { got: 42 } });
});

describe('a call', () => {
  test('that the machine left gets an aborted signal, and its late result completes nothing (workflow 8, 9, 12)', async () => {
    const door = gate<string>();
    const slow = noted('slow', 'idempotent', async (_, signal) => {
      signals.push(signal);
      return signals.length === 1 ? door.pass() : 'second';
    });
    const signals: AbortSignal[] = [];
    const machine = setup({
      types: { context: {} as { got: string[] }, events: {} as { type: 'again' }, output: {} as string[] },
      actors: { slow: step(slow.tool) },
    }).createMachine({
      context: { got: [] },
      initial: 'working',
      states: {
        working: {
          invoke: {
            src: 'slow',
            input: {},
            onDone: {
              target: 'done',
              actions: assign({ got: ({ context, event }) => [...context.got, String(event.output)] }),
            },
          },
          on: { again: { target: 'working', reenter: true } },
        },
        done: { type: 'final' },
      },
      output: ({ context }) => context.got,
    });
    const flow = defineWorkflow({ id: 'flow', machine });
    const { boot, settle } = worldOf([flow]);
    const executor = boot();
    const run = await executor.start(flow, { runId: 'r' });
    await settle();
    await executor.control('r').send({ type: 'again' });
    expect((await run.result).data).toEqual(['second']);
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, expect.any(Boolean)]);
    door.open('first');
    await settle();
    expect(new Set(slow.keys).size).toBe(2);
  });

  test('that is spawned and stopped within one transition never begins (workflow 2)', async () => {
    const look = noted('look', 'read', () => 1);
    const machine = setup({ actors: { look: step(look.tool) } }).createMachine({
      initial: 'a',
      states: {
        a: { entry: [spawnChild('look', { id: 'x', input: {} }), stopChild('x')], always: 'b' },
        b: { type: 'final' },
      },
    });
    const flow = defineWorkflow({ id: 'flow', machine });
    expect((await worldOf([flow]).boot().run(flow, { runId: 'r' })).status).toBe('ok');
    expect(look.calls).toEqual([]);
  });

  test('whose error no state takes fails the run with WORKFLOW_ERROR, and stops the others (workflow 8)', async () => {
    const door = gate();
    const signals: AbortSignal[] = [];
    const bad = noted('bad', 'read', async () => {
      throw new Error('no');
    });
    const slow = noted('slow', 'read', async (_, signal) => {
      signals.push(signal);
      return door.pass();
    });
    const machine = setup({ actors: { bad: step(bad.tool), slow: step(slow.tool) } }).createMachine({
      type: 'parallel',
      states: { a: { invoke: { src: 'slow', input: {} } }, b: { invoke: { src: 'bad', input: {} } } },
    });
    const flow = defineWorkflow({ id: 'flow', machine });
    const result = await worldOf([flow]).boot().run(flow, { runId: 'r' });
    expect(result).toMatchObject({
      status: 'error',
      error: { code: 'WORKFLOW_ERROR', message: expect.stringContaining('no') },
    });
    expect(signals[0]?.aborted).toBe(true);
  });
});

describe('a machine that', () => {
  const flowOf = (machine: unknown) => defineWorkflow({ id: 'flow', machine: machine as AnyStateMachine });
  const runOf = async (machine: unknown, input?: unknown) => {
    const flow = flowOf(machine);
    return worldOf([flow])
      .boot()
      .run(flow, { runId: 'r', input: input as never });
  };

  test.each([
    [
      'throws in an assign',
      'WORKFLOW_ERROR',
      {
        entry: assign(() => {
          throw new Error('x');
        }),
      },
    ],
    [
      'throws in a guard',
      'WORKFLOW_ERROR',
      {
        always: {
          guard: () => {
            throw new Error('x');
          },
          target: 'b',
        },
      },
    ],
    ['never comes to rest', 'WORKFLOW_LOOP', { initial: 'x', states: { x: { always: 'y' }, y: { always: 'x' } } }],
    [
      'sends itself events for ever',
      'WORKFLOW_LOOP',
      { entry: raise({ type: 'go' }), on: { go: { target: 'a', reenter: true } } },
    ],
    ['keeps a date in its context', 'WORKFLOW_STATE', { entry: assign({ at: () => new Date(0) }) }],
    ['keeps an actor in its context', 'WORKFLOW_STATE', { entry: assign({ ref: { xstate$$type: 1, id: 'x' } }) }],
    ['has a delay that is no number', 'WORKFLOW_ERROR', { entry: raise({ type: 'go' }, { delay: () => Number.NaN }) }],
  ])('%s fails its run with %s, and the process lives (workflow 14, 15, 16, 17)', async (_, code, a) => {
    const machine = setup({}).createMachine({
      context: {},
      initial: 'a',
      states: { a: a as never, b: { type: 'final' } },
    });
    expect(await runOf(machine)).toMatchObject({ status: 'error', error: { code } });
  });

  test('changes its context in place changes nothing of another run (workflow 4)', async () => {
    const machine = setup({ types: { context: {} as { list: number[] }, output: {} as number[] } }).createMachine({
      context: { list: [] },
      initial: 'a',
      states: {
        a: {
          entry: assign({
            list: ({ context }) => {
              context.list.push(1);
              return context.list;
            },
          }),
          always: 'b',
        },
        b: { type: 'final' },
      },
      output: ({ context }) => context.list,
    });
    const flow = defineWorkflow({ id: 'flow', machine });
    const executor = worldOf([flow]).boot();
    expect((await executor.run(flow, { runId: '1' })).data).toEqual([1]);
    expect((await executor.run(flow, { runId: '2' })).data).toEqual([1]);
  });

  test('logs writes to the logger of the executor, once it is stored (workflow 5)', async () => {
    const lines: unknown[] = [];
    const machine = setup({ actions: { note: log(({ context }) => ({ ...context, n: 1 })) } }).createMachine({
      initial: 'a',
      states: { a: { entry: [log('hello', 'order'), 'note'], always: 'b' }, b: { type: 'final' } },
    });
    const flow = flowOf(machine);
    const info = (message: string, { event, runId, label }: Readonly<Record<string, unknown>>) => {
      if (event === 'workflow.log') lines.push({ message, runId, label });
    };
    await worldOf([flow], { logger: { warn: () => {}, info } })
      .boot()
      .run(flow, { runId: 'r' });
    expect(lines).toEqual([
      { message: 'workflow: hello', runId: 'r', label: 'order' },
      { message: 'workflow: {"n":1}', runId: 'r', label: undefined },
    ]);
  });

  test('has an action that throws continues, and its event says so (workflow 5)', async () => {
    const ran: string[] = [];
    const machine = setup({
      actions: {
        bad: () => {
          throw new Error('no');
        },
        good: () => void ran.push('good'),
      },
    }).createMachine({ initial: 'a', states: { a: { entry: ['bad', 'good'], always: 'b' }, b: { type: 'final' } } });
    const flow = defineWorkflow({ id: 'flow', machine });
    const run = await worldOf([flow]).boot().start(flow, { runId: 'r' });
    const failed: unknown[] = [];
    for await (const event of run.events())
      if (event.type === 'workflow.action-failed') failed.push([event.name, event.error.message]);
    expect((await run.result).status).toBe('ok');
    expect([ran, failed]).toEqual([['good'], [['bad', 'no']]]);
  });

  test('has an action whose promise rejects, soon or after its end, continues and ends no process (workflow 5)', async () => {
    const late = Promise.withResolvers<void>();
    const machine = setup({
      actions: { soon: () => Promise.reject(new Error('soon')), late: () => late.promise },
      actors: { x: step(noted('x', 'read', () => 1).tool) },
    }).createMachine({
      initial: 'a',
      states: { a: { entry: ['soon', 'late'], invoke: { src: 'x', input: {}, onDone: 'b' } }, b: { type: 'final' } },
    });
    const flow = defineWorkflow({ id: 'flow', machine });
    const run = await worldOf([flow]).boot().start(flow, { runId: 'r' });
    const failed: unknown[] = [];
    for await (const event of run.events())
      if (event.type === 'workflow.action-failed') failed.push([event.name, event.error.message]);
    expect((await run.result).status).toBe('ok');
    late.reject(new Error('late'));
    await settle();
    expect(failed).toEqual([['soon', 'soon']]);
  });

  test.each([
    [
      'a promise',
      { actors: { x: fromPromise(async () => 1) } },
      { invoke: { src: 'x' } },
      /the actor x was not made by step/,
    ],
    ['inline logic', {}, { invoke: { src: fromPromise(async () => 1) } }, /state a invokes inline logic/],
    ['a source that no one gave', {}, { invoke: { src: 'y' } }, /state a invokes "y"/],
    [
      'a system id',
      { actors: { x: step(noted('x', 'read', () => 1).tool) } },
      { invoke: { src: 'x', systemId: 's' } },
      /systemId/,
    ],
  ])('invokes %s is refused where it is defined (workflow 13)', (_, parts, a, why) => {
    const machine = setup(parts as never).createMachine({ initial: 'a', states: { a } } as never);
    expect(() => flowOf(machine)).toThrow(why);
  });

  test('is started without an executor that knows it continues where it was by recover, of the executor that does (workflow 1)', async () => {
    const flow = defineWorkflow({
      id: 'flow',
      machine: setup({}).createMachine({
        initial: 'a',
        states: { a: { after: { [HOUR]: 'b' } }, b: { type: 'final' } },
      }),
    });
    const { boot, pass, store } = worldOf([flow]);
    const first = boot();
    await first.start(flow, { runId: 'r' });
    await pass(2_000);
    await first.shutdown();
    const other = worldOf([]);
    expect(other.boot).toBeDefined();
    await boot().recover();
    await pass(HOUR);
    await pass(4_000);
    expect(await store.outcomes.find('r')).toMatchObject({ status: 'ok' });
  });
});

test('a machine with many calls keeps what XState asks of them from one transition to the next, and an ended one stays a name (workflow 29)', async () => {
  const look = noted('look', 'read', () => 'seen');
  const seen: unknown[] = [];
  const machine = setup({ actors: { look: step(look.tool) } }).createMachine({
    context: { done: 0 },
    initial: 'a',
    states: {
      a: {
        entry: ['x', 'y', 'z'].map((id) => spawnChild('look', { id, input: {} })),
        on: {
          'xstate.done.actor.*': {
            actions: assign(({ context, self }) => {
              seen.push(Object.values(self.getSnapshot().children));
              return { done: context.done + 1 };
            }),
          },
        },
        always: { guard: ({ context }) => context.done === 3, target: 'b' },
      },
      b: { type: 'final' },
    },
  });
  const flow = defineWorkflow({ id: 'flow', machine });
  expect(await worldOf([flow]).boot().run(flow, { runId: 'r' })).toMatchObject({ status: 'ok' });
  const [first, ...later] = seen as [{ id: string }[]];
  expect(first.map(({ id }) => id)).toEqual(['x', 'y', 'z']);
  expect(later).toHaveLength(2);
  // Made again they would be other objects: with n calls that is the square of n.
  for (const actors of later as { id: string }[][])
    for (const [i, actor] of actors.entries()) expect(actor).toBe(first[i]);
});
