import { ask, createExecutor, defineWorkflow, memoryStore } from 'pawl';
import { freshProgress } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { assign, setup } from 'xstate';
import type { Progress } from '../../src/run/progress.ts';
import { withEntered } from '../../src/run/workflow/advanced.ts';
import type { WorkflowState } from '../../src/run/workflow/state.ts';
import { until } from '../fixtures/host.ts';

let asked = 0;

/** A door: it opens once for a key that fits, and stays open until it is closed. */
const door = defineWorkflow({
  id: 'door',
  machine: setup({
    types: {
      context: {} as { opened: number },
      events: {} as { type: 'open'; key: string } | { type: 'shut' | 'knock' | 'kick' | 'stop' },
    },
    actors: { owner: ask({ question: 'Who is there?' }) },
    guards: {
      fits: ({ event }) => {
        asked += 1;
        return 'key' in event && event.key === 'mine';
      },
      throws: () => {
        throw new Error('no guard');
      },
    },
  }).createMachine({
    context: { opened: 0 },
    invoke: { src: 'owner', onDone: '.gone' },
    initial: 'closed',
    on: { stop: '.gone' },
    states: {
      closed: {
        on: {
          open: { guard: 'fits', target: 'open', actions: assign({ opened: ({ context }) => context.opened + 1 }) },
          knock: {},
          kick: { guard: 'throws', target: 'open' },
        },
      },
      open: { on: { shut: 'closed' } },
      gone: { type: 'final' },
    },
  }),
});

async function standing(checkpoints = memoryStore()) {
  const executor = createExecutor({ store: checkpoints, workflows: [door], defaults: { waitLingerMs: 1_000_000 } });
  const run = await executor.start(door, { runId: 'd', input: undefined });
  await until(async () => (await executor.waiting({ kind: 'question' })).length === 1);
  return { executor, run, checkpoints, control: executor.control('d') };
}

const must = { mustTake: true } as const;
const untaken = (taken: readonly string[]) => ({ code: 'EVENT_NOT_TAKEN', taken });
const takes = ['open', 'knock', 'kick', 'stop'];

describe('control(runId).send', () => {
  test('acknowledges an event that ends its workflow (workflow 18)', async () => {
    const { control, run } = await standing();
    expect(await control.send({ type: 'stop' })).toBe('recorded');
    expect(await run.result).toMatchObject({ status: 'ok' });
    await expect(control.send({ type: 'stop' })).rejects.toMatchObject({ code: 'RUN_NOT_FOUND' });
  });

  test('refuses an id that no command can have', async () => {
    const { control, executor } = await standing();
    for (const id of ['', 'x'.repeat(129)])
      await expect(control.send({ type: 'knock' }, { id })).rejects.toThrow('1 to 128 characters');
    await executor.shutdown();
  });

  test('with mustTake refuses an event that the present state does not take, and names those that it takes (workflow 18)', async () => {
    const { control, executor } = await standing();
    await expect(control.send({ type: 'shut' }, must)).rejects.toMatchObject(untaken(takes));
    await expect(control.send({ type: 'open', key: 'yours' }, must)).rejects.toMatchObject(untaken(takes));
    await expect(control.send({ type: 'kick' }, must)).rejects.toMatchObject(untaken(takes));
    expect((await executor.explain('d'))?.workflow?.state).toBe('closed');
    // XState takes a transition that has no target and no action.
    expect(await control.send({ type: 'knock' }, must)).toBe('recorded');
    expect(await control.send({ type: 'open', key: 'mine' }, must)).toBe('recorded');
    await until(async () => (await executor.explain('d'))?.workflow?.state === 'open');
    await expect(control.send({ type: 'open', key: 'mine' }, must)).rejects.toMatchObject(untaken(['shut', 'stop']));
    await executor.shutdown();
  });

  test('with mustTake an event that is sent again with its id is not refused for what it has changed (workflow 18)', async () => {
    const { control, executor } = await standing();
    const event = { type: 'open', key: 'mine' };
    for (const _ of [1, 2]) expect(await control.send(event, { id: 'click-7', ...must })).toBe('recorded');
    const { record } = (await executor.explain('d')) ?? {};
    expect(record?.workflow?.snapshot.context).toEqual({ opened: 1 });
    await executor.shutdown();
  });

  test('with mustTake asks the record of a stored workflow, which this executor must know (workflow 18)', async () => {
    const { executor, checkpoints } = await standing();
    await executor.shutdown();
    const known = createExecutor({ store: checkpoints, workflows: [door] }).control('d');
    await expect(known.send({ type: 'shut' }, must)).rejects.toMatchObject(untaken(takes));
    expect(await known.send({ type: 'open', key: 'mine' }, must)).toBe('sent');
    const stranger = createExecutor({ store: checkpoints }).control('d');
    await expect(stranger.send({ type: 'knock' }, must)).rejects.toMatchObject({ code: 'UNSUPPORTED' });
    expect(await stranger.send({ type: 'knock' })).toBe('sent');
  });

  test('without mustTake asks no guard before the transition (workflow 4)', async () => {
    const { control, executor } = await standing();
    const before = asked;
    await control.send({ type: 'open', key: 'yours' });
    await until(async () => (await executor.explain('d'))?.record?.workflow?.events.length === 0);
    expect(asked - before).toBe(1);
    await executor.shutdown();
  });
});

test('the last 1,000 events of a workflow are remembered, each in eight characters of its record (workflow 18, 28)', () => {
  const ids = Array.from({ length: 1_200 }, (_, i) => `${'click-'.repeat(20)}${i}`);
  const entered = (progress: Progress, id: string) => withEntered(progress, { id, event: { type: 'knock' } });
  const after = ids.reduce(entered, freshProgress());
  expect(after.workflow?.seen).toHaveLength(8_000);
  const taken = { ...after, workflow: { ...(after.workflow as WorkflowState), events: [] } };
  for (const id of ids.slice(200)) expect(entered(taken, id)).toBe(taken);
  expect(entered(taken, 'another').workflow?.events).toHaveLength(1);
});
