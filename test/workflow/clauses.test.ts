import {
  ask,
  createExecutor,
  defineTool,
  defineWorkflow,
  type ExecutorOptions,
  memoryStore,
  step,
  type Tool,
  waitForSignal,
} from 'pawl';
import { testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { type AnyActorLogic, type AnyStateMachine, assign, setup } from 'xstate';
import { settle } from '../fixtures/host.ts';
import { watchedStore } from '../fixtures/watched-store.ts';
import { worldOf } from './world.ts';

/** A workflow with one call, whose output is that of the call, or its error. */
const calling = (logic: unknown) =>
  defineWorkflow({
    id: 'flow',
    machine: setup({
      types: { context: {} as { got: unknown }, output: {} as unknown },
      actors: { call: logic as AnyActorLogic },
    }).createMachine({
      context: { got: null },
      initial: 'a',
      states: {
        a: {
          invoke: {
            src: 'call',
            input: { n: 7 },
            onDone: { target: 'b', actions: assign({ got: ({ event }) => ({ output: event.output }) }) },
            onError: { target: 'b', actions: assign({ got: ({ event }) => ({ error: event.error }) }) },
          },
        },
        b: { type: 'final' },
      },
      output: ({ context }: { context: { got: unknown } }) => context.got,
    }),
  });

function began(logic: unknown, options: Partial<ExecutorOptions> = {}) {
  const flow = calling(logic);
  const world = worldOf([flow], options);
  const executor = world.boot();
  const run = executor.start(flow, { runId: 'r', input: undefined });
  return { ...world, executor, run, end: async () => (await (await run).result).data };
}

const n = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] } as const;
const toolWith = (execute: Tool['execute'], more: object = {}) =>
  defineTool({ ...{ name: 'work', description: '', input: n, effect: 'once', execute }, ...more } as never);

