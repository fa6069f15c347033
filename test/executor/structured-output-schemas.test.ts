import { createExecutor, defineAgent } from 'pawl';
import { callTool, reply, type ScriptedEntry, scriptedModel, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { hostOf, settle, toolOf, until } from '../fixtures/host.ts';
import { look, outputsOf, tell } from '../fixtures/phases.ts';
import { standard } from '../fixtures/standard-schema.ts';

const output = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'], additionalProperties: false };
const good = '{"n":1}';

function raise(value: unknown): never {
  throw value;
}

const unreadable = { enumerable: true, get: () => raise(new Error('no')) };

describe('a schema', () => {
  const failing: readonly (readonly [what: string, validate: () => unknown])[] = [
    ['throws', () => raise(new Error('schema broke'))],
    ['throws nothing', () => raise(null)],
    ['rejects', () => Promise.reject(new Error('schema broke'))],
    ['answers nothing', () => undefined],
    ['answers with a promise of nothing', async () => null],
    ['answers with what JSON cannot hold', () => ({ value: new Map() })],
    ['answers with what cannot be read', () => ({ value: Object.defineProperty({}, 'n', unreadable) })],
    ['has issues without a message', () => ({ issues: [{}] })],
  ];
  test.for(failing)('that %s has found a problem: one repair, then OUTPUT_INVALID', async ([, validate]) => {
    const { run, model } = hostOf({ agent: { output: standard(validate) }, script: [reply('{}'), reply('{}')] });
    const result = await run();
    expect(result).toMatchObject({ status: 'error', error: { code: 'OUTPUT_INVALID' } });
    expect(model.calls).toHaveLength(2);
  });

  test('that hangs has found a problem when its time is up', async () => {
    const clock = testClock();
    const hanging = standard(() => new Promise(() => {}));
    const script = [reply('{}'), reply('{}')];
    const host = hostOf({ agent: { output: hanging }, script, clock, defaults: { portMs: 1_000 } });
    const started = await host.start();
    for (let check = 1; check <= 2; check++) {
      await until(() => host.model.calls.length === check);
      await settle();
      await clock.advance(1_000);
    }
    expect(await started.result).toMatchObject({ status: 'error', error: { code: 'OUTPUT_INVALID' } });
    expect(clock.pending).toBe(0);
  });

  test('that hangs does not keep a run from being cancelled', async () => {
    const host = hostOf({ agent: { output: standard(() => new Promise(() => {})) }, script: [reply('{}')] });
    const started = await host.start();
    await until(() => host.model.calls.length === 1);
    await settle();
    expect(await started.cancel('enough')).toMatchObject({ status: 'cancelled', output: '{}' });
  });

  test('may take its time', async () => {
    const late = standard(async () => ({ value: 'late' }));
    const { run } = hostOf({ agent: { output: late }, script: [reply('{}')] });
    expect(await run()).toMatchObject({ status: 'ok', data: 'late' });
  });
});

/** What models were asked to answer in. */
function formats(script: readonly ScriptedEntry[], agent: object) {
  const asked: unknown[] = [];
  const scripted = scriptedModel(script);
  const model: typeof scripted = {
    ...scripted,
    doStream: (options) => {
      asked.push(options.responseFormat);
      return scripted.doStream(options);
    },
  };
  const { id, instructions } = { id: 'worker', instructions: '' };
  const executor = createExecutor({ models: { fast: model } });
  const given = defineAgent({ id, instructions, tools: [toolOf('look')], ...agent });
  return executor.run(given, { prompt: 'Go.' }).then((result) => ({ asked, result }));
}

describe('the model gets the form of the answer', () => {
  const asJson = { type: 'json', schema: output };

  test('in each of its turns, those of tools and of repair too', async () => {
    const { asked } = await formats([callTool('look'), reply('no'), reply(good)], { output });
    expect(asked).toEqual([asJson, asJson, asJson]);
  });

  test('as a JSON Schema, for a schema of any library', async () => {
    const { asked } = await formats([reply(good)], { output: z.object({ n: z.number() }) });
    expect(asked).toMatchObject([{ type: 'json', schema: { type: 'object', required: ['n'] } }]);
  });

  test('in the last phase of a pipeline only', async () => {
    const phases = [look, tell, { name: 'c', instructions: '' }];
    const { asked, result } = await formats([reply('one'), reply('two'), callTool('look'), reply(good)], {
      output,
      phases,
    });
    expect(asked).toEqual([undefined, undefined, asJson, asJson]);
    expect(result).toMatchObject({ status: 'ok', data: { n: 1 } });
    expect(outputsOf(result)).toEqual(['a: one', 'b: two', `c: ${good}`]);
  });

  test('not at all without a schema', async () => {
    expect((await formats([reply(good)], {})).asked).toEqual([undefined]);
  });
});
