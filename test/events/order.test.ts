import { memoryStore } from 'pawl';
import { callTool, callTools, fail, reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { gate, hostOf, settle, toolOf, until } from '../fixtures/host.ts';
import { listen, ofType, range, seqsOf, typesOf } from './listening.ts';

describe('the events of a run', () => {
  test('tell in order, numbered from 1 without a gap, each with the run and the time (executor 20)', async () => {
    const clock = testClock(1_000);
    const { start } = hostOf({ script: [callTool('look', { n: 1 }), reply('done')], tools: [toolOf('look')], clock });
    const run = await start({ runId: 'r' });
    const events = await listen(run);
    expect(typesOf(events).filter((type) => type !== 'run.status')).toEqual([
      'run.started',
      'step.started',
      'tool.started',
      'tool.done',
      'step.done',
      'step.started',
      'model.delta',
      'step.done',
      'run.ended',
    ]);
    expect(seqsOf(events)).toEqual(range(1, events.length));
    expect(new Set(events.map(({ runId, at }) => `${runId} ${at}`))).toEqual(new Set(['r 1000']));
    expect(ofType(events, 'model.delta')).toMatchObject([{ step: 2, kind: 'text', text: 'done' }]);
    expect(ofType(events, 'tool.started')).toMatchObject([{ step: 1, name: 'look', input: { n: 1 }, attempt: 1 }]);
  });

  test('of parallel tools: started in call order, done as each answers, before their step is (executor 14, 20)', async () => {
    const [slow, quick] = [gate<string>(), gate<string>()];
    const calls = [
      { name: 'slow', input: {}, callId: 'a' },
      { name: 'quick', input: {}, callId: 'b' },
    ];
    const tools = [toolOf('slow', 'read', () => slow.pass()), toolOf('quick', 'read', () => quick.pass())];
    const run = await hostOf({ script: [callTools(calls), reply('done')], tools }).start();
    const heard = listen(run);
    await Promise.all([slow.reached, quick.reached]);
    quick.open('first');
    await settle();
    slow.open('second');
    const events = (await heard).filter(({ type }) => type.startsWith('tool.') || type === 'step.done');
    expect(events.map((event) => `${event.type} ${'callId' in event ? event.callId : ''}`.trim())).toEqual([
      'tool.started a',
      'tool.started b',
      'tool.done b',
      'tool.done a',
      'step.done',
      'step.done',
    ]);
    expect(ofType(events, 'step.done')[0]?.tools).toEqual(['slow', 'quick']);
  });

  test('tell each state of the run itself once, before what happens in it (executor 20)', async () => {
    const run = await hostOf().start();
    const events = await listen(run);
    expect(ofType(events, 'run.status').map(({ state }) => state)).toEqual(['running', 'completing', 'settled']);
    const at = (found: (event: (typeof events)[number]) => boolean) => events.findIndex(found);
    const running = at((event) => event.type === 'run.status' && event.state === 'running');
    expect(running).toBeLessThan(at(({ type }) => type === 'step.started'));
  });

  test('are frozen with all that they hold: no consumer changes them for another, or for the run', async () => {
    const error = Object.assign(new Error('down'), { isRetryable: false });
    const run = await hostOf({ script: [callTool('look'), fail(error)], tools: [toolOf('look')] }).start();
    const events = await listen(run);
    const isFrozen = (value: unknown): boolean =>
      typeof value !== 'object' || value === null || (Object.isFrozen(value) && Object.values(value).every(isFrozen));
    expect(events.filter((event) => !isFrozen(event))).toEqual([]);
    expect(typesOf(events)).toEqual(expect.arrayContaining(['tool.started', 'tool.done', 'step.done', 'run.ended']));
  });

  test('tell of a retry, with its number and its reason (executor 8, 20)', async () => {
    const clock = testClock();
    const refused = Object.assign(new Error('busy'), { isRetryable: true });
    const { start, model } = hostOf({ script: [fail(refused), reply('done')], clock });
    const run = await start();
    const heard = listen(run);
    await until(() => model.calls.length === 1);
    await clock.advance(60_000);
    const [retry] = ofType(await heard, 'model.retry');
    expect(retry).toMatchObject({ step: 1, attempt: 2, error: { code: 'MODEL' } });
    expect(retry?.error.message).toContain('busy');
  });

  test('tell of a tool call’s end with its step, its effect and the time it took, in ms', async () => {
    const clock = testClock();
    const send = toolOf('send', 'idempotent', async () => {
      await clock.advance(70);
      return 'sent';
    });
    const run = await hostOf({ script: [callTool('send'), reply('done')], tools: [send], clock }).start();
    const events = await listen(run);
    expect(ofType(events, 'tool.started')).toMatchObject([{ step: 1, name: 'send', effect: 'idempotent' }]);
    expect(ofType(events, 'tool.done')).toMatchObject([{ step: 1, name: 'send', effect: 'idempotent', ms: 70 }]);
  });

  test('tell of a call that was refused as of one that took no time', async () => {
    const run = await hostOf({ script: [callTool('not\na name'), reply('done')] }).start();
    const events = await listen(run);
    const [started] = ofType(events, 'tool.started');
    const [done] = ofType(events, 'tool.done');
    expect(done).toMatchObject({ step: 1, callId: started?.callId, effect: started?.effect, ms: 0 });
    expect(done?.output.type).toBe('error-text');
  });

  test('tell of a result that came too late as late, and it is not part of the run (executor 7, 20)', async () => {
    const clock = testClock();
    const [late, end] = [gate<string>(), gate()];
    const script = [callTool('slow'), () => end.pass().then(() => reply('done'))];
    const tools = [toolOf('slow', 'read', () => late.pass(), { timeoutMs: 100 })];
    const run = await hostOf({ script, tools, clock }).start();
    const heard = listen(run);
    await late.reached;
    await clock.advance(100);
    await end.reached;
    late.open('too late');
    await settle();
    end.open();
    const [timely, tooLate, ...more] = ofType(await heard, 'tool.done');
    expect(timely).toMatchObject({ output: { type: 'error-text' } });
    expect(timely).not.toHaveProperty('isLate');
    expect(tooLate).toMatchObject({ output: { type: 'text', value: 'too late' }, isLate: true });
    expect(more).toEqual([]);
    expect(JSON.stringify((await run.result).messages)).not.toContain('too late');
  });

  test('tell of each save that failed, and of the one that landed (executor 20, checkpoint 21)', async () => {
    const clock = testClock();
    const store = memoryStore();
    let isDown = true;
    const append: typeof store.append = (delta, options) =>
      isDown ? Promise.reject(new Error('the disk is away')) : store.append(delta, options);
    const end = gate();
    const script = [callTool('look'), () => end.pass().then(() => reply('done'))];
    const run = await hostOf({
      script,
      tools: [toolOf('look')],
      store: { ...store, append } as never,
      clock,
    }).start();
    const heard = listen(run);
    await end.reached;
    await settle();
    isDown = false;
    await clock.advance(300);
    end.open();
    const saves = (await heard).filter(({ type }) => type.startsWith('checkpoint.'));
    expect(typesOf(saves).slice(0, 2)).toEqual(['checkpoint.failed', 'checkpoint.saved']);
    expect(ofType(saves, 'checkpoint.failed')[0]?.error.message).toContain('the disk is away');
    expect((await run.result).saveErrors).toBe(1);
  });
});
