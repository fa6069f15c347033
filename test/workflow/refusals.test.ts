import { type Agent, createExecutor, defineAgent, defineWorkflow, memoryStore, step } from 'pawl';
import { freshProgress } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import {
  type AnyStateMachine,
  and,
  assign,
  cancel,
  createActor,
  createMachine,
  emit,
  enqueueActions,
  fromPromise,
  log,
  not,
  or,
  raise,
  SimulatedClock,
  setup,
  spawnChild,
  stateIn,
} from 'xstate';
import { withEntered } from '../../src/run/workflow/advanced.ts';
import { advance } from '../../src/workflow/advance.ts';
import { type Program, programOf } from '../../src/workflow/program.ts';
import { agentOfWorkflow } from '../../src/workflow/workflow.ts';
import { noted, worldOf } from './world.ts';

const look = noted('look', 'read', () => 1);
const actors = { look: step(look.tool) };
interface Spawning {
  spawn(src: string, options: object): unknown;
}

const flowOf = (machine: unknown, id = 'flow') => defineWorkflow({ id, machine: machine as AnyStateMachine });

async function endOf(machine: unknown, input?: unknown) {
  const flow = flowOf(machine);
  const world = worldOf([flow]);
  const run = await world.boot().start(flow, { runId: 'r', input: input as never });
  await world.settle();
  await world.pass(4_000);
  return run.result;
}

const within = (a: object, more: object = {}) =>
  setup({ actors }).createMachine({
    id: 'm',
    context: {},
    initial: 'a',
    states: { a, b: { type: 'final' } },
    ...more,
  } as never);

