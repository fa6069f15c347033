import { createAudit, createExecutor, defineAgent, defineTool, defineWorkflow, step, type Tool } from 'pawl';
import { reply, scriptedModel, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { type AnyStateMachine, assign, enqueueActions, fromPromise, raise, setup, spawnChild } from 'xstate';
import { until } from '../fixtures/host.ts';
import { notingBudget } from '../fixtures/noting-ports.ts';
import { noted, worldOf } from './world.ts';

const HOUR = 3_600_000;

/** A workflow that looks up, waits for `go`, looks up again, and is done. */
function waitingFlow() {
  const look = noted('look', 'read', () => 7);
  const machine = setup({ actors: { look: step(look.tool) } }).createMachine({
    initial: 'first',
    states: {
      first: { invoke: { src: 'look', input: {}, onDone: 'waiting' } },
      waiting: { on: { go: 'second' } },
      second: { invoke: { src: 'look', input: {}, onDone: 'done' } },
      done: { type: 'final' },
    },
  });
  return { look, flow: defineWorkflow({ id: 'flow', machine }) };
}

describe('a workflow is served as the run of an agent is', () => {
  test('it is listed and found by its labels and caller, and erased; its audit has its calls (workflow 1)', async () => {
    const { flow } = waitingFlow();
    const { boot, pass, store } = worldOf([flow], { audit: true, retention: { records: '1d' } });
    const executor = boot();
    const request = { runId: 'r', input: undefined, callerId: 'ada', labels: { order: '17' } };
    const run = await executor.start(flow, request);
    await pass(500);
    expect(await executor.list({ labels: { order: '17' } })).toMatchObject([{ runId: 'r', kind: 'workflow' }]);
    expect(await executor.list({ labels: { order: '18' } })).toEqual([]);
    await executor.control('r').send({ type: 'go' });
    await pass(4_000);
    expect((await run.result).status).toBe('ok');
    expect(await executor.history({ callerId: 'ada', labels: { order: '17' } })).toMatchObject([
      { runId: 'r', status: 'ok' },
    ]);
    const audited = await createAudit({ store }).run('r');
    expect(audited).toMatchObject({ status: 'ok', callerId: 'ada', agentId: 'flow' });
    await executor.erase('r');
    expect(await store.load('r', { ended: true })).toBeNull();
    expect(await store.outcomes.find('r')).toBeNull();
  });

  test('it is parked, continued by no process, and unparked (workflow 1)', async () => {
    const { flow, look } = waitingFlow();
    const { boot, pass, store } = worldOf([flow]);
    const first = boot();
    await first.start(flow, { runId: 'r', input: undefined });
    await pass(4_000);
    await first.park('r', 'a look first');
    const second = boot();
    await second.recover();
    await second.control('r').send({ type: 'go' });
    await pass(8_000);
    expect((await store.load('r'))?.parked).toMatchObject({ reason: 'a look first' });
    expect(look.calls.length).toBe(1);
    await second.unpark('r');
    await second.recover();
    await pass(8_000);
    expect(await store.outcomes.find('r')).toMatchObject({ status: 'ok' });
    expect(look.calls.length).toBe(2);
  });

  test('a budget is asked before it, for its caller, and holds the model calls of its agents (workflow 1)', async () => {
    const clerk = defineAgent({ id: 'clerk', instructions: 'Judge.', model: scriptedModel([reply('yes')]) });
    const machine = setup({ actors: { clerk: step(clerk) } }).createMachine({
      initial: 'judging',
      states: {
        judging: { invoke: { src: 'clerk', input: { prompt: 'Well?' }, onDone: 'done' } },
        done: { type: 'final' },
      },
    });
    const flow = defineWorkflow({ id: 'judged', machine });
    const budget = notingBudget();
    const { boot, pass } = worldOf([flow], { agents: [clerk], ports: { budget } });
    const run = await boot().start(flow, { runId: 'r', input: undefined, callerId: 'ada' });
    await pass(4_000);
    expect(await run.result).toMatchObject({ status: 'ok' });
    expect(budget.log.map((line) => line.split(' ')[0])).toEqual(['check', 'check', 'reserve', 'commit']);
    expect(budget.log.slice(0, 2)).toEqual(['check ada', 'check ada']);
    expect(budget.open.size).toBe(0);
  });

  test('a budget that refuses it begins nothing (workflow 1)', async () => {
    const { flow, look } = waitingFlow();
    const { boot, store } = worldOf([flow], { ports: { budget: notingBudget({ refuseCheck: true }) } });
    const run = await boot().start(flow, { runId: 'r', input: undefined, callerId: 'ada' });
    expect(await run.result).toMatchObject({ status: 'error', error: { code: 'BUDGET_EXCEEDED' } });
    expect([look.calls.length, await store.load('r')]).toEqual([0, null]);
  });

  test('it is driven in slices, and a cancel from any process ends it (workflow 1)', async () => {
    const { flow } = waitingFlow();
    const { boot, pass, store } = worldOf([flow]);
    const first = boot();
    await first.start(flow, { runId: 'r', input: undefined });
    await first.start(flow, { runId: 'other', input: undefined });
    await pass(4_000);
    await first.shutdown();
    const second = boot();
    await second.control('r').send({ type: 'go' });
    const driven = second.drive('r', { budgetMs: 50_000 });
    await pass(4_000);
    expect((await driven).state).toBe('ended');
    expect(await store.outcomes.find('r')).toMatchObject({ status: 'ok' });
    expect(await second.control('other').cancel('enough')).toBe('ended');
    expect(await store.outcomes.find('other')).toMatchObject({ status: 'cancelled', error: { message: 'enough' } });
  });
});

describe('the results of calls', () => {
  test('are taken by a wildcard too, which maps a call over a list (workflow 8)', async () => {
    const work = noted('work', 'read', ({ n }) => Number(n) * 10);
    type Context = { readonly got: readonly number[] };
    const machine = setup({
      types: { context: {} as Context, output: {} as readonly number[] },
      actors: { work: step(work.tool) },
    }).createMachine({
      context: { got: [] },
      initial: 'mapping',
      states: {
        mapping: {
          entry: enqueueActions(({ enqueue }) => {
            for (const n of [1, 2, 3]) enqueue.spawnChild('work', { id: `work-${n}`, input: { n } });
          }),
          on: {
            'xstate.done.actor.*': {
              actions: assign({
                got: ({ context, event }) => [...context.got, (event as unknown as { output: number }).output],
              }),
            },
          } as never,
          always: { guard: ({ context }) => context.got.length === 3, target: 'done' },
        },
        done: { type: 'final' },
      },
      output: ({ context }) => context.got,
    });
    const flow = defineWorkflow({ id: 'flow', machine: machine as unknown as AnyStateMachine });
    const { data } = await worldOf([flow])
      .boot()
      .run(flow, { runId: 'r', input: undefined as never });
    expect((data as number[]).toSorted()).toEqual([10, 20, 30]);
  });

  test('that come after their state was left are said to be late (workflow 9)', async () => {
    const slow = Promise.withResolvers<string>();
    const tool = defineTool({
      name: 'slow',
      description: '',
      input: { type: 'object' },
      effect: 'once',
      execute: () => slow.promise,
    });
    const machine = setup({ actors: { slow: step(tool as Tool) as never } }).createMachine({
      initial: 'a',
      states: {
        a: { invoke: { src: 'slow', input: {} }, after: { 500: 'b' } } as never,
        b: { after: { 5000: 'c' } },
        c: { type: 'final' },
      },
    });
    const flow = defineWorkflow({ id: 'flow', machine: machine as unknown as AnyStateMachine });
    const { boot, pass } = worldOf([flow], { defaults: { waitLingerMs: 1e6 } });
    const run = await boot().start(flow, { runId: 'r', input: undefined as never });
    const late: unknown[] = [];
    const read = (async () => {
      for await (const event of run.events()) if (event.type === 'tool.done') late.push([event.name, event.isLate]);
    })();
    await pass(2_000);
    slow.resolve('too late');
    await pass(6_000);
    expect((await run.result).status).toBe('ok');
    await read;
    expect(late.at(-1)).toEqual(['slow', true]);
  });

  test('of a once call whose outcome no process knows park the run where the executor says so, until a person unparks it (workflow 7)', async () => {
    const did: unknown[] = [];
    const pay = noted('pay', 'once', (input) => {
      did.push(input);
      return new Promise<never>(() => {});
    });
    const machine = setup({ actors: { pay: step(pay.tool) } }).createMachine({
      context: {},
      initial: 'paying',
      states: {
        paying: { invoke: { src: 'pay', input: {}, onDone: 'done', onError: { target: 'unclear' } } },
        unclear: { type: 'final' },
        done: { type: 'final' },
      },
    });
    const flow = defineWorkflow({ id: 'flow', machine });
    const world = worldOf([flow], { onUnknownOutcome: 'park' });
    const { store } = world;
    const lost = createExecutor({ store, workflows: [flow], clock: testClock(1_000_000), onUnknownOutcome: 'park' });
    void lost.start(flow, { runId: 'r', input: undefined });
    await until(() => did.length > 0);
    expect(did.length).toBe(1);
    // The clock of the first process stands still: it is gone, as far as the next one can see.
    await world.clock.advance(120_000);
    const next = world.boot();
    await next.recover();
    await world.pass(8_000);
    expect((await world.store.load('r'))?.parked).toMatchObject({ code: expect.any(String) });
    expect(did.length).toBe(1);
  });
});

describe('what shows only when a machine runs', () => {
  const look = noted('look', 'read', () => 1);
  test.each([
    [
      'inline logic that a function enqueues',
      enqueueActions(({ enqueue }) => void enqueue.spawnChild(fromPromise(async () => 1) as never, { id: 'x' })),
      /the actor x is inline logic/,
    ],
    ['a computed id that is empty', spawnChild('look' as never, { id: () => '' } as never), /needs an id/],
  ])('fails the run with WORKFLOW_ERROR before anything begins: %s (workflow 13)', async (_, action, says) => {
    const machine = setup({ actors: { look: step(look.tool) } }).createMachine({
      initial: 'a',
      states: { a: { entry: action as never, invoke: { src: 'look', input: {} } } },
    });
    const flow = defineWorkflow({ id: 'flow', machine: machine as unknown as AnyStateMachine });
    const { error } = await worldOf([flow])
      .boot()
      .run(flow, { runId: 'r', input: undefined as never });
    expect(error).toMatchObject({ code: 'WORKFLOW_ERROR', message: expect.stringMatching(says) });
    expect(look.calls).toEqual([]);
  });

  test.each([
    ['an input', { input: { a: { xstate$$type: 1, id: 'x' } } }],
    ['an event', { event: { type: 'go', a: { xstate$$type: 1, id: 'x' } } }],
  ])(
    'the key by which XState names an actor is refused in %s (workflow 16)',
    async (_, given: { input?: object; event?: object }) => {
      const machine = setup({
        types: { input: {} as unknown, context: {} as unknown as Record<string, unknown> },
      }).createMachine({
        context: ({ input }) => ({ input }),
        initial: 'a',
        states: { a: { on: { go: { actions: assign({ got: ({ event }: { event: unknown }) => event }) } } as never } },
      });
      const flow = defineWorkflow({ id: 'flow', machine: machine as unknown as AnyStateMachine });
      const { boot, pass } = worldOf([flow]);
      const executor = boot();
      const run = await executor.start(flow, { runId: 'r', input: (given.input ?? {}) as never });
      await pass(500);
      const sent =
        given.event &&
        (await executor
          .control('r')
          .send(given.event as { type: string })
          .catch((error: { code: string }) => error.code));
      if (sent === 'EVENT_INVALID') return void executor.shutdown();
      await pass(4_000);
      expect((await run.result).error?.code).toBe('WORKFLOW_STATE');
    },
  );
});

test('a timer whose transition is gone after a deployment fires into nothing, and the run continues (workflow 19)', async () => {
  const flowOf = (a: object) =>
    defineWorkflow({
      id: 'flow',
      machine: setup({}).createMachine({
        id: 'flow',
        initial: 'a',
        states: { a, b: { type: 'final' }, c: { type: 'final' } },
      } as never) as unknown as AnyStateMachine,
    });
  const before = flowOf({ entry: raise({ type: 'remind' }, { id: 'T', delay: HOUR }), on: { remind: 'b', go: 'c' } });
  const after = flowOf({ on: { go: 'c' } });
  const { boot, pass, store } = worldOf([before]);
  const first = boot();
  await first.start(before, { runId: 'r', input: undefined as never });
  await pass(4_000);
  await first.shutdown();
  const second = boot(after);
  await second.recover();
  await pass(2 * HOUR);
  await pass(4_000);
  expect((await store.load('r'))?.parked).toBeUndefined();
  await second.control('r').send({ type: 'go' });
  await pass(4_000);
  expect(await store.outcomes.find('r')).toMatchObject({ status: 'ok' });
});
