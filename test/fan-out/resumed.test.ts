import { readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { loadCheckpoint } from 'pawl/fan-out';
import { sqliteStore } from 'pawl/stores/sqlite';
import { callTool, hang, reply, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { toolOf } from '../fixtures/host.ts';
import { around, asked, freshPath, prompt, recordsOf, until } from './asking.ts';

const look = toolOf('look');

/** A fan-out that was cancelled when a had one step and b its answer. */
async function left(rest = [reply('all of a')]) {
  const path = freshPath();
  const models = { a: [callTool('look'), hang(), ...rest], b: [reply('of b')] };
  const prices = { 'scripted/scripted': { inputPerMillion: 1_000, outputPerMillion: 10_000 } };
  const call = asked({ models, path, tools: [look], prices });
  const caller = new AbortController();
  const running = call.start({ signal: caller.signal });
  await until(() => call.calls()[0] === 2 && call.calls()[1] === 1);
  await until(async () => (await loadCheckpoint(path))?.responses.some(({ completed }) => completed));
  caller.abort();
  await running;
  return { path, call };
}

describe('a fan-out that continues', () => {
  test.for<readonly [what: string, harm: (file: string) => void]>([
    [
      'damaged',
      (file) => writeFileSync(file, readFileSync(file, 'latin1').replaceAll('"iteration"', '"iteratiom"'), 'latin1'),
    ],
    ['empty', (file) => truncateSync(file)],
  ])(
    'a model whose record is %s begins again, and one that has answered is not asked (fan-out 5)',
    async ([, harm]) => {
      const { path, call } = await left([reply('all of a')]);
      harm(recordsOf(path));
      const { responses } = await call.start();
      expect(responses).toMatchObject([{ text: 'all of a', steps: 1, stopReason: 'answered' }, { text: 'of b' }]);
      // The turn that is lost is paid for all the same.
      expect(responses[0]).toMatchObject({ inputTokens: 20, outputTokens: 10, costUsd: 0.12, toolCalls: {} });
      expect([call.calls(), around(path)]).toEqual([[3, 1], ['.pawl']]);
    },
  );

  test('a model without a record begins again (fan-out 5)', async () => {
    const { path, call } = await left();
    rmSync(`${path}.runs`, { recursive: true });
    const { responses } = await call.start();
    expect([responses[0]?.text, responses[0]?.steps, call.calls()]).toEqual(['all of a', 1, [3, 1]]);
  });

  test.for<readonly [what: string, more: object]>([
    ['other tools', { tools: [look, toolOf('other')] }],
    ['fewer tools', { tools: [] }],
    ['other instructions', { instructions: 'Be brief.' }],
    ['more turns', { maxSteps: 30 }],
  ])('a call with %s continues all the same (fan-out 5)', async ([, more]) => {
    const { path, call } = await left();
    const { responses, interrupted } = await call.start(more);
    expect(responses).toMatchObject([{ text: 'all of a', steps: 2, stopReason: 'answered' }, { text: 'of b' }]);
    expect([interrupted, call.calls(), around(path)]).toEqual([false, [3, 1], ['.pawl']]);
  });

  test('while it continues, the checkpoint file counts what earlier processes took (fan-out 5)', async () => {
    const { path, call } = await left([callTool('look'), hang()]);
    const caller = new AbortController();
    const running = call.start({ signal: caller.signal });
    await until(async () => (await loadCheckpoint(path))?.responses[0]?.steps === 2);
    expect((await loadCheckpoint(path))?.responses[0]).toMatchObject({
      ...{ inputTokens: 20, outputTokens: 10, costUsd: 0.12, toolCalls: { look: 2 }, completed: false },
    });
    caller.abort();
    expect((await running).responses[0]).toMatchObject({ inputTokens: 20, costUsd: 0.12, toolCalls: { look: 2 } });
  });

  test('a model whose processes have died again and again continues when it is asked again (fan-out 5)', async () => {
    const { path, call } = await left();
    await using store = sqliteStore({ path: recordsOf(path) });
    const [run] = await store.listInterrupted();
    let attempts = 0;
    for (let deaths = 0; deaths < 6; deaths++) {
      const claim = await store.claim(run?.runId ?? '', `dead-${deaths}`, 60_000);
      if (claim) await store.release(claim);
      attempts = claim?.attempts ?? 0;
    }
    expect(attempts).toBeGreaterThan(3);
    expect((await call.start()).responses[0]).toMatchObject({ text: 'all of a', steps: 2 });
  });

  test('before the first answer the file says what was asked, so that no other fan-out begins there (fan-out 5)', async () => {
    const path = freshPath();
    const call = asked({ models: { a: [hang()], b: [hang()] }, path });
    const running = call.start();
    await until(() => call.calls()[0] === 1);
    expect(await loadCheckpoint(path)).toMatchObject({ prompt, adapterIds: ['a', 'b'], responses: [] });
    call.caller.abort();
    await running;
  });

  test('a model that is new in the call is asked, and has its place (fan-out 5)', async () => {
    const { path, call } = await left();
    const models = { c: scriptedModel([reply('of c')]), ...call.models };
    const { responses } = await call.start({ models });
    expect(responses.map(({ text }) => text)).toEqual(['of c', 'all of a', 'of b']);
    expect((await loadCheckpoint(join(dirname(path), '.pawl', 'answers.json')))?.adapterIds).toEqual(['c', 'a', 'b']);
  });

  test('a call without a model that has left something is refused, and nothing of it is lost (fan-out 5)', async () => {
    const { path, call } = await left();
    const bytes = readFileSync(path);
    const { b } = call.models;
    await expect(call.start({ models: { b } as never })).rejects.toMatchObject({ code: 'FAN_OUT_CONFLICT' });
    expect([readFileSync(path).equals(bytes), around(path)]).toEqual([true, ['ask.json', 'ask.json.runs']]);
    expect((await call.start()).responses[0]).toMatchObject({ text: 'all of a', steps: 2 });
  });
});
