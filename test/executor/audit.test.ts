import { memoryStore } from 'pawl';
import { callTool, callTools, fail, reply, type ScriptedEntry, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { gate, hostOf, settle, toolOf } from '../fixtures/host.ts';
import { notingAudit, onlyNoted } from '../fixtures/noting-ports.ts';
import { watchedStore } from '../fixtures/watched-store.ts';

const usage = (turns: number) => ({
  inputTokens: 10 * turns,
  outputTokens: 5 * turns,
  reasoningTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
});
const tools = [toolOf('look')];

describe('an audit recorder', () => {
  test('gets each step with the usage so far, the tools it called and its model (supervision 5)', async () => {
    const audit = notingAudit();
    const both = callTools([
      { name: 'look', input: {} },
      { name: 'send', input: {} },
    ]);
    await hostOf({ script: [both, reply('end')], tools: [...tools, toolOf('send', 'once')], ports: { audit } }).run();
    expect(onlyNoted(audit).told.onStep).toEqual([
      [{ step: 1, usage: usage(1), tools: ['look', 'send'], model: 'scripted/scripted' }],
      [{ step: 2, usage: usage(2), tools: [], model: 'scripted/scripted' }],
    ]);
  });

  test('gets each tool call: what it is, what it took and gave, how long it was, its effect and attempt (supervision 5)', async () => {
    const clock = testClock();
    const audit = notingAudit();
    const slow = toolOf('send', 'idempotent', async ({ to }) => {
      await clock.advance(70);
      return { sent: to as string };
    });
    const script = [callTool('send', { to: 'ann' }, 'c1'), reply('end')];
    await hostOf({ script, tools: [slow], clock, store: memoryStore({ clock }), ports: { audit } }).run();
    expect(onlyNoted(audit).told.onTool).toEqual([
      [
        {
          step: 1,
          callId: 'c1',
          name: 'send',
          effect: 'idempotent',
          attempt: 1,
          input: { to: 'ann' },
          output: { type: 'json', value: { sent: 'ann' } },
          ms: 70,
        },
      ],
    ]);
  });

  test('gets calls that fail, that do not fit, and of unknown tools (supervision 5)', async () => {
    const audit = notingAudit();
    const bad = toolOf('bad', 'once', () => {
      throw new Error('broken');
    });
    const calls = callTools([
      { name: 'bad', input: {} },
      { name: 'bad', input: 'not an object' },
      { name: 'nobody', input: {} },
    ]);
    await hostOf({ script: [calls, reply('end')], tools: [bad], ports: { audit } }).run();
    const told = onlyNoted(audit).told.onTool.map(([call]) => [call.name, call.effect, call.output.type]);
    expect(told).toHaveLength(3);
    expect(told).toContainEqual(['nobody', 'read', 'error-text']);
    expect(told.filter(([name]) => name === 'bad')).toEqual(Array(2).fill(['bad', 'once', 'error-text']));
  });

  test('gets a result that came too late as late, with the time it really took; the run does not have it (supervision 5)', async () => {
    const clock = testClock();
    const audit = notingAudit();
    const late = gate<string>();
    const script: ScriptedEntry[] = [
      callTool('slow', {}, 'c1'),
      async () => {
        await clock.advance(400);
        late.open('too late');
        await settle();
        return reply('end');
      },
    ];
    const host = hostOf({
      script,
      tools: [toolOf('slow', 'read', () => late.pass(), { timeoutMs: 100 })],
      clock,
      ports: { audit },
    });
    const run = await host.start();
    await late.reached;
    await clock.advance(100);
    const { messages } = await run.result;
    const calls = onlyNoted(audit).told.onTool.map(([{ callId, ms, isLate, output }]) => ({
      callId,
      ms,
      isLate,
      output,
    }));
    expect(calls).toEqual([
      { callId: 'c1', ms: 100, output: { type: 'error-text', value: expect.stringContaining('within 100 ms') } },
      { callId: 'c1', ms: 500, isLate: true, output: { type: 'text', value: 'too late' } },
    ]);
    expect(JSON.stringify(messages)).not.toContain('too late');
  });

  test('gets phases as they begin and end, with what they left; one recorder for all of them, closed once (pipeline 11)', async () => {
    const audit = notingAudit();
    const phases = [
      { name: 'a', instructions: 'A', optional: true, fallback: 'none' },
      { name: 'b', instructions: 'B', bare: true },
    ];
    const down = fail(Object.assign(new Error('down'), { isRetryable: false }));
    await hostOf({ agent: { phases }, script: [down, reply('told')], ports: { audit } }).run();
    const { told, order } = onlyNoted(audit);
    expect(told.onPhase.map(([phase]) => phase)).toEqual([
      { index: 0, name: 'a', state: 'started' },
      { index: 0, name: 'a', state: 'done', output: 'none' },
      { index: 1, name: 'b', state: 'started' },
      { index: 1, name: 'b', state: 'done', output: 'told' },
    ]);
    expect(told.onStep).toHaveLength(1);
    expect(told.close).toHaveLength(1);
    expect(order.at(-1)).toBe('close');
  });

  test('gets the phases that were complete when the run was taken over as skipped (pipeline 11)', async () => {
    const audit = notingAudit();
    const phases = ['a', 'b'].map((name) => ({ name, instructions: name }));
    const resume = { history: [], completedPhases: [{ name: 'a', output: 'saved' }] };
    await hostOf({ agent: { phases }, script: [reply('told')], ports: { audit } }).run({}, { resume });
    const told = onlyNoted(audit).told.onPhase.map(([{ name, state }]) => `${name} ${state}`);
    expect(told).toEqual(['a skipped', 'b started', 'b done']);
  });

  test('gets saves, saves that failed, retries, and what was said to the run (supervision 5)', async () => {
    const audit = notingAudit();
    let failures = 1;
    const store = watchedStore({
      before: ({ method }) => method === 'append' && failures-- > 0 && Promise.reject(new Error('disk full')),
    });
    const held = gate();
    const host = hostOf({
      script: [
        callTool('look'),
        fail(Object.assign(new Error('overloaded'), { isRetryable: true })),
        () => held.pass().then(() => callTool('look')),
        reply('end'),
      ],
      tools,
      random: () => 0,
      store,
      ports: { audit },
    });
    const run = await host.start({ runId: 'r' });
    await held.reached;
    await run.steer('Also check X.');
    held.open();
    await run.result;
    const { told } = onlyNoted(audit);
    const types = told.logEvent.map(([type]) => type);
    for (const type of [
      'run.started',
      'checkpoint.failed',
      'checkpoint.saved',
      'model.retry',
      'steer.queued',
      'steer.applied',
    ]) {
      expect(types).toContain(type);
    }
    const fieldsOf = (type: string) => told.logEvent.find(([each]) => each === type)?.[1];
    expect(fieldsOf('model.retry')).toMatchObject({
      step: 2,
      attempt: 2,
      error: { message: expect.stringContaining('overloaded') },
    });
    expect(fieldsOf('checkpoint.failed')).toMatchObject({ error: { message: expect.stringContaining('disk full') } });
    expect(fieldsOf('steer.applied')).toMatchObject({ count: 1 });
    expect(told.close[0]?.[3].saveErrors).toBe(1);
  });
});
