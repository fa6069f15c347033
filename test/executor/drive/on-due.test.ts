import { memoryStore, type ToolContext } from 'pawl';
import type { StoreGroups } from 'pawl/stores/kit';
import { callTool, hang, reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { wrapStore } from '../../../src/store/read-only.ts';
import { refundTool } from '../../fixtures/approval-desk.ts';
import { gate, type HostOptions, hostOf, settle, toolOf } from '../../fixtures/host.ts';
import { onClock } from '../../fixtures/on-clock.ts';
import { ids, treeWorld } from '../../fixtures/waiting-tree.ts';

const later = { drive: 'later' } as const;
const START = 1_000_000;

/** Hosts of one store that report what is due. */
function world() {
  const clock = testClock(START);
  const store = memoryStore({ clock });
  const hints: [string, number][] = [];
  const onDue = (runId: string, at: number) => void hints.push([runId, at]);
  const common = { clock, store, onDue };
  const host = (options: HostOptions = {}) => hostOf({ ...common, ...options });
  return { clock, store, hints, common, host, take: () => hints.splice(0) };
}
type World = ReturnType<typeof world>;

/** A tool that waits as the test says. */
const waitingTool = (wait: (context: ToolContext) => unknown) =>
  toolOf('wait', 'read', async (_, context) => wait(context));
const waiting = (wait: (context: ToolContext) => unknown): HostOptions => ({
  script: [callTool('wait', {}, 'c1'), reply('done')],
  agent: { tools: [waitingTool(wait)] },
});

/** A run that rests, and no process has it. */
async function resting({ clock, host }: World, options: HostOptions) {
  const { start } = host(options);
  const run = await start({ runId: 'r' });
  await clock.advance(1_000);
  return onClock(clock, run.result);
}

describe('onDue', () => {
  test('is called when a run rests until a time, and not for one that only an answer wakes (engine 13)', async () => {
    const timed = world();
    await resting(
      timed,
      waiting((context) => context.sleep(60_000)),
    );
    expect(timed.hints).toEqual([['r', START + 60_000]]);
    const asked = world();
    await resting(
      asked,
      waiting((context) => context.waitFor('paid')),
    );
    expect(asked.hints).toEqual([]);
  });

  test('is not called for the rest of a run that drive works on: its answer says it (engine 13)', async () => {
    const { clock, host, take } = world();
    const { start, executor } = host(waiting((context) => context.sleep(60_000)));
    await start({ runId: 'r' }, later);
    take();
    const driven = await onClock(clock, executor.drive('r', { budgetMs: 30_000 }));
    expect(driven).toMatchObject({ state: 'waiting', wakeAt: expect.any(Number) });
    expect(take()).toEqual([]);
  });

  test('is called by the process that answers, steers or cancels a run of another process (engine 13)', async () => {
    const here = world();
    const result = await resting(here, {
      script: [callTool('refund', { cents: 7 })],
      agent: { tools: [refundTool()] },
    });
    const wait = result.status === 'waiting' ? result.waits[0] : undefined;
    here.take();
    const desk = hostOf({ ...here.common, agents: [] }).executor;
    await desk.control('r').approve(wait?.id ?? '', { by: { id: 'ada' } });
    expect(here.take()).toEqual([['r', here.clock.now()]]);
    await desk.control('r').steer('Hurry.');
    expect(here.take()).toEqual([['r', here.clock.now()]]);
    const owner = here.host({ script: [hang()] });
    await owner.start({ runId: 'live' });
    expect(await desk.control('live').cancel()).toBe('sent');
    expect(here.take()).toEqual([['live', here.clock.now()]]);
  });

  test('is called by the process whose signal finds a run (engine 13)', async () => {
    const here = world();
    await resting(
      here,
      waiting((context) => context.waitFor('paid')),
    );
    const desk = hostOf({ ...here.common, agents: [] }).executor;
    expect(await desk.signal('paid', { cents: 7 }, { id: 's1' })).toEqual({ to: 'r' });
    expect(here.take()).toEqual([['r', here.clock.now()]]);
    expect(await desk.signal('other', null, { id: 's2' })).toEqual({});
    expect(here.take()).toEqual([]);
  });

  test('is called for a parent that rests when its child has ended (engine 13)', async () => {
    const world = treeWorld();
    const hints: string[] = [];
    const { start, executor } = world.process(undefined, { onDue: (runId) => void hints.push(runId) });
    await start();
    await world.until(async () => (await world.resting()).length === 3, 'the rest of the tree');
    hints.length = 0;
    const wait = await world.waitOf(ids.leaf);
    await executor.control(ids.root).approve(wait?.id ?? '', { by: { id: 'ada' } });
    await world.until(() => world.isEmpty(), 'the end of all runs');
    expect(hints).toEqual([ids.leaf, ids.mid, ids.root]);
    await world.shutdown();
  });

  test('is called for an unparked run, and not for a parked one (engine 13)', async () => {
    const { host, take } = world();
    const { start, executor } = host();
    await start({ runId: 'r' }, later);
    take();
    await executor.park('r', 'a person looks at it');
    expect(take()).toEqual([]);
    await executor.unpark('r');
    expect(take()).toEqual([['r', START]]);
  });

  test('is called for a run that a shutdown leaves (engine 13)', async () => {
    const { host, take } = world();
    const { start, executor } = host({ script: [hang()] });
    await start({ runId: 'r' });
    expect(take()).toEqual([]);
    await executor.shutdown();
    expect(take()).toEqual([['r', START]]);
  });

  test('is called for the next turn of a thread in place of its start when a slice ends the turn before (engine 13)', async () => {
    const { clock, host, take } = world();
    const left = host({ script: [hang()] });
    const threadOf = ({ executor, agent }: typeof left) => executor.thread('t', { agent, callerId: 'ada' });
    const first = await threadOf(left).send({ id: 'm1', text: 'One.' });
    const second = await threadOf(left).send({ id: 'm2', text: 'Two.' });
    await left.executor.shutdown();
    take();
    const { executor, model } = host({ script: [reply('one'), reply('two')] });
    expect(await onClock(clock, executor.drive(first.runId))).toMatchObject({ state: 'ended' });
    expect(take()).toEqual([[second.runId, expect.any(Number)]]);
    expect(model.calls).toHaveLength(1);
    expect(await onClock(clock, executor.drive(second.runId))).toMatchObject({ state: 'ended' });
  });

  test('is called for a turn that begins where nothing can start it, and for one that a message steers (engine 13)', async () => {
    const { common, host, take, clock } = world();
    const left = host({ script: [hang()] });
    const thread = left.executor.thread('t', { agent: left.agent, callerId: 'ada' });
    const first = await thread.send({ id: 'm1', text: 'One.' });
    const second = await thread.send({ id: 'm2', text: 'Two.' });
    await left.executor.shutdown();
    take();
    const next = host();
    const there = next.executor.thread('t', { agent: next.agent, callerId: 'ada' });
    expect(await there.send({ id: 'm3', text: 'Hurry.', onBusy: 'steer' })).toMatchObject({ state: 'steered' });
    expect(take()).toEqual([[first.runId, clock.now()]]);
    const desk = hostOf({ ...common, agents: [] }).executor;
    expect(await desk.control(first.runId).cancel()).toBe('ended');
    await settle();
    expect(take()).toEqual([[second.runId, clock.now()]]);
  });

  test('that throws, rejects or hangs fails nothing, delays nothing, and is logged once (engine 13)', async () => {
    const { clock, common, store } = world();
    const failures = [
      () => {
        throw new Error('thrown');
      },
      async () => Promise.reject(new Error('rejected')),
      () => new Promise<void>(() => {}),
    ];
    for (const [i, onDue] of failures.entries()) {
      const host = hostOf({ ...common, onDue });
      for (const runId of [`a${i}`, `b${i}`])
        expect(await host.start({ runId }, later)).toMatchObject({ accepted: 'started' });
      await clock.advance(30_000);
      expect(host.warnings).toEqual(['executor: onDue failed; the run stays due']);
      expect(host.warned[0]?.fields).toMatchObject({ runId: `a${i}` });
    }
    expect((await store.due.list({ limit: 10 })).runs).toHaveLength(6);
  });

  test('is waited for by a shutdown (engine 13)', async () => {
    const { common } = world();
    const sending = gate();
    const { start, executor } = hostOf({ ...common, onDue: () => sending.pass() });
    await start({ runId: 'r' }, later);
    let isOver = false;
    const ending = executor.shutdown().then(() => {
      isOver = true;
    });
    await settle();
    expect(isOver).toBe(false);
    sending.open();
    await ending;
  });

  test('must be a function (engine 13)', () => {
    expect(() => hostOf({ onDue: 'queue' as never })).toThrow('onDue must be a function');
  });

  test('is a hint: without it the list of due runs has the run, and one too many reads it once (engine 14)', async () => {
    const { clock, store, host } = world();
    const { start } = hostOf({ clock, store });
    await start({ runId: 'r' }, later);
    expect((await store.due.list({ limit: 10 })).runs).toMatchObject([{ runId: 'r' }]);
    const { executor } = host();
    expect(await executor.drive('r')).toMatchObject({ state: 'ended' });
    const reads: string[] = [];
    const watched = wrapStore(store as Pick<StoreGroups, 'outcomes'> & typeof store, (name, call) => (...args) => {
      reads.push(name);
      return call(...args);
    });
    expect(await host({ store: watched }).executor.drive('r')).toMatchObject({ state: 'ended' });
    expect(reads).toEqual(['load', 'outcomes.find']);
  });
});