describe('a tool in a workflow', () => {
  test('goes through the middleware of tools, with the number of its transition as the step (workflow 7)', async () => {
    const seen: unknown[] = [];
    const tool = toolWith(() => 'done');
    const middleware: ExecutorOptions['middleware'] = [
      {
        tool: async ({ name, input, effect, step: at, runId }, next) => {
          seen.push({ name, input, effect, at, runId });
          const { type } = await next();
          return { type, value: 'changed' } as never;
        },
      },
    ];
    expect(await began(step(tool), { middleware }).end()).toEqual({ output: 'changed' });
    expect(seen).toEqual([{ name: 'work', input: { n: 7 }, effect: 'once', at: expect.any(Number), runId: 'r' }]);
  });

  test('with needsApproval waits for a person; a denial is the error DENIED of its actor (workflow 7)', async () => {
    for (const answer of ['approve', 'deny'] as const) {
      const did: unknown[] = [];
      const tool = toolWith((input) => void did.push(input), {
        needsApproval: ({ n: cents }: { n: number }) => cents > 5,
      });
      const { executor, end, pass } = began(step(tool));
      await pass(500);
      expect(did).toEqual([]);
      const [wait] = await executor.waiting();
      expect(wait).toMatchObject({ kind: 'approval', tool: 'work', runId: 'r' });
      await executor.control('r')[answer](wait?.id ?? '', { by: { id: 'ada' } });
      await pass(4_000);
      expect(await end()).toEqual(
        answer === 'approve' ? { output: null } : { error: expect.objectContaining({ code: 'DENIED' }) },
      );
      expect(did).toEqual(answer === 'approve' ? [{ n: 7 }] : []);
    }
  });

  test.each(['run', 'ask', 'deny'] as const)(
    'is judged by the rule of the executor before it begins: %s (workflow 7)',
    async (verdict) => {
      const did: unknown[] = [];
      const judged: unknown[] = [];
      const { executor, pass, end } = began(step(toolWith((input) => void did.push(input))), {
        approvals: ({ name, input, effect }) => {
          judged.push({ name, input, effect });
          return verdict === 'deny' ? { deny: 'not today' } : verdict;
        },
      });
      await pass(500);
      expect(judged).toEqual([{ name: 'work', input: { n: 7 }, effect: 'once' }]);
      expect(did).toEqual(verdict === 'run' ? [{ n: 7 }] : []);
      if (verdict === 'ask') {
        const [wait] = await executor.waiting();
        await executor.control('r').approve(wait?.id ?? '', { by: { id: 'ada' } });
        await pass(4_000);
      }
      expect(await end()).toEqual(
        verdict === 'deny'
          ? { error: expect.objectContaining({ code: 'DENIED', message: 'not today' }) }
          : { output: null },
      );
    },
  );

  test('that only waits is judged by no rule: a question is asked, and a signal is waited for (workflow 7, 11)', async () => {
    const { executor, pass } = began(ask({ question: 'Refund?' }), { approvals: () => 'ask' as const });
    await pass(500);
    expect(await executor.waiting()).toMatchObject([{ kind: 'question', question: 'Refund?' }]);
  });

  test('with needsApproval is made after its approval alone, also if its process dies at any write (workflow 3, 7)', async () => {
    for (let diesAfter = 1; ; diesAfter++) {
      const clock = testClock(1_000_000);
      const inner = memoryStore({ clock });
      const did: unknown[] = [];
      const flow = calling(step(toolWith((input) => void did.push(input), { needsApproval: true })));
      let writes = 0;
      const isDead = () => writes >= diesAfter;
      const never = () => new Promise<never>(() => {});
      const mortal = watchedStore(
        {
          before: () => (isDead() ? never() : undefined),
          after: ({ method }) => {
            if (['claim', 'save', 'append', 'due.leave', 'end', 'release'].includes(method)) writes += 1;
            return isDead() ? never() : undefined;
          },
        },
        inner,
      );
      const bootOn = (store: typeof inner) =>
        createExecutor({
          ...{ store, workflows: [flow], clock, logger: { warn: () => {} } },
          defaults: { waitLingerMs: 1_000, dueMs: 1_000, controlMs: 1_000 },
        });
      const pass = async (ms: number) => {
        for (let i = 0; i < 4; i++) {
          await clock.advance(ms / 4);
          await settle();
        }
      };
      void bootOn(mortal)
        .start(flow, { runId: 'r', input: undefined })
        .catch(() => {});
      await pass(4_000);
      expect(did).toEqual([]);
      await pass(120_000);
      const next = bootOn(inner);
      await next.recover();
      await next.start(flow, { runId: 'r', input: undefined });
      await pass(4_000);
      expect(did).toEqual([]);
      const [wait, ...more] = await next.waiting();
      expect(more).toEqual([]);
      await next.control('r').approve(wait?.id ?? '', { by: { id: 'ada' } });
      await pass(8_000);
      expect(await inner.outcomes.find('r')).toMatchObject({ status: 'ok', data: { output: null } });
      expect(did).toEqual([{ n: 7 }]);
      if (!isDead()) return;
    }
  });

  test('has an empty prompt and the number of its transition, and attachImages is refused (workflow 7)', async () => {
    const seen: unknown[] = [];
    const tool = toolWith((_, { invocation, runState, attachImages }) => {
      seen.push([invocation.prompt, runState.iteration]);
      attachImages([{ mediaType: 'image/png', data: 'iVBORw0KGgo=' }]);
      return 'done';
    });
    expect(await began(step(tool)).end()).toEqual({
      error: expect.objectContaining({ code: 'UNSUPPORTED', message: expect.stringContaining('attachImages') }),
    });
    expect(seen).toEqual([['', 1]]);
  });

  test('asks, waits for a signal and sleeps as in an agent, and rests meanwhile (workflow 7)', async () => {
    const tool = toolWith(
      async (_, context) => {
        const answer = await context.ask({ question: 'Go on?' });
        const value = await context.waitFor('paid', { key: 'k' });
        await context.sleep(3_600_000);
        return [answer, value] as never;
      },
      { effect: 'read' },
    );
    const { executor, run, pass, store, boot } = began(step(tool));
    await pass(500);
    const [wait] = await executor.waiting();
    await executor.control('r').answer(wait?.id ?? '', 'yes');
    await pass(4_000);
    expect((await (await run).result).status).toBe('waiting');
    await executor.shutdown();
    const second = boot();
    await second.recover();
    await second.signal('paid', 7, { key: 'k', id: 's' });
    await pass(4_000);
    await pass(2 * 3_600_000);
    await pass(4_000);
    expect(await store.outcomes.find('r')).toMatchObject({ status: 'ok', data: { output: ['yes', 7] } });
  });

  test('whose input does not fit its schema is the error of its actor, and is not made (workflow 7, 8)', async () => {
    const did: unknown[] = [];
    const tool = toolWith((input) => void did.push(input), {
      input: { type: 'object', properties: { n: { type: 'string' } }, required: ['n'] },
    });
    expect(await began(step(tool)).end()).toEqual({
      error: expect.objectContaining({
        code: expect.any(String),
        message: expect.stringContaining('does not fit: n: '),
      }),
    });
    expect(did).toEqual([]);
  });

  test('that takes longer than its timeout is the error of its actor (workflow 7)', async () => {
    const tool = toolWith(() => new Promise(() => {}) as never, { effect: 'read', timeoutMs: 500 });
    const { pass, end } = began(step(tool));
    await pass(2_000);
    expect(await end()).toEqual({ error: expect.objectContaining({ message: expect.stringContaining('500') }) });
  });
});

