import { createCritic, createEscalator, type Escalator, type EscalatorState, memoryStore } from 'pawl';
import { callTool, hang, reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { textOf } from '../../src/values/message.ts';
import { gate, hostOf, toolOf, until } from '../fixtures/host.ts';

const look = toolOf('look');
const criticOf = (escalator: Escalator) => createCritic({ escalator, idleMs: 1_000 });
/** A script whose calls differ, so that no guard stops them. */
const steps = (count: number) => Array.from({ length: count }, (_, i) => callTool('look', { page: i }));

describe('a run under a critic', () => {
  test('a healthy run continues when the ceiling is raised: base 1, raised to 5, two tool steps (supervision 2)', async () => {
    const asked: EscalatorState[] = [];
    const critic = criticOf((state) => {
      asked.push(state);
      return { raiseStepsBy: 4 };
    });
    const host = hostOf({
      script: [...steps(2), reply('Found.')],
      tools: [look],
      ports: { critic },
      agent: { maxSteps: 1 },
    });
    const result = await host.run();
    expect(result).toMatchObject({ status: 'ok', output: 'Found.', iterations: 3 });
    expect(asked).toMatchObject([{ reason: 'steps', iterations: 1, maxIterations: 1, lastTool: 'look' }]);
    expect(asked[0]?.tail).toHaveLength(3);
    expect(host.warnings).toEqual([]);
  });

  test('without a raise the step limit ends it (supervision 2)', async () => {
    const host = hostOf({
      script: steps(3),
      tools: [look],
      ports: { critic: criticOf(createEscalator()) },
      agent: { maxSteps: 2 },
    });
    expect(await host.run()).toMatchObject({ status: 'error', error: { code: 'STEP_LIMIT' }, iterations: 2 });
  });

  test('a nudge enters the conversation before the next step, after what the host has said (supervision 2)', async () => {
    const clock = testClock();
    const slow = gate();
    const wait = toolOf('wait', 'read', () => slow.pass().then(() => 'waited'), { timeoutMs: 60_000 });
    const host = hostOf({
      script: [callTool('wait', {}), reply('Done.')],
      tools: [wait],
      clock,
      ports: { critic: criticOf(() => ({ nudge: 'Are you there?' })) },
      agent: { maxRuntimeMs: 5_000 },
    });
    const run = await host.start();
    await slow.reached;
    await clock.advance(5_000);
    await run.steer('Use the short way.');
    slow.open();
    expect(await run.result).toMatchObject({ status: 'ok', output: 'Done.' });
    const said = host.model.calls[1]?.messages.filter(({ role }) => role === 'user').map(textOf);
    expect(said).toEqual(['Go.', 'Use the short way.', 'Are you there?']);
  });

  test('a kill ends it with status killed and the cause CriticKillError, and its tool is stopped (supervision 2)', async () => {
    const clock = testClock();
    const reasons: unknown[] = [];
    const stuck = toolOf(
      'stuck',
      'read',
      (_, { signal }) => {
        signal.addEventListener('abort', () => reasons.push(signal.reason));
        return new Promise(() => {});
      },
      { timeoutMs: 3_600_000 },
    );
    const store = memoryStore();
    const host = hostOf({
      script: [callTool('stuck', {})],
      tools: [stuck],
      clock,
      store,
      ports: { critic: criticOf(createEscalator({ lookAgainMs: 2_000 })) },
      agent: { maxRuntimeMs: 5_000 },
    });
    const run = await host.start({ runId: 'r' });
    await clock.advance(8_999);
    expect(reasons).toEqual([]);
    await clock.advance(1_000);
    const result = await run.result;
    expect(result).toMatchObject({
      status: 'killed',
      error: { name: 'CriticKillError', code: 'CRITIC_KILL', message: expect.stringContaining('alarm 3') },
    });
    expect(reasons).toMatchObject([{ code: 'CRITIC_KILL' }]);
    expect(await store.load('r')).toBeNull();
    await clock.advance(100_000);
    expect(clock.pending).toBe(0);
  });

  test('a run may work past its maxRuntimeMs while it shows signs of life (supervision 3)', async () => {
    const clock = testClock();
    const page = toolOf('look', 'read', async () => {
      const turned = gate();
      clock.setTimeout(turned.open, 900);
      await turned.pass();
      return 'a page';
    });
    const critic = criticOf(() => ({ kill: true, reason: 'silent' }));
    const host = hostOf({
      script: [...steps(12), reply('Read.')],
      tools: [page],
      clock,
      ports: { critic },
      agent: { maxRuntimeMs: 2_000 },
    });
    const run = await host.start();
    await clock.advance(20_000);
    expect(await run.result).toMatchObject({ status: 'ok', iterations: 13 });
  });

  test('where the critic yields no handle, maxRuntimeMs is the hard cap (supervision 3)', async () => {
    const clock = testClock();
    const watching = criticOf(createEscalator());
    const critic = {
      monitor: (...[info, run]: Parameters<typeof watching.monitor>) =>
        info.name === 'Vip' ? watching.monitor(info, run) : null,
    };
    const host = hostOf({ script: [hang()], clock, ports: { critic }, agent: { maxRuntimeMs: 5_000 } });
    const run = await host.start();
    await clock.advance(5_000);
    expect(await run.result).toMatchObject({ status: 'timeout', error: { code: 'DEADLINE_EXCEEDED' } });
  });

  test('what was granted, and the alarms, survive a crash of the process (supervision 3)', async () => {
    const clock = testClock();
    const store = memoryStore();
    const asked: EscalatorState[] = [];
    const critic = criticOf((state) => {
      asked.push(state);
      return state.reason === 'steps' ? { raiseStepsBy: 3 } : { nudge: 'Hello?', extendByMs: 60_000 };
    });
    const slow = gate();
    const wait = toolOf('wait', 'read', () => slow.pass().then(() => 'waited'), { timeoutMs: 3_600_000 });
    const options = {
      tools: [wait, look],
      clock,
      store,
      ports: { critic },
      agent: { maxSteps: 1, maxRuntimeMs: 5_000 },
    };

    const first = hostOf({ ...options, script: [callTool('wait', {}), callTool('look', { page: 1 }), hang()] });
    const run = await first.start({ runId: 'r' });
    await slow.reached;
    await clock.advance(5_000);
    slow.open();
    await until(async () => (await store.load('r'))?.iteration === 2, 'the second step');
    await clock.advance(1_000);
    expect(asked.map(({ reason }) => reason)).toEqual(['idle', 'steps']);
    await first.executor.shutdown();
    expect((await run.result).status).toBe('interrupted');

    const second = hostOf({ ...options, script: [callTool('look', { page: 2 }), hang()] });
    const again = await second.start({ runId: 'r' });
    // Granted until 65 s of working time; 6 s are used up. Two of the four steps are left.
    await clock.advance(58_000);
    expect(asked).toHaveLength(2);
    await clock.advance(2_000);
    expect(asked).toHaveLength(3);
    expect(asked[2]).toMatchObject({
      reason: 'idle',
      alarms: 2,
      nudges: 1,
      raisedSteps: 3,
      maxIterations: 4,
      iterations: 3,
    });
    await again.cancel();
  });

  test('an escalator that throws changes nothing about it (supervision 3)', async () => {
    const critic = criticOf(() => {
      throw new Error('no');
    });
    const host = hostOf({
      script: [...steps(1), reply('Found.')],
      tools: [look],
      ports: { critic },
      agent: { maxSteps: 1 },
    });
    expect(await host.run()).toMatchObject({ status: 'error', error: { code: 'STEP_LIMIT' } });
    expect(host.warnings).toEqual([]);
  });
});
