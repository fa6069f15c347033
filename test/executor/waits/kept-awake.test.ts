import { type CheckpointStore, defineTool, memoryStore, type Phase, type RunEvent } from 'pawl';
import { callTool, reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { type HostOptions, hostOf, settle, until } from '../../fixtures/host.ts';
import { childOf, hostMachine, outputOf, restoreHost, roundTrip, startHost } from '../../fixtures/host-machine.ts';
import { afterCrash, plainStore, watchedStore } from '../../fixtures/watched-store.ts';

const HOUR = 3_600_000;
const ada = { by: { id: 'ada' } };

/** A tool that needs an approval, and what it has paid. */
function payTool() {
  const paid: number[] = [];
  const tool = defineTool({
    name: 'pay',
    description: 'Pays.',
    input: { type: 'object', properties: { cents: { type: 'number' } } },
    effect: 'once',
    needsApproval: true,
    execute: async ({ cents }) => {
      paid.push(Number(cents));
      return `paid ${cents}`;
    },
  });
  return { tool, paid };
}

/** A host on a clock of its own whose run asks to pay. */
function desk(options: HostOptions = {}, clock = testClock(1_000)) {
  const { tool, paid } = payTool();
  const script = [callTool('pay', { cents: 700 }, 'c1'), reply('done')];
  const host = hostOf({ tools: [tool as never], script, clock, ...options });
  return { ...host, clock, paid };
}

const idOf = (waits: readonly { readonly id: string }[] | undefined) => waits?.[0]?.id ?? '';

describe("a run of a host's machine that waits", () => {
  test('does not rest: it keeps its claim, and the snapshot of the host is active, with its waits (waiting 26)', async () => {
    const store = watchedStore();
    const { executor, agent, clock, paid } = desk({ store });
    const host = startHost(hostMachine(executor, agent));
    await until(async () => (await store.load('r'))?.waiting, 'the wait');
    for (let hour = 0; hour < 3; hour++) await clock.advance(HOUR);
    expect(store.methods).not.toContain('due.leave');
    expect(host.getSnapshot().status).toBe('active');
    const snapshot = childOf(host.getPersistedSnapshot());
    expect(snapshot).toMatchObject({ status: 'active', stored: true, waiting: { waits: [{ kind: 'approval' }] } });
    expect(await executor.control('r').approve(idOf(snapshot.waiting?.waits), ada)).toBe('recorded');
    expect(await outputOf(host)).toMatchObject({ status: 'ok', output: 'done' });
    expect(paid).toEqual([700]);
    host.stop();
  });

  test.for([true, false])(
    'continues in a restored host, and takes its answer there (durable: %s) (waiting 26)',
    async (isDurable) => {
      const store = isDurable ? memoryStore() : undefined;
      const first = desk(store ? { store } : {});
      const host = startHost(hostMachine(first.executor, first.agent));
      const snapshotOf = () => roundTrip(host.getPersistedSnapshot());
      await until(
        async () => childOf(snapshotOf()).waiting && (!store || (await store.load('r'))?.waiting),
        'the wait',
      );
      const snapshot = snapshotOf();
      const left = store && (await afterCrash(store));
      const next = desk({ script: [reply('done')], ...(left ? { store: left } : {}) });
      const again = restoreHost(hostMachine(next.executor, next.agent), snapshot);
      await until(() => childOf(again.getPersistedSnapshot()).waiting, 'the wait again');
      await settle();
      const waitId = idOf(childOf(again.getPersistedSnapshot()).waiting?.waits);
      expect(await next.executor.control('r').approve(waitId, ada)).toBe('recorded');
      expect(await outputOf(again)).toMatchObject({ status: 'ok', output: 'done', durable: isDurable });
      expect([first.paid, next.paid, next.model.calls.length]).toEqual([[], [700], 1]);
      again.stop();
      host.stop();
    },
  );
});

describe('a run that cannot rest', () => {
  const stores: readonly [string, () => CheckpointStore | undefined][] = [
    ['a store of four methods', () => plainStore()],
    ['no store', () => undefined],
    ['a store without the group due', () => ({ ...memoryStore(), due: undefined }) as never],
  ];

  test.for(stores)('holds its process and takes its answer there: %s (waiting 26)', async ([, make]) => {
    const store = make();
    const { executor, start, clock, paid } = desk(store ? { store } : {});
    const run = await start({ runId: 'r' });
    const events: RunEvent[] = [];
    void (async () => {
      for await (const event of run.events()) events.push(event);
    })();
    await until(() => events.some(({ type }) => type === 'wait.opened'), 'the wait');
    for (let hour = 0; hour < 3; hour++) await clock.advance(HOUR);
    expect(run.actor.getSnapshot().hasTag('waiting')).toBe(true);
    expect(paid).toEqual([]);
    const opened = events.find((event) => event.type === 'wait.opened');
    expect(await executor.control('r').approve(opened?.wait.id ?? '', ada)).toBe('recorded');
    expect(await run.result).toMatchObject({ status: 'ok', output: 'done' });
    expect(paid).toEqual([700]);
  });

  test('denies the call in time there when no person decides (waiting 26)', async () => {
    const { start, clock, paid, model } = desk();
    const run = await start({ runId: 'r' });
    await until(() => run.actor.getSnapshot().hasTag('waiting'), 'the wait');
    for (let day = 0; day < 8; day++) await clock.advance(24 * HOUR);
    expect(await run.result).toMatchObject({ status: 'ok', output: 'done' });
    expect(JSON.stringify(model.calls[1]?.messages)).toContain('No person decided in time.');
    expect(paid).toEqual([]);
  });
});

describe('a phase that waits', () => {
  test.for(['step', 'boundary'] as const)(
    'continues at its step in the next process, and asks its model for nothing again (recovery: %s) (waiting 25)',
    async (recovery) => {
      const phases: readonly Phase[] = [
        { name: 'look', instructions: 'Look.' },
        { name: 'act', instructions: 'Act on {{.look}}', recovery },
        { name: 'tell', instructions: 'Tell {{.act}}' },
      ];
      const clock = testClock(1_000);
      const store = memoryStore({ clock });
      const first = desk(
        {
          agent: { phases },
          store,
          script: [reply('seen'), callTool('pay', { cents: 700 }, 'c1')],
        },
        clock,
      );
      const run = await first.start({ runId: 'r' });
      await until(async () => (await store.load('r'))?.waiting, 'the wait');
      for (let second = 0; second < 5; second++) await clock.advance(1_000);
      const result = await run.result;
      expect(result).toMatchObject({ status: 'waiting', waits: [{ kind: 'approval' }] });
      const record = await store.load('r');
      expect(record).toMatchObject({ completedPhases: [{ name: 'look' }], openPhase: { index: 1 } });
      expect(record?.openStep?.calls).toMatchObject([{ name: 'pay', state: 'waiting' }]);
      const next = desk({ agent: { phases }, store, script: [reply('acted'), reply('told')] }, clock);
      await next.executor.recover();
      await next.executor.control('r').approve(idOf(result.status === 'waiting' ? result.waits : []), ada);
      for (let turn = 0; turn < 20 && (await store.load('r')); turn++) await clock.advance(1_000);
      expect(await store.outcomes.find('r')).toMatchObject({ status: 'ok', output: 'told' });
      expect([first.paid, next.paid]).toEqual([[], [700]]);
      expect(next.model.calls.map(({ system }) => system)).toEqual(['Act on seen', 'Tell acted']);
    },
  );
});
