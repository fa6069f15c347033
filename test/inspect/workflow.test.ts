import { ask, type ExecutorOptions, step, waitForSignal } from 'pawl';
import { describe, expect, test } from 'vitest';
import { type AnyActorRef, assign, type InspectionEvent, setup } from 'xstate';
import { defineWorkflow } from '../../src/index.ts';
import { noted, worldOf } from '../workflow/world.ts';
import { startClient } from './client.ts';

const DAY = 86_400_000;

/** A refund: it looks an order up, asks a manager, and pays. */
function refundOf() {
  const lookUp = noted('lookUp', 'read', () => ({ cents: 700, note: 'SECRET' }));
  const pay = noted('pay', 'once', () => 'paid');
  return defineWorkflow({
    id: 'refund',
    machine: setup({
      types: { context: {} as { note: string }, events: {} as { type: 'cancel'; by: string } },
      actors: {
        lookUp: step(lookUp.tool),
        manager: ask({ question: 'Pay?', options: ['yes', 'no'] }),
        pay: step(pay.tool),
        bank: waitForSignal('settled'),
      },
    }).createMachine({
      id: 'refund',
      context: { note: '' },
      initial: 'looking',
      states: {
        looking: {
          invoke: {
            id: 'look',
            src: 'lookUp',
            input: { order: '7' },
            onDone: {
              target: 'asking',
              actions: assign({ note: ({ event }) => (event.output as { note: string }).note }),
            },
          },
        },
        asking: {
          invoke: { id: 'boss', src: 'manager', onDone: 'paying' },
          after: { [DAY]: 'late' },
          on: { cancel: 'done' },
        },
        late: { after: { [DAY]: 'done' } },
        paying: { invoke: { id: 'payer', src: 'pay', input: {}, onDone: 'done', onError: 'done' } },
        done: { type: 'final' },
      },
    }),
  });
}

async function inspectedWorld(options: Partial<ExecutorOptions> = {}) {
  const client = await startClient();
  const world = worldOf([refundOf()], { inspect: client.inspect, ...options });
  return { client, ...world, refund: refundOf() };
}

/** What the inspector was told of one actor. */
function toldOf(client: Awaited<ReturnType<typeof startClient>>, sessionId: string) {
  const own = client.received.filter((frame) => frame.sessionId === sessionId);
  return {
    events: own.flatMap((frame) => (frame.type === '@xstate.event' ? [[frame.event.type, frame.sourceId]] : [])),
    states: own.flatMap((frame) =>
      frame.type === '@xstate.snapshot'
        ? [frame.snapshot as { readonly status: string; readonly value?: unknown }]
        : [],
    ),
  };
}