describe('defineWorkflow', () => {
  test.each([
    ['onSnapshot', { invoke: { src: 'look', onSnapshot: 'b' } }, /onSnapshot is not possible/],
    ['a machine in a machine', { invoke: { src: 'inner' } }, /defineWorkflow|step/],
  ])('refuses %s, with the path of its state (workflow 13)', (_, a, why) => {
    const inner = setup({}).createMachine({});
    const all = a.invoke.src === 'inner' ? { ...actors, inner } : actors;
    expect(() =>
      flowOf(setup({ actors: all } as never).createMachine({ initial: 'a', states: { a, b: {} } } as never)),
    ).toThrow(why);
  });

  test.each([
    ['without an id', spawnChild('look' as never), /state a: spawnChild needs an id in a workflow/],
    ['with a system id', spawnChild('look' as never, { id: 'x', systemId: 's' } as never), /state a: systemId/],
    ['with syncSnapshot', spawnChild('look' as never, { id: 'x', syncSnapshot: true } as never), /syncSnapshot is not/],
    ['of a source that is not there', spawnChild('gone' as never, { id: 'x' } as never), /state a spawns "gone"/],
    ['of inline logic', spawnChild(fromPromise(async () => 1) as never, { id: 'x' } as never), /spawns inline logic/],
  ])('refuses spawnChild %s, with the path of its state (workflow 13)', (_, action, why) => {
    expect(() => flowOf(within({ entry: action }))).toThrow(why);
    expect(() => flowOf(within({ on: { go: { actions: action } } }))).toThrow(why);
    const named = setup({ actors, actions: { go: action } } as never).createMachine({
      initial: 'a',
      states: { a: {} },
    });
    expect(() => flowOf(named)).toThrow(TypeError);
  });

  const parts = {
    delays: { patience: 1_000, later: () => 1 },
    guards: { isBig: () => true },
    actions: { note: () => {} },
  };
  const knowing = (a: object, more: object = {}) =>
    setup({ actors, ...parts } as never).createMachine({
      initial: 'a',
      context: {},
      states: { a: { initial: 'in', states: { in: a } }, b: { type: 'final' } },
      ...more,
    } as never);

  test.each([
    [
      'of a timer',
      { after: { patiense: '#(machine).b' } },
      'state a.in names the delay "patiense": declare it in setup({ delays }), which has patience, later',
    ],
    ['of an event', { entry: raise({ type: 'x' }, { delay: 'patiense' as never }) }, 'the delay "patiense"'],
    ['below 0', { after: { '-5': '#(machine).b' } }, 'state a.in: a delay is a finite number of ms, 0 or more'],
    ['without an end', { entry: raise({ type: 'x' }, { delay: Number.POSITIVE_INFINITY }) }, 'the number Infinity'],
  ])('refuses a delay %s that cannot be, with the path of its state (workflow 6, 13)', (_, a, why) => {
    expect(() => flowOf(knowing(a))).toThrow(TypeError);
    expect(() => flowOf(knowing(a))).toThrow(why);
  });

  test('refuses a text as the value of a delay (workflow 6)', () => {
    const machine = setup({ delays: { patience: '3 days' as never } }).createMachine({ after: { patience: {} } });
    expect(() => flowOf(machine)).toThrow('the delay "patience" is a finite number of ms, 0 or more, not "3 days"');
  });

  test.each([
    ['a guard', { always: { guard: 'isBigg', target: '#(machine).b' } }, 'state a.in names the guard "isBigg"'],
    [
      'a guard in other guards',
      { on: { go: { guard: and([or(['isBig', not({ type: 'isSmall' })])]), target: '#(machine).b' } } },
      'the guard "isSmall": declare it in setup({ guards }), which has isBig',
    ],
    ['an action', { entry: 'count' }, 'state a.in names the action "count": declare it in setup({ actions })'],
    ['an action with params', { on: { go: { actions: { type: 'count', params: {} } } } }, 'the action "count"'],
    ['an action of no event', { always: { target: '#(machine).b', actions: ['note', 'count'] } }, 'the action "count"'],
    [
      'an action of its beginning',
      { initial: { target: 'x', actions: 'count' }, states: { x: {} } },
      'state a.in names the action "count"',
    ],
    [
      'a state to begin in',
      { initial: 'y', states: { x: {} } },
      'state a.in begins in "y", which is no state of it: x',
    ],
  ])('refuses %s that the machine does not have, with the path of its state (workflow 13)', (_, a, why) => {
    expect(() => flowOf(knowing(a))).toThrow(TypeError);
    expect(() => flowOf(knowing(a))).toThrow(why);
  });

  test('takes all that XState finds: built-in guards, functions, params, and what provide adds (workflow 13)', () => {
    const isNow = () => true;
    const taken = knowing({
      entry: ['note', { type: 'note', params: ({ context }: { context: object }) => context }, () => {}, log('x')],
      always: { guard: and([not(stateIn('#(machine).b')), or([{ type: 'isBig', params: { n: 1 } }, isNow])]) },
      after: { 100: '#(machine).b', later: '#(machine).b' },
      on: { go: { actions: [cancel('T'), emit({ type: 'x' }), raise({ type: 'y' })] } },
    });
    expect(() => flowOf(taken)).not.toThrow();
    const bare = createMachine({
      initial: 'a',
      states: { a: { entry: 'note', always: { guard: 'isBig', target: 'b' }, after: { patience: 'b' } }, b: {} },
    });
    expect(() => flowOf(bare)).toThrow('none');
    expect(() => flowOf(bare.provide(parts as never))).not.toThrow();
  });

  test('refuses a context that no record can hold, with its path (workflow 16)', () => {
    const holding = (context: object) => () => flowOf(knowing({}, { context }));
    expect(holding({ a: { f: () => 1 } })).toThrow(TypeError);
    expect(holding({ a: { f: () => 1 } })).toThrow('context.a.f');
    expect(holding({ money: new (class Money {})() })).toThrow('context.money');
  });

  test('refuses an actor that no state names, and says how it is declared (workflow 13)', () => {
    const unused = setup({ actors: { unused: fromPromise(async () => 1) } }).createMachine({});
    expect(() => flowOf(unused)).toThrow('actors: { unused: step(tool) }');
  });

  test('two workflows of one id, and an agent and a workflow of one id, are refused by createExecutor (workflow 13)', () => {
    const [one, two] = [flowOf(within({})), flowOf(within({}))];
    const store = memoryStore();
    expect(() => createExecutor({ store, workflows: [one, two] })).toThrow(/flow/);
    const agents = [defineAgent({ id: 'flow', instructions: '' })];
    expect(() => createExecutor({ store, workflows: [one], agents })).toThrow(/flow/);
  });
});

