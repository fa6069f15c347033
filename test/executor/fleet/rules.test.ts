import { createPalette, defineAgent, type Executor, memoryStore } from 'pawl';
import { callTool, hang, reply, testClock } from 'pawl/testing';
import { afterEach, describe, expect, test } from 'vitest';
import { summarise } from '../../fixtures/family.ts';
import { fleetHost, leaveRuns, replies, runIds } from '../../fixtures/fleet.ts';
import { gate, settle, toolOf, until } from '../../fixtures/host.ts';
import { withoutMarks } from '../../fixtures/watched-store.ts';

const executors: Executor[] = [];
let clock = testClock(1_000_000);
afterEach(async () => {
  const down = Promise.all(executors.splice(0).map((executor) => executor.shutdown()));
  await clock.advance(10_000);
  await down;
});

/** A store, and the processes of a fleet on it. */
function fleet() {
  clock = testClock(1_000_000);
  const store = memoryStore({ clock });
  const process = (options: Parameters<typeof fleetHost>[2] = {}) => {
    const host = fleetHost(store, clock, options);
    executors.push(host.executor);
    return host;
  };
  return { clock, store, process };
}

const ofTenant = (tenant: string, count: number) =>
  runIds(count, tenant).map(({ runId }) => ({ runId, labels: { tenant } }));

describe('fairness', () => {
  test('takes the k-th due run of each key before the (k+1)-th of any, and runs without the label in turn with them (engine 17, 44)', async () => {
    const { clock, store, process } = fleet();
    await leaveRuns(store, clock, [...ofTenant('noisy', 40), ...ofTenant('a', 2), ...ofTenant('b', 2)], {
      fairBy: 'tenant',
    });
    await leaveRuns(store, clock, runIds(2, 'free'));
    const host = process({ fairBy: 'tenant', script: replies(50) });
    host.work({ concurrency: 1 });
    await until(() => host.ended.length === 46);
    const first = host.ended.slice(0, 8).map((runId) => runId.split('-')[0]);
    expect(first.slice(0, 4).sort()).toEqual(['a', 'b', 'free', 'noisy']);
    expect(first.slice(4).sort()).toEqual(['a', 'b', 'free', 'noisy']);
  });

  test('perKey bounds the live runs of a key in a process, for any runs of the others; runs without a key are not bounded (engine 17)', async () => {
    const { clock, store, process } = fleet();
    await leaveRuns(store, clock, [...ofTenant('noisy', 20), ...ofTenant('a', 3)], { fairBy: 'tenant' });
    await leaveRuns(store, clock, runIds(6, 'free'));
    const closed = new Map<string, { readonly open: () => void }>();
    const host = process({
      fairBy: 'tenant',
      script: Array.from({ length: 29 }, () => async () => {
        const own = gate<void>();
        closed.set(String(closed.size), { open: () => own.open() });
        await own.pass();
        return reply('done');
      }),
    });
    const worker = host.work({ concurrency: 16, perKey: 2 });
    await settle(60);
    const live = () => host.executor.runs.get().map(({ runId }) => runId.split('-')[0]);
    const of = (key: string) => live().filter((each) => each === key).length;
    expect([of('noisy'), of('a'), of('free'), worker.stats().live]).toEqual([2, 2, 6, 10]);
    for (let turn = 0; turn < 60 && host.ended.length < 29; turn++) {
      for (const own of closed.values()) own.open();
      await settle();
      expect(of('noisy')).toBeLessThanOrEqual(2);
      await clock.advance(1_000);
    }
    expect(host.ended).toHaveLength(29);
  });
});

describe('deployments', () => {
  test('a run that a higher version has claimed is left alone by workers, start, recover and drive of a lower one, and no attempt is counted (engine 18, 45)', async () => {
    const { clock, store, process } = fleet();
    await leaveRuns(store, clock, runIds(1), { deployment: 7 });
    const old = process({ deployment: 6, script: replies(1) });
    old.work();
    await clock.advance(60_000);
    const started = await old.executor.start(old.agent, { prompt: 'Go.', runId: 'run-0' });
    expect(started.error).toMatchObject({ code: 'NEWER_DEPLOYMENT' });
    const report = await old.executor.recover();
    expect(report.skipped).toMatchObject([{ runId: 'run-0', reason: expect.stringContaining('NEWER_DEPLOYMENT') }]);
    const driven = await old.executor.drive('run-0');
    expect(driven).toMatchObject({ state: 'waiting', code: 'NEWER_DEPLOYMENT', wakeAt: clock.now() + 30_000 });
    expect(old.model.calls).toHaveLength(0);
    expect((await store.load('run-0'))?.attempts).toBe(0);
    const next = process({ deployment: 7, script: replies(1) });
    next.work();
    await until(() => next.ended.length === 1);
    expect(old.warnings()).toEqual([]);
  });

  test('an old process cancels a run of a newer deployment through its inbox (engine 18)', async () => {
    const { clock, store, process } = fleet();
    await leaveRuns(store, clock, runIds(1), { deployment: 7 });
    const old = process({ deployment: 6 });
    expect(await old.executor.control('run-0').cancel('enough')).toBe('sent');
    const next = process({ deployment: 8 });
    next.work();
    await until(() => next.ended.length === 1);
    expect(next.model.calls).toHaveLength(0);
  });

  test.for([
    [{ deployment: -1 }, 'createExecutor: deployment must be a whole number from 0 on, not the number -1'],
    [{ deployment: '7' }, 'createExecutor: deployment must be a whole number from 0 on, not a string'],
    [{ fairBy: '' }, 'createExecutor: fairBy must be the name of a label, not a string'],
  ] as const)('createExecutor refuses %j', ([options, message]) => {
    const { process } = fleet();
    expect(() => process(options as never)).toThrow(message);
  });
});

