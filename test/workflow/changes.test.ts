import { defineWorkflow, type MigrateWorkflow, step, waitForSignal } from 'pawl';
import { describe, expect, test } from 'vitest';
import { type AnyStateMachine, assign, setup } from 'xstate';
import { noted, worldOf } from './world.ts';

const HOUR = 3_600_000;
const look = noted('look', 'read', () => 7);

/** A workflow with the states of a test; it waits in `waiting` for `go`. */
function flowWith(
  states: { readonly [name: string]: object },
  rest: { version?: string; migrate?: MigrateWorkflow; machine?: string } = {},
) {
  const machine = setup({
    actors: { look: step(look.tool), sign: waitForSignal('sign') },
    types: { output: {} as unknown, context: {} as { got: unknown } },
  }).createMachine({
    id: rest.machine ?? 'flow',
    context: { got: null },
    initial: Object.keys(states)[0],
    states: { done: { type: 'final' }, ...states } as never,
    output: ({ context }: { context: unknown }) => context,
  } as never);
  const { version = '1', migrate } = rest;
  return defineWorkflow({
    id: 'flow',
    version,
    machine: machine as unknown as AnyStateMachine,
    ...(migrate ? { migrate } : {}),
  });
}

/** A run of the first workflow that rests in `waiting`, and a process with the second one that gets the event `go` for it. */
async function redeployed(before: ReturnType<typeof flowWith>, after: ReturnType<typeof flowWith>) {
  const world = worldOf([before]);
  const first = world.boot();
  await first.start(before, { runId: 'r' });
  await world.pass(4_000);
  await first.shutdown();
  const second = world.boot(after);
  await second.recover();
  await world.settle();
  // One that its migration has ended needs no event.
  if (!(await world.store.outcomes.find('r'))) await second.control('r').send({ type: 'go' }, { id: 'go' });
  await world.pass(4_000);
  return { ...world, second };
}

const waiting = { waiting: { on: { go: 'done' } } };
const waitingFor = { invoke: { src: 'sign', onDone: 'done' }, on: { go: 'done' } };
const regions = { type: 'parallel', on: { go: 'done' }, states: { one: {}, two: {} } };

