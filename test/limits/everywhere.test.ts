import { createPalette, defineAgent, memoryStore } from 'pawl';
import { httpHandler } from 'pawl/http';
import { callTool, reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { commandsFor, describeWait } from '../../src/cli/ui/describe-wait.ts';
import { named, overloaded } from '../executor/failover/lists.ts';
import { hostOf } from '../fixtures/host.ts';
import { byToken, requestTo } from '../http/web-host.ts';
import { measuring } from '../otel/measuring.ts';
import { collecting } from '../otel/spans.ts';
import { limitedHost, noon } from './limited.ts';

const six = [{ by: 'model', requestsPerMinute: 6 }] as const;
const look = (n: number) => callTool('look', { n });

describe('a run that rests for its turn', () => {
  test('is named as such, needs no person, and counts by its kind: result, list, explanation, stats, HTTP, command line (failover 18)', async () => {
    const host = limitedHost({ rules: six, play: [look(1), look(2), reply('done')], journal: true });
    const run = await host.start({ runId: 'r', callerId: 'ada' });
    await host.clock.advance(5_000);
    const result = await run.result;
    expect(result).toMatchObject({ status: 'waiting', error: { code: 'RUN_WAITS' } });
    expect(result.error?.message).toContain(
      'waits for its turn, which is limited by model; it continues once its turn comes',
    );
    const { executor } = host;
    expect(await executor.explain('r')).toMatchObject({
      verdict: 'waits',
      reason: `it waits for its turn, which is limited by model, until ${new Date(noon + 9_000).toISOString()} at the latest`,
      needsPerson: false,
    });
    expect((await executor.stats()).waiting).toMatchObject({ limit: 1 });
    expect(await executor.waiting({ kind: ['approval', 'retry'] })).toEqual([]);
    const [wait] = await executor.waiting({ kind: 'limit' });
    expect(wait).toMatchObject({ kind: 'limit', model: 'scripted/scripted', turnAt: noon + 10_000 });
    if (!wait) throw new Error('there is no wait');
    const lines = describeWait(wait, noon);
    expect(lines.join('\n')).toMatch(/model +scripted\/scripted\n *rule +model\n *until /);
    expect(commandsFor(wait, '')).toEqual([]);
    const handler = httpHandler(executor, { authorize: byToken, agents: { worker: host.agent } });
    const answer = await handler(requestTo('/waiting?kind=limit'));
    expect(answer.status).toBe(200);
    expect(await answer.json()).toMatchObject({ items: [{ runId: 'r', kind: 'limit', model: 'scripted/scripted' }] });
  });

  test('is an event with its rule in the span of the run, and counted by its kind in the gauge of waits (failover 18, otel 15)', async () => {
    const collected = collecting();
    const traced = limitedHost({ rules: six, play: [look(1), look(2), reply('done')], tracing: collected.process() });
    await traced.start({ runId: 'r' });
    await traced.clock.advance(5_000);
    const opened = collected.spans().flatMap(({ events }) => events.filter(({ name }) => name === 'pawl.wait.opened'));
    expect(opened.map(({ attributes }) => attributes)).toMatchObject([{ kind: 'limit', rule: 'model' }]);
    const { tracing, read } = measuring();
    hostOf({ store: traced.store, clock: traced.clock, tracing });
    expect((await read()).of('pawl.runs.waiting', { 'pawl.kind': 'limit' })).toBe(1);
  });

  test('continues after `wake` of a whole run with the turn that it had, and after an unpark (failover 18)', async () => {
    const host = limitedHost({ rules: six, play: [look(1), look(2), reply('done')] });
    await host.start({ runId: 'r' });
    await host.clock.advance(5_000);
    await host.executor.control('r').wake();
    await host.clock.advance(1_000);
    await host.executor.park('r', 'stop');
    await host.clock.advance(20_000);
    expect(host.at).toEqual([0, 0.02]);
    await host.executor.control('r').unpark();
    await host.executor.recover();
    await host.clock.advance(10_000);
    expect(host.at).toHaveLength(3);
    expect(host.outcomes).toMatchObject([{ status: 'ok' }]);
  });
});

describe('limits hold for', () => {
  test('a sub-agent and its parent together: a parent whose child rests works on nothing (failover 17)', async () => {
    const helper = defineAgent({ id: 'helper', instructions: 'Help.', description: 'Helps.' });
    const host = limitedHost({
      rules: six,
      play: [callTool('agent__helper', { prompt: 'Help.' }), reply('helped'), reply('done')],
      ports: { palette: createPalette({ agents: [helper] }) },
      agent: { maxRuntimeMs: 900, subAgents: ['helper'] },
    });
    await host.start({ runId: 'r' });
    await host.clock.advance(40_000);
    expect(host.at).toEqual([0, 0.02, 10]);
    expect(host.outcomes.find(({ runId }) => runId === 'r')).toMatchObject({ status: 'ok', output: 'done' });
  });

  test('each account of one model by itself (failover 16)', async () => {
    for (const [key, isSame] of [
      ['b', false],
      ['a', true],
    ] as const) {
      const rules = [{ by: 'model', requestsPerMinute: 1 }] as const;
      const [first, second] = [
        named('openai/gpt', [overloaded, overloaded]),
        named('openai/gpt', [look(1), reply('done')]),
      ];
      const list = [
        { model: first, key: 'a', maxAttempts: 2 },
        { model: second, key },
      ];
      const host = limitedHost({ rules, models: { fast: list } as never, holdMs: 1_000 });
      await host.start({ runId: 'r' });
      await host.clock.advance(10_000);
      // Two requests of an account may begin at once.
      expect([first.calls.length, second.calls.length]).toEqual([2, isSame ? 0 : 2]);
    }
  });

  test('each phase of a pipeline, also an optional one (failover 18)', async () => {
    const phases = [
      { name: 'one', instructions: 'One.' },
      { name: 'two', instructions: 'Two.' },
      { name: 'three', instructions: 'Three.', optional: true },
      { name: 'four', instructions: 'Four.' },
    ];
    const host = limitedHost({ rules: six, play: ['1', '2', '3', '4'].map(reply), agent: { phases } });
    await host.start({ runId: 'r' });
    await host.clock.advance(60_000);
    expect(host.at.map(Math.floor)).toEqual([0, 0, 10, 20]);
    expect(host.outcomes).toMatchObject([{ status: 'ok', output: '4' }]);
  });

  test('the turns of a conversation, whose next message waits behind the one that rests (failover 18)', async () => {
    const host = limitedHost({ rules: six, play: ['1', '2', '3', '4'].map(reply), retention: { records: '1d' } });
    const thread = host.executor.thread('t', { agent: host.agent, callerId: 'ada' });
    for (const id of ['a', 'b', 'c']) {
      await thread.send({ id, text: id });
      await host.clock.advance(300);
    }
    await host.clock.advance(30_000);
    expect(host.at.map(Math.floor)).toEqual([0, 0, 10]);
    expect(host.outcomes.map(({ output }) => output)).toEqual(['1', '2', '3']);
  });

  test('readers of a stream: they see the wait, and the answer from its beginning (failover 18)', async () => {
    const host = limitedHost({ rules: six, play: [look(1), look(2), reply('one two three')] });
    await host.start({ runId: 'r' });
    await host.clock.advance(30_000);
    const seen = host.events.map(({ type }) => type);
    expect(seen.filter((type) => type === 'wait.opened')).toHaveLength(1);
    expect(seen).not.toContain('step.reset');
    const [answered] = host.of('wait.answered');
    expect(answered).toMatchObject({ kind: 'limit', how: 'expire' });
    expect(host.outcomes).toMatchObject([{ output: 'one two three' }]);
  });
});

test('a limit of 300 requests a minute is used to 95 % or more by four processes whose runs rest for their turns, and no minute has more than 310 (failover 19, 24, 27)', async () => {
  const clock = testClock(noon);
  const store = memoryStore({ clock });
  const rules = [{ by: 'model', requestsPerMinute: 300 }] as const;
  const hosts = Array.from({ length: 4 }, () =>
    limitedHost({ rules, clock, store, play: Array(300).fill(reply('done')) }),
  );
  for (const { executor } of hosts) void executor.recover({ follow: true });
  for (let i = 0; i < 300; i++) await hosts[i % 4]?.start({ runId: `r${i}` });
  for (let second = 0; second < 70; second++) await clock.advance(1_000);
  const at = hosts.flatMap((host) => host.at).toSorted((a, b) => a - b);
  expect(at).toHaveLength(300);
  expect(hosts.flatMap(({ outcomes }) => outcomes.filter(({ status }) => status === 'ok'))).toHaveLength(300);
  const minutes = ((at.at(-1) ?? 0) - (at[0] ?? 0)) / 60;
  expect((at.length - 1) / (minutes * 300)).toBeGreaterThanOrEqual(0.95);
  const most = Math.max(...at.map((from, i) => at.findLastIndex((time) => time < from + 60) - i + 1));
  expect(most).toBeLessThanOrEqual(310);
  for (const { executor } of hosts) await executor.shutdown();
});
