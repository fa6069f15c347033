import { ask, createExecutor, defineTool, defineWorkflow, memoryStore, step } from 'pawl';
import { describe, expect, test } from 'vitest';
import { assign, setup } from 'xstate';
import { z } from 'zod';
import { until } from '../fixtures/host.ts';
import { worldOf } from './world.ts';

const machine = setup({
  types: {
    input: {} as { order: string; cents: number },
    context: {} as { order: string; cents: number; by: string; times: number },
    events: {} as { type: 'cancel'; by: string; times: number } | { type: 'note' },
    output: {} as { order: string; cents: number; by: string; times: number },
  },
  actors: { manager: ask({ question: 'Send it?' }) },
}).createMachine({
  context: ({ input }) => ({ ...input, by: '', times: 0 }),
  initial: 'asking',
  states: {
    asking: {
      invoke: { src: 'manager', onDone: 'done' },
      on: {
        cancel: { target: 'done', actions: assign({ by: ({ event }) => event.by, times: ({ event }) => event.times }) },
        note: {},
      },
    },
    done: { type: 'final' },
  },
  output: ({ context }) => context,
});

const order = defineWorkflow({
  id: 'order',
  machine,
  input: z.object({ order: z.string(), cents: z.number().default(100) }),
  events: { cancel: z.object({ by: z.string(), times: z.coerce.number().default(1) }) },
});

const cancel = { type: 'cancel', by: 'ada' } as const;

describe('the input of a workflow with a schema', () => {
  test('is checked at its start, which fails with INPUT_INVALID and the path, and stores nothing (workflow 18)', async () => {
    const { boot, store } = worldOf([order]);
    const run = await boot().start(order, { runId: 'r', input: { order: 7 } as never });
    expect(run.accepted).toBe('refused');
    expect((await run.result).error).toMatchObject({
      code: 'INPUT_INVALID',
      message: expect.stringContaining('order'),
    });
    expect(await store.load('r')).toBeNull();
  });

  test('reaches the machine as the schema makes it, and the same start finds its run (workflow 18)', async () => {
    const { boot } = worldOf([order]);
    const executor = boot();
    const run = await executor.start(order, { runId: 'r', input: { order: '7' } });
    expect((await executor.start(order, { runId: 'r', input: { order: '7' } })).accepted).toBe('joined');
    await executor.control(order, 'r').send(cancel);
    expect((await run.result).data).toEqual({ order: '7', cents: 100, by: 'ada', times: 1 });
  });

  test('that does not fit is the error of its actor, where another workflow calls it (workflow 10, 18)', async () => {
    const outer = defineWorkflow({
      id: 'outer',
      machine: setup({
        types: { context: {} as { code: string }, output: {} as string },
        actors: { order: step(order) },
      }).createMachine({
        context: { code: '' },
        initial: 'a',
        states: {
          a: {
            invoke: {
              src: 'order',
              input: { cents: 5 } as never,
              onError: {
                target: 'b',
                actions: assign({ code: ({ event }) => (event.error as { code: string }).code }),
              },
            },
          },
          b: { type: 'final' },
        },
        output: ({ context }) => context.code,
      }),
    });
    expect((await worldOf([outer, order]).boot().run(outer, { runId: 'r' })).data).toBe('INPUT_INVALID');
  });
});

/** A run that waits for its manager. */
async function standing(store = memoryStore()) {
  const executor = createExecutor({ store, workflows: [order], defaults: { waitLingerMs: 1_000_000 } });
  const run = await executor.start(order, { runId: 'r', input: { order: '7' } });
  await until(async () => (await executor.waiting({ kind: 'question' })).length === 1);
  return { executor, run, store };
}

const unfit = { code: 'EVENT_INVALID', message: expect.stringContaining('by: ') };