describe('a workflow whose machine has changed', () => {
  test('continues if its active states are what they were (workflow 19)', async () => {
    const { store } = await redeployed(flowWith(waiting), flowWith({ ...waiting, more: { on: { x: 'done' } } }));
    expect(await store.outcomes.find('r')).toMatchObject({ status: 'ok' });
  });

  test.each([
    ['has lost the active state', { idle: { on: { go: 'done' } } }, 'the machine has no state "waiting" any more'],
    [
      'gained a call in it',
      { waiting: { ...waiting.waiting, invoke: { src: 'look', id: 'look', input: {} } } },
      'state waiting gained the call "look" of look',
    ],
    [
      'gained a timer in it',
      { waiting: { ...waiting.waiting, after: { [HOUR]: 'done' } } },
      'state waiting gained the timer',
    ],
    [
      'made it nested',
      { waiting: { ...waiting.waiting, initial: 'x', states: { x: {} } } },
      'state waiting became compound',
    ],
    ['made it final', { waiting: { type: 'final' } }, 'state waiting became final'],
    [
      'gained a region in it',
      { waiting: { ...regions, states: { ...regions.states, three: {} } } },
      'state waiting gained the region three',
      { waiting: regions },
    ],
    [
      'made it parallel no more',
      { waiting: { ...regions, type: 'compound', initial: 'one' } },
      'state waiting is parallel no more',
      { waiting: regions },
    ],
    [
      'gave another name to a state with an open call',
      { asking: waitingFor },
      'the machine has no state "waiting" any more',
      { waiting: waitingFor },
    ],
    [
      'gave another id to a state with an open call',
      { waiting: { ...waitingFor, id: 'asking' } },
      'state waiting gained the call "0.asking" of sign',
      { waiting: waitingFor },
    ],
  ])(
    'that %s is parked, and its event waits until a deployment fits (workflow 19)',
    async (_, states, why, before: Parameters<typeof flowWith>[0] = waiting) => {
      const { store, second, boot, pass } = await redeployed(flowWith(before), flowWith(states));
      expect((await store.load('r'))?.parked).toMatchObject({
        code: 'DEFINITION_CHANGED',
        reason: expect.stringContaining(why),
      });
      await second.shutdown();
      await boot(flowWith(before)).recover();
      await pass(4_000);
      expect(await store.outcomes.find('r')).toMatchObject({ status: 'ok' });
    },
  );

  test('that has another id, with an open call, is parked; the log says what continues the run (workflow 19)', async () => {
    const states = { waiting: waitingFor };
    const { store, second, warnings } = await redeployed(flowWith(states), flowWith(states, { machine: 'stream' }));
    expect((await store.load('r'))?.parked).toMatchObject({
      code: 'DEFINITION_CHANGED',
      reason: expect.stringContaining('state waiting gained the call "0.stream.waiting" of sign'),
    });
    const lines = warnings.filter(({ fields }) => (fields as { event?: string }).event === 'run.parked');
    expect(lines[0]?.fields).toMatchObject({
      how: expect.stringMatching(/^deploy a definition that fits the run, or a `migrate`: .*pawl cancel/),
    });
    await second.shutdown();
  });

  test('is brought into another state by migrate, which begins what that state invokes (workflow 20, 21)', async () => {
    const after = flowWith(
      {
        looking: {
          invoke: {
            src: 'look',
            id: 'look',
            input: {},
            onDone: {
              target: 'done',
              actions: assign({ got: ({ event }) => (event as unknown as { output: unknown }).output }),
            },
          },
        },
      },
      {
        version: '2',
        migrate: (snapshot, { from }) => {
          if (from === '1') snapshot.value = 'looking';
        },
      },
    );
    const { store } = await redeployed(flowWith(waiting), after);
    expect(await store.outcomes.find('r')).toMatchObject({ status: 'ok', data: { got: 7 } });
  });

  test('that rests is brought there when a process of the new version starts, not only when something wakes it (workflow 21)', async () => {
    const rested = { waiting: { on: { go: 'done' }, after: { [30 * HOUR]: 'done' } } };
    const world = worldOf([flowWith(rested)]);
    const first = world.boot();
    for (const runId of ['a', 'b']) await first.start(flowWith(rested), { runId });
    await world.pass(4_000);
    await first.shutdown();
    const migrate: MigrateWorkflow = (snapshot) => {
      migrated += 1;
      snapshot.value = 'soon';
    };
    let migrated = 0;
    const soon = flowWith({ soon: { after: { [HOUR]: 'done' } } }, { version: '2', migrate });
    const boot = async () => {
      const executor = world.boot(soon);
      await executor.recover();
      await world.pass(4_000);
      return executor;
    };
    await (await boot()).shutdown();
    // Once for each run: its start.
    expect(migrated).toBe(2);
    for (const runId of ['a', 'b'])
      expect((await world.store.load(runId))?.workflow).toMatchObject({ snapshot: { value: 'soon' }, timers: [{}] });
    const times = migrated;
    // The next process finds runs of its own version, and leaves them alone.
    const third = await boot();
    expect(migrated).toBe(times);
    await world.pass(HOUR);
    await world.pass(8_000, 8);
    expect(await world.store.outcomes.find('b')).toMatchObject({ status: 'ok' });
    await third.shutdown();
  });

  test.each([
    [
      'throws',
      () => {
        throw new Error('no');
      },
      'migrate threw: no',
    ],
    [
      'gives what is no state',
      (snapshot: { value: unknown }) => {
        snapshot.value = 'nowhere';
      },
      'which is no state of the machine',
    ],
    [
      'puts an actor into the context',
      (snapshot: { context: unknown }) => {
        snapshot.context = { got: { xstate$$type: 1, id: 'look' } };
      },
      'context.got holds an actor',
    ],
  ])(
    'and whose migrate %s is parked with MIGRATION_FAILED, and nothing runs (workflow 20)',
    async (_, migrate, why) => {
      const { store } = await redeployed(
        flowWith(waiting),
        flowWith(waiting, { version: '2', migrate: migrate as MigrateWorkflow }),
      );
      expect((await store.load('r'))?.parked).toMatchObject({
        code: 'MIGRATION_FAILED',
        reason: expect.stringContaining(why),
      });
    },
  );
});
