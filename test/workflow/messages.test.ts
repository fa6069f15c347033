import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Agent, createExecutor, defineAgent, defineWorkflow, memoryStore, step, type Workflow } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { crashTest, reply, scriptedModel } from 'pawl/testing';
import { afterAll, describe, expect, test } from 'vitest';
import { type AnyStateMachine, assign, enqueueActions, sendParent, sendTo, setup } from 'xstate';
import { z } from 'zod';
import { Hidden } from '../../src/values/hidden.ts';
import { advance } from '../../src/workflow/advance.ts';
import { messageIdFor } from '../../src/workflow/messages.ts';
import { type Program, programOf } from '../../src/workflow/program.ts';
import { agentOfWorkflow } from '../../src/workflow/workflow.ts';
import { torture } from '../crash/random.ts';
import { until } from '../fixtures/host.ts';
import { noted, worldOf } from './world.ts';

const HOUR = 3_600_000;

interface Said {
  readonly heard: readonly string[];
}

const context = { types: { context: {} as Said, output: {} as readonly string[] } };
/** Notes what a machine hears. */
const hear = (type: string): never =>
  assign({ heard: ({ context }: { context: Said }) => [...context.heard, type] }) as never;

/** A bank: it books each order that it hears, says so to its parent, and closes when it is told. */
const bank = defineWorkflow({
  id: 'bank',
  machine: setup({
    types: { ...context.types, events: {} as { type: 'book'; n: number } | { type: 'close' } },
  }).createMachine({
    context: { heard: [] },
    initial: 'open',
    states: {
      open: {
        entry: sendParent({ type: 'opened' }),
        on: {
          book: {
            actions: [
              assign({ heard: ({ context: { heard }, event }) => [...heard, `book ${event.n}`] }),
              sendParent(({ event }) => ({ type: 'booked', n: event.n })),
            ],
          },
          close: 'closed',
        },
      },
      closed: { entry: sendParent({ type: 'closing' }), type: 'final' },
    },
    output: ({ context: { heard } }) => heard,
  }),
});

/** A shop: it sends two orders to its bank as it begins it, and closes it when both are booked. */
const shopWith = (child: Workflow, note = noted('note', 'read', () => 1).tool) =>
  defineWorkflow({
    id: 'shop',
    machine: setup({
      types: {
        ...context.types,
        events: {} as { type: 'opened' | 'closing' } | { type: 'booked'; n: number },
        output: {} as { shop: readonly string[]; bank: unknown },
        context: {} as Said & { bank?: unknown },
      },
      actors: { bank: step(child), note: step(note) },
    }).createMachine({
      context: { heard: [] },
      initial: 'trading',
      states: {
        trading: {
          entry: [sendTo('bank', { type: 'book', n: 1 }), sendTo('bank', { type: 'book', n: 2 })],
          invoke: {
            id: 'bank',
            src: 'bank',
            input: {} as never,
            onDone: {
              target: 'noting',
              actions: assign({ bank: ({ event }) => (event.output as { data: unknown }).data }),
            },
          },
          on: {
            opened: { actions: hear('opened') },
            booked: [
              {
                guard: ({ event }) => event.n === 2,
                actions: [hear('booked 2'), sendTo('bank', { type: 'close' })],
              },
              { actions: hear('booked 1') },
            ],
            closing: { actions: hear('closing') },
          },
        },
        noting: {
          invoke: {
            src: 'note',
            input: ({ context: { heard, bank } }) => ({ shop: heard, bank }) as never,
            onDone: 'done',
          },
        },
        done: { type: 'final' },
      },
      output: ({ context: { heard, bank } }) => ({ shop: heard, bank }),
    }),
  });

const told = { shop: ['opened', 'booked 1', 'booked 2', 'closing'], bank: ['book 1', 'book 2'] };

