import { memoryStore, type RunOutcome } from 'pawl';
import type { Claim } from 'pawl/stores/kit';
import { callTool, hang, reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { gate, hostOf, settle, toolOf, until } from '../fixtures/host.ts';
import { headOfWrite, type Method, onlyRecord, type StoreCall, watchedStore } from '../fixtures/watched-store.ts';

type Memory = ReturnType<typeof memoryStore>;
type TestClock = ReturnType<typeof testClock>;

const patient = { firstChunkMs: 10 ** 9, chunkGapMs: 10 ** 9 };
const tools = [toolOf('look')];

/** A run that was left after its first step. */
async function leftRun(clock: TestClock): Promise<Memory> {
  const store = memoryStore({ clock });
  const script = [callTool('look'), hang()];
  const host = hostOf({ script, tools, store, clock, defaults: patient });
  await host.start({ runId: 'r' });
  await until(async () => (await store.load('r'))?.iteration === 1 && host.model.calls.length === 2);
  await host.executor.shutdown();
  return store;
}

/** A process that sleeps while one of its calls is answered, what it asked for, and what it said of ends. */
function sleeper(inner: Memory, during: Method) {
  const asleep = gate();
  const claims: Claim[] = [];
  let hasSlept = false;
  const store = watchedStore(
    {
      after: async ({ method }) => {
        if (hasSlept || method !== during) return;
        hasSlept = true;
        await asleep.pass();
      },
    },
    inner,
  );
  const {
    claim,
    due: { take },
  } = store;
  const noting = {
    ...store,
    claim: async (...args: Parameters<typeof claim>) => {
      const granted = await claim(...args);
      if (granted) claims.push(granted);
      return granted;
    },
    due: {
      ...store.due,
      take: async (...args: Parameters<typeof take>) => {
        const taken = await take(...args);
        claims.push(...taken.claims);
        return taken;
      },
    },
  };
  const delivered: RunOutcome[] = [];
  return {
    ...{ store: noting, delivered, asleep },
    onOutcome: (outcome: RunOutcome) => void delivered.push(outcome),
    /** As when its lease has run out while it slept. */
    loses: () => inner.release(claims[0] as Claim),
  };
}

/** A process that recovers the run, sleeps, and has lost it when it wakes. */
async function recoveringIn(method: Method, { inner, clock }: { inner: Memory; clock: TestClock }) {
  const zombie = sleeper(inner, method);
  const host = hostOf({
    ...{ script: [reply('late')], tools, store: zombie.store, clock, onOutcome: zombie.onOutcome },
    // Its own sweep would take the run up again, which is right, and not what is looked at here.
    defaults: { leaseMs: 20_000, dueMs: 10 ** 9, ...patient },
  });
  const recovering = host.executor.recover();
  await zombie.asleep.reached;
  await zombie.loses();
  return { zombie, recovering };
}

/** Lets what is left of a test's work be done, timers included. */
async function pass(clock: TestClock): Promise<void> {
  for (let i = 0; i < 20; i++) {
    await settle(5);
    await clock.advance(200);
  }
}

const claimless = ({ log }: { log: readonly StoreCall[] }) =>
  log
    .filter(({ method }) => ['save', 'append', 'delete', 'outcomes.keep'].includes(method))
    .filter(({ args }) => (args.at(-1) as { claim?: Claim } | undefined)?.claim === undefined);

describe('a process that is taken over while it resolves a run', () => {
  test.for(['load', 'commands.inbox'] as const)(
    'in store.%s: the run that has ended elsewhere is not ended again, and its kept outcome stands (recovery 3, promise e)',
    async (method) => {
      const clock = testClock();
      const inner = await leftRun(clock);
      const { zombie, recovering } = await recoveringIn(method, { inner, clock });
      const owner = hostOf({ script: [reply('real')], tools, store: inner, clock });
      await owner.executor.recover();
      await until(async () => (await inner.listInterrupted()).length === 0);
      await clock.advance(8_000); // the renewal says LEASE_LOST
      zombie.asleep.open();
      await pass(clock);
      await recovering;
      expect(zombie.delivered).toEqual([]);
      expect(await inner.outcomes.find('r')).toMatchObject({ status: 'ok', output: 'real' });
      expect(claimless(zombie.store)).toEqual([]);
    },
  );

  test('the run that was left again elsewhere is not ended: its record stays as that owner left it (recovery 3, promise a)', async () => {
    const clock = testClock();
    const inner = await leftRun(clock);
    const { zombie, recovering } = await recoveringIn('load', { inner, clock });
    const owner = hostOf({ script: [callTool('look'), hang()], tools, store: inner, clock, defaults: patient });
    await owner.executor.recover();
    await until(async () => (await inner.load('r'))?.iteration === 2);
    await owner.executor.shutdown();
    const before = await onlyRecord(inner);
    await clock.advance(8_000);
    zombie.asleep.open();
    await pass(clock);
    await recovering;
    expect(zombie.delivered).toEqual([]);
    expect(await onlyRecord(inner)).toEqual(before);
  });

  test('a start that is refused changes nothing in the record without its claim (recovery 3)', async () => {
    const clock = testClock();
    const inner = await leftRun(clock);
    const zombie = sleeper(inner, 'load');
    const host = hostOf({ script: [], tools, store: zombie.store, clock, defaults: { leaseMs: 20_000 } });
    const starting = host.run({ runId: 'r', prompt: 'Another prompt.' });
    await zombie.asleep.reached;
    await zombie.loses();
    await hostOf({ script: [reply('real')], tools, store: inner, clock }).executor.recover();
    await until(async () => (await inner.listInterrupted()).length === 0);
    await clock.advance(8_000);
    zombie.asleep.open();
    expect(await starting).toMatchObject({ error: { code: 'LEASE_LOST' } });
    expect(claimless(zombie.store)).toEqual([]);
    expect(await inner.listInterrupted()).toEqual([]);
  });

  test('a new run does not continue without a record beside its new owner: its `once` call is made once (checkpoint 24, promise c)', async () => {
    const clock = testClock();
    const inner = memoryStore({ clock });
    const zombie = sleeper(inner, 'load');
    let effects = 0;
    const paying = {
      tools: [toolOf('pay', 'once', () => `paid ${++effects}`)],
      script: [callTool('pay'), hang()],
      defaults: patient,
    };
    const host = hostOf({ ...paying, store: zombie.store, clock });
    const starting = host.run({ runId: 'r' });
    await zombie.asleep.reached;
    await zombie.loses();
    await hostOf({ ...paying, store: inner, clock }).start({ runId: 'r' });
    await until(() => effects === 1);
    zombie.asleep.open();
    expect(await starting).toMatchObject({ status: 'interrupted', error: { code: 'LEASE_LOST' } });
    expect(effects).toBe(1);
    expect(host.warnings).not.toContain('run: checkpointer begin failed; running non-durable');
  });
});

describe('a process that is taken over while it ends a run', () => {
  test('says and keeps nothing when the new owner has ended it between two tries to store the outcome (recovery 3, promise e)', async () => {
    const clock = testClock();
    const inner = memoryStore({ clock });
    let tries = 0;
    const store = watchedStore(
      {
        before: async (call) => {
          const outcome = (headOfWrite(call) as { outcome?: RunOutcome } | undefined)?.outcome;
          if (!outcome || tries++ > 0) return;
          await inner.release((call.args[1] as { claim: Claim }).claim);
          const claim = (await inner.claim('r', 'another', 30_000)) as Claim;
          await inner.outcomes.keep('r', { ...outcome, output: 'real', outcomeId: 'r:2' }, 10 ** 12, { claim });
          await inner.delete('r', { claim });
          throw new Error('the connection broke');
        },
      },
      inner,
    );
    const delivered: RunOutcome[] = [];
    const onOutcome = (outcome: RunOutcome) => void delivered.push(outcome);
    // A renewal, every 40 ms, falls between the two tries.
    const host = hostOf({ script: [reply('late')], store, clock, defaults: { leaseMs: 120 }, onOutcome });
    const run = await host.start({ runId: 'r' });
    await settle();
    await clock.advance(60);
    await clock.advance(2_000);
    expect(await run.result).toMatchObject({ status: 'interrupted', error: { code: 'LEASE_LOST' } });
    expect(tries).toBeGreaterThan(0);
    expect(delivered).toEqual([]);
    expect(await inner.outcomes.find('r')).toMatchObject({ output: 'real' });
    expect(claimless(store)).toEqual([]);
  });
});

describe('a lease whose renewal gets no answer', () => {
  /** A run with a tool under way, on a store that can be unreachable. */
  async function working() {
    const clock = testClock();
    const inner = memoryStore({ clock });
    const tool = gate<string>();
    const state = { isDown: false, effects: 0 };
    const store = watchedStore({ before: () => state.isDown && Promise.reject(new Error('down')) }, inner);
    const delivered: RunOutcome[] = [];
    const host = hostOf({
      script: [callTool('look'), callTool('send'), reply('done')],
      tools: [toolOf('look', 'read', () => tool.pass()), toolOf('send', 'once', () => `sent ${++state.effects}`)],
      ...{ store, clock, onOutcome: (outcome: RunOutcome) => void delivered.push(outcome) },
    });
    const run = await host.start({ runId: 'r' });
    await tool.reached;
    return { clock, inner, state, run, tool, delivered };
  }

  async function minutes(clock: TestClock, count: number): Promise<void> {
    for (let second = 0; second < 60 * count; second++) {
      await clock.advance(1_000);
      await settle(1);
    }
  }

  test('for two minutes ends no run that no process has taken: it waits before a call with an effect, and ends well (recovery 3, 7, faults 5)', async () => {
    const { clock, inner, state, run, tool, delivered } = await working();
    state.isDown = true;
    await minutes(clock, 1);
    tool.open('seen');
    await minutes(clock, 1);
    expect(state.effects).toBe(0);
    state.isDown = false;
    await minutes(clock, 1);
    expect(await run.result).toMatchObject({ status: 'ok', output: 'done' });
    expect(state.effects).toBe(1);
    expect(delivered).toHaveLength(1);
    expect(await inner.listInterrupted()).toEqual([]);
  });

  test('ends the run here as soon as the store can say that another one has it: nothing with an effect was begun meanwhile (recovery 3, faults 10)', async () => {
    const { clock, inner, state, run, tool, delivered } = await working();
    state.isDown = true;
    await minutes(clock, 1);
    expect(await inner.claim('r', 'another', 600_000)).not.toBeNull();
    const before = await onlyRecord(inner);
    tool.open('seen');
    await minutes(clock, 1);
    state.isDown = false;
    await minutes(clock, 1);
    expect(await run.result).toMatchObject({ status: 'interrupted', error: { code: 'LEASE_LOST' } });
    expect(state.effects).toBe(0);
    expect(delivered).toEqual([]);
    expect(await onlyRecord(inner)).toEqual(before);
  });

  test('and for which a call with an effect waits: it does not begin when the run begins to drain meanwhile, and is recorded as planned (finalize 9)', async () => {
    const clock = testClock();
    const inner = memoryStore({ clock });
    const [looking, intent, renewing] = [gate<string>(), gate(), gate()];
    let isBlocked = false;
    const store = watchedStore(
      {
        before: ({ method }) => (method === 'renew' && isBlocked ? renewing.pass() : undefined),
        after: ({ method }) => (method === 'append' && isBlocked ? intent.pass() : undefined),
      },
      inner,
    );
    let effects = 0;
    const host = hostOf({
      script: [callTool('look'), callTool('send'), reply('done')],
      tools: [toolOf('look', 'read', () => looking.pass()), toolOf('send', 'once', () => `sent ${++effects}`)],
      ...{ store, clock, agent: { maxRuntimeMs: 10 ** 9 }, defaults: { portMs: 10 ** 6, ...patient } },
    });
    await host.start({ runId: 'r' });
    await looking.reached;
    isBlocked = true;
    looking.open('seen');
    await intent.reached;
    for (let i = 0; i < 9; i++) await clock.advance(5_000);
    intent.open();
    await settle(5);
    isBlocked = false;
    const leaving = host.executor.shutdown();
    await settle(5);
    renewing.open();
    await pass(clock);
    await leaving;
    expect(effects).toBe(0);
    expect((await onlyRecord(inner)).openStep?.calls).toMatchObject([{ name: 'send', state: 'planned', attempt: 0 }]);
  });

  test('counts from when the claim was asked for: after a slow answer and a sleep no call with an effect begins unasked (recovery 3, faults 25)', async () => {
    let ms = 0;
    const clock = { now: () => ms, monotonic: () => ms, setTimeout: () => 1, clearTimeout: () => {} };
    const inner = memoryStore({ clock });
    let isTaken = false;
    const store = watchedStore(
      {
        after: async (call) => {
          if (call.method === 'claim') ms += 25_000;
          if (!headOfWrite(call)?.openStep || isTaken) return;
          ms += 20_000;
          isTaken = (await inner.claim('r', 'another', 30_000)) !== null;
        },
      },
      inner,
    );
    let effects = 0;
    const send = toolOf('send', 'once', () => `sent ${++effects}`);
    const host = hostOf({ clock, store, tools: [send], script: [callTool('send'), hang()] });
    expect(await host.run({ runId: 'r' })).toMatchObject({ status: 'interrupted', error: { code: 'LEASE_LOST' } });
    expect([isTaken, effects]).toEqual([true, 0]);
  });
});