describe('a wait of a workflow that expires', () => {
  test.each([
    ['a question', ask({ question: 'Refund?', expiresInMs: 60_000 })],
    ['a signal', waitForSignal('paid', { timeoutMs: 60_000 })],
  ])(
    'is the error WAIT_EXPIRED of its actor, also in the process that has the run then: %s (workflow 11)',
    async (_, logic) => {
      const { executor, pass, boot, store } = began(logic);
      await pass(4_000);
      await executor.shutdown();
      const second = boot();
      await second.recover();
      await pass(120_000);
      await pass(4_000);
      expect(await store.outcomes.find('r')).toMatchObject({ status: 'ok', data: { error: { code: 'WAIT_EXPIRED' } } });
      expect(await second.waiting()).toEqual([]);
    },
  );
});

describe('a function of a machine that throws', () => {
  const bad = () => {
    throw new Error('it is broken');
  };
  const look = toolWith(() => 1);

  test.each([
    ['an input', { invoke: { src: 'call', input: bad } }, {}, 'a'],
    ['an output', { always: 'b' }, { output: bad }, 'b'],
    ['a delay', { after: { late: 'b' } }, {}, 'a'],
    ['a context', {}, { context: bad }, ''],
  ])(
    'fails the run with WORKFLOW_ERROR, the error as its cause, and start does not reject: %s (workflow 17)',
    async (_, a, more, state) => {
      const machine = setup({ actors: { call: step(look) } as never, delays: { late: bad as never } }).createMachine({
        ...{ context: {}, initial: 'a', states: { a, b: { type: 'final' } } },
        ...more,
      } as never);
      const flow = defineWorkflow({ id: 'flow', machine: machine as unknown as AnyStateMachine });
      const store = memoryStore();
      const executor = worldOf([flow], { store }).boot();
      const run = await executor.start(flow, { runId: 'r', input: undefined as never });
      const { status, error } = await run.result;
      expect({ status, code: error?.code, message: error?.message }).toEqual({
        status: 'error',
        code: 'WORKFLOW_ERROR',
        message: expect.stringContaining('it is broken'),
      });
      if (state !== '') expect(error?.message).toContain(state);
      expect(error?.cause).toMatchObject({ message: 'it is broken' });
    },
  );
});

test('a workflow takes 1,000 events that no process has read; one more is refused, and none is lost (workflow 16)', async () => {
  const flow = defineWorkflow({
    id: 'flow',
    machine: setup({ types: { context: {} as { n: number }, output: {} as number } }).createMachine({
      context: { n: 0 },
      initial: 'a',
      states: {
        a: {
          on: { add: { actions: assign({ n: ({ context }) => context.n + 1 }) } },
          always: { guard: ({ context }) => context.n === 1_000, target: 'b' },
        },
        b: { type: 'final' },
      },
      output: ({ context }) => context.n,
    }),
  });
  const { boot, pass, store } = worldOf([flow]);
  const first = boot();
  await first.start(flow, { runId: 'r' });
  await pass(4_000);
  await first.shutdown();
  const sender = boot();
  const { send } = sender.control('r');
  for (let i = 0; i < 1_000; i++) await send({ type: 'add' }, { id: `e${i}` });
  await expect(send({ type: 'add' }, { id: 'more' })).rejects.toMatchObject({ code: 'UNDELIVERED' });
  await sender.recover();
  await pass(60_000, 30);
  expect(await store.outcomes.find('r')).toMatchObject({ status: 'ok', data: 1_000 });
});
