import { copyFileSync, cpSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type FanOutOptions, type JudgeFunction, loadCheckpoint } from 'pawl/fan-out';
import { callTool, fail, hang, reply, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { gate, toolOf } from '../fixtures/host.ts';
import { type Asked, around, asked, freshPath, until } from './asking.ts';
import { freshFolder } from './fresh-folder.ts';

const DAY_MS = 86_400_000;
const failure = Object.assign(new Error('no'), { isRetryable: false });
const answersOf = (path: string) => join(dirname(path), '.pawl', 'answers.json');
const twice = { a: [reply('of a'), reply('of a again')], b: [reply('of b'), reply('of b again')] };

/** A fan-out that has ended; each model could answer once more. */
async function ended(more: Partial<Asked> = {}) {
  const path = freshPath();
  const call = asked({ models: twice, path, ...more });
  const result = await call.start();
  const asks = call.calls();
  /** Calls again, and returns whether the models were asked. */
  const isAsked = async (options: Partial<FanOutOptions> = {}) => {
    const before = call.calls();
    await call.start(options);
    return call.calls().some((calls, at) => calls !== before[at]);
  };
  return { ...call, path, result, asks, isAsked };
}

describe('a fan-out that ended', () => {
  test('the same call returns its answers, says when it ended, and asks no model (edges 25)', async () => {
    const prices = { 'scripted/scripted': { inputPerMillion: 1_000, outputPerMillion: 10_000 } };
    const models = { a: [callTool('look'), reply('of a')], b: [fail(failure), reply('of b')] };
    const call = await ended({ models, tools: [toolOf('look')], prices });
    const { clock, result, path } = call;
    expect(result).not.toHaveProperty('kept');
    expect(result).not.toHaveProperty('endedAt');
    const endedAt = clock.now();
    await clock.advance(5_000);
    const told: string[] = [];
    const again = await call.start({ onResponse: ({ modelId, text }) => void told.push(`${modelId} ${text}`) });
    expect(again).toEqual({ ...result, kept: true, endedAt });
    expect(again.responses[0]).toMatchObject({ text: 'of a', steps: 2, costUsd: 0.12, toolCalls: { look: 1 } });
    expect(again.responses[1]).toMatchObject({ text: '', error: expect.stringContaining('no') });
    expect([call.calls(), told, around(path)]).toEqual([[2, 1], ['a of a', 'b '], ['.pawl']]);
    expect(call.warned.filter(({ message }) => message.includes('fan-out'))).toEqual([]);
  });

  test('its file says the hash of the request and the time of the end (edges 25)', async () => {
    const { path, clock } = await ended();
    const file = JSON.parse(readFileSync(answersOf(path), 'utf8'));
    expect(file).toMatchObject({ request_hash: expect.any(String), ended_at: new Date(clock.now()).toISOString() });
    expect(file).not.toHaveProperty('birth');
    const { end } = (await loadCheckpoint(answersOf(path))) ?? {};
    expect(end).toEqual({ requestHash: file.request_hash, endedAt: file.ended_at });
  });

  test('fresh asks all models, and its end takes the place of the one before (edges 25)', async () => {
    const call = await ended();
    const fresh = await call.start({ fresh: true });
    expect(fresh.responses.map(({ text }) => text)).toEqual(['of a again', 'of b again']);
    expect(fresh).not.toHaveProperty('kept');
    expect(await call.start()).toMatchObject({
      kept: true,
      responses: [{ text: 'of a again' }, { text: 'of b again' }],
    });
  });

  test.for<readonly [what: string, retention: FanOutOptions['retention'], lengthMs: number]>([
    ['7 days', undefined, 7 * DAY_MS],
    ["retention.outcomes of '2h'", { outcomes: '2h' }, 7_200_000],
    ['retention.outcomes in ms', { outcomes: 4_000 }, 4_000],
  ])('it is returned for %s, and then the models are asked (edges 25)', async ([, retention, lengthMs]) => {
    const call = await ended();
    const options = retention ? { retention } : {};
    const at = (now: number) => ({ ...options, clock: { ...call.clock, now: () => now } });
    expect(await call.isAsked(at(call.clock.now() + lengthMs - 1))).toBe(false);
    expect(await call.isAsked(at(call.clock.now() + lengthMs))).toBe(true);
  });

  test('with retention.outcomes of 0 each call asks (edges 25)', async () => {
    expect(await (await ended()).isAsked({ retention: { outcomes: 0 } })).toBe(true);
  });

  test('a clock that was set back a little returns it, and one that was set back further than the retention asks (edges 25)', async () => {
    const call = await ended();
    const back = (ms: number) => ({ clock: { ...call.clock, now: () => call.clock.now() - ms } });
    expect(await call.isAsked(back(DAY_MS))).toBe(false);
    expect(await call.isAsked(back(7 * DAY_MS))).toBe(true);
  });

  const { a, b } = Object.fromEntries(['a', 'b'].map((id) => [id, scriptedModel([reply(`new ${id}`)])]));
  const c = scriptedModel([reply('new c')]);
  test.for<readonly [what: string, more: Partial<FanOutOptions>, isAsked: boolean]>([
    ['another prompt', { prompt: 'And now?' }, true],
    ['other instructions', { instructions: 'Be brief.' }, true],
    ['a model more', { models: { a, b, c } as never }, true],
    ['a model less', { models: { a } as never }, true],
    ['another path beside it', { path: 'other.json' }, true],
    ['a root, and so with instructions for files', { root: '.' }, true],
    ['the models in another order', { models: { b, a } as never }, false],
    ['other tools', { tools: [toolOf('look')] }, false],
    ['other limits', { maxSteps: 3, deadlineMs: 5 }, false],
    ['a judge', { judge: () => ['b', 'a'] }, false],
  ])('a call with %s is another request, or is not (edges 25)', async ([, { path, root, ...more }, isAsked]) => {
    const call = await ended();
    const folder = dirname(call.path);
    const places = { ...(path ? { path: join(folder, path) } : {}), ...(root ? { root: folder } : {}) };
    const result = await call.start({ ...more, ...places });
    expect(result.kept).toBe(isAsked ? undefined : true);
    expect(call.warned).toEqual([]);
    const ids = Object.keys((more.models as object | undefined) ?? twice);
    expect(result.responses.map(({ modelId }) => modelId)).toEqual(ids);
  });

  test('another fan-out in the same folder takes its place (edges 25)', async () => {
    const call = await ended();
    await asked({ models: { a: [reply('x')] }, path: join(dirname(call.path), 'other.json'), prompt: 'And?' }).start();
    expect(await call.isAsked()).toBe(true);
  });

  test('it is found in a folder that was moved (edges 25)', async () => {
    const call = await ended();
    const folder = join(freshFolder(), 'moved');
    renameSync(dirname(call.path), folder);
    expect(await call.isAsked({ path: join(folder, 'ask.json') })).toBe(false);
  });

  test('one in which no model recorded anything is not returned: a call without a key blocks no later one (edges 25)', async () => {
    const models = { a: [fail(failure), reply('of a')], b: [fail(failure), reply('of b')] };
    const call = await ended({ models });
    expect(call.result.responses.map(({ stopReason }) => stopReason)).toEqual(['MODEL', 'MODEL']);
    expect((await call.start()).responses.map(({ text }) => text)).toEqual(['of a', 'of b']);
  });

  test('one in which all models failed after a step is returned (edges 25)', async () => {
    const models = { a: [callTool('look'), fail(failure), reply('of a')] };
    const call = await ended({ models, tools: [toolOf('look')] });
    expect(await call.start()).toMatchObject({
      kept: true,
      responses: [{ error: expect.stringContaining('no'), steps: 1 }],
    });
  });
});

describe('the judge of a fan-out that ended', () => {
  test('its ranking and what it took are returned, and it is not asked again (edges 25)', async () => {
    const verdict = reply(JSON.stringify({ order: [2, 1], reason: 'it is right' }));
    const judge = scriptedModel([verdict]);
    const call = await ended({ judge });
    expect(call.result).toMatchObject({ ranking: { order: ['b', 'a'] }, judgeUsage: { inputTokens: 10 } });
    expect(await call.start()).toEqual({ ...call.result, kept: true, endedAt: call.clock.now() });
    expect(judge.calls).toHaveLength(1);
  });

  test('one that failed is not asked again either: the reason is returned (edges 25)', async () => {
    let asks = 0;
    const judge: JudgeFunction = () => {
      asks += 1;
      throw Object.assign(new Error('no opinion'), { cause: new Error('tired') });
    };
    const call = await ended({ judge });
    expect(call.result.judgeError).toMatchObject({ message: 'no opinion', cause: { message: 'tired' } });
    expect(await call.start()).toEqual({ ...call.result, kept: true, endedAt: call.clock.now() });
    expect(asks).toBe(1);
  });

  test('one that pondered when the caller cancelled is not asked again: the answers and the reason are returned (edges 25)', async () => {
    const path = freshPath();
    const held = gate<string[]>();
    let asks = 0;
    const judge: JudgeFunction = () => {
      asks += 1;
      return held.pass();
    };
    const call = asked({ models: twice, path, judge });
    const running = call.start();
    await held.reached;
    call.caller.abort();
    const result = await running;
    expect(result.judgeError?.code).toBe('CANCELLED');
    expect(await call.start()).toEqual({ ...result, kept: true, endedAt: call.clock.now() });
    expect([asks, call.calls()]).toEqual([1, [1, 1]]);
  });
});

describe('a fan-out that has not ended', () => {
  test('an interrupted one continues, also where an earlier end is kept, and with fresh (edges 25)', async () => {
    const models = { a: [reply('first'), hang(), hang(), reply('third')] };
    const call = await ended({ models });
    for (const [fresh, asks] of [
      [true, 2],
      [false, 3],
    ] as const) {
      const caller = new AbortController();
      const running = call.start({ fresh, signal: caller.signal });
      await until(() => call.calls()[0] === asks);
      caller.abort();
      expect(await running).toMatchObject({ interrupted: true, path: call.path });
    }
    const last = await call.start({ fresh: true });
    expect(last.responses[0]?.text).toBe('third');
    expect(await call.start()).toMatchObject({ kept: true, responses: [{ text: 'third' }] });
  });

  test('a process that is killed between the last answer and the end leaves it to the next call, which asks no model (edges 25)', async () => {
    const path = freshPath();
    const [all, ends] = [`${path}.all`, `${path}.ends`];
    let asks = 0;
    const judge: JudgeFunction = () => {
      asks += 1;
      if (asks === 1) copyFileSync(path, all);
      return ['b', 'a'];
    };
    const call = asked({ models: twice, path, judge });
    const result = await call.start();
    // As a kill leaves it: before the answers were in their file, and after that.
    for (const hasAnswers of [false, true]) {
      copyFileSync(all, path);
      if (hasAnswers) cpSync(answersOf(path), ends);
      else renameSync(answersOf(path), ends);
      const next = await call.start();
      expect(next).toEqual(result);
      expect(existsSync(path)).toBe(false);
    }
    expect([call.calls(), (await call.start()).kept]).toEqual([[1, 1], true]);
  });

  test('while another call works on the path the end is not returned (edges 25)', async () => {
    const call = await ended({ models: { a: [reply('first'), hang()] } });
    const running = call.start({ fresh: true });
    await until(() => call.calls()[0] === 2);
    await expect(call.start()).rejects.toMatchObject({ code: 'FAN_OUT_OWNED_ELSEWHERE' });
    call.caller.abort();
    await running;
  });
});

describe('a file of answers', () => {
  test.for<readonly [what: string, write: (path: string, text: string) => void]>([
    ['damaged', (path) => writeFileSync(path, '{')],
    ['of a newer version', (path) => writeFileSync(path, '{"version":9}')],
    [
      'with a wrong time of the end',
      (path, text) => writeFileSync(path, text.replace('"ended_at":"2', '"ended_at":"x')),
    ],
  ])('that is %s is no end: there is a warning, and the models are asked (edges 25)', async ([, write]) => {
    const call = await ended();
    write(answersOf(call.path), readFileSync(answersOf(call.path), 'utf8'));
    expect(await call.isAsked()).toBe(true);
    const warned = call.warned.map(({ message }) => message);
    expect(warned).toEqual(['fan-out: the answers of the last call could not be read']);
    expect(await call.start()).toMatchObject({ kept: true });
  });

  test.for<readonly [what: string, change: (text: string) => string]>([
    ['an earlier version wrote, without a hash', (text) => text.replace('"request_hash"', '"x"')],
    ['lacks a model', (text) => text.replace(/\{"model_id":"a".*\},\n/, '')],
    ['has a model that was interrupted', (text) => text.replace('"interrupted":false', '"interrupted":true')],
  ])('that %s is no end, and the models are asked (edges 25)', async ([, change]) => {
    const call = await ended();
    const text = readFileSync(answersOf(call.path), 'utf8');
    expect(change(text)).not.toBe(text);
    writeFileSync(answersOf(call.path), change(text));
    expect([await call.isAsked(), call.warned]).toEqual([true, []]);
  });
});

test.for<readonly [what: string, options: object, message: string]>([
  ['fresh that is a text', { fresh: 'yes' }, 'fanOut: fresh must be true or false'],
  ['retention that is a number', { retention: 5 }, 'fanOut: retention must be an object'],
  ['a retention with another name', { retention: { outcome: 5 } }, 'did you mean retention.outcomes?'],
  ['outcomes that are no time', { retention: { outcomes: 'soon' } }, `or a text such as '7d', not "soon"`],
  ['outcomes below 0', { retention: { outcomes: -1 } }, 'not the number -1'],
  ['outcomes that are not a number', { retention: { outcomes: Number.NaN } }, 'not the number NaN'],
  ['outcomes of null', { retention: { outcomes: null } }, 'not null'],
])('%s is refused by a TypeError, and no model is asked (edges 25)', async ([, options, message]) => {
  const call = asked({ models: twice, ...options });
  const refused = call.start();
  await expect(refused).rejects.toBeInstanceOf(TypeError);
  await expect(refused).rejects.toThrow(message);
  expect(call.calls()).toEqual([0, 0]);
});
