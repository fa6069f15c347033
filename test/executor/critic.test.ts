import { type CriticHandle, memoryStore, type RunInfo, type SupervisedRun } from 'pawl';
import { callTool, hang, reply, type ScriptedEntry, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { hostOf, settle, toolOf, until } from '../fixtures/host.ts';
import { notingAudit, notingCritic } from '../fixtures/noting-ports.ts';
import { afterCrash } from '../fixtures/watched-store.ts';

const tools = [toolOf('look')];
const look = (n: number) => callTool('look', { n });
const never: ScriptedEntry = () => new Promise(() => {});
const HOUR = 3_600_000;

describe('the critic of a run', () => {
  test('knows the run by the same frozen object as every other port, and gets what it does (supervision 1, executor 4)', async () => {
    const critic = notingCritic();
    const audit = notingAudit();
    const infos: RunInfo[] = [];
    const begin = async (info: RunInfo): Promise<null> => {
      infos.push(info);
      return null;
    };
    const ports = { critic, audit, checkpointer: { begin } };
    await hostOf({ script: [look(1), reply('end')], tools, ports }).run({ callerId: 'ann' });
    expect(critic.infos[0]).toMatchObject({ callerId: 'ann', subjectId: 'worker' });
    expect(Object.isFrozen(critic.infos[0])).toBe(true);
    expect(critic.infos[0]).toBe(audit.runs[0]?.info);
    expect(critic.infos[0]).toBe(infos[0]);
    expect(critic.log).toEqual(['tool look', 'step 1', 'step 2', 'stop']);
  });

  test('gets each piece of what the model says as a sign of life (supervision 1)', async () => {
    let deltas = 0;
    const onActivity: CriticHandle['onActivity'] = ({ type }) => {
      if (type === 'delta') deltas += 1;
    };
    await hostOf({ script: [reply('one long answer')], ports: { critic: notingCritic(() => ({ onActivity })) } }).run();
    expect(deltas).toBeGreaterThan(0);
  });

  test('sees how far the run is: steps, limit, usage, working time and the last messages (supervision 1)', async () => {
    const clock = testClock(77_000);
    const seen: unknown[] = [];
    const critic = notingCritic((run) => ({
      onActivity: ({ type }) => {
        if (type !== 'step') return;
        const { iteration, maxIterations, usage } = run.tallies();
        const roles = run.tail(2).map(({ role }) => role);
        seen.push({ iteration, maxIterations, tokens: usage.inputTokens, elapsedMs: run.elapsedMs(), roles });
      },
    }));
    const slow: ScriptedEntry = async () => {
      await clock.advance(1_500);
      return look(1);
    };
    const host = hostOf({ script: [slow, reply('end')], tools, clock, ports: { critic }, agent: { maxSteps: 7 } });
    await host.run();
    expect(seen).toEqual([
      { iteration: 1, maxIterations: 7, tokens: 10, elapsedMs: 1_500, roles: ['assistant', 'tool'] },
      { iteration: 2, maxIterations: 7, tokens: 20, elapsedMs: 1_500, roles: ['tool', 'assistant'] },
    ]);
    expect(critic.watched[0]).toMatchObject({ softLimitMs: 600_000 });
    expect(critic.watched[0]?.clock.now()).toBe(clock.now());
  });

  test('is stopped once when the run is over, and can do nothing to it any more (supervision 1)', async () => {
    const critic = notingCritic();
    const host = hostOf({ script: [look(1), reply('end')], tools, store: memoryStore(), ports: { critic } });
    const result = await host.run({ runId: 'r' });
    const run = critic.watched[0] as SupervisedRun;
    run.nudge('Too late.');
    run.raiseSteps(5);
    run.kill('too late');
    await settle();
    expect(critic.log.filter((line) => line === 'stop')).toHaveLength(1);
    expect(await (host.executor.get('r')?.result as Promise<unknown>)).toEqual({ ...result, messages: [] });
  });

  test.for([
    ['is a promise', (): never => Promise.resolve({}) as never],
    ['is a promise that rejects', (): never => Promise.reject(new Error('no')) as never],
    ['is no object', (): never => 'yes' as never],
    [
      'is thrown',
      (): never => {
        throw new Error('no');
      },
    ],
  ] as const)(
    'does not watch a run when its answer %s: the run continues, with its hard limit (supervision 3)',
    async ([, monitor]) => {
      const clock = testClock();
      const host = hostOf({ script: [hang()], clock, ports: { critic: { monitor } }, agent: { maxRuntimeMs: 1_000 } });
      const run = await host.start();
      await clock.advance(1_000);
      expect(await run.result).toMatchObject({ status: 'timeout', error: { code: 'DEADLINE_EXCEEDED' } });
    },
  );
});

describe('the working time of a run', () => {
  const impatient = { firstChunkMs: 10 ** 9, leaseMs: 10 ** 9 };
  const options = (clock: ReturnType<typeof testClock>, critic = notingCritic()) => ({
    script: [hang()],
    clock,
    defaults: impatient,
    ports: { critic },
    agent: { maxRuntimeMs: 1_000 },
  });

  test('is bounded by maxRuntimeMs when its critic gives no handle (supervision 3)', async () => {
    const clock = testClock();
    const run = await hostOf(
      options(
        clock,
        notingCritic(() => null),
      ),
    ).start();
    await clock.advance(999);
    expect(run.actor.getSnapshot().status).toBe('active');
    await clock.advance(1);
    expect((await run.result).status).toBe('timeout');
  });

  test('goes past maxRuntimeMs under a critic, which knows that limit, and ends after 24 hours (supervision 3)', async () => {
    const clock = testClock();
    const critic = notingCritic();
    const run = await hostOf(options(clock, critic)).start();
    expect(critic.watched[0]?.softLimitMs).toBe(1_000);
    await clock.advance(24 * HOUR - 1);
    expect(run.actor.getSnapshot().status).toBe('active');
    await clock.advance(1);
    expect(await run.result).toMatchObject({ status: 'timeout', error: { code: 'DEADLINE_EXCEEDED' } });
  });

  test('is not cut by the 24 hours when its agent asks for more (supervision 3)', async () => {
    const clock = testClock();
    const run = await hostOf({ ...options(clock), agent: { maxRuntimeMs: 30 * HOUR } }).start();
    await clock.advance(29 * HOUR);
    expect(run.actor.getSnapshot().status).toBe('active');
    await clock.advance(HOUR);
    expect((await run.result).status).toBe('timeout');
  });

  test('has of the 24 hours what earlier processes left of them (supervision 3)', async () => {
    const clock = testClock();
    const store = memoryStore({ clock });
    const base = { tools, clock, defaults: { ...impatient, controlMs: HOUR }, agent: { maxRuntimeMs: 1_000 } };
    const slow: ScriptedEntry = async () => {
      await clock.advance(20 * HOUR);
      return look(1);
    };
    const first = hostOf({ ...base, script: [slow, never], store, ports: { critic: notingCritic() } });
    await first.start({ runId: 'r' });
    await until(async () => (await store.load('r'))?.iteration === 1);
    const critic = notingCritic();
    const second = hostOf({ ...base, script: [hang()], store: await afterCrash(store), ports: { critic } });
    const run = await second.start({ runId: 'r' });
    expect(critic.watched[0]?.elapsedMs()).toBe(20 * HOUR);
    await clock.advance(4 * HOUR - 1);
    expect(run.actor.getSnapshot().status).toBe('active');
    await clock.advance(1);
    expect((await run.result).status).toBe('timeout');
  });

  test('ends a phase too: the deadline and the 24 hours hold inside pipelines (pipeline 10)', async () => {
    const phases = [
      { name: 'a', instructions: 'A', optional: true },
      { name: 'b', instructions: 'B' },
    ];
    for (const [critic, limit] of [
      [notingCritic(() => null), 1_000],
      [notingCritic(), 24 * HOUR],
    ] as const) {
      const clock = testClock();
      const host = hostOf({ ...options(clock, critic), agent: { maxRuntimeMs: 1_000, phases } });
      const run = await host.start();
      await clock.advance(limit - 1);
      expect(run.actor.getSnapshot().value).toEqual({ 'phase(0)': 'calling-model' });
      await clock.advance(1);
      expect(await run.result).toMatchObject({ status: 'timeout', phases: [] });
    }
  });
});
