import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fanOut, loadCheckpoint, saveCheckpoint } from 'pawl/fan-out';
import { callTool, fail, reply, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { gate, settle, toolOf } from '../fixtures/host.ts';
import { startChild } from '../store/child-process.ts';
import { around, asked, freshPath, prompt } from './asking.ts';
import { freshFolder } from './fresh-folder.ts';

const look = toolOf('look');

describe('asking', () => {
  test('all models are asked at the same time, and answer in the order of the caller (fan-out 1)', async () => {
    const [a, b] = [gate(), gate()];
    const waiting = (own: typeof a, other: typeof a, text: string) => async () => {
      void own.pass();
      await other.reached;
      return reply(text);
    };
    const call = asked({ models: { b: [waiting(b, a, 'of b')], a: [waiting(a, b, 'of a')] } });
    const { responses, interrupted, path } = await call.start();
    expect(responses.map(({ modelId, text }) => [modelId, text])).toEqual([
      ['b', 'of b'],
      ['a', 'of a'],
    ]);
    expect([interrupted, path, call.calls()]).toEqual([false, undefined, [1, 1]]);
    expect(call.models.a?.calls[0]?.messages).toEqual([{ role: 'user', content: [{ type: 'text', text: prompt }] }]);
  });

  test('an answer says what it took: tokens, steps, tools, money and why it ended (fan-out 2)', async () => {
    const call = asked({
      models: { a: [callTool('look'), callTool('look'), reply('seen')] },
      tools: [look],
      prices: { 'scripted/scripted': { inputPerMillion: 1_000, outputPerMillion: 10_000 } },
    });
    const [answer] = (await call.start()).responses;
    expect(answer).toMatchObject({
      ...{ modelId: 'a', text: 'seen', inputTokens: 30, outputTokens: 15, steps: 3, stopReason: 'answered' },
      ...{ toolCalls: { look: 2 }, proposedWrites: [], interrupted: false, costUsd: 0.18 },
    });
    expect(answer?.error).toBeUndefined();
  });

  test('one model’s failure leaves the others alone (fan-out 1)', async () => {
    const path = freshPath();
    const error = Object.assign(new Error('the key was refused'), { isRetryable: false });
    const call = asked({ models: { a: [fail(error)], b: [reply('of b')] }, path });
    const { responses, interrupted } = await call.start();
    expect(responses[0]).toMatchObject({ text: '', interrupted: false, error: expect.stringContaining('refused') });
    expect(responses[0]?.stopReason).toMatch(/^[A-Z_]+$/);
    expect(responses[1]).toMatchObject({ text: 'of b', stopReason: 'answered' });
    expect(interrupted).toBe(false);
    const kept = await loadCheckpoint(join(dirname(path), '.pawl', 'answers.json'));
    expect(kept?.responses.map(({ completed }) => completed)).toEqual([false, true]);
  });

  test('when all are done the checkpoint file goes, and the answers are in .pawl/answers.json (fan-out 6)', async () => {
    const path = freshPath();
    const call = asked({ models: { a: [reply('of a')], b: [reply('of b')] }, path, verbose: true });
    const result = await call.start();
    expect(around(path)).toEqual(['.pawl']);
    expect(result.path).toBe(join(dirname(path), '.pawl', 'answers.json'));
    const kept = await loadCheckpoint(String(result.path));
    expect(kept).toMatchObject({
      prompt,
      adapterIds: ['a', 'b'],
      verbose: true,
      timestamp: '2026-11-21T23:00:00.000Z',
    });
    expect(kept?.responses.map(({ text }) => text)).toEqual(['of a', 'of b']);
    expect(call.warned).toEqual([]);
  });

  test('the answers are in the root when there is one, and in the project of a checkpoint file in .pawl (fan-out 6)', async () => {
    const [root, project] = [freshFolder(), freshFolder()];
    const first = await asked({ models: { a: [reply('x')] }, path: freshPath(), root }).start();
    expect(first.path).toBe(join(root, '.pawl', 'answers.json'));
    const path = join(project, '.pawl', 'ask.json');
    const second = await asked({ models: { a: [reply('x')] }, path }).start();
    expect(second.path).toBe(join(project, '.pawl', 'answers.json'));
    expect(around(path)).toEqual(['.gitignore', 'answers.json']);
  });

  const names = [
    'a/b',
    '..',
    'é\u{1f600}',
    'constructor',
    '__proto__',
    '#id',
    'model(0)',
    'x'.repeat(1_000),
    '\0',
    '7',
    '\ud800',
    ' ',
  ];
  test.for(names)('a model may be called %j (fan-out 1)', async (id) => {
    const path = freshPath();
    const models = Object.fromEntries([[id, [reply('of it')]] as const, ['other', [reply('x')]] as const]);
    const { responses, ranking } = await asked({ models, path, judge: () => ['other', id] }).start();
    expect(responses).toMatchObject([{ modelId: id, text: 'of it' }, { modelId: 'other' }]);
    expect([ranking?.order, around(path)]).toEqual([['other', id], ['.pawl']]);
  });

  test('without a path nothing is written (fan-out 1)', async () => {
    const root = freshFolder();
    const result = await asked({ models: { a: [reply('x')] }, root }).start();
    expect([result.path, around(join(root, 'x'))]).toEqual([undefined, []]);
  });
});

describe('how many turns a model may take', () => {
  test.for<readonly [what: string, limits: object, turns: number]>([
    ['defaults.maxSteps', { defaults: { maxSteps: 3 } }, 3],
    ['maxSteps rather than the default', { defaults: { maxSteps: 3 }, maxSteps: 2 }, 2],
    ['20 when nothing is said', {}, 20],
  ])('it is %s (fan-out 1)', async ([, limits, turns]) => {
    const models = { a: Array.from({ length: 30 }, (_, at) => callTool('look', { at })) };
    const call = asked({ models, tools: [look], ...limits });
    expect((await call.start()).responses[0]).toMatchObject({ steps: turns, error: expect.any(String) });
    expect(call.calls()).toEqual([turns]);
  });
});

const models = { a: scriptedModel([]) };
const crowd = (size: number) => Object.fromEntries(Array.from({ length: size }, (_, at) => [`m${at}`, models.a]));

describe('a wrong call', () => {
  test.for<readonly [what: string, options: object | undefined]>([
    ['no options', undefined],
    ['an empty prompt', { prompt: ' ', models }],
    ['no models', { prompt, models: {} }],
    ['a model that is none', { prompt, models: { a: undefined } }],
    ['a model with an empty id', { prompt, models: { '': models.a } }],
    ['101 models', { prompt, models: crowd(101) }],
    ['a deadline of 0', { prompt, models, deadlineMs: 0 }],
    ['a deadline that is a text', { prompt, models, deadlineMs: '5' }],
    ['no turns', { prompt, models, maxSteps: Number.NaN }],
    ['half a turn', { prompt, models, maxSteps: 0.5 }],
    ['an empty root', { prompt, models, root: '' }],
    ['a signal that is none', { prompt, models, signal: { aborted: false } }],
    ['a judge that is a text', { prompt, models, judge: 'fast' }],
    ['tools that are no list', { prompt, models, tools: { look } }],
    ['a tool that is none', { prompt, models, tools: [{ name: 'look' }] }],
    ['two tools of one name', { prompt, models, tools: [look, look] }],
    ['a tool with the name of a file tool', { prompt, models, root: '.', tools: [toolOf('read_file')] }],
  ])('%s is refused by a TypeError, and nothing is locked or written (fan-out 1)', async ([, options]) => {
    const path = freshPath();
    const refused = fanOut((options && { ...options, path }) as never);
    await expect(refused).rejects.toBeInstanceOf(TypeError);
    // What goes on all the same would be at the disk by now.
    await settle(300);
    expect(around(path)).toEqual([]);
    expect(models.a.calls).toEqual([]);
  });

  test('100 models are asked, more are refused in words that say so (fan-out 1)', async () => {
    const many = Object.fromEntries(Object.keys(crowd(100)).map((id) => [id, [reply(id)]]));
    const { responses } = await asked({ models: many }).start();
    expect(responses.filter(({ modelId, text }) => text === modelId)).toHaveLength(100);
    await expect(fanOut({ prompt, models: crowd(101) })).rejects.toThrow('at most 100 models, not 101');
  });

  test('an empty path is refused by a TypeError (fan-out 1)', async () => {
    await expect(fanOut({ prompt, models, path: '' })).rejects.toBeInstanceOf(TypeError);
  });
});

describe('a file that cannot be had', () => {
  test.for([
    ['CHECKPOINT_CORRUPT', '{'],
    ['CHECKPOINT_TOO_NEW', '{"version":9}'],
  ])('%s rejects the call, no model is asked, and the file stays (fan-out 3)', async ([code, text = '']) => {
    const path = freshPath();
    writeFileSync(path, text);
    const call = asked({ models: { a: [reply('x')] }, path });
    await expect(call.start()).rejects.toMatchObject({ code });
    expect([call.calls(), readFileSync(path, 'utf8')]).toEqual([[0], text]);
    expect(around(path)).toEqual(['ask.json']);
  });

  test('one of another prompt, or with answers of others, rejects the call, no model is asked, and it stays (fan-out 4)', async () => {
    const path = freshPath();
    const checkpoint = { version: 1, prompt: 'Who?', timestamp: 0, adapterIds: ['a'], responses: [], verbose: false };
    await saveCheckpoint(path, checkpoint as never);
    const bytes = readFileSync(path);
    const call = asked({ models: { a: [reply('x')] }, path });
    await expect(call.start()).rejects.toMatchObject({ code: 'FAN_OUT_CONFLICT' });
    expect([call.calls(), readFileSync(path).equals(bytes), around(path)]).toEqual([[0], true, ['ask.json']]);
  });

  test('a folder that does not exist is made; where a file has its name the call is rejected (fan-out 3)', async () => {
    const path = join(freshFolder(), 'some', 'where', 'ask.json');
    expect((await asked({ models: { a: [reply('x')] }, path }).start()).path).toContain('answers.json');
    const file = join(freshFolder(), 'file');
    writeFileSync(file, '');
    const call = asked({ models: { a: [reply('x')] }, path: join(file, 'ask.json') });
    await expect(call.start()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    expect(call.calls()).toEqual([0]);
  });

  test('a second fan-out of this process on the path is refused, and the first continues undisturbed (fan-out 4)', async () => {
    const path = freshPath();
    const held = gate();
    const first = asked({
      models: { a: [callTool('look'), reply('of a')] },
      path,
      tools: [toolOf('look', 'once', () => held.pass())],
    });
    const running = first.start();
    await held.reached;
    const second = asked({ models: { a: [reply('x')] }, path });
    await expect(second.start()).rejects.toMatchObject({ code: 'FAN_OUT_OWNED_ELSEWHERE' });
    expect(second.calls()).toEqual([0]);
    held.open();
    const { responses, saveError } = await running;
    expect([responses[0]?.text, saveError, around(path)]).toEqual(['of a', undefined, ['.pawl']]);
  });

  test('while another process has the file the call is rejected; once that was killed it goes through (fan-out 4)', async () => {
    const path = freshPath();
    const child = startChild({ role: 'hold', path, script: '../fan-out/saver-child.ts' });
    expect(await child.next()).toBe('held');
    const call = asked({ models: { a: [reply('x')], b: [reply('y')] }, path, prompt: 'Which?' });
    await expect(call.start()).rejects.toMatchObject({ code: 'FAN_OUT_OWNED_ELSEWHERE' });
    await child.kill();
    expect((await call.start()).responses.map(({ text }) => text)).toEqual(['x', 'y']);
  });
});