describe('a machine that', () => {
  test.each([
    [
      'spawns in an assign',
      { entry: assign({ n: ({ spawn }: Spawning) => [spawn('look', { id: 'x' })].length } as never) },
      'WORKFLOW_ERROR',
      'spawnChild',
    ],
    [
      'spawns in an assign, and keeps the actor',
      { entry: assign({ n: ({ spawn }: Spawning) => spawn('look', { id: 'x' }) } as never) },
      'WORKFLOW',
      'spawnChild',
    ],
    [
      'spawns a child without an id in a function',
      { entry: enqueueActions(({ enqueue }) => enqueue.spawnChild('look' as never)) },
      'WORKFLOW_ERROR',
      'spawnChild needs an id',
    ],
    ['has NaN in its context', { entry: assign({ n: Number.NaN } as never) }, 'WORKFLOW_STATE', 'context.n'],
    ['has a function in its context', { entry: assign({ n: () => () => 1 } as never) }, 'WORKFLOW_STATE', 'context.n'],
    ['has a snapshot above 1 MiB', { entry: assign({ n: 'x'.repeat(2 ** 20) } as never) }, 'WORKFLOW_STATE', '1048576'],
    [
      'has a snapshot above 1 MiB in fewer characters',
      { entry: assign({ n: '字'.repeat(2 ** 20 / 3) } as never) },
      'WORKFLOW_STATE',
      'bytes of JSON, and a record takes 1048576',
    ],
    ['emits a Date', { entry: emit({ type: 'go', at: new Date(0) }) }, 'WORKFLOW_STATE', 'event.at is a Date'],
    ['gives a call a Date', { invoke: { src: 'look', input: new Date(0) } }, 'WORKFLOW_STATE', 'a is a Date'],
    [
      'has a function that gives a text as a delay',
      { entry: raise({ type: 'go' }, { delay: (() => '100') as never }) },
      'WORKFLOW_ERROR',
      'a delay is a finite number of ms, 0 or more, not "100"',
    ],
    [
      'has a function that gives no delay',
      { exit: raise({ type: 'go' }, { delay: (() => undefined) as never }), always: 'b' },
      'WORKFLOW_ERROR',
      'not undefined',
    ],
    [
      'enqueues an event with a delay that it does not have',
      {
        entry: enqueueActions(({ enqueue }) => enqueue.raise({ type: 'go' } as never, { delay: 'patiense' as never })),
      },
      'WORKFLOW_ERROR',
      'the machine has no delay "patiense"',
    ],
    [
      'enqueues an event for itself with a delay below 0',
      { entry: enqueueActions(({ enqueue, self }) => enqueue.sendTo(self, { type: 'go' } as never, { delay: -1 })) },
      'WORKFLOW_ERROR',
      'not the number -1',
    ],
    [
      'enqueues an action that it does not have',
      { entry: enqueueActions(({ enqueue }) => enqueue('count' as never)) },
      'WORKFLOW_ERROR',
      'count',
    ],
    [
      'sets 1,001 timers',
      {
        entry: enqueueActions(({ enqueue }) => {
          for (let i = 0; i < 1_001; i++) enqueue.raise({ type: 'go' } as never, { id: `t${i}`, delay: 1_000 });
        }),
      },
      'WORKFLOW_LOOP',
      '1000 timers',
    ],
    [
      'begins 1,001 calls',
      {
        entry: enqueueActions(({ enqueue }) => {
          for (let i = 0; i < 1_001; i++) enqueue.spawnChild('look' as never, { id: `c${i}` });
        }),
      },
      'WORKFLOW_ERROR',
      '1000 open calls',
    ],
  ])('%s fails its run, and says what to do (workflow 6, 13, 14, 15, 16)', async (_, a, code, says) => {
    const before = look.calls.length;
    const { status, error } = await endOf(within(a));
    expect({ status, code: error?.code, message: error?.message }).toEqual({
      status: 'error',
      code: expect.stringMatching(`^${code}`),
      message: expect.stringContaining(says),
    });
    expect(look.calls).toHaveLength(before);
  });

  test('has undefined in its context continues without the field, and takes a wide input (workflow 16)', async () => {
    const machine = setup({ types: { context: {} as object, output: {} as unknown } }).createMachine({
      context: ({ input }: { input: unknown }) => ({ n: undefined, input }),
      initial: 'b',
      states: { b: { type: 'final' } },
      output: ({ context }: { context: unknown }) => context,
    } as never);
    expect(await endOf(machine, { list: [1, { a: null }] })).toMatchObject({ status: 'ok' });
  });

  test('sets a timer again under a pending id has the later one alone, and cancel ends it (workflow 6)', async () => {
    const machine = setup({ types: { context: {} as { n: number }, output: {} as number } }).createMachine({
      context: { n: 0 },
      entry: [
        raise({ type: 'go' }, { id: 'T', delay: 500 }),
        raise({ type: 'go' }, { id: 'T', delay: 1_000 }),
        raise({ type: 'no' }, { id: 'U', delay: 600 }),
        cancel('U'),
      ],
      on: { go: { actions: assign({ n: ({ context }) => context.n + 1 }) }, no: { actions: assign({ n: 99 }) } },
      initial: 'a',
      states: { a: { after: { 3000: 'b' } }, b: { type: 'final' } },
      output: ({ context }: { context: { n: number } }) => context.n,
    } as never);
    const flow = flowOf(machine);
    const world = worldOf([flow], { defaults: { waitLingerMs: 1e6 } });
    const run = await world.boot().start(flow, { runId: 'r', input: undefined as never });
    await world.pass(6_000, 24);
    expect((await run.result).data).toBe(1);
  });

  test('is asked as often as a live actor asks it: guards, delays, inputs, context (workflow 4)', async () => {
    const asked: string[] = [];
    const note = <T>(name: string, value: T) => {
      asked.push(name);
      return value;
    };
    const machine = setup({
      actors,
      types: { events: {} as { type: 'go' } },
      guards: { yes: () => note('guard', true) },
      delays: { later: () => note('delay', 500) },
    }).createMachine({
      context: () => note('context', {}),
      initial: 'a',
      states: {
        a: { on: { go: { guard: 'yes', target: 'b' } } },
        b: { after: { later: 'c' } },
        c: { invoke: { src: 'look', input: () => note('input', {}), onDone: 'd' } },
        d: { type: 'final' },
      },
    });
    const flow = flowOf(machine);
    const world = worldOf([flow], { defaults: { waitLingerMs: 1e6 } });
    const executor = world.boot();
    const run = await executor.start(flow, { runId: 'r', input: undefined as never });
    await world.settle();
    await executor.control('r').send({ type: 'go' });
    await world.pass(3_000, 6);
    expect((await run.result).status).toBe('ok');
    const durable = asked.splice(0);
    const clock = new SimulatedClock();
    const live = createActor(machine, { clock }).start();
    live.send({ type: 'go' });
    clock.increment(1_000);
    await world.settle();
    expect(live.getSnapshot().status).toBe('done');
    expect(durable).toEqual(asked);
  });

  test('reads itself sees the snapshot before the transition, and its send is a TypeError that names raise (workflow 4)', async () => {
    const seen: unknown[] = [];
    const machine = within({
      entry: assign({ n: 1 } as never),
      after: {
        100: {
          target: 'b',
          actions: [
            ({ self }: { self: { getSnapshot(): { context: unknown } } }) => void seen.push(self.getSnapshot().context),
            assign(({ self }: never) => {
              seen.push((self as { getSnapshot(): { context: unknown } }).getSnapshot().context);
              return {};
            }),
          ],
        },
      },
    });
    await endOf(machine);
    expect(seen[0]).toEqual({ n: 1 });
    const sends = within({
      entry: assign(({ self }: never) => {
        (self as { send(event: object): void }).send({ type: 'x' });
        return {};
      }),
    });
    expect((await endOf(sends)).error).toMatchObject({
      code: 'WORKFLOW_ERROR',
      message: expect.stringContaining('raise'),
    });
  });
});

