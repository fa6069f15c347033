import { getEventListeners } from 'node:events';
import { loadCheckpoint } from 'pawl/fan-out';
import { callTool, callTools, hang, reply, stallAfter } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { ShutdownError } from '../../src/values/errors.ts';
import { gate, settle, toolOf } from '../fixtures/host.ts';
import { around, asked, freshPath, until } from './asking.ts';
import { freshFolder } from './fresh-folder.ts';

const write = callTool('write_file', { path: 'new.txt', content: 'hello' });

describe('a model past its deadline', () => {
  test('one that hangs is interrupted with its partial text, tokens and writes; the others answer; the next call continues from its last step (fan-out 6)', async () => {
    const path = freshPath();
    const call = asked({
      models: { a: [write, stallAfter('So far'), reply('all of a')], b: [reply('of b')] },
      ...{ path, root: freshFolder(), deadlineMs: 5_000 },
    });
    const running = call.start();
    await until(() => call.calls()[0] === 2);
    await settle();
    await call.clock.advance(4_999);
    expect(call.models.a?.calls[1]?.signal?.aborted).toBe(false);
    await call.clock.advance(1);
    const { responses, interrupted, path: kept } = await running;
    expect([interrupted, kept]).toEqual([true, path]);
    expect(responses[0]).toMatchObject({
      ...{ text: 'So far', interrupted: true, stopReason: 'deadline', steps: 1, inputTokens: 10, outputTokens: 5 },
      ...{ proposedWrites: [{ path: 'new.txt', content: 'hello', base: null }], toolCalls: { write_file: 1 } },
    });
    expect(responses[0]).not.toHaveProperty('error');
    expect(responses[0]?.latencyMs).toBeGreaterThanOrEqual(5_000);
    expect(responses[1]).toMatchObject({ text: 'of b', stopReason: 'answered' });
    const found = await loadCheckpoint(path);
    expect(found?.responses).toMatchObject([
      { modelId: 'a', text: 'So far', interrupted: true, completed: false, stopReason: 'deadline' },
      { modelId: 'b', completed: true },
    ]);
    expect(around(path)).toEqual(['ask.json', 'ask.json.runs']);

    const again = await call.start();
    expect(again).toMatchObject({ interrupted: false, responses: [{ text: 'all of a', steps: 2 }, { text: 'of b' }] });
    expect(again.responses[0]).toMatchObject({ inputTokens: 20, outputTokens: 10, toolCalls: { write_file: 1 } });
    expect(again.responses[0]?.proposedWrites).toEqual(responses[0]?.proposedWrites);
    expect([call.calls(), around(path)]).toEqual([[3, 1], []]);
    // It goes on from what it has done: the step before the interruption is in its prompt.
    expect(call.models.a?.calls[2]?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool']);
  });

  test('its working time is that of all calls, and not that between them (fan-out 6)', async () => {
    const call = asked({ models: { a: [hang(), hang(), reply('of a')] }, path: freshPath(), deadlineMs: 5_000 });
    const times: (number | undefined)[] = [];
    for (let asks = 1; asks <= 2; asks++) {
      const running = call.start();
      await until(() => call.calls()[0] === asks);
      await settle();
      await call.clock.advance(5_000);
      times.push((await running).responses[0]?.latencyMs);
      await call.clock.advance(60_000);
    }
    expect([...times, (await call.start()).responses[0]?.latencyMs]).toEqual([5_000, 10_000, 10_000]);
  });

  test('what it had begun to say stays when it leaves off again before it says more (fan-out 6)', async () => {
    const path = freshPath();
    const models = { a: [callTool('look'), stallAfter('So far'), hang(), reply('all of a')] };
    const call = asked({ models, path, tools: [toolOf('look')], deadlineMs: 50 });
    for (let asks = 2; asks <= 3; asks++) {
      const running = call.start();
      await until(() => call.calls()[0] === asks);
      await settle();
      await call.clock.advance(50);
      expect((await running).responses[0]).toMatchObject({ text: 'So far', stopReason: 'deadline', steps: 1 });
      expect((await loadCheckpoint(path))?.responses[0]?.text).toBe('So far');
    }
    expect((await call.start()).responses[0]).toMatchObject({ text: 'all of a', steps: 2 });
  });

  test('each model has its own deadline in each call, and none after its answer (fan-out 6)', async () => {
    const call = asked({ models: { a: [hang()], b: [reply('of b')] }, deadlineMs: 1_000 });
    const running = call.start();
    await until(() => call.calls().every((calls) => calls === 1));
    await settle();
    await call.clock.advance(1_000);
    const { responses } = await running;
    expect(responses.map(({ stopReason }) => stopReason)).toEqual(['deadline', 'answered']);
    expect(call.clock.pending).toBe(0);
  });
});

describe('a caller who cancels', () => {
  test('before the call no model is asked, everything is interrupted, and the file is there for the next call (fan-out 6)', async () => {
    const path = freshPath();
    const call = asked({ models: { a: [reply('of a')], b: [reply('of b')] }, path });
    call.caller.abort();
    const { responses, interrupted } = await call.start();
    expect(responses.map(({ stopReason, interrupted }) => [stopReason, interrupted])).toEqual([
      ['cancelled', true],
      ['cancelled', true],
    ]);
    expect([interrupted, call.calls(), around(path)]).toEqual([true, [0, 0], ['ask.json']]);
    const again = await call.start({ signal: undefined } as never);
    expect(again.responses.map(({ text }) => text)).toEqual(['of a', 'of b']);
  });

  test('while the file is being opened no model is asked either (fan-out 6)', async () => {
    const path = freshPath();
    const call = asked({ models: { a: [reply('of a')] }, path });
    const running = call.start();
    call.caller.abort();
    expect((await running).responses[0]).toMatchObject({ interrupted: true, stopReason: 'cancelled' });
    expect([call.calls(), around(path)]).toEqual([[0], ['ask.json']]);
  });

  test('in the middle all leave off with what they have, and each given answer is kept (fan-out 6)', async () => {
    const path = freshPath();
    const call = asked({ models: { a: [stallAfter('So')], b: [reply('of b')], c: [hang()] }, path });
    const seen: string[] = [];
    const running = call.start({ onEvent: (id, { type }) => void seen.push(`${id} ${type}`) });
    await until(() => seen.includes('a model.delta') && seen.includes('b run.ended'));
    call.caller.abort(new Error('Ctrl-C'));
    const { responses } = await running;
    expect(responses).toMatchObject([
      { text: 'So', interrupted: true, stopReason: 'cancelled' },
      { text: 'of b', interrupted: false, stopReason: 'answered' },
      { text: '', interrupted: true, stopReason: 'cancelled', steps: 0 },
    ]);
    expect((await loadCheckpoint(path))?.responses.map(({ completed }) => completed)).toEqual([false, true, false]);
  });

  test('after the end it changes nothing (fan-out 6)', async () => {
    const call = asked({ models: { a: [reply('of a')] }, path: freshPath() });
    const result = await call.start();
    expect(getEventListeners(call.caller.signal, 'abort')).toEqual([]);
    call.caller.abort();
    await settle();
    expect([result.responses[0]?.stopReason, call.warned]).toEqual(['answered', []]);
  });

  test('a reason that is a shutdown is an interruption, before the call and in the middle (fan-out 6)', async () => {
    const early = asked({ models: { a: [hang()] } });
    early.caller.abort(new ShutdownError('the host stops'));
    expect((await early.start()).responses[0]).toMatchObject({ interrupted: true, stopReason: 'interrupted' });
    const late = asked({ models: { a: [hang()] }, path: freshPath() });
    const running = late.start();
    await until(() => late.calls()[0] === 1);
    late.caller.abort(Object.assign(new Error('SIGTERM'), { code: 'ERR_SHUTDOWN' }));
    expect((await running).responses[0]).toMatchObject({ interrupted: true, stopReason: 'interrupted' });
  });

  test('what the first of several interruptions left is there after all of them, and each continues (fan-out 6)', async () => {
    const path = freshPath();
    const hangs = Array.from({ length: 5 }, hang);
    const call = asked({
      models: { a: [callTool('look'), ...hangs, reply('of a')] },
      path,
      tools: [toolOf('look')],
    });
    for (let asks = 2; asks <= 6; asks++) {
      const caller = new AbortController();
      const running = call.start({ signal: caller.signal });
      await until(() => call.calls()[0] === asks);
      caller.abort();
      expect((await running).responses[0]).toMatchObject({ steps: 1, inputTokens: 10, toolCalls: { look: 1 } });
    }
    expect((await call.start()).responses[0]).toMatchObject({ text: 'of a', steps: 2, toolCalls: { look: 1 } });
  });

  test('a call before anybody is asked again keeps what an earlier process had of a model (fan-out 6)', async () => {
    const path = freshPath();
    const call = asked({
      models: { a: [callTool('look'), stallAfter('So far')] },
      path,
      tools: [toolOf('look')],
      deadlineMs: 50,
    });
    const running = call.start();
    await until(() => call.calls()[0] === 2);
    await settle();
    await call.clock.advance(50);
    const { responses } = await running;
    call.caller.abort();
    expect((await call.start()).responses).toEqual(responses);
    expect((await loadCheckpoint(path))?.responses[0]).toMatchObject({ text: 'So far', stopReason: 'deadline' });
  });
});

describe('calls with effects', () => {
  test('a call with the effect once that is under way when the caller cancels is waited for, and not repeated (fan-out 6)', async () => {
    const path = freshPath();
    const sending = gate<string>();
    let sends = 0;
    const send = toolOf('send', 'once', () => {
      sends += 1;
      return sending.pass();
    });
    const call = asked({
      models: { a: [callTool('send'), reply('sent')], b: [hang(), reply('of b')] },
      path,
      tools: [send],
    });
    const running = call.start();
    await sending.reached;
    await until(() => call.calls()[1] === 1);
    call.caller.abort();
    let isOver = false;
    void running.then(() => {
      isOver = true;
    });
    await call.clock.advance(5_000);
    expect(isOver).toBe(false);
    sending.open('it is sent');
    expect((await running).interrupted).toBe(true);
    const again = await call.start({ signal: undefined } as never);
    expect([again.responses[0]?.text, sends]).toEqual(['sent', 1]);
    expect(JSON.stringify(call.models.a?.calls[1]?.messages)).toContain('it is sent');
    expect(again.responses[0]?.toolCalls).toEqual({ send: 1 });
  });

  test('one that never ends is not waited for longer than 7.5 s, and is not repeated either (fan-out 6)', async () => {
    const path = freshPath();
    let sends = 0;
    const send = toolOf('send', 'once', () => {
      sends += 1;
      return new Promise(() => {});
    });
    const models = { a: [callTools([{ name: 'send', input: {} }]), reply('unsure')] };
    const call = asked({ models, path, tools: [send] });
    const running = call.start();
    await until(() => sends === 1);
    call.caller.abort();
    let isOver = false;
    const result = running.finally(() => {
      isOver = true;
    });
    await call.clock.advance(7_499);
    expect(isOver).toBe(false);
    for (let waited = 0; !isOver && waited < 60; waited++) await call.clock.advance(500);
    expect((await result).responses[0]).toMatchObject({ interrupted: true, stopReason: 'cancelled' });
    const again = await call.start({ signal: undefined } as never);
    expect([again.responses[0]?.text, sends]).toEqual(['unsure', 1]);
  });
});
