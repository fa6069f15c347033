import { defineWorkflow } from 'pawl';
import { expect, test } from 'vitest';
import { assign, setup } from 'xstate';
import { type Desk, refundOf } from './refund.ts';
import { worldOf } from './world.ts';

const DAY = 86_400_000;

function refunds(options: Parameters<typeof worldOf>[1] = {}) {
  const desk: Desk = { paid: [] };
  const refund = refundOf(desk);
  return { desk, refund, ...worldOf([refund], options) };
}

test('a workflow has the output of its machine as the data of its result, and no messages (workflow 1)', async () => {
  const { refund, boot, settle, desk } = refunds();
  const executor = boot();
  const run = await executor.start(refund, { runId: 'r', input: { order: 'small' } });
  await settle();
  await executor.signal('settled', true, { key: 'small', id: 's' });
  const result = await run.result;
  expect(result).toMatchObject({ status: 'ok', output: '', data: { receipt: 'r-500', why: '' }, messages: [] });
  expect(desk.paid).toMatchObject([{ cents: 500 }]);
});

test('the same start finds the run that is there, and one with another input is refused (workflow 1)', async () => {
  const { refund, boot, settle } = refunds();
  const executor = boot();
  await executor.start(refund, { runId: 'r', input: { order: 'large' } });
  expect((await executor.start(refund, { runId: 'r', input: { order: 'large' } })).accepted).toBe('joined');
  const other = await executor.start(refund, { runId: 'r', input: { order: 'small' } });
  expect([other.accepted, (await other.result).error?.code]).toEqual(['refused', 'RUN_ID_CONFLICT']);
  await settle();
});

test('a workflow that waits for a person rests without a process, and another process continues it (workflow 6, 11)', async () => {
  const { refund, boot, pass, store, desk } = refunds();
  const first = boot();
  const run = await first.start(refund, { runId: 'r', input: { order: 'large' } });
  await pass(2_000);
  expect(await run.result).toMatchObject({ status: 'waiting', wakeAt: 1_000_000 + 3 * DAY });
  await first.shutdown();
  const second = boot();
  await second.recover();
  const [wait] = await second.waiting({ kind: 'question' });
  expect(wait).toMatchObject({ question: 'Refund 70000?', options: ['yes', 'no'] });
  await second.control('r').answer(wait?.id ?? '', 'yes');
  await pass(4_000);
  expect(desk.paid).toMatchObject([{ cents: 70_000 }]);
  await second.signal('settled', true, { key: 'large', id: 's' });
  await pass(4_000);
  expect(await store.outcomes.find('r')).toMatchObject({ status: 'ok', data: { receipt: 'r-70000' } });
});

test('a timer of three days fires once in the process that has the run then, and stops the question (workflow 6, 9)', async () => {
  const { refund, boot, pass, store } = refunds({ defaults: { waitLingerMs: 1_000, dueMs: 60_000 } });
  const first = boot();
  await first.start(refund, { runId: 'r', input: { order: 'large' } });
  await pass(2_000);
  await first.shutdown();
  const second = boot();
  await second.recover();
  await pass(3 * DAY);
  await pass(240_000);
  expect(await store.outcomes.find('r')).toMatchObject({ status: 'ok', data: { receipt: '', why: 'no answer' } });
  expect(await second.waiting()).toEqual([]);
});

test('a machine event reaches a live workflow, one that rests, and counts once by its id (workflow 18)', async () => {
  const { refund, boot, pass, settle, store } = refunds();
  const executor = boot();
  await executor.start(refund, { runId: 'live', input: { order: 'large' } });
  await settle();
  expect(await executor.control('live').send({ type: 'cancel', by: 'ada' }, { id: 'click' })).toBe('recorded');
  await pass(2_000);
  expect(await store.outcomes.find('live')).toMatchObject({ data: { why: 'ada' } });
  await executor.start(refund, { runId: 'rests', input: { order: 'large' } });
  await pass(4_000);
  expect(await executor.control('rests').send({ type: 'nothing' }, { id: 'first' })).toBe('sent');
  await pass(4_000);
  expect((await store.load('rests'))?.workflow).toMatchObject({ seen: expect.stringMatching(/^.{8}$/), events: [] });
  await executor.control('rests').send({ type: 'nothing' }, { id: 'first' });
  await executor.control('rests').send({ type: 'cancel', by: 'bob' });
  await pass(4_000);
  expect(await store.outcomes.find('rests')).toMatchObject({ data: { why: 'bob' } });
});

test.each(['xstate.done.actor.pay', 'xstate.error.actor.x', 'xstate.stop', '*', ''])(
  'an event of the type %j is refused at its sender: it would forge a result (workflow 18)',
  async (type) => {
    const { refund, boot, settle } = refunds();
    const executor = boot();
    await executor.start(refund, { runId: 'r', input: { order: 'large' } });
    await settle();
    await expect(executor.control('r').send({ type })).rejects.toMatchObject({ code: 'EVENT_INVALID' });
  },
);

test('an event that comes before the machine has begun is taken once it has (workflow 18)', async () => {
  const flow = defineWorkflow({
    id: 'flow',
    machine: setup({}).createMachine({ initial: 'a', states: { a: { on: { go: 'b' } }, b: { type: 'final' } } }),
  });
  const executor = worldOf([flow]).boot();
  const run = await executor.start(flow, { runId: 'r' });
  expect(await executor.control('r').send({ type: 'go' })).toBe('recorded');
  expect((await run.result).status).toBe('ok');
});

