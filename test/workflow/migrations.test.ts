import { defineWorkflow, type MigrateWorkflow, step, waitForSignal } from 'pawl';
import { describe, expect, test } from 'vitest';
import { type AnyStateMachine, assign, raise, setup, spawnChild, stopChild } from 'xstate';
import { noted, worldOf } from './world.ts';

const look = noted('look', 'read', () => 7);
const hanging = noted('hang', 'idempotent', () => new Promise(() => {}));
const actors = { look: step(look.tool), hang: step(hanging.tool), sign: waitForSignal('sign') };
const delays = { soon: 100, wrong: () => -5, late: ({ context }: { context: { ms: number } }) => context.ms };

/** A version of a workflow with these states, and `done`. It begins in the first one. */
function versionOf(
  version: string,
  states: { readonly [name: string]: object },
  more: { readonly migrate?: MigrateWorkflow; readonly actors?: object; readonly on?: object } = {},
) {
  const { migrate, actors: own = actors, ...rest } = more;
  const machine = setup({ actors: own as typeof actors, delays: delays as never }).createMachine({
    id: 'flow',
    context: { got: 0 },
    initial: Object.keys(states)[0],
    states: { ...states, done: { type: 'final', output: 'left' } } as never,
    output: ({ context, event }: { context: object; event: { output?: unknown } }) => ({
      ...context,
      by: event.output,
    }),
    ...rest,
  } as never);
  return defineWorkflow({
    ...{ id: 'flow', version, machine: machine as unknown as AnyStateMachine },
    ...(migrate ? { migrate } : {}),
  });
}

/** A run of the first version that came to rest, in a process of the second one. */
async function deployed(before: ReturnType<typeof versionOf>, after: ReturnType<typeof versionOf>) {
  const world = worldOf([before]);
  const first = world.boot();
  await first.start(before, { runId: 'r' });
  await world.pass(4_000);
  await first.shutdown();
  const second = world.boot(after);
  await second.recover();
  await world.pass(4_000);
  const parked = async () => (await world.store.load('r'))?.parked;
  return { ...world, second, parked, end: () => world.store.outcomes.find('r') };
}

const to =
  (value: unknown): MigrateWorkflow =>
  (snapshot) => {
    snapshot.value = value as never;
  };
const waiting = { waiting: { on: { go: 'done' } } };