test('a workflow that has made 100,000 transitions fails with WORKFLOW_LOOP at the next one (workflow 15)', () => {
  const flow = flowOf(within({ on: { go: { actions: [] } } }));
  const program = programOf(agentOfWorkflow(flow) as Agent) as Program;
  const begun = advance(program, freshProgress(), 0).progress;
  const sent = withEntered({ ...begun, iteration: 100_000 }, { id: 'e', event: { type: 'go' } });
  expect(advance(program, sent, 0).end).toMatchObject({ error: { code: 'WORKFLOW_LOOP' } });
});

describe('an event', () => {
  test('of more than 64 KiB is refused at its sender, and so is one that is no JSON (workflow 16, 18)', async () => {
    const flow = flowOf(within({ on: { go: 'b' } }));
    const executor = worldOf([flow]).boot();
    await executor.start(flow, { runId: 'r', input: undefined as never });
    const { send } = executor.control('r');
    const invalid = { code: 'EVENT_INVALID' };
    await expect(send({ type: 'go', text: 'x'.repeat(65_536) })).rejects.toMatchObject(invalid);
    await expect(send({ type: 'go', text: '字'.repeat(65_536 / 3) })).rejects.toMatchObject(invalid);
    await expect(send({ type: 'go', n: Number.NaN })).rejects.toMatchObject(invalid);
    await executor.shutdown();
  });
});