test('an event for a run that has ended, or never was, is refused (workflow 18)', async () => {
  const { boot } = refunds();
  await expect(boot().control('gone').send({ type: 'cancel' })).rejects.toMatchObject({ code: 'RUN_NOT_FOUND' });
});

test('an error that a tool throws is the error event of its actor, with its code (workflow 8)', async () => {
  const { refund, boot, desk } = refunds();
  desk.fail = Object.assign(new Error('the bank is closed'), { code: 'BANK_CLOSED' });
  const result = await boot().run(refund, { runId: 'r', input: { order: 'small' } });
  expect(result).toMatchObject({ status: 'ok', data: { why: 'BANK_CLOSED' } });
});

test('a once call during which the process died is the error OUTCOME_UNKNOWN, and is not repeated (workflow 7)', async () => {
  const { refund, boot, pass, store, desk, settle } = refunds();
  const first = boot();
  desk.fail = undefined;
  await first.start(refund, { runId: 'r', input: { order: 'small' } });
  await settle();
  const record = await store.load('r');
  const call = {
    callId: '2.1',
    name: 'pay',
    input: { cents: 500 },
    effect: 'once',
    state: 'started',
    attempt: 1,
  } as const;
  expect(record?.openStep).toBeDefined();
  const other = worldOf([refund]);
  const workflow = {
    ...(record?.workflow as NonNullable<typeof record>['workflow'] & object),
    snapshot: { ...record?.workflow?.snapshot, value: 'paying', children: { '0.refund.paying': { src: 'pay' } } },
    calls: { '0.refund.paying': '2.1' },
    timers: [],
  };
  await other.store.save({
    ...(record as NonNullable<typeof record>),
    openStep: { message: { role: 'assistant', content: [] }, calls: [call] },
    workflow: workflow as never,
    waiting: { waits: [], settled: [] },
  });
  const paid = desk.paid.length;
  await other.boot().recover();
  await other.pass(4_000);
  expect(await other.store.outcomes.find('r')).toMatchObject({ status: 'ok', data: { why: 'OUTCOME_UNKNOWN' } });
  expect(desk.paid.length).toBe(paid);
  await pass(10);
});

test('the events of a run say each transition, from where and to where, and which transitions of the machine were taken (workflow 22)', async () => {
  const { refund, boot, settle } = refunds();
  const executor = boot();
  const run = await executor.start(refund, { runId: 'r', input: { order: 'small' } });
  const seen: unknown[] = [];
  const reading = (async () => {
    for await (const event of run.events())
      if (event.type === 'workflow.transition') seen.push([event.from, event.to, event.event, event.took]);
  })();
  await settle();
  await executor.signal('settled', true, { key: 'small', id: 's' });
  await run.result;
  await reading;
  const ended = (state: string) => `xstate.done.actor.0.refund.${state}`;
  expect(seen).toEqual([
    [null, 'looking', 'xstate.init', []],
    // It passes `deciding`, which it leaves at once.
    ['looking', 'paying', ended('looking'), [`looking:${ended('looking')}:0`, 'deciding::0']],
    ['paying', 'settling', ended('paying'), [`paying:${ended('paying')}:0`]],
    ['settling', 'done', ended('settling'), [`settling:${ended('settling')}:0`]],
  ]);
});

test('timers that came due while no process had the run are taken by their time, not in the order of their setting (workflow 2, 6)', async () => {
  const made = setup({
    types: { context: {} as { order: string[] }, output: {} as string[] },
    actions: {
      note: assign(({ context }, name: string) => ({ order: [...context.order, name] })),
    },
    delays: { slow: 3 * DAY, quick: DAY, middle: 2 * DAY },
  });
  const machine = made.createMachine({
    context: { order: [] },
    after: {
      slow: { actions: { type: 'note', params: 'slow' }, target: '.over' },
      quick: { actions: { type: 'note', params: 'quick' } },
      middle: { actions: { type: 'note', params: 'middle' } },
    },
    initial: 'waits',
    states: { waits: {}, over: { type: 'final' } },
    output: ({ context }) => context.order,
  });
  const flow = defineWorkflow({ id: 'flow', machine });
  const { boot, pass, clock, store } = worldOf([flow]);
  const first = boot();
  await first.start(flow, { runId: 'r' });
  await pass(4_000);
  await first.shutdown();
  await clock.advance(10 * DAY);
  const second = boot();
  await second.recover();
  await pass(8_000);
  expect(await store.outcomes.find('r')).toMatchObject({ status: 'ok', data: ['quick', 'middle', 'slow'] });
});

test('an input that no record can hold is WORKFLOW_STATE with its path, and nothing is stored (workflow 16)', async () => {
  const machine = setup({}).createMachine({ initial: 'a', states: { a: { type: 'final' } } });
  const flow = defineWorkflow({ id: 'flow', machine });
  const { boot, store } = worldOf([flow]);
  const input = { order: { placedAt: new Date(0) } };
  const { error } = await boot().run(flow, { runId: 'r', input });
  expect(error).toMatchObject({
    code: 'WORKFLOW_STATE',
    message: expect.stringMatching(/^input\.order\.placedAt is a Date/),
  });
  expect(await store.load('r')).toBeNull();
});
