import { type CriticHandle, createCritic, defineTool, type JsonObject, memoryStore, type Tool } from 'pawl';
import { callTool, callTools, fail, reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { type HostOptions, hostOf, settle, toolOf } from '../fixtures/host.ts';
import { notingAudit, notingCritic } from '../fixtures/noting-ports.ts';
import { plainStore } from '../fixtures/watched-store.ts';

const [SECOND, MINUTE, HOUR] = [1_000, 60_000, 3_600_000];
const away = fail(Object.assign(new Error('overloaded'), { statusCode: 503, isRetryable: true }));
const look = (n: number) => callTool('look', { n });

/** A host whose runs wait in their process: its store cannot let them rest. */
function holdingHost(options: HostOptions) {
  const clock = testClock();
  const host = hostOf({ clock, store: plainStore(), tools: [toolOf('look')], random: () => 0.5, ...options });
  const minutes = async (count: number) => {
    for (let minute = 0; minute < count; minute++) await clock.advance(MINUTE);
  };
  return { ...host, clock, minutes };
}

/** Away for about an hour: five attempts in the process, then one at each wake. */
const outage = Array(12).fill(away);

describe('the time in which a run waits in its process', () => {
  test('is not working time: maxRuntimeMs is not used up by it, and is enforced afterwards (waiting 21)', async () => {
    for (const [last, status] of [
      [reply('done'), 'ok'],
      [() => new Promise<never>(() => {}), 'timeout'],
    ] as const) {
      const agent = { maxRuntimeMs: 2 * MINUTE };
      const { start, minutes } = holdingHost({ script: [look(1), ...outage, last], agent });
      const run = await start({ runId: 'r' });
      await minutes(90);
      expect(await run.result).toMatchObject({ status });
    }
  });

  test('is not counted in the working time of the record and of the audit (waiting 21)', async () => {
    const audit = notingAudit();
    const store = plainStore();
    const { start, minutes, executor } = holdingHost({
      script: [look(1), ...outage, reply('done')],
      store,
      ports: { audit },
    });
    const run = await start({ runId: 'r' });
    await minutes(30);
    expect((await store.load('r'))?.elapsedMs).toBeLessThan(MINUTE);
    await minutes(60);
    expect(await run.result).toMatchObject({ status: 'ok' });
    expect(audit.runs).toHaveLength(1);
    expect(audit.runs[0]?.told.close[0]?.[3].elapsedMs).toBeLessThan(MINUTE);
    await executor.shutdown();
  });

  test('raises no alarm of the ready critic, which asks about a run that is idle afterwards (waiting 21)', async () => {
    const reasons: number[] = [];
    const critic = createCritic({
      escalator: ({ elapsedMs }) => {
        reasons.push(elapsedMs);
        return { action: 'wait' } as never;
      },
      idleMs: MINUTE,
    });
    const hang = () => new Promise<never>(() => {});
    const agent = { maxRuntimeMs: 8 * SECOND };
    const { start, minutes, clock } = holdingHost({
      script: [look(1), ...outage, look(2), hang],
      agent,
      ports: { critic },
    });
    await start({ runId: 'r' });
    for (let minute = 0; minute < 100 && reasons.length === 0; minute++) await minutes(1);
    expect(clock.monotonic()).toBeGreaterThan(HOUR);
    expect(reasons[0]).toBeLessThan(3 * MINUTE);
  });

  test('a critic is stopped when the run begins to wait, and begins again with its state and the working time (waiting 21)', async () => {
    const clock = testClock();
    const [states, times]: [(JsonObject | undefined)[], number[]] = [[], []];
    const critic = notingCritic((run): Partial<CriticHandle> => {
      const before = typeof run.saved?.steps === 'number' ? run.saved.steps : 0;
      let steps = before;
      states.push(run.saved);
      times.push(run.elapsedMs());
      return { onActivity: ({ type }) => void (type === 'step' && steps++), state: () => ({ steps }) };
    });
    const { start } = holdingHost({
      clock,
      script: [look(1), ...Array(6).fill(away), look(2), reply('done')],
      ports: { critic },
    });
    const run = await start({ runId: 'r' });
    await clock.advance(20 * SECOND);
    // The run waits: its critic sees a working time that stands still.
    const [first] = critic.watched;
    const [stood] = [first?.elapsedMs()];
    await clock.advance(5 * SECOND);
    expect(first?.elapsedMs()).toBe(stood);
    await clock.advance(5 * MINUTE);
    expect(await run.result).toMatchObject({ status: 'ok' });
    expect(critic.log).toEqual(['tool look', 'step 1', 'stop', 'stop', 'tool look', 'step 2', 'step 3', 'stop']);
    expect(states).toEqual([undefined, { steps: 1 }, { steps: 1 }]);
    expect(times).toEqual([0, 7_500, 7_500]);
  });

  test('a critic that throws when it begins again leaves the run unwatched, and changes nothing else (waiting 21)', async () => {
    let begins = 0;
    const critic = notingCritic(() => {
      begins += 1;
      if (begins > 1) throw new Error('no');
      return {};
    });
    const { start, minutes, warned } = holdingHost({
      script: [look(1), ...Array(6).fill(away), look(2), reply('done')],
      ports: { critic },
    });
    const run = await start({ runId: 'r' });
    await minutes(6);
    expect(await run.result).toMatchObject({ status: 'ok' });
    expect(warned.map(({ message }) => message)).toContain('run: the critic threw; the run is not watched');
    expect(critic.log.filter((line) => line === 'stop')).toHaveLength(1);
  });
});

/** A tool that a person has a minute to approve. */
function refundTool(onExpiry: 'fail' | 'park', paid: unknown[]): Tool {
  return defineTool({
    name: 'refund',
    description: 'Pays money back.',
    input: { type: 'object' },
    needsApproval: true,
    approval: { expiresInMs: MINUTE, onExpiry },
    execute: async (input) => paid.push(input),
  }) as unknown as Tool;
}

describe('an approval that does not come in time', () => {
  test.for([false, true])(
    "fails the run with onExpiry: 'fail', and the call never runs (resting: %j) (waiting 4)",
    async (rests) => {
      const clock = testClock();
      const store = rests ? memoryStore({ clock }) : plainStore();
      const [paid, ended]: [unknown[], unknown[]] = [[], []];
      const tools = [refundTool('fail', paid)];
      const onOutcome = (outcome: unknown) => void ended.push(outcome);
      const { start } = holdingHost({ clock, store, script: [callTool('refund')], tools, onOutcome });
      await start({ runId: 'r' });
      await clock.advance(2 * MINUTE);
      expect(ended).toMatchObject([{ status: 'error', error: { code: 'WAIT_EXPIRED' } }]);
      expect([paid, await store.load('r')]).toEqual([[], null]);
    },
  );

  test.for([false, true])(
    "parks the run with onExpiry: 'park'; after unpark the model reads that no person decided (resting: %j) (waiting 4)",
    async (rests) => {
      const clock = testClock();
      const store = rests ? memoryStore({ clock }) : plainStore();
      const paid: unknown[] = [];
      const tools = [refundTool('park', paid)];
      const host = holdingHost({ clock, store, script: [callTool('refund'), reply('done')], tools });
      const run = await host.start({ runId: 'r' });
      await clock.advance(2 * MINUTE);
      expect((await store.load('r'))?.parked).toMatchObject({ code: 'WAIT_EXPIRED' });
      if (!rests) {
        expect(await run.result).toMatchObject({ status: 'interrupted', error: { code: 'RUN_PARKED' } });
        expect((await host.executor.recover()).parked).toMatchObject([{ runId: 'r' }]);
      }
      await host.executor.unpark('r');
      await host.executor.recover();
      await clock.advance(5 * SECOND);
      expect(await store.load('r')).toBeNull();
      expect(JSON.stringify(host.model.calls.at(-1)?.messages)).toContain('No person decided in time.');
      expect(paid).toEqual([]);
    },
  );

  test('lets a call that runs end first, keeps its result, and starts no other one (waiting 3, 4)', async () => {
    const clock = testClock();
    const store = plainStore();
    const ran: unknown[] = [];
    const slow = toolOf(
      'pay',
      'once',
      ({ n }) => new Promise((resolve) => clock.setTimeout(() => resolve(ran.push(n)), 90 * SECOND)),
      { concurrency: 1 },
    );
    const tools = [refundTool('park', ran), slow];
    const calls = [
      { name: 'refund', input: {} },
      { name: 'pay', input: { n: 1 } },
      { name: 'pay', input: { n: 2 } },
    ];
    const { start } = holdingHost({ clock, store, script: [callTools(calls)], tools });
    const run = await start({ runId: 'r' });
    await clock.advance(80 * SECOND);
    expect((await store.load('r'))?.openStep?.calls.map(({ state }) => state)).toEqual([
      'waiting',
      'started',
      'planned',
    ]);
    await clock.advance(80 * SECOND);
    expect(await run.result).toMatchObject({ error: { code: 'RUN_PARKED' } });
    await settle();
    const record = await store.load('r');
    expect(record?.parked).toMatchObject({ code: 'WAIT_EXPIRED' });
    expect(record?.openStep?.calls.map(({ state }) => state)).toEqual(['done', 'done', 'planned']);
    expect(ran).toEqual([1]);
  });
});
