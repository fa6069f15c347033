import { type createExecutor, memoryStore, type RunOutcome } from 'pawl';
import { httpHandler } from 'pawl/http';
import { callTool, hang, reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { type HostOptions, hostOf, settle, toolOf, until } from '../fixtures/host.ts';
import { plainStore, watchedStore, withoutMarks } from '../fixtures/watched-store.ts';

const MINUTE = 60_000;
const ask = toolOf('ask', 'once', (_, context) => context.waitFor('paid'));
const waiting = () => ({ script: [callTool('ask'), reply('paid')], tools: [ask] });

/** A service with `onOutcome`, and other processes on its store that have none. */
function world(options: HostOptions = {}) {
  const clock = testClock(1_000_000);
  const store = memoryStore({ clock });
  const heard: RunOutcome[] = [];
  const common = { clock, store, random: () => 0.5 };
  const service = hostOf({ ...waiting(), onOutcome: (end) => void heard.push(end), ...options, ...common });
  const desk = hostOf({ ...common, ...waiting(), journal: true });
  /** What the service hears within a few of its sweeps. */
  const hears = async () => {
    for (let i = 0; i < 5; i++) {
      await clock.advance(2_000);
      await settle();
    }
    return heard.map(({ runId, status }) => ({ runId, status }));
  };
  return { clock, store, heard, common, service, desk, hears };
}

async function rests({ clock, store }: ReturnType<typeof world>) {
  await until(async () => {
    await clock.advance(100);
    return (await store.due.countResting()) === 1;
  });
}

/** A run of the service that rests, without a process. */
async function resting(options: HostOptions = {}) {
  const made = world(options);
  await made.service.start({ runId: 'r', callerId: 'ada' });
  await rests(made);
  return made;
}

const json = { 'content-type': 'application/json' };
const handlerOf = ({ desk }: ReturnType<typeof world>) =>
  httpHandler(desk.executor, { agents: { worker: desk.agent }, authorize: () => ({ callerId: 'ada' }) });

describe('onOutcome gets the end of a run', () => {
  test.for<[string, (made: Awaited<ReturnType<typeof resting>>) => Promise<unknown>]>([
    ['that control().cancel() of another process cancelled', ({ desk }) => desk.executor.control('r').cancel('enough')],
    [
      'that was cancelled by HTTP',
      async (made) => {
        const url = 'http://localhost/runs/r/cancel';
        const answer = await handlerOf(made)(new Request(url, { method: 'POST', headers: json, body: '{}' }));
        expect(answer.status).toBeLessThan(300);
      },
    ],
  ])('%s, once (edges 16)', async ([, end]) => {
    const made = await resting();
    await end(made);
    expect(await made.hears()).toEqual([{ runId: 'r', status: 'cancelled' }]);
    expect(made.heard[0]?.outcomeId).toBe((await made.store.outcomes.find('r'))?.outcomeId);
    expect(made.heard[0]).not.toHaveProperty('run');
  });

  test.for<[string, (thread: ReturnType<ReturnType<typeof createExecutor>['thread']>) => Promise<unknown>]>([
    ['the cancel of its thread', (thread) => thread.cancel()],
    ['the delete of its thread', (thread) => thread.delete()],
    ['a message that interrupts it', (thread) => thread.send({ id: 'm2', text: 'Stop.', onBusy: 'interrupt' })],
  ])('that %s cancelled in another process (edges 16)', async ([, end]) => {
    const made = world();
    const threadOf = ({ executor, agent }: typeof made.desk) => executor.thread('t', { agent, callerId: 'ada' });
    const { runId } = await threadOf(made.service).send({ id: 'm1', text: 'Go.' });
    await rests(made);
    await end(threadOf(made.desk));
    expect(await made.hears()).toContainEqual({ runId, status: 'cancelled' });
  });

  test('that another process worked to its answer (edges 16)', async () => {
    const made = world();
    await made.desk.executor.start(made.desk.agent, { runId: 'r', prompt: 'Go.' });
    made.service.executor.recover();
    await made.clock.advance(5_000);
    await made.desk.executor.signal('paid', 7, { id: 's' });
    expect(await made.hears()).toEqual([{ runId: 'r', status: 'ok' }]);
  });

  test('as this service knows it, where two services share a store: each gets those of its agents (edges 16)', async () => {
    const made = await resting();
    const others: string[] = [];
    const other = hostOf({
      ...made.common,
      agent: { id: 'other' },
      onOutcome: ({ runId }) => void others.push(runId),
    });
    await other.executor.recover();
    await made.desk.executor.control('r').cancel();
    expect(await made.hears()).toEqual([{ runId: 'r', status: 'cancelled' }]);
    expect(others).toEqual([]);
  });
});

describe('an end that onOutcome refuses', () => {
  test('ends its run, and is delivered again after pauses that grow, until it is accepted (edges 16)', async () => {
    const at: number[] = [];
    const clock = testClock(0);
    const store = memoryStore({ clock });
    const onOutcome = () => {
      at.push(clock.now());
      if (at.length < 7) throw new Error('the bus is down');
    };
    const host = hostOf({ clock, store, onOutcome, random: () => 0.5 });
    expect(await host.run({ runId: 'r' })).toMatchObject({ status: 'ok' });
    expect(await store.listInterrupted()).toEqual([]);
    for (let i = 0; i < 60; i++) await clock.advance(MINUTE);
    const pauses = at.slice(1).map((time, i) => Math.floor((time - (at[i] ?? 0)) / 10_000) * 10);
    expect(pauses).toEqual([0, 30, 60, 120, 240, 480]);
    await host.executor.shutdown();
  });

  test('holds up no other end: one that is refused without end costs the others nothing (edges 16)', async () => {
    const heard: string[] = [];
    const onOutcome = async ({ runId }: RunOutcome) => {
      if (runId === 'poison') throw new Error('no');
      heard.push(runId);
    };
    const made = world({ onOutcome });
    for (const runId of ['poison', ...Array.from({ length: 30 }, (_, i) => `r${i}`)])
      await made.desk.start({ runId }, { drive: 'later' });
    for (const { runId } of await made.store.listInterrupted()) await made.desk.executor.control(runId).cancel();
    await made.service.executor.recover();
    await made.hears();
    expect(heard).toHaveLength(30);
  });

  test('is kept past retention.outcomes, with its contents, and also where nothing is kept (edges 16)', async () => {
    for (const outcomes of [0, 1_000]) {
      const clock = testClock(0);
      let isDown = true;
      const heard: RunOutcome[] = [];
      const onOutcome = (end: RunOutcome) => {
        if (isDown) throw new Error('down');
        heard.push(end);
      };
      const host = hostOf({ clock, store: memoryStore({ clock }), onOutcome, retention: { outcomes } });
      await host.run({ runId: 'r' });
      await clock.advance(10 * MINUTE);
      isDown = false;
      await clock.advance(20 * MINUTE);
      expect(heard).toMatchObject([{ runId: 'r', output: 'done' }]);
      await host.executor.shutdown();
    }
  });
});

describe('the mark of an end', () => {
  test('alone decides: an end whose record outlived it is not delivered by the start that removes the record (edges 16)', async () => {
    const inner = memoryStore();
    let isDead = true;
    const store = watchedStore(
      { before: ({ method }) => isDead && method === 'delete' && new Promise(() => {}) },
      inner,
    );
    const heard: string[] = [];
    const onOutcome = ({ outcomeId }: RunOutcome) => void heard.push(outcomeId);
    await hostOf({ store, onOutcome }).start({ runId: 'r' });
    await until(() => inner.outcomes.find('r'));
    expect(await inner.listInterrupted()).toMatchObject([{ runId: 'r' }]);
    isDead = false;
    const record = await inner.load('r');
    const left = memoryStore();
    await left.outcomes.keep('r', (await inner.outcomes.find('r')) as RunOutcome, 4e12);
    if (record) await left.save(record);
    const next = hostOf({ store: left, onOutcome, script: [] });
    await next.executor.recover();
    await until(async () => (await left.listInterrupted()).length === 0);
    expect(heard).toHaveLength(1);
  });

  test('outlives its answer by a week at most, then without its contents; retention.outcomes 0 leaves none (edges 16)', async () => {
    const made = await resting();
    const brief = hostOf({ ...made.common, retention: { outcomes: 1_000 } });
    await made.service.executor.shutdown();
    await brief.executor.control('r').cancel('a reason of 1 s');
    await made.clock.advance(MINUTE);
    expect(await made.store.outcomes.find('r')).toBeNull();
    const heard: RunOutcome[] = [];
    const next = hostOf({ ...made.common, ...waiting(), onOutcome: (end) => void heard.push(end) });
    await next.executor.recover();
    await made.clock.advance(5_000);
    expect(heard).toMatchObject([{ runId: 'r', status: 'cancelled', isCut: true, error: { code: 'CANCELLED' } }]);
    expect(JSON.stringify(heard)).not.toContain('a reason');
    await next.start({ runId: 'none' }, { drive: 'later' });
    await hostOf({ ...made.common, retention: { outcomes: 0 } })
      .executor.control('none')
      .cancel();
    await made.clock.advance(MINUTE);
    expect(heard).toHaveLength(1);
  });

  test('costs an end that its own process delivers no write (edges 16)', async () => {
    const methods = async (options: HostOptions) => {
      const store = watchedStore();
      await hostOf({ ...options, store }).run({ runId: 'r' });
      return store.methods.filter((name) => name !== 'deliveries.take');
    };
    const quiet = await methods({});
    expect(await methods({ onOutcome: () => {} })).toEqual(quiet);
    expect(quiet).not.toContain('deliveries.mark');
  });
});

test('a store that does not keep which ends are delivered: one warning, and own ends only (edges 16)', async () => {
  for (const store of [plainStore(), withoutMarks(memoryStore())]) {
    const heard: string[] = [];
    const host = hostOf({ store, onOutcome: ({ runId }) => void heard.push(runId) });
    for (const runId of ['a', 'b']) await host.run({ runId });
    expect(heard).toEqual(['a', 'b']);
    expect(host.warnings).toEqual([expect.stringContaining('onOutcome gets only')]);
    expect(hostOf({ store }).warnings).toEqual([]);
  }
});

test('a shutdown waits for the ends that are being delivered, and takes no more (edges 16)', async () => {
  const made = world();
  await made.desk.start({ runId: 'r' }, { drive: 'later' });
  await made.desk.executor.control('r').cancel();
  const delivering = Promise.withResolvers<void>();
  let calls = 0;
  const service = hostOf({
    ...made.common,
    script: [hang()],
    onOutcome: () => {
      calls += 1;
      return delivering.promise;
    },
  });
  await service.executor.recover();
  await made.clock.advance(2_000);
  expect(calls).toBe(1);
  let isOver = false;
  const over = service.executor.shutdown().then(() => {
    isOver = true;
  });
  await settle();
  expect(isOver).toBe(false);
  delivering.resolve();
  await over;
  expect(await made.store.deliveries.take({ agentIds: ['worker'], limit: 1, leaseMs: 0 })).toEqual([]);
});
