import { defineWorkflow } from 'pawl';
import { testPaths } from 'pawl/testing';
import { expect, test } from 'vitest';
import { setup } from 'xstate';
import { getShortestPaths, getSimplePaths } from 'xstate/graph';
import { refundOf } from './refund.ts';

const DAY = 86_400_000;
const refund = refundOf({ paid: [] });
const input = { order: 'o' };
const done = (state: string, output: unknown) => ({ type: `xstate.done.actor.0.refund.${state}`, output });
const closed = { name: 'Error', code: 'CLOSED', message: 'the bank is closed' };

/** What may happen in each state, with what its calls answer. */
const events: { readonly [state: string]: readonly { readonly type: string }[] } = {
  looking: [done('looking', { cents: 500 }), done('looking', { cents: 70_000 })],
  asking: [
    done('asking', 'yes'),
    done('asking', 'no'),
    { type: 'cancel', by: 'ada' } as never,
    { type: 'xstate.after.patience.refund.asking' },
  ],
  paying: [done('paying', { receipt: 'r' }), { type: 'xstate.error.actor.0.refund.paying', error: closed } as never],
  settling: [done('settling', true), { type: `xstate.after.${DAY}.refund.settling` }],
};

test('each simple path of a machine is walked by a durable run with scripted calls (workflow 27)', async () => {
  const paths = getSimplePaths(refund.machine, {
    input,
    events: ((state: { value: string }) => events[state.value] ?? []) as never,
  });
  const ends = paths.map(({ state }) => String(state.value));
  expect(new Set(ends)).toEqual(new Set(['looking', 'asking', 'paying', 'settling', 'refused', 'done']));
  const walked = await testPaths(refund, paths, { input });
  expect(walked.paths).toBe(paths.length);
  expect(walked.steps).toBeGreaterThan(walked.paths);
});

test('a path that the run does not take is an error that has its events and both states (workflow 27)', async () => {
  const machineWith = (target: string) =>
    setup({ types: { events: {} as { type: 'go' } } }).createMachine({
      id: 'm',
      initial: 'a',
      states: { a: { on: { go: target } }, b: {}, c: {} },
    });
  const flow = defineWorkflow({ id: 'flow', machine: machineWith('c') });
  const paths = getShortestPaths(machineWith('b'), { events: [{ type: 'go' }] });
  await expect(testPaths(flow, paths)).rejects.toThrow('after xstate.init > go the run of flow should have "b"');
});