describe('a worker that cannot continue a run', () => {
  const other = { id: 'other', name: 'Other', instructions: 'Work.' };

  test('takes only runs of its agents without a palette: other runs stay due (engine 18)', async () => {
    const { clock, store, process } = fleet();
    await leaveRuns(store, clock, runIds(2), { agent: other });
    const worker = process().work();
    await clock.advance(10_000);
    expect(worker.stats().taken).toBe(0);
    const able = process({ agent: other, script: replies(2) });
    able.work();
    await until(() => able.ended.length === 2);
  });

  test('takes runs of the skills that it was given (engine 18)', async () => {
    const { clock, store, process } = fleet();
    const id = `skill:${summarise.name}`;
    await leaveRuns(store, clock, runIds(2), { agent: { id, name: id, instructions: '' } });
    const unable = process().work();
    await clock.advance(10_000);
    expect(unable.stats().taken).toBe(0);
    const able = process({ skills: [summarise], script: replies(2) });
    able.work();
    await until(() => able.ended.length === 2);
  });

  test('gives it back uncounted with a pause of 30 s, doubled, and a healthy one has it within that time (engine 8, 19)', async () => {
    const { clock, store, process } = fleet();
    await leaveRuns(store, clock, runIds(1), { agent: other });
    const palette = createPalette({ agents: [] });
    const poor = process({ ports: { palette }, random: () => 0.37 });
    const worker = poor.work();
    const times: number[] = [];
    for (let ms = 0, seen = 0; ms < 200_000; ms += 500) {
      await clock.advance(500);
      if (worker.stats().taken > seen) times.push(clock.monotonic());
      seen = worker.stats().taken;
    }
    const pauses = times.slice(1).map((at, i) => at - (times[i] ?? 0));
    // Half of each pause for all processes, the other half for the others: this one takes it less and less often.
    const seconds = pauses.map((ms) => Math.round(ms / 1_000));
    expect(seconds).toEqual([15, 3, 4, 8, 1, 31, 3, 4, 9, 15, 1, 61, 3, 4, 8, 15, 15]);
    expect((await store.load('run-0'))?.attempts).toBe(0);
    expect(poor.warnings()).toEqual([]);
    const able = process({
      agent: other,
      ports: { palette: createPalette({ agents: [defineAgent(other)] }) },
      script: replies(1),
      random: () => 0.9,
    });
    able.work();
    await clock.advance(16_000);
    expect(able.ended).toEqual(['run-0']);
  });

  test('gives a run back whose outcome the host does not accept, on a store without marks, with a pause, instead of delivering it again at once (engine 19)', async () => {
    const { clock, store, process } = fleet();
    await leaveRuns(store, clock, runIds(1));
    let calls = 0;
    const onOutcome = () => {
      calls += 1;
      if (calls < 3) throw new Error('the mail server is away');
    };
    const host = process({ script: replies(1), onOutcome, ...{ store: withoutMarks(store) } });
    host.work();
    await clock.advance(20_000);
    expect(calls).toBe(1);
    await clock.advance(100_000);
    expect(calls).toBe(3);
    expect(host.model.calls).toHaveLength(1);
    expect(await store.listInterrupted()).toEqual([]);
  });

  test('gives a command that waits for the run no reason to take it again at once (engine 19)', async () => {
    const { clock, store, process } = fleet();
    await leaveRuns(store, clock, runIds(1), { agent: other });
    await store.commands.send('run-0', { id: 'c', kind: 'steer', text: 'Quick.' });
    const worker = process({ ports: { palette: createPalette({ agents: [] }) } }).work();
    await clock.advance(14_000);
    expect(worker.stats().taken).toBe(1);
  });
});

describe('a run that may kill its process', () => {
  test('is worked on while no other suspect is: the others are given back uncounted (engine 15, 36)', async () => {
    const { clock, store, process } = fleet();
    await leaveRuns(store, clock, runIds(3));
    // Two processes die of each.
    for (const { runId } of runIds(3)) {
      for (const owner of ['one', 'two']) {
        await store.claim(runId, owner, 1);
        await clock.advance(2);
      }
    }
    let most = 0;
    const host = process({
      tools: [toolOf('look')],
      agent: { tools: [toolOf('look')] },
      script: [0, 1, 2].flatMap(() => [
        async () => {
          most = Math.max(most, (await attempts()).filter((count) => count > 2).length);
          return callTool('look');
        },
        hang(),
      ]),
    });
    const attempts = async () =>
      Promise.all(runIds(3).map(async ({ runId }) => (await store.load(runId))?.attempts ?? 0));
    const worker = host.work();
    for (let turn = 0; turn < 30 && host.model.calls.length < 6; turn++) {
      await settle();
      await clock.advance(1_000);
    }
    expect(host.model.calls).toHaveLength(6);
    expect(most).toBeLessThanOrEqual(1);
    expect(worker.stats()).toMatchObject({ live: 3 });
    expect((await store.listInterrupted()).filter(({ status }) => status === 'parked')).toEqual([]);
  });
});