describe('a workflow and the one that it calls', () => {
  test('send each other events, each once and in order, also in the entry of the state that begins the child (workflow 5)', async () => {
    const shop = shopWith(bank);
    expect((await worldOf([shop, bank]).boot().run(shop, { runId: 'r' })).data).toEqual(told);
  });

  test('do so in an executor without a store (workflow 5)', async () => {
    const shop = shopWith(bank);
    const executor = createExecutor({ workflows: [shop, bank] });
    expect((await executor.run(shop, { runId: 'r' })).data).toEqual(told);
  });

  test('do so while both rest, each in another process (workflow 5, 10)', async () => {
    const inner = defineWorkflow({
      id: 'inner',
      machine: setup({ types: { events: {} as { type: 'end' } } }).createMachine({
        initial: 'a',
        states: {
          a: { after: { [HOUR]: { actions: sendParent({ type: 'late' }) } }, on: { end: 'b' } },
          b: { type: 'final' },
        },
      }),
    });
    const outer = defineWorkflow({
      id: 'outer',
      machine: setup({ types: { events: {} as { type: 'late' } }, actors: { inner: step(inner) } }).createMachine({
        initial: 'a',
        states: {
          a: {
            invoke: { id: 'i', src: 'inner', input: {} as never, onDone: 'b' },
            on: { late: { actions: sendTo('i', { type: 'end' }) } },
          },
          b: { type: 'final' },
        },
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
    await pass(20_000, 20);
    expect(await store.outcomes.find('r')).toMatchObject({ status: 'ok' });
  });

  describe.each(['live', 'stored'] as const)('and is cancelled, %s', (how) => {
    test('sends what it had recorded before its end, and its parent gets it before its result (workflow 5)', async () => {
      const inner = defineWorkflow({
        id: 'inner',
        machine: setup({ types: { events: {} as { type: 'say' } } }).createMachine({
          initial: 'a',
          states: { a: { on: { say: { actions: sendParent({ type: 'said' }) } } } },
        }),
      });
      const outer = defineWorkflow({
        id: 'outer',
        machine: setup({ ...context, actors: { inner: step(inner) } }).createMachine({
          context: { heard: [] },
          initial: 'a',
          states: {
            a: {
              invoke: { src: 'inner', input: {} as never, onError: 'b', onDone: 'b' },
              on: { said: { actions: hear('said') } },
            },
            b: { type: 'final' },
          },
          output: ({ context: { heard } }) => heard,
        }),
      });
      const storage = memoryStore();
      let isAway = true;
      const send: typeof storage.commands.send = async (runId, command) => {
        if (isAway && runId === 'r' && command.kind === 'event') throw new Error('the store is away');
        return storage.commands.send(runId, command);
      };
      const store = Object.assign(Object.create(storage) as typeof storage, {
        commands: { ...storage.commands, send },
      });
      const defaults = { waitLingerMs: 1, dueMs: 20, controlMs: 20 };
      const boot = () => createExecutor({ store, workflows: [outer, inner], defaults, logger: { warn: () => {} } });
      const executor = boot();
      await (await executor.start(outer, { runId: 'r' })).result;
      const childId = (await executor.list()).map(({ runId }) => runId).find((runId) => runId !== 'r') ?? '';
      await executor.control(childId).send({ type: 'say' });
      const outbox = async () => (await storage.load(childId))?.workflow?.outbox?.length;
      await until(async () => (await outbox()) === 1);
      if (how === 'stored') await executor.shutdown();
      const other = how === 'stored' ? boot() : executor;
      isAway = false;
      await other.control(childId).cancel('enough');
      await other.recover();
      await until(async () => (await storage.outcomes.find('r')) !== null);
      expect(await storage.outcomes.find('r')).toMatchObject({ status: 'ok', data: ['said'] });
      await other.shutdown();
    });
  });

  test('send by a delay, which cancel ends, as with any timer (workflow 5, 6)', async () => {
    const inner = defineWorkflow({
      id: 'inner',
      machine: setup({ types: { ...context.types, events: {} as { type: 'a' | 'b' | 'c' } } }).createMachine({
        context: { heard: [] },
        initial: 'open',
        states: {
          open: {
            entry: [sendParent({ type: 'up' }, { delay: HOUR })],
            on: { a: { actions: hear('a') }, b: { actions: hear('b') }, c: { target: 'shut', actions: hear('c') } },
          },
          shut: { type: 'final' },
        },
        output: ({ context: { heard } }) => heard,
      }),
    });
    const outer = defineWorkflow({
      id: 'outer',
      machine: setup({
        types: {
          ...context.types,
          events: {} as { type: 'up' },
          output: {} as unknown,
          context: {} as Said & { got?: unknown },
        },
        actors: { inner: step(inner) },
      }).createMachine({
        context: { heard: [] },
        initial: 'on',
        states: {
          on: {
            entry: [
              sendTo('i', { type: 'a' }, { delay: 5_000 }),
              sendTo('i', { type: 'b' }, { delay: 5_000, id: 'stopped' }),
              sendTo('i', { type: 'c' }, { delay: 2 * HOUR }),
            ],
            invoke: {
              id: 'i',
              src: 'inner',
              input: {} as never,
              onDone: {
                target: 'off',
                actions: assign({ got: ({ event }) => (event.output as { data: unknown }).data }),
              },
            },
            on: { up: { actions: hear('up') } },
            initial: 'x',
            states: {
              x: { always: { target: 'y', actions: enqueueActions(({ enqueue }) => enqueue.cancel('stopped')) } },
              y: {},
            },
          },
          off: { type: 'final' },
        },
        output: ({ context: { heard, got } }: { context: Said & { got?: unknown } }) => ({ heard, got }),
      }),
    });
    const { boot, pass, store } = worldOf([outer, inner]);
    const first = boot();
    await first.start(outer, { runId: 'r' });
    await pass(4_000);
    await first.shutdown();
    await boot().recover();
    await pass(8_000, 8);
    await pass(HOUR);
    await pass(20_000, 20);
    await pass(HOUR);
    await pass(20_000, 20);
    expect(await store.outcomes.find('r')).toMatchObject({ data: { heard: ['up'], got: ['a', 'c'] } });
  });
});

test("takes the events of a child before the child's result, though both are there (workflow 2, 5)", () => {
  const shop = shopWith(bank);
  const program = programOf(agentOfWorkflow(shop) as Agent) as Program;
  const fresh = { meta: { runId: 'r' }, iteration: 0, inputs: new Hidden({}) };
  const begun = advance(program, fresh as never, 0).progress;
  const calls = begun.openStep?.calls.map((call) => ({ ...call, state: 'done', result: { type: 'json', value: {} } }));
  const events = [{ id: messageIdFor(['x']), event: { type: 'closing' } }];
  const both = { ...begun, openStep: { ...begun.openStep, calls }, workflow: { ...begun.workflow, events } };
  const { told } = advance(program, both as never, 0);
  expect(told.map((each) => String(each.event).split('.').slice(0, 2).join('.'))).toEqual(['closing', 'xstate.done']);
});

/** What a run says of events that did not arrive. */
async function undelivered(
  machine: unknown,
  child: Workflow | ReturnType<typeof defineAgent> = bank,
  more: object = {},
) {
  const flow = defineWorkflow({ id: 'flow', machine: machine as AnyStateMachine });
  const seen: unknown[] = [];
  const { boot } = worldOf(child && 'machine' in child ? [flow, child] : [flow], {
    observers: [{ onEvent: (event) => void (event.type === 'workflow.undelivered' && seen.push(event)) }],
    ...more,
  });
  const result = await boot().run(flow, { runId: 'r' });
  return { result, seen };
}

describe('an event for an actor', () => {
  test.each(['a tool', 'an agent'])(
    'that is %s is dropped, and the events of the run say so (workflow 5)',
    async (kind) => {
      const clerk = defineAgent({ id: 'clerk', instructions: '' });
      const actor = kind === 'a tool' ? step(noted('x', 'read', () => 1).tool) : step(clerk);
      const machine = setup({ actors: { x: actor as never } }).createMachine({
        initial: 'a',
        states: {
          a: {
            entry: sendTo('x', { type: 'go' }),
            invoke: { id: 'x', src: 'x', input: { prompt: 'Go.' } as never, onDone: 'b' },
          },
          b: { type: 'final' },
        },
      });
      const { result, seen } = await undelivered(machine, clerk, { models: { fast: scriptedModel([reply('ok')]) } });
      expect(result.status).toBe('ok');
      expect(seen).toMatchObject([{ to: 'x', event: 'go', step: 1, error: { code: 'RUN_NOT_FOUND' } }]);
    },
  );

  test('that has ended is dropped, and the events of the run say so (workflow 5)', async () => {
    const short = defineWorkflow({
      id: 'short',
      machine: setup({}).createMachine({ initial: 'a', states: { a: { type: 'final' } } }),
    });
    const machine = setup({ actors: { short: step(short) } }).createMachine({
      invoke: { id: 's', src: 'short', onDone: { target: '.b', actions: sendTo('s', { type: 'go' }) } },
      initial: 'a',
      states: { a: {}, b: { type: 'final' } },
    });
    const { result, seen } = await undelivered(machine, short);
    expect(result.status).toBe('ok');
    expect(seen).toMatchObject([{ to: 's', event: 'go', step: 2 }]);
  });

  test('that does not fit its schema is dropped, and the events of the run have EVENT_INVALID with the path (workflow 18)', async () => {
    const strict = defineWorkflow({
      id: 'strict',
      events: { go: z.object({ n: z.number() }) },
      machine: setup({ types: { events: {} as { type: 'go'; n: unknown } } }).createMachine({
        initial: 'a',
        states: { a: { on: { go: 'b' } }, b: { type: 'final' } },
      }),
    });
    const machine = setup({ actors: { strict: step(strict) } }).createMachine({
      initial: 'a',
      states: {
        a: {
          entry: [sendTo('s', { type: 'go', n: 'one' }), sendTo('s', { type: 'go', n: 1 })],
          invoke: { id: 's', src: 'strict', onDone: 'b' },
        },
        b: { type: 'final' },
      },
    });
    const { result, seen } = await undelivered(machine, strict);
    expect(result.status).toBe('ok');
    expect(seen).toMatchObject([
      { event: 'go', error: { code: 'EVENT_INVALID', message: expect.stringContaining('n: ') } },
    ]);
  });

  test("of a type of XState's own fails the run that sends it, with EVENT_INVALID: it would forge a result (workflow 18)", async () => {
    const machine = setup({ actors: { bank: step(bank) } }).createMachine({
      initial: 'a',
      states: {
        a: { entry: sendTo('b', { type: 'xstate.stop' }), invoke: { id: 'b', src: 'bank', input: {} as never } },
      },
    });
    const { result } = await undelivered(machine);
    expect(result).toMatchObject({ status: 'error', error: { code: 'EVENT_INVALID' } });
  });
});

describe('a machine that sends to its parent, and is started without one,', () => {
  test('fails at its start with WORKFLOW_ERROR, before any call begins (workflow 5)', async () => {
    const look = noted('look', 'read', () => 1);
    const machine = setup({ actors: { look: step(look.tool) } }).createMachine({
      initial: 'a',
      states: {
        a: { invoke: { src: 'look', input: {}, onDone: 'b' } },
        b: { entry: sendParent({ type: 'x' }), type: 'final' },
      },
    });
    const { result } = await undelivered(machine);
    expect(result).toMatchObject({
      status: 'error',
      error: { code: 'WORKFLOW_ERROR', message: expect.stringContaining('step(workflow)') },
    });
    expect(look.calls).toEqual([]);
  });

  test('fails at its first event where a function chooses the action (workflow 5)', async () => {
    const machine = setup({}).createMachine({
      initial: 'a',
      states: { a: { entry: enqueueActions(({ enqueue }) => enqueue.sendParent({ type: 'x' } as never)) } },
    });
    const { result } = await undelivered(machine);
    expect(result).toMatchObject({ status: 'error', error: { code: 'WORKFLOW_ERROR' } });
  });
});

const folder = mkdtempSync(join(tmpdir(), 'pawl-messages-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.each([
  ['memory', 30, () => memoryStore()],
  ['SQLite', 8, () => sqliteStore({ path: join(folder, 'runs.db') })],
] as const)(
  'events between two workflows on %s arrive once and in order, also if each process dies at a write (workflow 3, 5)',
  async (_, points, open) => {
    const store = open();
    const note = noted('note', 'read', () => 1);
    const report = await crashTest({
      workflow: shopWith(bank, note.tool),
      input: undefined,
      store: () => store,
      limit: torture > 1 ? 1_000 : points,
      doubleCrashes: torture > 1 ? 200 : 4,
    });
    expect(report.violations).toEqual([]);
    expect(report.undisturbed.status).toBe('ok');
    expect(report.crashes).toBeGreaterThan(points);
    expect(note.calls.length).toBeGreaterThan(points);
    for (const heard of note.calls) expect(heard).toEqual(told);
  },
);