describe('an event with a schema', () => {
  test('that does not fit is refused where it is sent, with the path, and one without a schema is not (workflow 18)', async () => {
    const { executor } = await standing();
    const control = executor.control('r');
    await expect(control.send({ type: 'cancel', by: 7 })).rejects.toMatchObject(unfit);
    expect(await control.send({ type: 'note', any: [1] })).toBe('recorded');
    expect((await executor.explain('r'))?.workflow?.state).toBe('asking');
    await executor.shutdown();
  });

  test('reaches the machine as the schema makes it, once (workflow 18)', async () => {
    const { executor, run } = await standing();
    await executor.control(order, 'r').send({ ...cancel, times: '3' });
    expect((await run.result).data).toMatchObject({ times: 3 });
  });

  test('is checked for a stored run too, by an executor that knows the workflow, or is given it (workflow 18)', async () => {
    const { executor, store } = await standing();
    await executor.shutdown();
    const known = createExecutor({ store, workflows: [order] });
    await expect(known.control('r').send({ type: 'cancel', by: 7 })).rejects.toMatchObject(unfit);
    const stranger = createExecutor({ store });
    await expect(stranger.control(order, 'r').send({ type: 'cancel', by: 7 as never })).rejects.toMatchObject(unfit);
    expect(await store.commands.inbox({ runId: 'r' })).toEqual([]);
    expect(await stranger.control(order, 'r').send({ ...cancel, times: '3' })).toBe('sent');
    await known.recover();
    await until(async () => (await store.outcomes.find('r')) !== null);
    expect(await store.outcomes.find('r')).toMatchObject({ data: { by: 'ada', times: 3 } });
    await known.shutdown();
  });

  test('whose sender does not know the workflow is dropped where it arrives, and the events of the run say why (workflow 18)', async () => {
    const { executor, store } = await standing();
    await executor.shutdown();
    const stranger = createExecutor({ store });
    expect(await stranger.control('r').send({ type: 'cancel', by: 7 })).toBe('sent');
    const ignored: unknown[] = [];
    const known = createExecutor({
      store,
      workflows: [order],
      defaults: { waitLingerMs: 1_000_000 },
      observers: [{ onEvent: (event) => void (event.type === 'workflow.ignored' && ignored.push(event)) }],
    });
    await known.recover();
    await until(() => ignored.length === 1);
    expect(ignored).toMatchObject([{ event: 'cancel', error: unfit }]);
    expect((await known.explain('r'))?.workflow?.state).toBe('asking');
    await known.shutdown();
  });

  test('is not sent to a run of another workflow than the control names', async () => {
    const { executor } = await standing();
    const other = defineWorkflow({ id: 'other', machine });
    await expect(executor.control(other, 'r').send({ ...cancel, times: 1 })).rejects.toMatchObject({
      code: 'UNSUPPORTED',
      message: 'run r is of order, and not of workflow other',
    });
    expect(() => executor.control({} as never, 'r')).toThrow('control needs a workflow');
    await executor.shutdown();
  });

  test('shows its JSON Schema in executor.explain, for forms (workflow 23)', async () => {
    const { executor } = await standing();
    const { eventSchemas } = (await executor.explain('r'))?.workflow ?? {};
    expect(eventSchemas).toMatchObject({
      cancel: { type: 'object', required: ['by'], properties: { by: { type: 'string' } } },
    });
    await executor.shutdown();
  });
});

describe('defineWorkflow', () => {
  test.each([
    [{ events: { cancle: z.object({}) } }, 'events has a schema for "cancle", and no state of the machine takes it'],
    [{ events: { cancel: 7 } }, 'workflow order: events.cancel'],
    [{ events: 7 }, 'events must be an object of schemas by event type'],
    [{ input: 7 }, 'workflow order: input'],
  ])('refuses %j as its schemas (workflow 18)', (schemas, why) => {
    expect(() => defineWorkflow({ id: 'order', machine, ...(schemas as object) })).toThrow(why);
  });

  test('types the input of a start and the events of a control by its schemas', async () => {
    const { executor, run } = await standing();
    const control = executor.control(order, 'r');
    const untyped = async () => {
      // @ts-expect-error the schema wants a text
      await control.send({ type: 'cancel', by: 7 });
      // @ts-expect-error no state takes it
      await control.send({ type: 'cancle' });
      // @ts-expect-error the order is missing
      await executor.start(order, { input: { cents: 5 } });
      // @ts-expect-error the input is missing
      await executor.start(order, {});
      // @ts-expect-error also of a workflow whose machine alone says that it needs one
      await executor.run(defineWorkflow({ id: 'unchecked', machine }), { runId: 'r' });
    };
    expect(untyped).toBeTypeOf('function');
    await control.send({ type: 'note' });
    await control.send({ type: 'cancel', by: 'ada' });
    const { data } = await run.result;
    expect(data?.times).toBe(1);
  });

  test('types what an invoke gives to a tool as its schema takes it: before it converts, without its defaults', async () => {
    const input = z.object({ when: z.string().transform(({ length }) => length), times: z.number().default(2) });
    const measure = defineTool({
      ...{ name: 'measure', description: '', effect: 'read', input },
      execute: async ({ when, times }) => when * times,
    });
    const actors = { measure: step(measure) };
    const types = { context: {} as { size: number }, output: {} as { size: number } };
    const machine = setup({ types, actors }).createMachine({
      context: { size: 0 },
      initial: 'measuring',
      states: {
        measuring: {
          invoke: {
            src: 'measure',
            input: { when: 'now' },
            onDone: { target: 'done', actions: assign({ size: ({ event }) => event.output }) },
          },
        },
        done: { type: 'final' },
      },
      output: ({ context }) => context,
    });
    const flow = defineWorkflow({ id: 'flow', machine });
    expect(await worldOf([flow]).boot().run(flow, {})).toMatchObject({ status: 'ok', data: { size: 6 } });
    const wrong = () =>
      // @ts-expect-error the schema takes a text
      setup({ actors }).createMachine({ invoke: { src: 'measure', input: { when: 3 } } });
    expect(wrong).toBeTypeOf('function');
  });
});
