import type { Critic, JsonObject, RunEvent } from 'pawl';
import { callTool, hang, reply, type TestClock, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { type HostOptions, hostOf, settle, toolOf, until } from '../fixtures/host.ts';
import { childOf, hostMachine, outputOf, restoreHost, roundTrip, startHost } from '../fixtures/host-machine.ts';

const tools = [toolOf('look')];

/** An executor without a store, its clock, and the machine of a host that has one run of it. */
function processOf(options: HostOptions) {
  const clock = testClock();
  const parts = hostOf({ tools, clock, ...options, agent: { maxRuntimeMs: 1_000, ...options.agent } });
  const events: RunEvent[] = [];
  const listen = async () => {
    const run = parts.executor.get('r');
    if (!run?.actor) throw new Error('there is no live run');
    for await (const event of run.events()) events.push(event);
  };
  return { ...parts, clock, events, listen, machine: hostMachine(parts.executor, parts.agent) };
}

/** A host whose run has done one step and then worked for so long; what it left as its snapshot. */
async function workedFor(ms: number, options: HostOptions = {}) {
  const parts = processOf({ script: [callTool('look'), hang()], ...options });
  const host = startHost(parts.machine);
  const listening = parts.listen();
  await until(() => parts.model.calls.length === 2);
  await parts.clock.advance(ms);
  return { ...parts, host, listening, snapshot: roundTrip(host.getPersistedSnapshot()) };
}

const rest = async (clock: TestClock) => {
  await clock.advance(0);
  await settle();
};

describe('a run without a store, in its host’s snapshot', () => {
  test('takes its working time with it: of a limit of 1,000 ms it has 300 left after 700', async () => {
    const { snapshot } = await workedFor(700);
    expect(childOf(snapshot)).toMatchObject({ elapsedMs: 700 });
    const second = processOf({ script: [hang()] });
    const host = restoreHost(second.machine, snapshot);
    await until(() => second.model.calls.length === 1);
    await second.clock.advance(299);
    expect(second.executor.get('r')?.actor).toBeDefined();
    await second.clock.advance(1);
    expect(await outputOf(host)).toMatchObject({ status: 'timeout', error: { code: 'DEADLINE_EXCEEDED' } });
  });

  test('adds up its working time over many restores, and none while no process works on it', async () => {
    let { snapshot } = await workedFor(300);
    for (const elapsedMs of [500, 700, 900]) {
      const next = processOf({ script: [hang()] });
      const host = restoreHost(next.machine, snapshot);
      await until(() => next.model.calls.length === 1);
      const actor = next.executor.get('r')?.actor;
      await next.clock.advance(200);
      snapshot = roundTrip(host.getPersistedSnapshot());
      expect(childOf(snapshot)).toMatchObject({ elapsedMs });
      host.stop();
      await rest(next.clock);
      await next.clock.advance(5_000);
      expect(actor?.getPersistedSnapshot()).toMatchObject({ elapsedMs });
    }
  });

  test('continues with the numbers of its events: no number is given twice', async () => {
    const first = await workedFor(0);
    const second = processOf({ script: [reply('end')] });
    const host = restoreHost(second.machine, first.snapshot);
    await until(() => second.executor.get('r') !== undefined);
    const listening = second.listen();
    expect(await outputOf(host)).toMatchObject({ status: 'ok', output: 'end' });
    await listening;
    await first.executor.shutdown();
    await first.listening;
    expect(first.events.length).toBeGreaterThan(3);
    const newest = Math.max(...first.events.map(({ seq }) => seq));
    expect(Math.min(...second.events.map(({ seq }) => seq))).toBeGreaterThan(newest);
  });

  test('takes with it what its critic remembers, redacted like the rest', async () => {
    const saved: (JsonObject | undefined)[] = [];
    const critic = (state: () => JsonObject): Critic => ({
      monitor: (_, run) => {
        saved.push(run.saved);
        return { onActivity: () => {}, state, stop: () => {} };
      },
    });
    const redact = (text: string) => text.replaceAll('hunter2', '***');
    const ports = { critic: critic(() => ({ alarms: 2, verdict: 'it says hunter2' })) };
    const { snapshot } = await workedFor(100, { ports, redact });
    expect(childOf(snapshot)).toMatchObject({ critic: { alarms: 2, verdict: 'it says ***' } });
    const second = processOf({ script: [hang()], ports: { critic: critic(() => ({})) } });
    restoreHost(second.machine, snapshot);
    await until(() => second.model.calls.length === 1);
    expect(saved).toEqual([undefined, { alarms: 2, verdict: 'it says ***' }]);
  });

  test('says where it was as long as nothing has come of a restore: the same snapshot again', async () => {
    const { snapshot } = await workedFor(700);
    const second = processOf({ script: [hang()] });
    const host = restoreHost(second.machine, snapshot);
    expect(childOf(roundTrip(host.getPersistedSnapshot()))).toEqual(childOf(snapshot));
  });
});