describe('the Stately inspector of a workflow', () => {
  test('sees its machine as an actor below the run: the chart, each event with its source, each state, and the calls as children (workflow 24)', async () => {
    const { client, boot, refund, settle } = await inspectedWorld();
    const executor = boot();
    const run = await executor.start(refund, { runId: 'r', input: undefined });
    await settle();
    const [wait] = await executor.waiting({ kind: 'question' });
    await executor.control('r').answer(wait?.id ?? '', 'yes', { by: { id: 'ada' } });
    expect(await run.result).toMatchObject({ status: 'ok' });
    await client.arrived();

    const machine = client.actor('refund');
    expect(machine).toMatchObject({ sessionId: 'machine:r', parentId: client.actor('run:r').sessionId });
    expect(Object.keys(JSON.parse(machine.definition ?? '{}').states).toSorted()).toEqual(
      ['looking', 'asking', 'late', 'paying', 'done'].toSorted(),
    );
    const children = ['look', 'boss', 'payer'].map((name) => client.actor(name));
    expect(children.map(({ parentId }) => parentId)).toEqual(['machine:r', 'machine:r', 'machine:r']);
    const told = toldOf(client, 'machine:r');
    const [look, boss, payer] = children.map(({ sessionId }) => sessionId);
    expect(told.events).toEqual([
      ['xstate.init', client.actor('run:r').sessionId],
      ['xstate.done.actor.look', look],
      ['xstate.done.actor.boss', boss],
      ['xstate.done.actor.payer', payer],
    ]);
    expect(told.states.map(({ value }) => value)).toEqual(['looking', 'asking', 'paying', 'done']);
    expect(told.states.at(-1)).toMatchObject({ status: 'done' });
    expect(toldOf(client, look ?? '').states).toMatchObject([
      { status: 'active' },
      { status: 'done', output: { cents: 700 } },
    ]);
    await executor.shutdown();
  });

  test('sees the same ids after a recovery in another process, and the machine where it was stored (workflow 24)', async () => {
    const { client, boot, refund, settle } = await inspectedWorld();
    const first = boot();
    await first.start(refund, { runId: 'r', input: undefined });
    await settle();
    await first.shutdown();
    const next = boot();
    await next.recover();
    await settle();
    await next.control('r').send({ type: 'cancel', by: 'ada' });
    await settle();
    await client.arrived();
    expect(client.actor('refund', 1).sessionId).toBe(client.actor('refund').sessionId);
    expect(client.actor('boss', 1).sessionId).toBe(client.actor('boss').sessionId);
    const { events, states } = toldOf(client, 'machine:r');
    expect(states.map(({ value }) => value)).toEqual(['looking', 'asking', 'asking', 'done']);
    expect(events.at(-1)).toEqual(['cancel', undefined]);
    // The question of the state that was left is an actor that was stopped.
    expect(toldOf(client, client.actor('boss').sessionId).states.at(-1)).toEqual({ status: 'stopped' });
    await next.shutdown();
  });

  test('gets a transition once it is stored, and not before (workflow 24)', async () => {
    const seen: unknown[] = [];
    const inspect = (event: InspectionEvent) => {
      if (event.type === '@xstate.snapshot' && event.actorRef.sessionId === 'machine:r')
        seen.push((event.snapshot as unknown as { readonly value: unknown }).value);
    };
    const world = worldOf([refundOf()], { inspect });
    /** The states whose write was under way when they were told. */
    const early: string[] = [];
    const written: string[] = [];
    const noting =
      <Args extends readonly unknown[], Result>(write: (...args: Args) => Promise<Result>) =>
      async (...args: Args): Promise<Result> => {
        const text = JSON.stringify(args);
        const states = ['looking', 'asking'].filter(
          (state) => text.includes(`"value":"${state}"`) && !written.includes(state),
        );
        const result = await write(...args);
        written.push(...states);
        early.push(...states.filter((state) => seen.includes(state)));
        return result;
      };
    const { store } = world;
    Object.assign(store, { save: noting(store.save.bind(store)), append: noting(store.append.bind(store)) });
    const executor = world.boot();
    await executor.start(refundOf(), { runId: 'r', input: undefined });
    await world.settle();
    expect(seen).toEqual(['looking', 'asking']);
    expect(written).toEqual(['looking', 'asking']);
    expect(early).toEqual([]);
    await executor.shutdown();
  });

  test('gets the machine and its calls without the texts that `redact` removes (workflow 24)', async () => {
    const refs = new Set<AnyActorRef>();
    const inspect = (event: InspectionEvent) => void refs.add(event.actorRef as AnyActorRef);
    const { client, boot, refund, settle } = await inspectedWorld({
      redact: (text) => text.replaceAll('SECRET', '[gone]'),
    });
    const executor = boot();
    await executor.start(refund, { runId: 'r', input: undefined }, { inspect });
    await settle();
    await client.arrived();
    const { states } = toldOf(client, 'machine:r');
    expect(states.at(-1)).toMatchObject({ value: 'asking', context: { note: '[gone]' } });
    // Nor does an inspector that asks an actor, or the one above it, read them.
    const asked = [...refs].flatMap((ref) => [ref.getSnapshot(), ref._parent?.getSnapshot()]);
    expect(asked.length).toBeGreaterThan(4);
    expect(JSON.stringify(asked)).toContain('[gone]');
    expect(JSON.stringify(asked)).not.toContain('SECRET');
    const own = client.frames.filter((frame) => JSON.parse(frame).sessionId.startsWith('machine:'));
    expect(own.length).toBeGreaterThan(8);
    expect(own.join()).not.toContain('SECRET');
    await executor.shutdown();
  });
});