describe('a migration', () => {
  test.each([
    ['to a final state ends the run, with its output', 'done', {}, { got: 0, by: 'left' }],
    [
      'to a state with an eventless transition takes it',
      'between',
      { between: { always: { target: 'done', actions: assign({ got: 3 }) } } },
      { got: 3 },
    ],
    [
      'to a final state in another one takes the onDone of that',
      { outer: 'over' },
      {
        outer: {
          initial: 'over',
          states: { over: { type: 'final', output: 5 } },
          onDone: {
            target: 'done',
            actions: assign({ got: ({ event }) => (event as unknown as { output: number }).output }),
          },
        },
      },
      { got: 5 },
    ],
    [
      'to the final states of all regions takes the onDone of their state',
      { both: { one: 'over', two: 'over' } },
      {
        both: {
          type: 'parallel',
          states: {
            one: { initial: 'over', states: { over: { type: 'final' } } },
            two: { initial: 'over', states: { over: { type: 'final' } } },
          },
          onDone: 'done',
        },
      },
      { by: 'left' },
    ],
  ])('%s (workflow 20, 21)', async (_, value, states, data) => {
    const { end } = await deployed(
      versionOf('1', waiting),
      versionOf('2', { ...waiting, ...states }, { migrate: to(value) }),
    );
    expect(await end()).toMatchObject({ status: 'ok', data });
  });

  test.each([
    ['has a delay below 0', { b: { after: { wrong: 'done' } } }, 'the delay "wrong" is a finite number of ms'],
    ['has a delay that the context lacks', { b: { after: { late: 'done' } } }, 'the delay "late" is a finite number'],
    [
      'has an input that throws',
      { b: { invoke: { src: 'look', input: ({ context }: { context: { a: { b: 1 } } }) => context.a.b } } },
      'cannot be entered',
    ],
    [
      'has a guard that throws',
      { b: { always: { guard: ({ context }: { context: { a: { b: true } } }) => context.a.b, target: 'done' } } },
      'cannot be entered',
    ],
  ])('to a state that %s parks the run with MIGRATION_FAILED (workflow 6, 20)', async (_, states, why) => {
    const { parked, end } = await deployed(versionOf('1', waiting), versionOf('2', states, { migrate: to('b') }));
    expect(await parked()).toMatchObject({ code: 'MIGRATION_FAILED', reason: expect.stringContaining(why) });
    expect(await end()).toBeNull();
  });

  test('stops the calls and the timers of the states that are left (workflow 21)', async () => {
    const before = {
      a: { invoke: { src: 'sign', id: 'sign', onDone: 'done' }, after: { 60000: 'done' }, on: { go: 'done' } },
    };
    const { store, second, pass, end } = await deployed(
      versionOf('1', before),
      versionOf('2', { b: { on: { go: 'done', '*': 'done' } } }, { migrate: to('b') }),
    );
    const record = await store.load('r');
    expect(record?.workflow).toMatchObject({
      calls: {},
      timers: [],
      armed: [],
      snapshot: { value: 'b', children: {} },
    });
    expect(record?.openStep).toBeUndefined();
    expect(record?.waiting?.waits ?? []).toEqual([]);
    // A timer that stood, or a signal that arrived, would be taken by the wildcard.
    await second.signal('sign', 5, { id: 's' });
    await pass(70_000);
    expect(await end()).toBeNull();
    await second.control('r').send({ type: 'go' });
    await pass(4_000);
    expect(await end()).toMatchObject({ status: 'ok' });
  });

  test('keeps the actors of spawnChild, as XState does until stopChild (workflow 21)', async () => {
    const spawning = { a: { entry: spawnChild('sign', { id: 'x' }), on: { go: 'done' } } };
    const done = {
      target: 'done',
      actions: assign({ got: ({ event }) => (event as unknown as { output: number }).output }),
    };
    const { store, second, pass, end } = await deployed(
      versionOf('1', spawning),
      versionOf('2', { b: { on: { 'xstate.done.actor.x': done } } }, { migrate: to('b') }),
    );
    expect((await store.load('r'))?.workflow).toMatchObject({ calls: { x: '1.1' }, snapshot: { children: { x: {} } } });
    await second.signal('sign', 5, { id: 's' });
    await pass(4_000);
    expect(await end()).toMatchObject({ status: 'ok', data: { got: 5 } });
  });

  test('lets the new version stop an actor of spawnChild (workflow 21)', async () => {
    const spawning = { a: { entry: spawnChild('sign', { id: 'x' }), on: { go: 'done' } } };
    const { store } = await deployed(
      versionOf('1', spawning),
      versionOf(
        '2',
        { b: { always: { target: 'c', actions: stopChild('x') } }, c: { on: { go: 'done' } } },
        { migrate: to('b') },
      ),
    );
    const record = await store.load('r');
    expect(record?.workflow).toMatchObject({ calls: {}, snapshot: { value: 'c' } });
    expect(record?.waiting?.waits ?? []).toEqual([]);
  });

  test('keeps the timers of raise, which belong to no state (workflow 21)', async () => {
    const { pass, end } = await deployed(
      versionOf('1', { a: { entry: raise({ type: 'tick' }, { delay: 60_000, id: 'T' }), on: { tick: 'done' } } }),
      versionOf('2', { b: { on: { tick: 'done' } } }, { migrate: to('b') }),
    );
    await pass(70_000);
    expect(await end()).toMatchObject({ status: 'ok' });
  });

  test.each([true, false])(
    'to a version without the actor that an action began parks the run; migrate is there: %s (workflow 19, 20)',
    async (hasMigrate) => {
      const spawning = { a: { entry: spawnChild('sign', { id: 'x' }), on: { go: 'done' } } };
      const { second, pass, parked } = await deployed(
        versionOf('1', spawning),
        versionOf(
          '2',
          { a: { on: { go: 'done' } } },
          { actors: { look: actors.look }, ...(hasMigrate ? { migrate: () => {} } : {}) },
        ),
      );
      // One that rests, and has no migration, is looked at when it wakes.
      await second.signal('sign', 5, { id: 's' });
      await pass(4_000);
      expect(await parked()).toMatchObject({
        code: hasMigrate ? 'MIGRATION_FAILED' : 'DEFINITION_CHANGED',
        reason: expect.stringContaining('the machine has no actor "sign" any more, which x is'),
      });
    },
  );
});
