import { defineWorkflow, step } from 'pawl';
import { expect, test } from 'vitest';
import { assign, setup } from 'xstate';
import { noted, worldOf } from './world.ts';

/** Waits in `a` for `go`, which may fail. */
const flowOf = (assigned: () => object = () => ({})) =>
  defineWorkflow({
    id: 'flow',
    machine: setup({}).createMachine({
      initial: 'a',
      states: { a: { on: { go: { target: 'b', actions: assign(assigned) } } }, b: { type: 'final' } },
    }),
  });

test('a workflow that was cancelled continues in its state after a retry, in the process that retried it (lab 4)', async () => {
  const flow = flowOf();
  const { boot, settle, pass, store } = worldOf([flow]);
  const first = boot();
  const run = await first.start(flow, { runId: 'r' });
  await settle();
  await run.cancel('too early');
  expect(await run.result).toMatchObject({ status: 'cancelled' });
  await first.shutdown();
  const second = boot();
  const next = await second.retry('r');
  expect(next.accepted).toBe('resumed');
  expect(await next.result).toMatchObject({ status: 'waiting' });
  expect(await store.load('r')).toMatchObject({ retries: [{ error: { code: 'CANCELLED' } }] });
  await second.control('r').send({ type: 'go' });
  await pass(4_000);
  expect(await store.outcomes.find('r')).toMatchObject({ status: 'ok' });
});

test('a workflow that failed at an event takes the event again after a retry (lab 4)', async () => {
  let isBroken = true;
  const flow = flowOf(() => {
    if (isBroken) throw new Error('no such order');
    return {};
  });
  const { boot, settle, pass, store } = worldOf([flow]);
  const executor = boot();
  await executor.start(flow, { runId: 'r' });
  await settle();
  await executor.control('r').send({ type: 'go' });
  await pass(4_000);
  expect(await store.outcomes.find('r')).toMatchObject({ status: 'error', error: { code: 'WORKFLOW_ERROR' } });
  isBroken = false;
  expect(await (await executor.retry('r')).result).toMatchObject({ status: 'ok' });
});

test('a workflow whose machine a failed call has ended is RUN_ENDED for a retry, and its call is not repeated (lab 6)', async () => {
  const pay = noted('pay', 'once', () => {
    throw new Error('refused');
  });
  const machine = setup({ actors: { pay: step(pay.tool) } }).createMachine({
    initial: 'a',
    states: { a: { invoke: { src: 'pay', input: {}, onDone: 'b' } }, b: { type: 'final' } },
  });
  const flow = defineWorkflow({ id: 'flow', machine });
  const executor = worldOf([flow]).boot();
  expect(await executor.run(flow, { runId: 'r' })).toMatchObject({ status: 'error' });
  const refused = { code: 'RUN_ENDED', message: expect.stringContaining('its machine is over (error)') };
  await expect(executor.retry('r')).rejects.toMatchObject(refused);
  expect(pay.calls).toHaveLength(1);
});

test('a workflow that ended ok, and one that a call began, are RUN_ENDED for a retry, which names no fork: there is none (lab 6, 10)', async () => {
  const throwing = setup({ guards: { no: thrown } }).createMachine({
    initial: 'a',
    states: { a: { always: { target: 'b', guard: 'no' } }, b: {} },
  });
  const child = defineWorkflow({ id: 'child', machine: throwing });
  const machine = setup({ actors: { child: step(child) } }).createMachine({
    initial: 'a',
    states: { a: { invoke: { src: 'child', onDone: 'b', onError: 'b' } }, b: { type: 'final' } },
  });
  const flow = defineWorkflow({ id: 'flow', machine });
  const executor = worldOf([flow, child], { retention: { records: '1h' } }).boot();
  expect(await executor.run(flow, { runId: 'r' })).toMatchObject({ status: 'ok' });
  const message = 'run r has ended with status ok: it has its answer, and does not continue';
  await expect(executor.retry('r')).rejects.toMatchObject({ code: 'RUN_ENDED', message });
  await expect(executor.fork('r', { at: 0 })).rejects.toMatchObject({ code: 'UNSUPPORTED' });
  const below = (await executor.history()).find(({ runId }) => runId !== 'r');
  await expect(executor.retry(below?.runId ?? '')).rejects.toThrow(/read its end; retry that one, r$/);
});

function thrown(): boolean {
  throw new Error('no');
}
