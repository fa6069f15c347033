import { rmSync, writeFileSync } from 'node:fs';
import { loadCheckpoint } from 'pawl/fan-out';
import { callTool, fail, hang, reply, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { ModelWatch } from '../../src/fan-out/model-watch.ts';
import { noUsage } from '../../src/values/usage.ts';
import { toolOf } from '../fixtures/host.ts';
import { around, asked, freshPath, until } from './asking.ts';

/** A port that counts from 1 in each process. */
function counting() {
  let last = 0;
  return () => `run-${++last}`;
}

/** Cancelled when a, which is asked second, has one step; b, which is asked first, has failed. */
async function left() {
  const path = freshPath();
  const down = Object.assign(new Error('down'), { isRetryable: false });
  const models = { b: [fail(down)], a: [callTool('look'), hang()] };
  const call = asked({ models, path, tools: [toolOf('look')] });
  const running = call.start({ ids: counting() });
  await until(async () => {
    const responses = (await loadCheckpoint(path))?.responses ?? [];
    return call.calls()[1] === 2 && responses.some(({ error }) => error) && responses.some(({ steps }) => steps === 1);
  });
  call.caller.abort();
  await running;
  return path;
}

describe('ids of runs', () => {
  test('ids that count from 1 in each process give no model the run, and the answer, of another (fan-out 5)', async () => {
    const path = await left();
    // c comes second now, and would get the id that the run of a has.
    const models = { b: scriptedModel([reply('of b')]), c: [reply('of c')], a: [reply('of a')] };
    const call = asked({ models, path, tools: [toolOf('look')], ids: counting() });
    const { responses, interrupted } = await call.start();
    expect(responses.map(({ modelId, text, steps }) => [modelId, text, steps])).toEqual([
      ['b', 'of b', 1],
      ['c', 'of c', 1],
      ['a', 'of a', 2],
    ]);
    expect([interrupted, call.calls(), around(path)]).toEqual([false, [1, 1, 1], ['.pawl']]);
    expect(call.warned.map(({ message }) => message)).toEqual(['fan-out: ids gave no run id; a random one is used']);
  });

  test('an id that no host may give (~child) is replaced by a random one, and the model answers', async () => {
    const call = asked({ models: { a: [reply('of a')] }, path: freshPath(), ids: () => '~child' });
    expect((await call.start()).responses[0]).toMatchObject({ text: 'of a', stopReason: 'answered' });
    expect(call.warned.map(({ message }) => message)).toEqual(['fan-out: ids gave no run id; a random one is used']);
  });

  test('a model whose run could not be recorded at its start has left off, and is asked by the next call (fan-out 5)', async () => {
    const path = freshPath();
    const call = asked({ models: { a: [reply('of a')] }, path });
    const ids = () => {
      writeFileSync(`${path}.runs`, '');
      return 'run-1';
    };
    const { responses, interrupted } = await call.start({ ids });
    expect(responses[0]).toMatchObject({ interrupted: true, text: '', stopReason: 'STORE_UNAVAILABLE' });
    expect([interrupted, responses[0]?.error, call.calls()]).toEqual([true, undefined, [0]]);
    rmSync(`${path}.runs`);
    expect((await call.start()).responses[0]).toMatchObject({ text: 'of a', stopReason: 'answered' });
  });

  test.for(['NOT_DURABLE', 'RUN_ID_CONFLICT'])(
    'a run that is refused by %s decides nothing: its model has left off (fan-out 6)',
    (code) => {
      const error = { name: 'PawlError', code, message: 'refused' };
      const rest = { runId: 'run-1', output: '', usage: noUsage, iterations: 0, phases: [], undelivered: [] };
      const ended = new ModelWatch('a', undefined, () => 0).end({ ...rest, status: 'error', error });
      expect(ended).toMatchObject({ interrupted: true, stopReason: code });
      expect(ended.error).toBeUndefined();
    },
  );
});
