import { readFileSync } from 'node:fs';
import { type Agent, type Executor, memoryStore, type RunOutput } from 'pawl';
import type { Claim } from 'pawl/stores/kit';
import { callTool, hang, reply, scriptedModel, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { type AnyActorRef, assign, createActor, type DoneActorEvent, type Snapshot, setup } from 'xstate';
import { StoreUnavailableError } from '../../src/values/errors.ts';
import { type HostOptions, hostOf, toolOf, until } from '../fixtures/host.ts';
import { roundTrip } from '../fixtures/host-machine.ts';
import { type StoreCall, watchedStore } from '../fixtures/watched-store.ts';

const RUN = { prompt: 'Go.', runId: 'r' };
const tools = [toolOf('look')];
const ways = ['invoke', 'invoke with a guard', 'spawn'] as const;
type Way = (typeof ways)[number];

/** A host's machine with one run, which it has in one of the ways of XState. It keeps every end that it hears of. */
function machineOf(way: Way, executor: Executor, agent: Agent) {
  return setup({
    types: {
      context: {} as { readonly ends: readonly RunOutput[] },
      events: {} as DoneActorEvent<RunOutput, 'run'>,
    },
    actors: { run: executor.logic(agent) },
    guards: { isOk: (_, { status }: RunOutput) => status === 'ok' },
    actions: {
      hear: assign({ ends: ({ context }, output: RunOutput) => [...context.ends, output] }),
    },
  }).createMachine({
    context: { ends: [] },
    initial: way,
    states: {
      invoke: {
        invoke: {
          id: 'run',
          src: 'run',
          input: RUN,
          onDone: { target: 'done', actions: { type: 'hear', params: ({ event }) => event.output } },
        },
      },
      'invoke with a guard': {
        invoke: {
          id: 'run',
          src: 'run',
          input: RUN,
          onDone: [
            {
              guard: { type: 'isOk', params: ({ event }) => event.output },
              target: 'done',
              actions: { type: 'hear', params: ({ event }) => event.output },
            },
            { target: 'done', actions: { type: 'hear', params: ({ event }) => event.output } },
          ],
        },
      },
      spawn: {
        entry: assign(({ spawn }) => {
          spawn('run', { id: 'run', input: RUN });
          return {};
        }),
        on: {
          'xstate.done.actor.run': { target: 'done', actions: { type: 'hear', params: ({ event }) => event.output } },
        },
      },
      done: { type: 'final' },
    },
  });
}

/** A process: an executor, and the host's machine, begun or restored. */
function processOf({ way = 'invoke', snapshot, ...options }: HostOptions & { way?: Way; snapshot?: unknown }) {
  const parts = hostOf({ tools, ...options });
  const machine = machineOf(way, parts.executor, parts.agent);
  const host = createActor(machine, snapshot ? { snapshot: snapshot as Snapshot<unknown> } : {}).start();
  const child = () => host.getSnapshot().children.run as AnyActorRef | undefined;
  return {
    ...parts,
    host,
    /** The state of its child; an active one, or none. */
    state: () => {
      const { status, value } = child()?.getSnapshot() ?? {};
      return status === 'active' && (typeof value === 'string' ? value : Object.entries(value).flat().join('.'));
    },
    isParked: () => child()?.getSnapshot().hasTag('parked'),
    cancel: () => child()?.send({ type: 'run.cancel', reason: 'enough' }),
    persisted: () => roundTrip(host.getPersistedSnapshot()),
    /** What the host has heard of its run. */
    ends: () => host.getSnapshot().context.ends.map(({ status, output }) => `${status} ${output}`.trim()),
    isDone: () => until(() => host.getSnapshot().status === 'done', 'the end of the host'),
  };
}

/** A store on the clock of a test, with the claims that it gave. */
function world(before?: (call: StoreCall) => unknown) {
  const clock = testClock(1_000_000);
  const inner = memoryStore({ clock });
  const store = watchedStore(before ? { before } : {}, inner);
  const claims: Claim[] = [];
  const { claim } = store;
  store.claim = async (...args) => {
    const given = await claim(...args);
    if (given) claims.push(given);
    return given;
  };
  /** As when this process slept past its lease. */
  const steal = async () => {
    await inner.release(claims.at(-1) as Claim);
    return (await inner.claim('r', 'another', 30_000)) as Claim;
  };
  return { clock, inner, store, steal, options: { store, clock } };
}

/** A store that is away until it is told otherwise. */
function awayStore() {
  const state = { isAway: true };
  const parts = world(() => {
    if (state.isAway) throw new StoreUnavailableError('the store is away');
  });
  return { ...parts, state };
}

/** What a process left that was shut down in the middle of its run. */
async function leftBy(way: Way) {
  const parts = world();
  const first = processOf({ way, ...parts.options, script: [callTool('look'), hang()] });
  await until(() => first.model.calls.length === 2);
  await first.executor.shutdown();
  return { ...parts, first, snapshot: first.persisted() };
}

describe.each(ways)("a run of a host's machine, by %s,", (way) => {
  test.for(['shut down', 'stopped, then shut down', 'shut down, then stopped'])(
    'is not done when its process is %s: a restored host continues it (edges 14)',
    async (order) => {
      const { clock, store, options } = world();
      const first = processOf({ way, ...options, script: [callTool('look'), hang()] });
      await until(() => first.model.calls.length === 2);
      // XState never starts the snapshot of a machine that was stopped.
      const before = first.persisted();
      if (order.startsWith('stopped')) first.host.stop();
      await first.executor.shutdown();
      if (!order.startsWith('stopped')) expect(first.state()).toBe('left.interrupted');
      const snapshot = order.startsWith('stopped') ? before : first.persisted();
      if (order.endsWith('then stopped')) first.host.stop();
      expect([first.ends(), clock.pending]).toEqual([[], 0]);
      const next = processOf({ way, ...options, script: [reply('end')], snapshot });
      await next.isDone();
      expect([next.ends(), next.model.calls.length]).toEqual([['ok end'], 1]);
      expect(await store.listInterrupted()).toEqual([]);
    },
  );

  test('that waits for a person stays active over a shutdown, and continues with the answer (edges 14)', async () => {
    const { options } = world();
    const pay = { ...toolOf('pay', 'once'), needsApproval: true };
    const first = processOf({ way, ...options, tools: [pay], script: [callTool('pay')] });
    await until(async () => (await first.executor.waiting()).length === 1);
    await first.executor.shutdown();
    expect([first.state(), first.ends()]).toEqual(['left.interrupted', []]);
    const next = processOf({ way, ...options, tools: [pay], script: [reply('paid')], snapshot: first.persisted() });
    await until(() => next.state() === 'running.waiting');
    const [wait] = await next.executor.waiting();
    await next.executor.control('r').approve(wait?.id ?? '');
    await next.isDone();
    expect(next.ends()).toEqual(['ok paid']);
  });

  test('continues by itself when the lease of another process is over (edges 14)', async () => {
    const { clock, inner, options } = world();
    await inner.claim('r', 'another', 30_000);
    const host = processOf({ way, ...options, script: [reply('end')] });
    await until(() => host.state() === 'left.interrupted');
    expect(host.persisted()).toMatchObject({ children: { run: { snapshot: { status: 'active', unstored: true } } } });
    await clock.advance(29_000);
    expect([host.state(), host.model.calls.length, host.ends()]).toEqual(['left.interrupted', 0, []]);
    await clock.advance(12_000);
    await host.isDone();
    expect(host.ends()).toEqual(['ok end']);
  });

  test('continues by itself when its store, away for a second, is back (edges 14)', async () => {
    const { clock, options, state } = awayStore();
    const host = processOf({ way, ...options, script: [reply('end')] });
    await until(() => host.state() === 'left.interrupted');
    await clock.advance(1_000);
    expect([host.model.calls.length, host.ends()]).toEqual([0, []]);
    state.isAway = false;
    await clock.advance(2_000);
    await host.isDone();
    expect(host.ends()).toEqual(['ok end']);
  });

  test.for([
    ['unparked', 'ok end'],
    ['cancelled', 'cancelled'],
  ])(
    'that is parked stays active with the tag `parked` until another process has %s it, and gets that within dueMs (edges 14)',
    async ([how, end]) => {
      const { clock, store, options, snapshot } = await leftBy(way);
      const other = hostOf(options).executor;
      await other.park('r', 'for later');
      const next = processOf({ way, ...options, script: [reply('end')], snapshot });
      await until(() => next.isParked());
      await clock.advance(60_000);
      expect([next.state(), next.model.calls.length, next.ends()]).toEqual(['left.parked', 0, []]);
      expect(next.persisted()).toMatchObject({ children: { run: { snapshot: { status: 'active', stored: true } } } });
      if (how === 'unparked') await other.unpark('r');
      else await other.control('r').cancel();
      await clock.advance(1_000);
      await next.isDone();
      expect(next.ends()).toEqual([end]);
      expect(await store.listInterrupted()).toEqual([]);
    },
  );
});

describe("a run of a host's machine that was left", () => {
  test('because the setup of its process misses the model continues when it is there (edges 14)', async () => {
    const { clock, options, snapshot } = await leftBy('invoke');
    const model = scriptedModel([reply('end')]);
    let isThere = false;
    const host = processOf({ ...options, snapshot, models: () => (isThere ? model : undefined) });
    await until(() => host.state() === 'left.interrupted');
    expect([host.persisted(), host.ends()]).toMatchObject([
      { children: { run: { snapshot: { status: 'active', stored: true } } } },
      [],
    ]);
    isThere = true;
    await clock.advance(32_000);
    await host.isDone();
    expect(host.ends()).toEqual(['ok end']);
  });

  test('after another process took it over is continued when that process has left it (edges 14)', async () => {
    const { clock, inner, steal, options } = world();
    const host = processOf({ ...options, script: [callTool('look'), hang(), reply('end')] });
    await until(() => host.model.calls.length === 2);
    const claim = await steal();
    await clock.advance(10_000);
    await until(() => host.state() === 'left.interrupted');
    await inner.release(claim);
    await clock.advance(11_000);
    await host.isDone();
    expect(host.ends()).toEqual(['ok end']);
    expect(host.model.calls.at(-1)?.messages).toHaveLength(3);
  });

  test('and has ended in another process gives that end, within dueMs (edges 14)', async () => {
    const { clock, steal, options, inner } = world();
    const host = processOf({ ...options, script: [callTool('look'), hang()] });
    await until(() => host.model.calls.length === 2);
    const claim = await steal();
    await clock.advance(10_000);
    await until(() => host.state() === 'left.interrupted');
    await inner.release(claim);
    const other = hostOf({ ...options, tools, script: [reply('there')] });
    expect(await other.run({ runId: 'r' })).toMatchObject({ status: 'ok' });
    await clock.advance(1_000);
    await host.isDone();
    expect([host.ends(), host.model.calls.length]).toEqual([['ok there'], 2]);
  });

  test('while it was live and its model stayed away is parked there, with the tag (edges 14)', async () => {
    const { clock, options } = world();
    const away = Object.assign(new Error('overloaded'), {
      name: 'AI_APICallError',
      statusCode: 503,
      isRetryable: true,
    });
    const failing = () => {
      throw away;
    };
    const defaults = { modelAttempts: 1, modelOutageMs: 60_000 };
    const host = processOf({ ...options, defaults, script: Array.from({ length: 50 }, () => failing) });
    await until(() => host.state() === 'running.waiting');
    await clock.advance(120_000);
    expect([host.isParked(), host.ends()]).toEqual([true, []]);
  });

  test.for([
    ['parked', 'cancelled'],
    ['held by another process', 'cancelled'],
    ['never begun, because the store was away', 'cancelled'],
  ] as const)('is cancelled by its host: it was %s (edges 14)', async ([how, end]) => {
    const { clock, options, state, steal, inner } = awayStore();
    state.isAway = how.startsWith('never');
    const host = processOf({ ...options, script: [callTool('look'), hang(), reply('never')] });
    let claim: Claim | undefined;
    if (how === 'parked') {
      await until(() => host.model.calls.length === 2);
      claim = await steal();
      await clock.advance(10_000);
      await inner.release(claim);
      await hostOf(options).executor.park('r', 'for later');
      await clock.advance(1_000);
      await until(() => host.isParked());
    } else if (how.startsWith('held')) {
      await until(() => host.model.calls.length === 2);
      claim = await steal();
      await clock.advance(10_000);
    }
    await until(() => String(host.state()).startsWith('left.'));
    host.cancel();
    await clock.advance(1_000);
    state.isAway = false;
    await clock.advance(41_000);
    await host.isDone();
    expect(host.ends()).toEqual([end]);
    expect(await inner.listInterrupted()).toEqual([]);
    expect(await inner.outcomes.find('r')).toMatchObject({ status: 'cancelled' });
  });

  test('and begins on an executor that is shut down is left too: nothing is stored, and no timer is held (edges 14)', async () => {
    const { clock, store, options } = world();
    const first = hostOf(options);
    await first.executor.shutdown();
    const host = createActor(machineOf('invoke', first.executor, first.agent)).start();
    await until(() => host.getSnapshot().children.run?.getSnapshot().matches('left'));
    await clock.advance(600_000);
    expect([first.model.calls.length, clock.pending, await store.listInterrupted()]).toEqual([0, 0, []]);
    const next = processOf({ ...options, script: [reply('end')], snapshot: roundTrip(host.getPersistedSnapshot()) });
    await next.isDone();
    expect(next.ends()).toEqual(['ok end']);
  });

  test('and stopped by its host is tried no more, and holds no timer (edges 14)', async () => {
    const { clock, inner, options } = world();
    await inner.claim('r', 'another', 30_000);
    const host = processOf({ ...options, script: [reply('end')] });
    await until(() => host.state() === 'left.interrupted');
    host.host.stop();
    expect(clock.pending).toBe(0);
    await clock.advance(60_000);
    expect(host.model.calls).toEqual([]);
  });

  test('is not one whose id has another run: that is an end, and says so (edges 14)', async () => {
    const { options } = world();
    await hostOf({ ...options, script: [reply('other')] }).run({ runId: 'r', prompt: 'Else.' });
    const host = processOf({ ...options, script: [] });
    await host.isDone();
    expect(host.host.getSnapshot().context.ends).toMatchObject([
      { status: 'error', error: { code: 'RUN_ID_CONFLICT' } },
    ]);
  });
});

test('the page for hosts has a row for each way in which a run is left, and says where the snapshot belongs (edges 15)', () => {
  const page = readFileSync(new URL('../../docs/hosting.md', import.meta.url), 'utf8');
  for (const row of ['shutdown:', 'lease:', 'store away', 'setup:', 'parked:']) expect(page).toContain(`\n| ${row}`);
  expect(page).toContain('Persist your machine in its own subscription');
});
