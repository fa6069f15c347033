import { memoryStore } from 'pawl';
import { callTool, hang, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { fleetHost, replies, runIds } from '../../fixtures/fleet.ts';
import { type HostOptions, toolOf, until } from '../../fixtures/host.ts';

const phases = (plan: string) => [
  { name: 'plan', instructions: plan },
  { name: 'act', instructions: 'Act on {{.plan}}.' },
];
type Definition = NonNullable<HostOptions['agent']>;
const first: Definition = { phases: phases('Plan.') };
const second: Definition = { phases: phases('Plan well.') };
const single: Definition = {};

/** Runs that a process with the first definition left in their first phase. One without phases has taken a step. */
async function deployed(agent: Definition, version?: number) {
  const clock = testClock();
  const store = memoryStore({ clock });
  const process = (options: Omit<HostOptions, 'store' | 'clock'>) =>
    fleetHost(store, clock, { tools: [toolOf('look')], ...options });
  const versioned = version === undefined ? {} : { deployment: version };
  for (const { runId } of runIds(3)) {
    const host = process({ agent, ...versioned, script: [callTool('look'), hang()] });
    await host.start({ runId });
    await until(() => host.model.calls.length === 2);
    await host.executor.shutdown();
  }
  const parked = async () => (await store.listInterrupted()).filter(({ status }) => status === 'parked');
  return { clock, store, process, parked };
}

describe('a rolling deploy of an agent with other phases', () => {
  test.for([
    ['a pipeline', first, second],
    ['a single loop that becomes a pipeline', single, second],
    ['a pipeline that becomes a single loop', first, single],
  ] as const)(
    'parks each run of %s once, and after the way back workers continue them, with no attempt counted (engine 18, 19, 45)',
    async ([, before, after]) => {
      const { clock, store, process, parked } = await deployed(before, 1);
      const old = process({ agent: before, deployment: 1, script: replies(6) });
      const next = process({ agent: after, deployment: 2, script: replies(6) });
      const newWorker = next.work();
      await clock.advance(3_000);
      const oldWorker = old.work();
      await clock.advance(120_000);
      expect(await parked()).toMatchObject(runIds(3).map(() => ({ code: 'DEFINITION_CHANGED', attempts: 0 })));
      // Neither process takes them again and again.
      expect([newWorker.stats().taken, oldWorker.stats().taken]).toEqual([3, 0]);
      const back = process({ agent: before, deployment: 3, script: replies(6) });
      const backWorker = back.work();
      await until(() => back.ended.length === 3);
      await clock.advance(5_000);
      expect([newWorker.stats().taken, oldWorker.stats().taken, backWorker.stats().taken]).toEqual([3, 0, 3]);
      expect([old.ended, next.ended, await store.listInterrupted()]).toEqual([[], [], []]);
      expect([next.model.calls.length, old.model.calls.length]).toEqual([0, 0]);
    },
  );

  test('without version numbers leaves each run to the process that has its definition: the other one takes it once (engine 19, 45)', async () => {
    const { clock, process } = await deployed(first);
    const next = process({ agent: second, script: replies(6) });
    const newWorker = next.work();
    await clock.advance(2_000);
    const old = process({ agent: first, script: replies(6) });
    const oldWorker = old.work();
    await until(() => old.ended.length === 3);
    await clock.advance(60_000);
    expect([newWorker.stats().taken, oldWorker.stats().taken]).toEqual([3, 3]);
    expect(old.warnings()).toEqual([]);
  });

  test("drive('due') continues a run that was parked for its definition, too (engine 10, 19)", async () => {
    const { clock, process, parked } = await deployed(first);
    process({ agent: second }).work();
    await clock.advance(2_000);
    expect(await parked()).toHaveLength(3);
    const old = process({ agent: first, script: replies(6) });
    expect(await old.executor.drive('due')).toMatchObject({ state: 'ended', runs: 3 });
    expect(old.ended).toHaveLength(3);
  });
});

describe('a run that was parked for a definition', () => {
  test('and that a process with this definition cannot start all the same is left alone for its pause (engine 8, 19)', async () => {
    const { clock, store, process } = await deployed(first);
    process({ agent: second }).work();
    await clock.advance(2_000);
    let isBroken = true;
    const load: typeof store.load = async (runId, options) => {
      if (isBroken) throw new Error('the disk is away');
      return store.load(runId, options);
    };
    const old = fleetHost({ ...store, load } as typeof store, clock, { agent: first, script: replies(6) });
    const worker = old.work();
    await clock.advance(25_000);
    expect(worker.stats().taken).toBe(3);
    isBroken = false;
    await clock.advance(10_000);
    expect(old.ended).toHaveLength(3);
  });
});
