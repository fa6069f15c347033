import { ask, defineAgent, defineWorkflow, step } from 'pawl';
import { describe, expect, test } from 'vitest';
import { type AnyActorRef, createActor, fromPromise, SimulatedClock, sendParent, setup, waitFor } from 'xstate';
import { refundOf } from './refund.ts';
import { worldOf } from './world.ts';

/** A host's machine that has one run of a workflow as its child. */
function hostOf(logic: unknown, input: object) {
  return setup({ actors: { refund: logic as never } }).createMachine({
    initial: 'refunding',
    states: {
      refunding: { invoke: { id: 'refund', src: 'refund', input: input as never, onDone: 'done' } },
      done: { type: 'final', output: ({ event }: { event: unknown }) => (event as { output: unknown }).output },
    },
    output: ({ event }: { event: unknown }) => (event as { output: unknown }).output,
  });
}

describe('a workflow in a host machine', () => {
  test('is a child whose output is its result, with the output of its machine as data (workflow 1)', async () => {
    const paid: { cents: number; key: string }[] = [];
    const refund = refundOf({ paid });
    const { boot, settle } = worldOf([refund]);
    const executor = boot();
    const host = createActor(hostOf(executor.logic(refund), { runId: 'r', input: { order: 'small' } })).start();
    await settle();
    await executor.signal('settled', true, { key: 'small', id: 's' });
    const { output } = await waitFor(host, ({ status }) => status === 'done');
    expect(output).toMatchObject({ runId: 'r', status: 'ok', data: { receipt: 'r-500' } });
    expect(output).not.toHaveProperty('messages');
  });

  test('that this process leaves stays active there, and a restored host continues it (workflow 1)', async () => {
    const refund = refundOf({ paid: [] });
    const { boot, settle, pass } = worldOf([refund]);
    const first = boot();
    const host = createActor(hostOf(first.logic(refund), { runId: 'r', input: { order: 'large' } })).start();
    await settle();
    expect(await first.waiting({ kind: 'question' })).toHaveLength(1);
    await first.shutdown();
    await settle();
    const child = host.getSnapshot().children.refund as AnyActorRef;
    expect(host.getSnapshot().status).toBe('active');
    expect((child.getSnapshot() as { value: unknown }).value).toMatchObject({ left: 'interrupted' });
    const persisted = JSON.parse(JSON.stringify(host.getPersistedSnapshot()));
    host.stop();
    const second = boot();
    const restored = createActor(hostOf(second.logic(refund), {}), { snapshot: persisted }).start();
    await settle();
    const [wait] = await second.waiting({ kind: 'question' });
    await second.control('r').answer(wait?.id ?? '', 'no');
    await pass(2_000);
    const { output } = await waitFor(restored, ({ status }) => status === 'done');
    expect(output).toMatchObject({ runId: 'r', status: 'ok', data: { receipt: '' } });
    await second.shutdown();
  });

  test('has no parent that its sendParent could reach: it fails with WORKFLOW_ERROR at its start (workflow 5)', async () => {
    const flow = defineWorkflow({
      id: 'flow',
      machine: setup({}).createMachine({
        initial: 'a',
        states: { a: { entry: sendParent({ type: 'x' }), type: 'final' } },
      }),
    });
    const { boot } = worldOf([flow]);
    const host = createActor(hostOf(boot().logic(flow), { runId: 'r' })).start();
    const { output } = await waitFor(host, ({ status }) => status === 'done');
    expect(output).toMatchObject({ status: 'error', error: { code: 'WORKFLOW_ERROR' } });
  });

  test('types its input and its output', () => {
    const refund = refundOf({ paid: [] });
    const executor = worldOf([refund]).boot();
    const machine = setup({ actors: { refund: executor.logic(refund) } });
    machine.createMachine({
      invoke: {
        src: 'refund',
        input: { runId: 'r', input: { order: 'small' } },
        onDone: { actions: ({ event }) => event.output.data?.receipt satisfies string | undefined },
      },
    });
    // @ts-expect-error the input of the workflow has an order
    machine.createMachine({ invoke: { src: 'refund', input: { runId: 'r', input: { order: 7 } } } });
    expect(executor.logic(refund)).toBeDefined();
  });
});

describe('the machine of a workflow in a plain createActor', () => {
  test('runs its tools, its timers on a clock of its own, and what the test provides in place of agents and questions', async () => {
    const paid: { cents: number; key: string }[] = [];
    const { machine } = refundOf({ paid });
    const clock = new SimulatedClock();
    const provided = machine.provide({
      actors: {
        manager: fromPromise(async () => 'yes') as never,
        settled: fromPromise(() => new Promise(() => {})) as never,
      },
    });
    const actor = createActor(provided, { input: { order: 'large' }, clock }).start();
    await waitFor(actor, ({ value }) => value === 'settling');
    clock.increment(86_400_000);
    expect(actor.getSnapshot().output).toEqual({ receipt: 'r-70000', why: '' });
    expect(paid).toMatchObject([{ cents: 70_000 }]);
  });

  test.each([
    [
      'an agent',
      step(defineAgent({ id: 'clerk', instructions: '' })),
      'agent clerk needs a durable run',
      'executor.run(agent, input)',
    ],
    [
      'a workflow',
      step(refundOf({ paid: [] })),
      'workflow refund needs a durable run',
      'executor.run(workflow, { input })',
    ],
    ['a question', ask({ question: 'Who?' }), 'a question needs a durable run', 'the answer'],
  ])('refuses %s, and says what to provide', async (_, actor, what, instead) => {
    const machine = setup({ actors: { x: actor as never } }).createMachine({
      initial: 'a',
      states: { a: { invoke: { src: 'x', input: { prompt: '' } as never, onError: 'b' } }, b: { type: 'final' } },
    });
    const errors: unknown[] = [];
    const host = createActor(machine, {
      inspect: ({ type, ...more }) =>
        void (type === '@xstate.event' && errors.push((more as unknown as { event: { error?: unknown } }).event.error)),
    }).start();
    await waitFor(host, ({ status }) => status === 'done');
    const [error] = errors.filter(Boolean) as Error[];
    expect(error).toMatchObject({ code: 'UNSUPPORTED', message: expect.stringContaining(what) });
    expect(error?.message).toContain('machine.provide');
    expect(error?.message).toContain(instead);
  });
});
