import { memoryStore } from 'pawl';
import { callTool, callTools, reply, type ScriptedEntry } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { hostOf, toolOf, until } from '../../fixtures/host.ts';
import { speakingModel } from '../../fixtures/speaking-model.ts';
import { afterCrash } from '../../fixtures/watched-store.ts';

const bad = toolOf('bad', 'read', () => {
  throw new Error('broken');
});
const good = toolOf('good');
const tools = [bad, good];
const badly = (n: number) => callTool('bad', { n });
const well = (n: number) => callTool('good', { n });
const both = (n: number) =>
  callTools([
    { name: 'bad', input: { n } },
    { name: 'good', input: { n } },
  ]);
const run = (script: readonly ScriptedEntry[], options = {}) =>
  hostOf({ script, tools, agent: { maxSteps: 50 }, ...options }).run();

describe('the guard against failing tools', () => {
  test('ends the run after the third step in a row in which every call failed (executor 16)', async () => {
    const result = await run([badly(1), badly(2), badly(3), reply('never')]);
    expect(result).toMatchObject({
      status: 'error',
      error: { code: 'TOOL_LOOP', name: 'ToolLoopError' },
      iterations: 3,
    });
    expect(result.messages).toHaveLength(7);
  });

  test('is quiet after two, and begins again after a step that worked (executor 16)', async () => {
    const result = await run([badly(1), badly(2), well(3), badly(4), badly(5), reply('through')]);
    expect(result).toMatchObject({ status: 'ok', output: 'through' });
  });

  test('does not count a step in which one call worked (executor 16)', async () => {
    expect((await run([both(1), both(2), both(3), both(4), reply('through')])).status).toBe('ok');
  });

  test('counts invalid input and unknown tools like throws (executor 15, 16)', async () => {
    const result = await run([callTool('nobody', { n: 1 }), callTool('nobody', { n: 2 }), badly(3), reply('never')]);
    expect(result.error?.code).toBe('TOOL_LOOP');
  });

  test('takes its limit from the defaults of the executor (executor 9)', async () => {
    const result = await run([badly(1), reply('never')], { defaults: { maxConsecutiveToolErrors: 1 } });
    expect(result).toMatchObject({ error: { code: 'TOOL_LOOP' }, iterations: 1 });
  });

  test('continues counting after a crash: two failing steps before it, one after (executor 13, 16)', async () => {
    const store = memoryStore();
    const first = hostOf({ script: [badly(1), badly(2), () => new Promise(() => {})], tools, store });
    await first.start({ runId: 'r' });
    await until(async () => (await store.load('r'))?.iteration === 2);
    const second = hostOf({ script: [badly(3), reply('never')], tools, store: await afterCrash(store) });
    expect(await second.run({ runId: 'r' })).toMatchObject({ error: { code: 'TOOL_LOOP' }, iterations: 3 });
  });
});

describe('the guard against repeated calls', () => {
  test('ends the run when one call was made in three steps in a row (executor 16)', async () => {
    const result = await run([well(1), well(1), well(1), reply('never')]);
    expect(result).toMatchObject({ status: 'error', error: { code: 'TOOL_LOOP' }, iterations: 3 });
  });

  test('knows a call by its input, in any order of its keys (executor 16)', async () => {
    const inputs = [
      { a: 1, b: { c: 1, d: 2 } },
      { b: { d: 2, c: 1 }, a: 1 },
      { a: 1, b: { d: 2, c: 1 } },
    ];
    const result = await run([...inputs.map((input) => callTool('good', input)), reply('never')]);
    expect(result.error?.code).toBe('TOOL_LOOP');
  });

  test('sees it among other calls of the same messages (executor 16)', async () => {
    const step = (n: number) =>
      callTools([
        { name: 'good', input: { n } },
        { name: 'good', input: { same: true } },
      ]);
    expect((await run([step(1), step(2), step(3), reply('never')])).error?.code).toBe('TOOL_LOOP');
  });

  test('lets polling be: the same call again after another one is legal, however often (executor 16)', async () => {
    const polls = Array.from({ length: 10 }, (_, i) => [well(0), well(0), well(i + 1)]).flat();
    expect((await run([...polls, reply('through')])).status).toBe('ok');
  });

  test('counts steps, not calls: the same call four times in one message is one (executor 16)', async () => {
    const four = callTools(Array.from({ length: 4 }, () => ({ name: 'good', input: {} })));
    expect((await run([four, four, reply('through')])).status).toBe('ok');
  });

  test('tells calls of two tools with one input apart (executor 16)', async () => {
    const names = ['good', 'bad', 'good', 'bad'];
    expect((await run([...names.map((name) => callTool(name, { n: 1 })), reply('through')])).status).toBe('ok');
  });
});

describe('the step limit', () => {
  test('ends the run with StepLimitError, the last text it had, and no further model call (executor 16)', async () => {
    const model = speakingModel((turn) => ({ text: `thought ${turn}`, calls: [{ name: 'good', input: { turn } }] }));
    const result = await hostOf({ models: { fast: model }, tools, agent: { maxSteps: 4 } }).run();
    expect(result).toMatchObject({
      status: 'error',
      error: { code: 'STEP_LIMIT', name: 'StepLimitError' },
      output: 'thought 4',
      iterations: 4,
    });
    expect(model.turns).toBe(4);
  });

  test('is reached by the last allowed turn only when that does not answer (executor 16)', async () => {
    expect(await run([well(1), well(2), reply('just in time')], { agent: { maxSteps: 3 } })).toMatchObject({
      status: 'ok',
      output: 'just in time',
    });
  });

  test('a tool loop ends with the partial output too (executor 16)', async () => {
    const model = speakingModel((turn) => ({
      text: turn === 1 ? 'an idea' : '',
      calls: [{ name: 'bad', input: { turn } }],
    }));
    const result = await hostOf({ models: { fast: model }, tools }).run();
    expect(result).toMatchObject({ error: { code: 'TOOL_LOOP' }, output: 'an idea' });
  });

  test('holds over the whole life of a run: steps before a crash count (executor 13, 16)', async () => {
    const store = memoryStore();
    const agent = { maxSteps: 3 };
    const first = hostOf({ script: [well(1), well(2), () => new Promise(() => {})], tools, agent, store });
    await first.start({ runId: 'r' });
    await until(async () => (await store.load('r'))?.iteration === 2);
    const second = hostOf({ script: [well(3), reply('never')], tools, agent, store: await afterCrash(store) });
    expect(await second.run({ runId: 'r' })).toMatchObject({ error: { code: 'STEP_LIMIT' }, iterations: 3 });
  });

  test('is 20 by default: nothing is unlimited (executor 9)', async () => {
    const model = speakingModel((turn) => ({ calls: [{ name: 'good', input: { turn } }] }));
    expect(await hostOf({ models: { fast: model }, tools }).run()).toMatchObject({
      error: { code: 'STEP_LIMIT' },
      iterations: 20,
    });
  });
});
